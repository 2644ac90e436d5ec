"""Formulas are what they print, and ranges go through them without being widened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.formula import Formula, Range, quantity

STEP = Formula("6*N*tokens/(n*peak)", "s", "6N per token")


def test_a_formula_computes_what_it_prints() -> None:
    """13 billion parameters and 2048 x 8 tokens on 8 devices of 312 TFLOP/s: 512 ms at full rate, not 0.51 ms."""
    assert STEP(N=13e9, tokens=2048 * 8, n=8, peak=312e12) == pytest.approx(0.5120, abs=1e-4)
    assert STEP.explain(N=13e9, tokens=16384, n=8, peak=312e12) == (
        "6*N*tokens/(n*peak) = 6*1.3e+10*16,384/(8*3.12e+14) = 0.512 s"
    )


def test_a_name_inside_another_name_is_left_alone() -> None:
    assert Formula("n*nn + n", "", "").explain(n=2, nn=3) == "n*nn + n = 2*3 + 2 = 8"


def test_a_range_of_a_name_that_stands_twice_is_not_widened() -> None:
    """x / x is 1 whatever x is; interval arithmetic would say 0.5 to 2."""
    found = Formula("x/x", "", "").over(x=Range(1.5, 1.0, 2.0))

    assert (found.low, found.value, found.high) == (1.0, 1.0, 1.0)


@given(a=st.floats(1, 1e6), b=st.floats(1, 1e6), wide=st.floats(0, 0.5), at=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_whatever_the_inputs_are_within_their_ranges_the_result_is_within_its(
    a: float, b: float, wide: float, at: tuple[float, float]
) -> None:
    ranges = [Range(value, value * (1 - wide), value * (1 + wide)) for value in (a, b)]
    inside = [one.low + share * (one.high - one.low) for one, share in zip(ranges, at, strict=True)]
    formula = Formula("x*sqrt(y)/(1 + y)*2*x", "", "")

    found = formula.over(x=ranges[0], y=Range.exactly(ranges[1].value))

    assert found.low * (1 - 1e-9) <= formula(x=inside[0], y=ranges[1].value) <= found.high * (1 + 1e-9)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("400", 399.5, 400.5), ("0.45", 0.445, 0.455), ("2.02e3", 2015, 2025), ("41", 40.5, 41.5), ("7e9", 6.5e9, 7.5e9)],
)
def test_a_printed_number_may_have_been_half_of_its_last_digit_more_or_less(text: str, low: float, high: float) -> None:
    found = Range.of_rounded(text)

    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)


def test_a_quantity_keeps_formula_inputs_and_source() -> None:
    found = quantity("step", STEP, N=Range.of_rounded("13e9"), tokens=16384, n=8, peak=312e12)

    assert found.unit == "s"
    assert found.inputs["N"] == 13e9
    assert found.source == "6N per token"
    assert found.value.low < 0.512 < found.value.high


def test_a_range_whose_ends_do_not_hold_its_value_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 2 <= 1 <= 3"):
        Range(1, 2, 3)
