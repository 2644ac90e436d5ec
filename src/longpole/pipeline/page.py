"""The page of a run: its report, and the pictures of its units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.errors import LongpoleError
from longpole.pipeline.drawing import DrawOptions, draw_run
from longpole.report.page.page import render_page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report


def make_page(
    paths: Sequence[str],
    options: ReportOptions,
    run: Run,
    report: Report,
    progress: Callable[[str, int, int], None] | None = None,
) -> bytes:
    """Return the page of a report; one whose traces are gone meanwhile has no timeline.

    Args:
        paths: What the report was made from.
        options: With which options.
        run: Its digests.
        report: The report.
        progress: Hears (what is being read, files done, files in all).
    """
    try:
        drawing = draw_run(paths, options, run, report, DrawOptions(detailed=True, progress=progress))
    except LongpoleError:
        drawing = None
    return render_page(report, drawing)
