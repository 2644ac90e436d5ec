"""The whole page: the verdict first, then what it rests on, then what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.text.collectives import render_collectives
from longpole.report.text.figures import scale_for
from longpole.report.text.findings import render_findings
from longpole.report.text.gaps import render_gaps
from longpole.report.text.heading import render_headline, render_who
from longpole.report.text.idle import render_idle
from longpole.report.text.layout import Style
from longpole.report.text.ledger_table import render_ledger
from longpole.report.text.not_known import render_not_known
from longpole.report.text.path import render_path
from longpole.report.text.ranks import render_ranks
from longpole.report.text.record import render_record
from longpole.report.text.resources import render_resources

if TYPE_CHECKING:
    from longpole.report.document import Report

NARROWEST: Final = 60
"""The fewest columns that the tables need; a narrower terminal breaks the lines itself."""


def render_text(report: Report, *, width: int, color: bool) -> str:
    """Write the first screen of a report.

    Args:
        report: The report, with all its ranks.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences; they are the only control characters beside line ends.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a trace is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    scale = scale_for(report.ledger.wall_ns)
    sections = [
        render_who(report, style),
        render_headline(report, style),
        render_findings(report, style),
        render_ledger(report, scale, style),
        render_idle(report, scale, style),
        render_gaps(report, style),
        render_ranks(report, scale, style),
        render_collectives(report, scale, style),
        render_path(report, style),
        render_resources(report, style),
        render_not_known(report, style),
        render_record(report, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"
