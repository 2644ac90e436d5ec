"""From the traces of a run to the pictures of its units; traces are read again, for a digest keeps no spans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from longpole.digest.across import bring_together
from longpole.digest.digest import Selection, lay_out
from longpole.digest.rank_drawing import draw_laid
from longpole.digest.steady import find_steady
from longpole.errors import LongpoleError
from longpole.pipeline.discover import find_traces
from longpole.pipeline.span_files import without_spans_beside_traces
from longpole.pipeline.work import WorkContext, read_timelines
from longpole.records.critical_path import CriticalPath
from longpole.report.drawing import SPANS_MAX, draw_units
from longpole.report.resource_rows import hosts_of
from longpole.report.utilisation import gauge_of
from longpole.settings import read_settings
from longpole.vocabulary.matcher import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    import numpy as np

    from longpole.analyses.rungs import DeviceRow
    from longpole.digest.digest import Laid
    from longpole.digest.jobs import Run
    from longpole.digest.rank_drawing import RankDrawing
    from longpole.digest.steady import Steady
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
        progress: Hears (what is being read, files done, files in all).
    """

    unit: str | None = None
    most: int = SPANS_MAX
    detailed: bool = False
    progress: Callable[[str, int, int], None] | None = None


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
    settings = read_settings(options.settings)
    across = bring_together(run.digests, settings, run.recorded)
    steady = find_steady(run.digests, settings, across.clocks if across is not None else None)
    path = report.critical_path if isinstance(report.critical_path, CriticalPath) else None
    chosen = _ranks(run, path)
    drawings = _read(paths, options, run, chosen, asked)
    clocks = {one.rank: run_clock(steady, one.rank) for one in drawings}
    bounds = _bounds(report, chosen, path, asked.unit)
    drawing = draw_units(drawings, clocks, bounds, path, asked.most)
    missing = len(run.digests) - len(drawings)
    if missing:
        drawing.notes.append(f"{len(drawings)} of {len(run.digests)} ranks are drawn, those of the path first")
    return drawing


def _ranks(run: Run, path: CriticalPath | None) -> set[int]:
    first = path.ranks_visited if path is not None else []
    ordered = dict.fromkeys([*first, *(digest.rank for digest in run.digests)])
    return set(list(ordered)[:RANKS_MAX])


def _read(
    paths: Sequence[str],
    options: ReportOptions,
    run: Run,
    chosen: set[int],
    asked: DrawOptions,
) -> list[RankDrawing]:
    """Draw the chosen ranks; a file that cannot be read any more costs its own ranks."""
    found = []
    digests, hosts = {digest.rank: digest for digest in run.digests}, hosts_of(run.digests)
    for rank, laid, device_rows in lay_out_again(paths, options, run, chosen, asked.progress):
        gauge = gauge_of(digests[rank], hosts) if asked.detailed else None
        found.append(replace(draw_laid(laid, device_rows, gauge=gauge), rank=rank))
    return sorted(found, key=lambda one: one.rank)


def lay_out_again(
    paths: Sequence[str],
    options: ReportOptions,
    run: Run,
    chosen: Container[int],
    progress: Callable[[str, int, int], None] | None,
) -> Iterator[tuple[int, Laid, list[DeviceRow]]]:
    """Read the chosen ranks' files again, one after the other.

    A file that cannot be read any more costs its own ranks.

    Yields:
        (rank, what its rows have in common, its devices).
    """
    settings = read_settings(options.settings)
    rules = str(options.rules) if options.rules is not None else None
    low, high = options.units or (None, None)
    context = WorkContext(rules, settings, options.step, low, high)
    selection = Selection(step_pattern=options.step, first_unit=low, last_unit=high)
    vocabulary = Vocabulary.load(options.rules)
    # A file that names no rank was given one when the run was brought together.
    given = {(digest.path, digest.rank if not digest.rank_assumed else None): digest.rank for digest in run.digests}
    wanted = {digest.path for digest in run.digests if digest.rank in chosen}
    files, _ = without_spans_beside_traces(find_traces(paths, settings))
    for place, file in enumerate(files):
        if progress is not None:
            progress(file.shown, place, len(files))
        if file.shown not in wanted and not file.is_spans:
            continue
        try:
            timelines = read_timelines(file, context)
        except LongpoleError:
            continue
        for timeline in timelines:
            identity = timeline.identity
            rank = given.get((timeline.source.path, None if identity.rank_assumed else identity.rank))
            if rank is not None and rank in chosen:
                yield rank, *lay_out(timeline, vocabulary, settings, selection)


def run_clock(steady: Steady, rank: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return what turns a rank's times into the run's, its clock's drift included."""
    if rank in steady.clocks:
        return steady.clocks[rank].to_run_ns
    offset_ns = steady.offset_ns[rank]
    return lambda times_ns: times_ns + offset_ns


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
