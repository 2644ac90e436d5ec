"""The CSV tables."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest

from longpole.report.csv import render_csv
from longpole.vocabulary.objects import OBJECTS
from tests.report_builder import (
    SAMPLES,
    WORKERS_UNSEEN,
    make_finding,
    make_gap,
    make_ledger,
    make_report,
    make_row,
    make_top,
)

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report


def read(report: Report, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(report)[name])))


@pytest.fixture
def report() -> Report:
    ledger = make_ledger(
        {"compute": 50, "collective": 10}, {"input": 8, "host.sync": 6}, hidden={"input": WORKERS_UNSEEN}
    )
    gap = make_gap("wait", "host.sync", 6, stack=["main", "wait"])
    return make_report([make_row(3, [ledger, ledger], top=make_top(gap))])


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_table_has_a_header_and_rows_of_its_width(sample: str) -> None:
    for name, text in render_csv(SAMPLES[sample]()).items():
        header, *rows = csv.reader(io.StringIO(text))
        assert header, name
        assert {len(row) for row in rows} <= {len(header)}, name


def test_the_ledger_adds_up_to_the_wall(report: Report) -> None:
    rows = read(report, "ledger.csv")

    assert [row["object"] for row in rows] == list(OBJECTS)
    assert sum(int(row["exposed_ns"]) for row in rows) == report.ranks[0].ledger.wall_ns
    assert {(row["rank"], row["device"]) for row in rows} == {("3", "cuda:0")}


def test_an_unknown_figure_is_an_empty_cell_with_the_reason_beside_it(report: Report) -> None:
    by_object = {row["object"]: row for row in read(report, "ledger.csv")}

    assert by_object["input"]["service_ns"] == ""
    assert by_object["input"]["service_unknown"] == WORKERS_UNSEEN.unknown
    assert by_object["input"]["hidden_unknown"] == WORKERS_UNSEEN.unknown
    assert by_object["compute"]["service_unknown"] == ""
    assert by_object["host"]["service_unknown"] == "host has no operations of its own"


def test_the_first_unit_has_no_period_and_says_so(report: Report) -> None:
    first, second = read(report, "units.csv")

    assert (first["period_ns"], first["period_unknown"]) == ("", "the first unit has none")
    assert (second["period_ns"], second["period_unknown"]) == ("74", "")
    assert second["steady"] == "true"
    assert second["exposed_input_ns"] == "8"


def test_idle_reasons_say_what_they_are_charged_to(report: Report) -> None:
    by_reason = {row["reason"]: row for row in read(report, "idle.csv")}

    assert by_reason["host.sync"]["charged_to"] == "host"
    assert by_reason["host.sync"]["idle_ns"] == "12"
    assert sum(int(row["idle_ns"]) for row in by_reason.values()) == report.ranks[0].ledger.device.idle_ns


def test_a_gap_carries_its_stack(report: Report) -> None:
    (gap,) = read(report, "gaps.csv")

    assert (gap["stack"], gap["idle_ns"], gap["event"]) == ("main > wait", "host.sync=6", "17")


def test_a_copy_without_a_rate_says_why(report: Report) -> None:
    copy, memset = read(report, "copies.csv")

    assert (copy["gb_per_s"], copy["gb_per_s_unknown"]) == ("40.96", "")
    assert (memset["gb_per_s"], memset["gb_per_s_unknown"]) == ("", "no copy says its size and took time")


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "  =1+1", '=HYPERLINK("x")'])
def test_a_name_that_a_spreadsheet_would_run_begins_with_an_apostrophe(name: str) -> None:
    report = make_report([make_row(0, [make_ledger({"compute": 5}, {})], top=make_top(names=[name]))])

    assert [row["name"] for row in read(report, "kernels.csv")] == [f"'{name}"]


def test_a_figure_is_never_quoted_as_a_formula() -> None:
    """A negative number is a number, whatever it begins with."""
    report = make_report([make_row(0, [make_ledger({"compute": 5}, {})])])
    report.ranks[0].units[0].lag_ns = -7

    assert read(report, "units.csv")[0]["lag_ns"] == "-7"


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "tab\tand\nline", "\u202e"])
def test_a_cell_holds_no_control_character(name: str) -> None:
    row = make_row(0, [make_ledger({"compute": 5}, {})], top=make_top(names=[name]))
    report = make_report([row], integrity=[make_finding("event.duplicate", "note", name)])

    for text in render_csv(report).values():
        assert not [char for char in text if (ord(char) < 0x20 and char != "\n") or char == "\u202e"]
        assert text.count("\n") == len(list(csv.reader(io.StringIO(text))))


def test_findings_and_what_is_not_known_have_tables() -> None:
    report = SAMPLES["typical"]()

    finding = read(report, "integrity.csv")[0]
    assert (finding["code"], finding["rank"], finding["count"]) == ("kernel.duration.impossible", "3", "12")
    assert finding["voids"] == "/ranks/3/ledger/device/busy_ns"
    assert len(read(report, "unknown.csv")) == len(report.unknown)


def test_the_reference_page_describes_every_table_and_column(root: Path) -> None:
    page = (root / "docs" / "reference" / "csv.md").read_text(encoding="utf-8")

    for name, text in render_csv(SAMPLES["cpu-only"]()).items():
        assert f"`{name}`" in page
        columns = next(csv.reader(io.StringIO(text)))
        assert not [column for column in columns if f"`{column}`" not in page and not column.startswith("exposed_")]
