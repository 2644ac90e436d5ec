"""What a printed figure may have been: by its digits, its zeros, and how it may have been cut off."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.claims.figures import COARSE, CUT, LEVELS, ROUNDED, Figure, figure_of, parse_written
from longpole.errors import UsageError


def figure(text: str, scale: float = 1.0) -> Figure:
    return figure_of(parse_written(text), scale)


@pytest.mark.parametrize(
    ("text", "level", "low", "high"),
    [
        ("35", ROUNDED, 34.5, 35.5),
        ("0.50", ROUNDED, 0.495, 0.505),
        ("13e9", ROUNDED, 12.5e9, 13.5e9),
        ("400", ROUNDED, 399.5, 400.5),
        ("400", COARSE, 395, 405),
        ("2200", COARSE, 2150, 2250),
        ("20", COARSE, 19.5, 20.5),
        ("1,200", COARSE, 1150, 1250),
        ("33", CUT, 32.5, 34),
        ("~400", ROUNDED, 395, 405),
        ("33-39", ROUNDED, 32.5, 39.5),
        ("33 to 39", ROUNDED, 32.5, 39.5),
        ("up to 57", ROUNDED, 0, 57.5),
        (">= 40", ROUNDED, 39.5, math.inf),
    ],
)
def test_a_figure_lies_where_its_digits_say(text: str, level: int, low: float, high: float) -> None:
    found = figure(text)

    assert (found.low[level], found.high[level]) == pytest.approx((low, high))


@given(st.decimals(min_value=Decimal("0.0001"), max_value=Decimal(10**12), allow_nan=False, places=4))
def test_every_way_of_rounding_is_wider_than_the_one_before(number: Decimal) -> None:
    found = figure(str(number))

    for narrow, wide in pairwise(LEVELS):
        assert found.low[wide] <= found.low[narrow] <= found.value <= found.high[narrow] <= found.high[wide]


@given(st.floats(min_value=1e-3, max_value=1e12), st.integers(min_value=1, max_value=6))
def test_a_number_that_is_rounded_may_have_been_itself(number: float, digits: int) -> None:
    """Printing a number with few digits and reading it back never excludes it."""
    printed = f"{number:.{digits - 1}e}"

    assert figure(printed).holds(number, ROUNDED) or math.isclose(figure(printed).value, number, rel_tol=1e-9)


@pytest.mark.parametrize("text", ["", "fast", "1e999", "--3", "nan"])
def test_what_is_no_number_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="found"):
        figure(text)


def test_a_scaled_figure_keeps_its_relative_width() -> None:
    found = figure("512", 1e-3)

    assert (found.value, found.low[0], found.high[0]) == pytest.approx((0.512, 0.5115, 0.5125))
    assert found.scaled(2.0).high[0] == pytest.approx(1.025)
