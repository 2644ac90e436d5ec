"""The declared ledger: its oracles, its laws, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.declared_events import (
    PARTS,
    DeclaredEvent,
    LedgerTimes,
    Lifecycle,
    exposed_ms,
    hidden_ms,
    measure_event,
    measure_ledger,
    service_ms,
)
from longpole.errors import InputError
from longpole.vocabulary.objects import MOVED_OBJECTS
from tests.declared_events import events, lifecycles

CLOSE = 1e-12


def event(**given: Any) -> DeclaredEvent:
    return DeclaredEvent(**{"object": "input", "bytes": 0, "bandwidth_gbps": 1.0, **given})


def close(value: float) -> Any:
    return pytest.approx(value, rel=CLOSE, abs=1e-300)


# ------------------------------------------------------------------ the oracles of DESIGN 3.5


def test_a_gigabyte_at_one_gigabyte_a_second_and_two_milliseconds() -> None:
    assert service_ms(event(bytes=10**9, bandwidth_gbps=1.0, fixed_latency_ms=2.0)) == 1002.0


def test_no_bytes_cost_the_latency() -> None:
    assert service_ms(event(bytes=0, bandwidth_gbps=10.0, fixed_latency_ms=0.5)) == 0.5


@pytest.mark.parametrize(("blocks", "exposed"), [(True, 8.0), (False, 0.0)])
def test_a_window_hides_nothing_where_the_next_work_waits(blocks: bool, exposed: float) -> None:
    eight = event(bytes=8_000_000, bandwidth_gbps=1.0, overlap_window_ms=20.0, blocking_dependency=blocks)

    assert service_ms(eight) == 8.0
    assert exposed_ms(eight) == exposed


def test_a_window_hides_no_more_than_it_is_long() -> None:
    twelve = event(fixed_latency_ms=12.0, overlap_window_ms=5.0, blocking_dependency=False)

    assert (hidden_ms(twelve), exposed_ms(twelve)) == (5.0, 7.0)


def test_two_events_by_object() -> None:
    artifact = event(object="artifact", bytes=10**9, bandwidth_gbps=1.0, frequency=1, blocking_dependency=True)
    state = event(
        object="state", bytes=10**8, bandwidth_gbps=10.0, frequency=4, overlap_window_ms=6.0, blocking_dependency=False
    )

    ledger = measure_ledger([artifact, state])

    assert ledger.total.bytes == 1_400_000_000
    assert ledger.by_object["artifact"].exposed_ms == 1000.0
    assert ledger.by_object["state"].service_ms == 40.0
    assert ledger.by_object["state"].exposed_ms == 16.0
    assert ledger.total.exposed_ms == 1016.0


# ------------------------------------------------------------------ what else is defined


def test_serialisation_is_no_service_and_is_exposed_like_its_operation() -> None:
    blocking = measure_event(event(fixed_latency_ms=10.0, serialization_ms=4.0, overlap_window_ms=100.0))
    free = measure_event(
        event(fixed_latency_ms=10.0, serialization_ms=4.0, overlap_window_ms=12.0, blocking_dependency=False)
    )

    assert (blocking.service_ms, blocking.exposed_ms, blocking.serialization_exposed_ms) == (10.0, 10.0, 4.0)
    # The window of 12 ms hides the 10 ms of service, and with what is left 2 of 4 ms of serialisation.
    assert (free.exposed_ms, free.serialization_hidden_ms, free.serialization_exposed_ms) == (0.0, 2.0, 2.0)
    assert free.wait_ms == 2.0


def test_compressed_bytes_are_those_that_take_time() -> None:
    times = measure_event(event(bytes=10**9, stored_bytes=250_000_000, bandwidth_gbps=1.0, frequency=2))

    assert (times.bytes, times.moved_bytes) == (2 * 10**9, 500_000_000)
    assert times.service_ms == 500.0


@pytest.mark.parametrize(("per", "factor"), [("unit", 1.0), ("request", 32.0), ("token", 4096.0), ("run", 1 / 500)])
def test_what_an_event_counts_in_is_brought_to_one_unit(per: str, factor: float) -> None:
    times = measure_event(
        event(per=per, bytes=10**6, fixed_latency_ms=1.0, frequency=3),
        Lifecycle(requests_per_unit=32, tokens_per_unit=4096, units_per_run=500),
    )

    assert times.operations == close(3 * factor)
    assert times.bytes == close(3 * 10**6 * factor)
    assert times.service_ms == close(3 * 2.0 * factor)


@pytest.mark.parametrize(
    ("per", "key"), [("request", "requests_per_unit"), ("token", "tokens_per_unit"), ("run", "units_per_run")]
)
def test_a_conversion_that_is_not_known_is_never_one(per: str, key: str) -> None:
    with pytest.raises(InputError, match=rf"event 2 \(kv\): per: .*{key}"):
        measure_ledger([event(), event(per=per, name="kv")])


def test_the_latency_of_one_operation_is_told_from_that_of_many() -> None:
    """One request of 10 operations, 3 requests a unit: 30 latencies, of which one would be enough."""
    times = measure_event(
        event(per="request", frequency=10, fixed_latency_ms=1.0, bytes=2_000_000), Lifecycle(requests_per_unit=3)
    )

    assert times.parts_ms == {
        "bytes": close(60.0),
        "fixed_latency": close(1.0),
        "frequency": close(29.0),
        "serialization": 0.0,
        "back_pressure": 0.0,
    }
    assert times.dominant_part == "bytes"


def test_what_happens_once_a_run_has_one_latency_a_run() -> None:
    times = measure_event(event(per="run", frequency=1, fixed_latency_ms=100.0), Lifecycle(units_per_run=1000))

    assert times.parts_ms["fixed_latency"] == close(0.1)
    assert times.parts_ms["frequency"] == 0.0


def test_a_full_queue_is_waited_for_beside_the_operation() -> None:
    """4 GB/s for 300 ms into 300 MB that drain at 1 GB/s: 600 ms of stall an operation (test_output_queue.py)."""
    times = measure_event(
        event(
            object="output",
            fixed_latency_ms=5.0,
            frequency=2,
            production_gbps=4.0,
            drain_gbps=1.0,
            queue_bytes=300_000_000,
            duration_ms=300.0,
        )
    )

    assert times.back_pressure_ms == close(1200.0)
    assert times.service_ms == 10.0
    assert times.wait_ms == close(1210.0)
    assert times.dominant_part == "back_pressure"


def test_nothing_declared_is_nothing_waited_for() -> None:
    ledger = measure_ledger([])

    assert ledger.total.wait_ms == 0.0
    assert ledger.total.dominant_part == ""
    assert list(ledger.by_object) == list(MOVED_OBJECTS)


# ------------------------------------------------------------------ laws


def check_laws(times: LedgerTimes) -> None:
    assert times.exposed_ms + times.hidden_ms == close(times.service_ms)
    assert times.serialization_exposed_ms + times.serialization_hidden_ms == close(times.serialization_ms)
    whole = times.service_ms + times.serialization_ms + times.back_pressure_ms
    assert math.fsum(times.parts_ms.values()) == pytest.approx(whole, rel=1e-9)
    assert all(getattr(times, name) >= 0 for name in LedgerTimes.__dataclass_fields__ if name != "parts_ms")
    assert times.wait_ms <= whole * (1 + CLOSE)


@given(st.lists(events, max_size=12), lifecycles)
def test_totals_are_the_sums_of_objects_and_of_events(declared: list[DeclaredEvent], lifecycle: Lifecycle) -> None:
    ledger = measure_ledger(declared, lifecycle)

    for times in (*ledger.events, *ledger.by_object.values(), ledger.total):
        check_laws(times)
    for name in LedgerTimes.__dataclass_fields__:
        if name == "parts_ms":
            continue
        total = getattr(ledger.total, name)
        assert math.fsum(getattr(each, name) for each in ledger.by_object.values()) == close(total)
        assert math.fsum(getattr(each, name) for each in ledger.events) == close(total)
    for part in PARTS:
        assert math.fsum(each.parts_ms[part] for each in ledger.events) == close(ledger.total.parts_ms[part])


@given(events, lifecycles)
def test_what_blocks_or_has_no_window_is_exposed_in_full(declared: DeclaredEvent, lifecycle: Lifecycle) -> None:
    times = measure_event(declared, lifecycle)

    if declared.blocking_dependency or not declared.overlap_window_ms:
        assert times.hidden_ms == times.serialization_hidden_ms == 0.0
        assert times.exposed_ms == times.service_ms


@given(st.lists(events, min_size=1, max_size=8), lifecycles, st.randoms())
def test_the_order_of_events_changes_no_total(declared: list[DeclaredEvent], lifecycle: Lifecycle, random: Any) -> None:
    shuffled = list(declared)
    random.shuffle(shuffled)

    assert measure_ledger(shuffled, lifecycle).total == measure_ledger(declared, lifecycle).total


@given(events, lifecycles, st.integers(1, 9))
def test_an_event_that_is_as_frequent_as_several_is_their_sum(
    declared: DeclaredEvent, lifecycle: Lifecycle, times: int
) -> None:
    once = {name: getattr(declared, name) for name in DeclaredEvent.__dataclass_fields__}
    often = DeclaredEvent(**once | {"frequency": declared.frequency * times})

    of_one = measure_ledger([often], lifecycle).total
    of_several = measure_ledger([declared] * times, lifecycle).total

    assert of_one.wait_ms == pytest.approx(of_several.wait_ms, rel=1e-9)
    assert of_one.bytes == pytest.approx(of_several.bytes)


# ------------------------------------------------------------------ what is refused

RATE = "bandwidth_gbps"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((RATE, value) for value in (0, 0.0, -1.0, math.inf, -math.inf, math.nan, True, "1", 10**400)),
        *(("frequency", value) for value in (0, -1, 1.5, 2.0, True, False, "2", math.nan)),
        *(("object", value) for value in ("weights", "Input", "", "collective", 3)),
        *(("bytes", value) for value in (-1, 0.5, math.inf, math.nan, True, "1", 1 << 63)),
        *(("fixed_latency_ms", value) for value in (-0.1, math.inf, math.nan, True, "1")),
        *(("overlap_window_ms", value) for value in (-1, math.inf, math.nan)),
        *(("serialization_ms", value) for value in (-1, math.nan)),
        *(("stored_bytes", value) for value in (-1, 1.5)),
        *(("blocking_dependency", value) for value in (0, 1, "false")),
        *(("per", value) for value in ("step", "", 1)),
        ("name", 3),
    ],
)
def test_a_value_that_a_key_does_not_hold_is_named(key: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"^event[^:]*: {key}: expected .*; found "):
        event(**{key: value})


def test_an_error_names_the_event() -> None:
    with pytest.raises(InputError, match=r"^event 'ckpt': bandwidth_gbps: expected a finite number above 0"):
        event(name="ckpt", bandwidth_gbps=0)


@pytest.mark.parametrize("left_out", ["production_gbps", "drain_gbps", "queue_bytes", "duration_ms"])
def test_half_a_queue_is_none(left_out: str) -> None:
    queue = {"production_gbps": 2.0, "drain_gbps": 1.0, "queue_bytes": 5, "duration_ms": 1.0}
    del queue[left_out]

    with pytest.raises(InputError, match=rf"{left_out}: missing; a queue needs it"):
        event(object="output", **queue)


def test_only_an_output_pushes_back() -> None:
    with pytest.raises(InputError, match="only an output has a queue"):
        event(object="state", production_gbps=2.0, drain_gbps=1.0, queue_bytes=5, duration_ms=1.0)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "3"])
def test_a_lifecycle_is_a_number_above_zero(value: Any) -> None:
    with pytest.raises(InputError, match="units_per_run: expected a number above 0"):
        Lifecycle(units_per_run=value)


def test_a_time_that_no_number_holds_is_refused_and_not_infinite() -> None:
    with pytest.raises(InputError, match=r"event 1 \(slow\): its figures together make a time"):
        measure_ledger([event(name="slow", bytes=10**18, bandwidth_gbps=1e-300, frequency=10**18)])


def test_numbers_of_numpy_are_numbers() -> None:
    np = pytest.importorskip("numpy")

    times = measure_event(event(bytes=np.int64(10**9), bandwidth_gbps=np.float32(2.0), frequency=np.int32(2)))

    assert times.service_ms == 1000.0
    assert type(times.bytes) is int
    assert type(times.service_ms) is float
