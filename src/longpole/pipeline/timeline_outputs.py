"""The outputs of a report that show every span, made together: its traces are read once more for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from longpole.errors import LongpoleError
from longpole.pipeline.drawing import DrawOptions, Picture
from longpole.pipeline.perfetto import ViewerTrace
from longpole.pipeline.second_reading import read_again
from longpole.report.page.page import render_page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report
    from longpole.report.drawing import Drawing


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of them.

    Attributes:
        page: The page.
        trace: Where a trace for the Perfetto viewer goes, None for none.
    """

    page: bool = False
    trace: BinaryIO | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """What came of it.

    Attributes:
        page: The page, empty where none was wanted; it has no timeline where the traces are gone meanwhile.
        missing: Ranks whose files could not be read again: the trace has their units and ledger, and not their spans.
    """

    page: bytes
    missing: list[int]


def make_outputs(
    paths: Sequence[str],
    options: ReportOptions,
    run: Run,
    report: Report,
    wanted: Wanted,
    progress: Callable[[str, int, int], None] | None = None,
) -> Made:
    """Make the page of a report and write its trace for the viewer.

    Args:
        paths: What the report was made from.
        options: With which options.
        run: Its digests.
        report: The report.
        wanted: What to make.
        progress: Hears (what is being read, files done, files in all).

    Raises:
        UsageError: A path is wrong, and a trace was wanted.
    """
    picture = Picture(options, run, report, DrawOptions(detailed=True)) if wanted.page else None
    trace = ViewerTrace(wanted.trace, options, run, report) if wanted.trace is not None else None
    drawing: Drawing | None = None
    try:
        read_again(paths, options, run, [output for output in (picture, trace) if output is not None], progress)
        drawing = picture.finished() if picture is not None else None
    except LongpoleError:
        if trace is not None:
            raise
    return Made(
        render_page(report, drawing) if wanted.page else b"", sorted(trace.missing) if trace is not None else []
    )
