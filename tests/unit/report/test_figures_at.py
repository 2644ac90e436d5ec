"""Figures read from a report by pointers: which entries, what is taken of them, and what is not known."""

from __future__ import annotations

import msgspec
import pytest

from longpole.records.ledger import Unknown
from longpole.report.figures_at import read_figure, resolve

WHY = Unknown("not split", ["all ranks"])


class Unit(msgspec.Struct):
    period_ns: int | Unknown
    exposed_ns: dict[str, int] = {}


class Row(msgspec.Struct):
    units: list[Unit]
    reason: str = ""
    slow: bool = False


class Document(msgspec.Struct):
    wall_ns: int
    idle_ns: dict[str, int]
    rows: list[Row]
    p95: int | Unknown = Unknown("n < 20")
    gone: int | msgspec.UnsetType = msgspec.UNSET


def rows(*periods: list[int | Unknown]) -> list[Row]:
    return [Row([Unit(period) for period in of_row]) for of_row in periods]


DOCUMENT = Document(
    wall_ns=200,
    idle_ns={"input": 30, "host.sync": 10, "a/b": 0},
    rows=[
        Row([Unit(WHY), Unit(10, {"output": 4}), Unit(40)], "pause", slow=True),
        Row([Unit(20), Unit(20), Unit(20)], "pause"),
        Row([], "more_work", slow=True),
    ],
)


def test_a_star_stands_for_every_entry_and_what_is_not_there_is_left_out() -> None:
    places = resolve(DOCUMENT, "/rows/*/units/*/exposed_ns/output")

    assert [(place.pointer, place.names, place.value) for place in places] == [
        ("/rows/0/units/1/exposed_ns/output", ("0", "1"), 4)
    ]
    assert resolve(DOCUMENT, "/rows/9/reason") == resolve(DOCUMENT, "/gone") == resolve(DOCUMENT, "/p95/unknown") == []


def test_a_pointer_is_written_with_its_escapes() -> None:
    assert [place.pointer for place in resolve(DOCUMENT, "/idle_ns/*")][-1] == "/idle_ns/a~1b"


def test_a_value_is_a_share_of_another_one() -> None:
    reading = read_figure(DOCUMENT, "/idle_ns/input", "/wall_ns", "value")

    assert (reading.value, reading.share) == (30, 0.15)


def test_the_extremes_say_where_they_are() -> None:
    largest = read_figure(DOCUMENT, "/rows/*/units/*/period_ns", "/wall_ns", "max")
    smallest = read_figure(DOCUMENT, "/rows/*/units/*/period_ns", "", "min")

    assert (largest.value, largest.share, largest.found_at) == (40, 0.2, "/rows/0/units/2/period_ns")
    assert (smallest.value, smallest.share, smallest.found_at) == (10, None, "/rows/0/units/1/period_ns")


def test_a_spread_compares_within_a_row() -> None:
    """The slowest row is not a slow unit."""
    document = Document(1, {}, rows([10, 10, 30], [100, 100, 100]))

    reading = read_figure(document, "/rows/*/units/*/period_ns", "", "spread")

    assert (reading.value, reading.found_at) == (3, "/rows/0/units/2/period_ns")


def test_a_trend_compares_the_last_third_with_the_first() -> None:
    document = Document(1, {}, rows([10, 11, 10, 12, 15, 14, 20, 20, 90], [10] * 6))

    assert read_figure(document, "/rows/*/units/*/period_ns", "", "trend").value == 2


def test_a_trend_of_few_units_is_not_known() -> None:
    reading = read_figure(DOCUMENT, "/rows/*/units/*/period_ns", "", "trend")

    assert isinstance(reading.value, Unknown)
    assert "fewer than 6" in reading.value.unknown


def test_a_share_of_sums_is_over_the_entries_in_which_both_are_known() -> None:
    document = Document(1, {}, [Row([Unit(5, {"x": 10}), Unit(WHY, {"x": 1000}), Unit(7)])])

    reading = read_figure(document, "/rows/*/units/*/period_ns", "/rows/*/units/*/exposed_ns/x", "sum")

    assert isinstance(reading.value, Unknown) is False
    assert (reading.value, reading.share) == (5, 0.5)


def test_entries_of_a_map_are_shares_of_their_sum() -> None:
    reading = read_figure(DOCUMENT, "/idle_ns", "", "largest")

    assert reading.parts == {"input": 0.75, "host.sync": 0.25}


def test_names_are_counted() -> None:
    assert read_figure(DOCUMENT, "/rows/*/reason", "", "names").parts == {"pause": 2, "more_work": 1}
    assert read_figure(DOCUMENT, "/rows/*/slow", "", "count").value == 2


@pytest.mark.parametrize(
    ("at", "of", "take", "why"),
    [
        ("/p95", "/wall_ns", "value", "n < 20"),
        ("/wall_ns", "/p95", "value", "n < 20"),
        ("/rows/0/units/0/period_ns", "", "max", "not split"),
        ("/nowhere", "", "value", "no such figure"),
        ("/nowhere/*", "", "max", "no such figure"),
        ("/idle_ns/input", "/idle_ns/a~1b", "value", "no such figure"),
    ],
)
def test_what_is_not_known_says_why_and_is_no_zero(at: str, of: str, take: str, why: str) -> None:
    reading = read_figure(DOCUMENT, at, of, take)

    decisive = reading.share if of else reading.value
    assert isinstance(decisive, Unknown)
    assert why in decisive.unknown
