"""Texts of options as values."""

from __future__ import annotations

import pytest

from longpole.cli.values import parse_choice, parse_count, parse_if_given, parse_ranks, parse_units
from longpole.errors import UsageError


@pytest.mark.parametrize(
    ("text", "units"),
    [("3..7", (3, 7)), ("3..", (3, None)), ("..7", (None, 7)), ("5", (5, 5)), ("0..0", (0, 0)), (" 3..7 ", (3, 7))],
)
def test_a_range_of_units_has_both_its_ends(text: str, units: tuple[int | None, int | None]) -> None:
    assert parse_units(text) == units


@pytest.mark.parametrize(
    "text", ["", "..", "7..3", "3-7", "a..b", "-1..3", "3...7", "\uff13..\uff17", "1..2..3", "9" * 30]
)
def test_what_is_no_range_of_units_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--units: expected a range") as caught:
        parse_units(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "ranks"), [("0", {0}), ("0,3-5", {0, 3, 4, 5}), ("7-7", {7}), ("1, 2", {1, 2}), ("3-5,4-6", {3, 4, 5, 6})]
)
def test_ranks_are_numbers_and_ranges(text: str, ranks: set[int]) -> None:
    assert parse_ranks(text) == ranks


@pytest.mark.parametrize("text", ["", "a", "5-3", "1,,2", "-1", "1..3", "0-99999999", "²"])
def test_what_is_no_set_of_ranks_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--rank: expected ranks and ranges such as 0,3-5"):
        parse_ranks(text)


def test_a_count_is_a_whole_number_from_one() -> None:
    assert parse_count("--job", "12") == 12


def test_a_count_that_was_not_given_is_none() -> None:
    assert parse_count("--job", None) is None


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "two", "", "٣", "1" * 12])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--jobs: expected a whole number of at least 1"):
        parse_count("--jobs", text)


def test_a_choice_is_one_of_its_words() -> None:
    assert parse_choice("--color", "never", ("auto", "never")) == "never"


def test_another_word_is_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match="--color: expected one of auto, never; found 'red'"):
        parse_choice("--color", "red", ("auto", "never"))


def test_an_option_that_was_not_given_is_not_read() -> None:
    assert parse_if_given(parse_units, None) is None
    assert parse_if_given(parse_units, "4") == (4, 4)
