"""The order of rows by their largest wait."""

from __future__ import annotations

from longpole.report.worst import by_largest_wait, largest_wait, steady_units, whole_units
from tests.report_builder import make_ledger, make_row, make_unit

SLOW = make_ledger({"compute": 900}, {"input": 80, "host.python": 20})
FAST = make_ledger({"compute": 900}, {"input": 10, "host.python": 30})


def test_compute_is_no_wait() -> None:
    row = make_row(0, [SLOW, SLOW])

    assert largest_wait(row) == ("input", 80)


def test_the_wait_is_a_mean_over_units() -> None:
    row = make_row(0, [SLOW, make_ledger({"compute": 900}, {"input": 41})])

    assert largest_wait(row) == ("input", 61)  # 60.5, half a nanosecond upwards


def test_units_that_are_not_steady_do_not_count() -> None:
    row = make_row(0, [SLOW, FAST])
    row.units[0].steady = False

    assert steady_units(row) == row.units[1:]
    assert largest_wait(row) == ("host", 30)


def test_all_units_count_where_none_is_steady() -> None:
    row = make_row(0, [SLOW])
    row.units[0].steady = False

    assert largest_wait(row) == ("input", 80)


def test_head_and_tail_are_no_units() -> None:
    row = make_row(0, [FAST])
    row.units.insert(0, make_unit("head", SLOW, 0, kind="head"))
    row.units.append(make_unit("tail", SLOW, 0, kind="tail"))

    assert [unit.name for unit in whole_units(row)] == ["ProfilerStep#3"]
    assert largest_wait(row) == ("host", 30)


def test_a_row_without_units_is_judged_as_a_whole() -> None:
    row = make_row(0, [SLOW])
    row.units.clear()

    assert largest_wait(row) == ("input", 80)


def test_the_largest_wait_comes_first_and_equal_ones_stay_in_order() -> None:
    rows = [make_row(0, [FAST]), make_row(1, [SLOW]), make_row(2, [FAST])]

    assert by_largest_wait(rows) == [1, 0, 2]
