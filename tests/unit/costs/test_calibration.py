"""Constants of the step model: by architecture where none is given, and never what no machine does."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from longpole.costs.calibration import (
    ATTENTION_FLOPS_PER_S,
    BOUNDS,
    MATMUL_FLOPS_PER_S,
    MEMORY_BYTES_PER_S,
    REACHED,
    REACHED_ELSEWHERE,
    UNFUSED_ATTENTION,
    UNMEASURED_CEILING,
    Calibration,
    ceiling,
    shipped_error_share,
)
from longpole.errors import UsageError
from longpole.hardware.devices import all_devices, find_device

A100 = find_device("A100-SXM4-80GB")


def test_rates_are_what_their_formulas_say() -> None:
    rates = Calibration().rates(A100, "bf16")
    known = {"peak": 312e12, "ceiling": 271.2 / 312, "matmul_of_ceiling": 0.875}

    assert rates.matmul_flops_per_s == pytest.approx(MATMUL_FLOPS_PER_S(**known))
    assert rates.attention_flops_per_s == pytest.approx(ATTENTION_FLOPS_PER_S(**known, attention_of_matmul=0.4))
    assert rates.memory_bytes_per_s == pytest.approx(MEMORY_BYTES_PER_S(memory_rate=2.039e12, memory_share=0.8))


def test_every_device_of_the_table_has_constants_and_an_unknown_architecture_those_for_want_of_measurements() -> None:
    for device in all_devices():
        found = Calibration().on(device)
        reached = REACHED.get(device.arch, REACHED_ELSEWHERE)
        assert (found.matmul_of_ceiling, found.attention_of_matmul) == (
            reached.matmul_of_ceiling,
            reached.attention_of_matmul,
        )


def test_attention_that_writes_its_scores_has_another_rate() -> None:
    assert Calibration().on(A100, flash=False).attention_of_matmul == UNFUSED_ATTENTION


def test_the_promised_error_is_widest_where_nothing_was_measured() -> None:
    shares = [shipped_error_share(find_device(name)) for name in ("A100", "H100", "MI300X")]

    assert shares == sorted(shares)
    assert shares[0] < shares[2]


def test_what_is_given_stands() -> None:
    found = Calibration(matmul_of_ceiling=0.5, attention_of_matmul=0.5).on(A100, flash=False)

    assert (found.matmul_of_ceiling, found.attention_of_matmul) == (0.5, 0.5)


def test_attention_and_head_are_computed_in_16_bits_where_products_are_in_8() -> None:
    rates = Calibration().rates(find_device("H100-SXM5-80GB"), "fp8")

    assert rates.matmul_flops_per_s > 1.5 * rates.head_flops_per_s


def test_a_part_without_a_measured_ceiling_is_taken_for_an_average_new_one() -> None:
    assert ceiling(find_device("L40S"), "bf16") == UNMEASURED_CEILING


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_a_constant_beyond_its_bounds_is_refused(name: str) -> None:
    low, high = BOUNDS[name]
    for value in (low - 1.0, high + 1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match=f"calibration: {name}: expected"):
            Calibration(**given(name, value))


def given(name: str, value: float) -> dict[str, Any]:
    """Return one constant by its name."""
    return {name: value}


def test_every_constant_has_bounds() -> None:
    assert {field.name for field in fields(Calibration)} == {*BOUNDS, "source"}


def test_a_device_without_a_memory_rate_is_refused() -> None:
    with pytest.raises(UsageError, match="memory: state it"):
        Calibration().rates(replace(A100, memory_bytes_per_s=None), "bf16")
