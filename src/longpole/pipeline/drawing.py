"""From the traces of a run to the pictures of its units; traces are read again, for a digest keeps no spans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from longpole.digest.rank_drawing import draw_laid
from longpole.pipeline.second_reading import read_again, run_clock, steady_of
from longpole.records.critical_path import CriticalPath
from longpole.report.drawing import SPANS_MAX, draw_units
from longpole.report.resource_rows import hosts_of
from longpole.report.utilisation import gauge_of
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.rungs import DeviceRow
    from longpole.digest.digest import Laid
    from longpole.digest.jobs import Run
    from longpole.digest.rank_drawing import RankDrawing
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report
    from longpole.report.drawing import Drawing

RANKS_MAX: Final = 16
"""Ranks that are drawn: those that the path comes by, then the others by number."""


@dataclass(frozen=True, slots=True)
class DrawOptions:
    """What is drawn.

    Attributes:
        unit: This unit alone; all that fit where None.
        most: Spans in all.
        detailed: With how much of what bounds them spans used, links as rows, and call stacks.
    """

    unit: str | None = None
    most: int = SPANS_MAX
    detailed: bool = False


class Picture:
    """The picture of a run's units in the making: takes the ranks that it shows, one by one.

    Args:
        options: How the run was read.
        run: Its digests.
        report: The report.
        asked: What to draw.

    Attributes:
        ranks: Those that it shows.
    """

    def __init__(self, options: ReportOptions, run: Run, report: Report, asked: DrawOptions) -> None:
        self._path = report.critical_path if isinstance(report.critical_path, CriticalPath) else None
        self.ranks = _ranks(run, self._path)
        self._run = run
        self._asked = asked
        self._steady = steady_of(run, read_settings(options.settings))
        self._bounds = _bounds(report, self.ranks, self._path, asked.unit)
        self._digests = {digest.rank: digest for digest in run.digests}
        self._hosts = hosts_of(run.digests)
        self._drawn: list[RankDrawing] = []

    def take(self, rank: int, laid: Laid, device_rows: list[DeviceRow]) -> None:
        """Draw a rank."""
        gauge = gauge_of(self._digests[rank], self._hosts) if self._asked.detailed else None
        self._drawn.append(replace(draw_laid(laid, device_rows, gauge=gauge), rank=rank))

    def finished(self) -> Drawing:
        """Return the unit that the critical path is shown for first, then the others as they fit."""
        ranks = sorted(self._drawn, key=lambda one: one.rank)
        clocks = {one.rank: run_clock(self._steady, one.rank) for one in ranks}
        drawing = draw_units(ranks, clocks, self._bounds, self._path, self._asked.most)
        if len(ranks) < len(self._run.digests):
            drawing.notes.append(f"{len(ranks)} of {len(self._run.digests)} ranks are drawn, those of the path first")
        return drawing


def draw_run(
    paths: Sequence[str], options: ReportOptions, run: Run, report: Report, asked: DrawOptions = DrawOptions()
) -> Drawing:
    """Draw the units of a run: the one that the critical path is shown for first, then the others as they fit.

    Args:
        paths: What the report was made from.
        options: With which options.
        run: Its digests.
        report: The report.
        asked: What to draw.

    Raises:
        UsageError: A path is wrong.
    """
    picture = Picture(options, run, report, asked)
    read_again(paths, options, run, [picture])
    return picture.finished()


def _ranks(run: Run, path: CriticalPath | None) -> set[int]:
    first = path.ranks_visited if path is not None else []
    ordered = dict.fromkeys([*first, *(digest.rank for digest in run.digests)])
    return set(list(ordered)[:RANKS_MAX])


def _bounds(
    report: Report, chosen: set[int], path: CriticalPath | None, unit: str | None
) -> dict[str, tuple[int, int]]:
    """Return from when to when each unit is drawn, the most important one first."""
    found: dict[str, tuple[int, int]] = {}
    steady: dict[str, bool] = {}
    for entry in report.ranks:
        if entry.rank not in chosen:
            continue
        for one in entry.units:
            if one.kind in ("head", "tail"):
                continue
            ends = one.start_ns, max(one.completion_ns, one.start_ns + one.wall_ns)
            low, high = found.get(one.name, ends)
            found[one.name] = min(low, ends[0]), max(high, ends[1])
            steady[one.name] = steady.get(one.name, True) and one.steady
    if path is not None and path.unit in found and path.pieces:
        low, high = found[path.unit]
        last = path.pieces[-1]
        found[path.unit] = min(low, path.pieces[0].start_ns), max(high, last.start_ns + last.dur_ns)
    first = unit if unit is not None else path.unit if path is not None else None
    order = sorted(found, key=lambda name: (name != first, not steady[name]))
    if not order:  # a record without units is one picture
        return {"the whole record": _whole(report, chosen)}
    return {name: found[name] for name in order if unit is None or name == unit}


def _whole(report: Report, chosen: set[int]) -> tuple[int, int]:
    rows = [one for entry in report.ranks if entry.rank in chosen for one in entry.units]
    if not rows:
        return 0, 1
    return min(one.start_ns for one in rows), max(one.start_ns + one.wall_ns for one in rows)
