"""The page of a job of timed operations: what the document says, as text and pictures, and no script at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from longpole.cli.main import main
from longpole.records.ledger import Unknown
from longpole.report.operations import Culprit, Operations
from longpole.report.page.operations import render_operations_page
from longpole.units import format_ns
from tests.operation_tables import Job, write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import pytest

    from tests.operation_tables import Row

    Report = Callable[[Iterable[Row]], Operations]

SLOW = Job(slow={(1, 0): 2.0}, steps=(7, 8, 9))
HOSTILE = "<img src=x onerror=alert(1)>"


def test_the_page_says_the_verdict_its_cost_and_every_worker(report: Report) -> None:
    document = report(SLOW.rows())
    page = render_operations_page(document).decode()

    assert isinstance(document.culprit, Culprit)
    assert f"<strong id=pole>{document.culprit.says}</strong>" in page
    assert format_ns(document.steps.replayed_ns - document.steps.ideal_ns) in page
    told = re.findall(r"<title>data-parallel rank (\d), stage (\d), rank (\d+)", page)
    assert {tuple(map(int, one)) for one in told} == {(e.dp_rank, e.stage, e.rank) for e in document.by_rank}
    assert len(re.findall(r"<title>step \d: ", page)) == 3


def test_nothing_runs_and_names_stay_text(report: Report) -> None:
    document = report(SLOW.rows())
    types = [msgspec.structs.replace(document.by_optype[0], name=HOSTILE)]
    page = render_operations_page(msgspec.structs.replace(document, by_optype=types)).decode()

    assert "script-src 'none'" in page
    assert "<script" not in page
    assert HOSTILE not in page
    assert "&lt;img src=x" in page


def test_without_a_verdict_the_page_says_why(report: Report) -> None:
    document = msgspec.structs.replace(
        report(SLOW.rows()), culprit=Unknown("nobody knows"), explained_by_last_stage=Unknown("one stage"), by_rank=[]
    )
    page = render_operations_page(document).decode()

    assert "No verdict: nobody knows" in page
    assert 'title="one stage"' in page


def test_ten_thousand_workers_give_a_page_that_opens(report: Report) -> None:
    document = report(SLOW.rows())
    one = document.by_rank[0]
    many = [
        msgspec.structs.replace(one, rank=rank, dp_rank=rank // 8, stage=rank % 8, slowdown=1 + rank / 1e5)
        for rank in range(10_000)
    ]
    page = render_operations_page(msgspec.structs.replace(document, by_rank=many))

    assert len(page) < 1_000_000
    assert b"the 128 slowest of 1250 data-parallel ranks" in page
    assert b"9,960 more ranks are in --json" in page


def test_the_command_writes_it_and_never_over_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, page = str(write_table(tmp_path / "job.parquet", SLOW.rows())), tmp_path / "page.html"

    assert main(["report", table, "--html", str(page), "--quiet"]) == 0
    assert page.read_bytes().startswith(b"<!doctype html>")
    assert main(["report", table, "--html", table]) == 2
    assert "found one of the tables" in capsys.readouterr().err
