"""The tables that compare ranks, from the library and as CSV."""

from __future__ import annotations

import csv
import io

import pytest

import longpole
from longpole.report.csv import render_csv
from tests.case_answers import CASES


@pytest.fixture(scope="module")
def slow_rank() -> longpole.Run:
    """Four ranks, of which rank 2 computes 2.5 times as long."""
    return longpole.open(CASES / "B074" / "input", use_cache=False)


def test_collectives_are_rows_with_what_was_waited_and_moved(slow_rank: longpole.Run) -> None:
    (row,) = slow_rank.collectives().frame.to_dicts()

    assert (row["kind"], row["members"], row["split"]) == ("all_reduce", "0 1 2 3", "known")
    assert (row["transfer_ns"], row["waiting_ns"]) == (10_000_000, 450_000_000)
    assert (row["culprit_rank"], row["culprit_share"], row["bound"]) == (2, 1.0, "skew")
    assert row["why_unknown"] == ""


def test_waits_clocks_and_stragglers_are_tables(slow_rank: longpole.Run) -> None:
    waits = slow_rank.waits().frame
    assert waits.select("rank", "for_rank", "waiting_ns").rows() == [(rank, 2, 150_000_000) for rank in (0, 1, 3)]
    assert slow_rank.clocks().frame.select("rank", "method").rows() == [(rank, "base_time") for rank in range(4)]
    assert slow_rank.stragglers().frame.select("rank", "reason").rows() == [(2, "slower_work")]


def test_what_is_not_known_is_null_with_its_reason() -> None:
    run = longpole.open(CASES / "B041" / "input", use_cache=False)

    (row,) = run.collectives().frame.to_dicts()

    assert row["transfer_ns"] is row["waiting_ns"] is row["culprit_rank"] is None
    assert row["why_unknown"].startswith("waiting plus moving, cannot be split")


def test_the_csv_tables_hold_the_same(slow_rank: longpole.Run) -> None:
    tables = render_csv(slow_rank.report())

    for name, frame in (
        ("collectives.csv", slow_rank.collectives().frame),
        ("waits.csv", slow_rank.waits().frame),
        ("clocks.csv", slow_rank.clocks().frame),
        ("stragglers.csv", slow_rank.stragglers().frame),
    ):
        rows = list(csv.DictReader(io.StringIO(tables[name])))
        assert list(rows[0]) == frame.columns
        assert len(rows) == len(frame)
    assert len(tables["collective_sizes.csv"].splitlines()) == 2
    assert tables["links.csv"] == "from_rank,to_rank,count,bytes,transfer_ns,gb_per_s,slow\n"
