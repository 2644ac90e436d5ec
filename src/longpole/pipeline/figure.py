"""From the traces of a run to a figure of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.errors import Unanswered, UsageError
from longpole.pipeline.drawing import DrawOptions, draw_run
from longpole.pipeline.report import report_on
from longpole.records.critical_path import CriticalPath
from longpole.records.ledger import Unknown
from longpole.report.figures.gantt import draw_gantt
from longpole.report.figures.ledger import draw_ledger
from longpole.report.figures.matrix import WIDTH_MIN_IN, draw_matrix
from longpole.report.figures.path import draw_path
from longpole.report.figures.sheet import WIDTH_IN, require_matplotlib
from longpole.report.worst import whole_units

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report
    from longpole.report.figures.sheet import Drawn

FIGURES: Final = ("gantt", "ledger", "path", "matrix")
LEDGER_BY: Final = ("rank", "unit")
WIDTHS_IN: Final = (3.0, 40.0)
"""From a column of a paper to a poster."""
_UNITS_NAMED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOptions:
    """What a figure shows.

    Attributes:
        unit: Name of the unit; of a ledger the mean of the steady ones where None, else the one that the critical path
            is shown for.
        by: Of a ledger: a bar for each `rank`, or for each `unit` of the rank that the verdict names.
        width_in: Width in inches; the height follows from what is shown.
    """

    unit: str | None = None
    by: str = "rank"
    width_in: float = WIDTH_IN


def make_figure(
    name: str,
    paths: Sequence[str],
    options: ReportOptions,
    asked: FigureOptions = FigureOptions(),
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Drawn | Unanswered, Report]:
    """Read a run and draw a figure of it.

    Args:
        name: One of `FIGURES`.
        paths: Files, folders and patterns; together they are one run.
        options: How they are read; its unit is the one whose path is walked in full.
        asked: What the figure shows.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Returns:
        The figure, or why what it would show is not known; and the report.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        UsageError: There is no such figure or unit, or a path or an option is wrong.
        InputError: No file could be used.
    """
    check_figure(name, asked)
    run, report = report_on(paths, options, progress)
    return figure_of(name, paths, options, (run, report), asked), report


def figure_of(
    name: str,
    paths: Sequence[str],
    options: ReportOptions,
    read: tuple[Run, Report],
    asked: FigureOptions,
) -> Drawn | Unanswered:
    """Draw a figure of a run that was read already; only a Gantt reads its traces again.

    Args:
        name: One of `FIGURES`.
        paths: What the report was made from.
        options: With which options.
        read: Its digests, and the report.
        asked: What the figure shows.

    Raises:
        UsageError: There is no such unit.
    """
    run, report = read
    if asked.unit is not None:
        _check_unit(asked.unit, report)
    if name == "ledger":
        return draw_ledger(report, by=asked.by, unit=asked.unit, width_in=asked.width_in)
    if name == "path":
        path = report.critical_path
        return draw_path(path, width_in=asked.width_in) if isinstance(path, CriticalPath) else _unanswered(path)
    if name == "matrix":
        matrix = report.resources
        return _unanswered(matrix) if isinstance(matrix, Unknown) else draw_matrix(matrix, width_in=asked.width_in)
    drawing = draw_run(paths, options, run, report, DrawOptions(unit=asked.unit, most=1))
    if not drawing.units:
        return Unanswered("the traces hold no unit that can be drawn")
    return draw_gantt(drawing, width_in=asked.width_in)


def check_figure(name: str, asked: FigureOptions) -> None:
    """Look whether a figure can be drawn at all, before anything is read.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        UsageError: There is no such figure, or it takes no such option.
    """
    if name not in FIGURES:
        msg = f"figure: expected one of {', '.join(FIGURES)}; found {name!r}"
        raise UsageError(msg)
    if asked.by not in LEDGER_BY:
        msg = f"--by: expected one of {', '.join(LEDGER_BY)}; found {asked.by!r}"
        raise UsageError(msg)
    if asked.by != "rank" and name != "ledger":
        msg = f"--by is for the ledger; figure {name} has one form"
        raise UsageError(msg)
    if asked.unit is not None and (name == "matrix" or asked.by == "unit"):
        what = "the matrix is over all units" if name == "matrix" else "--by unit shows them all"
        msg = f"--unit: {what}; leave it out, or choose units with --units A..B"
        raise UsageError(msg)
    low, high = WIDTHS_IN if name != "matrix" else (WIDTH_MIN_IN, WIDTHS_IN[1])
    if not low <= asked.width_in <= high:
        msg = f"--width: expected inches from {low:g} to {high:g}; found {asked.width_in:g}"
        raise UsageError(msg)
    require_matplotlib()


def _check_unit(unit: str, report: Report) -> None:
    names = list(dict.fromkeys(one.name for row in report.ranks for one in whole_units(row)))
    if unit not in names:
        some = ", ".join(names[:_UNITS_NAMED]) + (", …" if len(names) > _UNITS_NAMED else "")
        msg = f"--unit: expected the name of a unit ({some}); found {unit!r}"
        raise UsageError(msg)


def _unanswered(why: Unknown) -> Unanswered:
    return Unanswered(why.unknown, why.missing)
