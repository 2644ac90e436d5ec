"""The page and the viewer's trace of one call: made from one reading, and the same as each made alone."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from longpole.errors import UsageError
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on
from longpole.pipeline.timeline_outputs import Made, Wanted, make_outputs
from tests.trace_text import steps, write

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.digest.jobs import Run
    from longpole.report.document import Report

OPTIONS = ReportOptions(use_cache=False)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(write(tmp_path / f"rank{rank}.json", steps(2), rank, 2)) for rank in (0, 1)]


def made(paths: list[str], read: tuple[Run, Report], *, page: bool, trace: bool) -> tuple[Made, bytes, list[str]]:
    out, heard = io.BytesIO(), []
    wanted = Wanted(page=page, trace=out if trace else None)
    found = make_outputs(paths, OPTIONS, *read, wanted, lambda label, _done, _total: heard.append(label))
    return found, out.getvalue(), heard


def test_both_outputs_are_made_from_one_reading_and_are_those_made_alone(paths: list[str]) -> None:
    read = report_on(paths, OPTIONS)

    both, trace, heard = made(paths, read, page=True, trace=True)

    assert heard == paths
    assert both.page == made(paths, read, page=True, trace=False)[0].page
    assert trace == made(paths, read, page=False, trace=True)[1]
    assert both.missing == []
    assert both.page
    assert trace


def test_a_page_does_without_traces_that_are_gone_and_a_trace_for_the_viewer_does_not(paths: list[str]) -> None:
    read = report_on([paths[0]], OPTIONS)
    with_timeline = made([paths[0]], read, page=True, trace=False)[0].page
    gone = [f"{paths[0]}.gone"]

    page = made(gone, read, page=True, trace=False)[0].page

    assert page.startswith(with_timeline[:15])
    assert len(page) < len(with_timeline)
    with pytest.raises(UsageError):
        made(gone, read, page=True, trace=True)
