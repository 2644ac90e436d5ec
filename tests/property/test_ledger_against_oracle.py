"""The fast analyses against the slow and obvious ones, on records in which every nanosecond is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from tests.build import measure
from tests.examples import examples
from tests.oracle import MOVED, Oracle, Total
from tests.strategies import SMALL_SETTINGS, Shape, device_scripts, scripts

if TYPE_CHECKING:
    from longpole.digest.rank_digest import UnitDigest
    from tests.build import Script


def _without_zeros(times: dict[str, int]) -> dict[str, int]:
    return {name: time_ns for name, time_ns in times.items() if time_ns}


def _seen(unit: UnitDigest) -> dict[str, object]:
    ledger, device = unit.ledger, unit.ledger.device
    return {
        "wall": ledger.wall_ns,
        "exposed": _without_zeros({name: time.exposed_ns for name, time in ledger.objects.items()}),
        "service": _without_zeros({name: ledger.objects[name].service_ns for name in MOVED}),  # type: ignore[misc]
        "hidden": _without_zeros({name: ledger.objects[name].hidden_ns for name in MOVED}),  # type: ignore[misc]
        "idle": _without_zeros(ledger.idle_ns),
        "stage": _without_zeros({name: time.wall_ns for name, time in unit.stages.items()}),
        "stage busy": _without_zeros({name: time.busy_ns for name, time in unit.stages.items()}),
        "device": (device.busy_ns, device.compute_ns, device.collective_ns, device.copy_ns),
        "device exposed": (device.collective_exposed_ns, device.copy_exposed_ns),
    }


def _expected(total: Total) -> dict[str, object]:
    return {
        "wall": total.wall,
        "exposed": _without_zeros(total.exposed),
        "service": _without_zeros(total.service),
        "hidden": _without_zeros(total.hidden),
        "idle": _without_zeros(total.idle),
        "stage": _without_zeros(total.stage),
        "stage busy": _without_zeros(total.stage_busy),
        "device": (total.busy, total.compute, total.collective, total.copy),
        "device exposed": (total.collective_exposed, total.copy_exposed),
    }


def _compare(script: Script, devices: list[int] | list[None]) -> None:
    oracle = Oracle(script, SMALL_SETTINGS)
    measured = measure(script, SMALL_SETTINGS)

    assert len(measured.rows) == len(devices)
    for row, device in zip(measured.rows, devices, strict=True):
        expected = oracle.totals(device)
        kept = [total for place, total in enumerate(expected) if total.wall or place not in (0, len(expected) - 1)]
        assert [_seen(unit) for unit in row.units] == [_expected(total) for total in kept]
        inner = [unit for unit in row.units if unit.kind not in ("head", "tail")]
        assert [unit.completion_ns for unit in inner] == oracle.completions(device)


@examples(120)
@given(device_scripts())
def test_every_nanosecond_of_a_device_goes_where_the_oracle_puts_it(script: Script) -> None:
    """Ledger, services, idle reasons, stages and completions agree on every unit of every device."""
    _compare(script, sorted({span.device for span in script.device}))


@examples(50)
@given(scripts(Shape(with_device=False)))
def test_every_nanosecond_without_a_device_goes_where_the_oracle_puts_it(script: Script) -> None:
    """The thread that carries the units stands in for the device (DESIGN 3.3)."""
    _compare(script, [None])
