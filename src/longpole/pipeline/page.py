"""The page of a run: its report, and the pictures of its units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.pipeline.timeline_outputs import Wanted, make_outputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report


def make_page(paths: Sequence[str], options: ReportOptions, run: Run, report: Report) -> bytes:
    """Return the page of a report; one whose traces are gone meanwhile has no timeline.

    Args:
        paths: What the report was made from.
        options: With which options.
        run: Its digests.
        report: The report.
    """
    return make_outputs(paths, options, run, report, Wanted(page=True)).page
