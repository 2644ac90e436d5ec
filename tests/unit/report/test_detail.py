"""What the levels of detail keep, and that pointers into a shortened report still resolve."""

from __future__ import annotations

import msgspec
import pytest

from longpole.cli.report_options import DETAILS as OFFERED
from longpole.errors import UsageError
from longpole.report.detail import DETAILS, ROWS_KEPT, ROWS_UP_TO, select_detail
from longpole.report.document import Report, UnknownEntry
from tests.report_builder import make_finding, make_ledger, make_report, make_row


def make_wide(n_ranks: int) -> Report:
    """Rank r waits r ns for its input, so the last ranks are the worst."""
    rows = [make_row(rank, [make_ledger({"compute": 500}, {"input": rank})]) for rank in range(n_ranks)]
    pointers = [f"/ranks/{place}/ledger/objects/input/hidden_ns" for place in range(n_ranks)]
    return make_report(
        rows,
        unknown=[
            UnknownEntry("/unit/items/kind", "not declared", []),
            *(UnknownEntry(at, "why", []) for at in pointers),
        ],
        integrity=[make_finding("unit.overrun", "void", "late", voids=["/replay", pointers[0], pointers[-1]])],
    )


def test_rank_keeps_all_rows_of_a_run_of_64() -> None:
    report = make_wide(ROWS_UP_TO)

    assert select_detail(report, "rank") is report


def test_rank_keeps_the_16_rows_that_wait_most_of_a_larger_run() -> None:
    report = make_wide(ROWS_UP_TO + 1)

    kept = select_detail(report, "rank")

    assert [row.rank for row in kept.ranks] == list(range(ROWS_UP_TO + 1 - ROWS_KEPT, ROWS_UP_TO + 1))


def test_unit_keeps_everything() -> None:
    report = make_wide(ROWS_UP_TO + 1)

    assert select_detail(report, "unit") is report


def test_run_keeps_no_row() -> None:
    kept = select_detail(make_wide(3), "run")

    assert kept.ranks == []
    assert kept.run.ranks_present == [0, 1, 2]


def test_what_is_left_out_is_said() -> None:
    kept = select_detail(make_wide(70), "rank")

    entry = kept.unknown[-1]
    assert entry.at == "/ranks"
    assert entry.why.startswith("54 of 70 rows are left out")
    assert entry.missing == ["--detail unit"]


def test_pointers_at_rows_that_are_kept_move_with_them() -> None:
    report = make_wide(70)

    kept = select_detail(report, "rank")

    for entry in kept.unknown:
        if entry.at.startswith("/ranks/"):
            place = int(entry.at.split("/")[2])
            assert kept.ranks[place].rank >= 70 - ROWS_KEPT
    assert len([entry for entry in kept.unknown if entry.at.startswith("/ranks/")]) == ROWS_KEPT
    assert kept.integrity[0].voids == ["/replay", f"/ranks/{ROWS_KEPT - 1}/ledger/objects/input/hidden_ns"]


def test_the_report_itself_is_not_changed() -> None:
    report = make_wide(70)
    before = msgspec.json.encode(report)

    select_detail(report, "run")

    assert msgspec.json.encode(report) == before


def test_another_level_is_refused() -> None:
    with pytest.raises(UsageError, match="--detail: expected one of run, rank, unit; found 'all'"):
        select_detail(make_wide(1), "all")


def test_the_command_line_offers_the_levels_that_exist() -> None:
    """The option's own list exists so that `--help` need not load the report."""
    assert OFFERED == DETAILS
