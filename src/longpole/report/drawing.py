"""The pictures of a run's units: every rank's spans in the run's time, unit by unit, with the path through them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.digest.rank_drawing import IDLE, Spans, coarsen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.digest.rank_drawing import Lane, RankDrawing
    from longpole.records.critical_path import CriticalPath, PathPiece

FINEST: Final = 16_384
"""Of a unit, what is drawn alone at least: two screens of 8,000 columns."""

SPANS_MAX: Final = 60_000
"""Spans of all pictures of a page, unless somebody asks for more: 4 MB of it."""


@dataclass(frozen=True, slots=True)
class DrawnLane:
    """A row of a picture: a rank's lane."""

    rank: int
    lane: Lane


@dataclass(frozen=True, slots=True)
class DrawnUnit:
    """One unit on all ranks.

    Attributes:
        name: Its name.
        start_ns, end_ns: What the picture spans: from the first rank's start to the last completion.
        spans: In ns since `start_ns`; `lane` counts the drawing's lanes.
        pieces: The critical path through it, empty where it is known for another unit alone.
    """

    name: str
    start_ns: int
    end_ns: int
    spans: Spans
    pieces: Sequence[PathPiece]


@dataclass(frozen=True, slots=True)
class Drawing:
    """What the timeline of a page shows.

    Attributes:
        lanes: Its rows, rank by rank.
        names: What name codes stand for.
        units: Pictures, in the order in which they were asked for.
        left_out: Units that are not drawn, with the reason.
        notes: What is not drawn, in sentences.
        stacks: `[S, F]` int32: name codes of each call stack's frames, the innermost first, -1 behind the last.
    """

    lanes: list[DrawnLane]
    names: list[str]
    units: list[DrawnUnit]
    left_out: dict[str, str]
    notes: list[str]
    stacks: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0), np.int32))


def draw_units(
    ranks: Sequence[RankDrawing],
    to_run_ns: Mapping[int, Callable[[np.ndarray], np.ndarray]],
    bounds: Mapping[str, tuple[int, int]],
    path: CriticalPath | None,
    most: int = SPANS_MAX,
) -> Drawing:
    """Draw units in the run's time.

    Args:
        ranks: Each rank's drawing, in order of rank.
        to_run_ns: Rank -> what turns its times into the run's.
        bounds: Name of each unit to be drawn -> from when to when, in the order of their importance.
        path: The critical path, None where it is not known.
        most: Spans in all; a unit that does not fit is left out, the first one never.
    """
    lanes = [DrawnLane(one.rank, lane) for one in ranks for lane in one.lanes]
    codes: dict[str, int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    whole = [
        _in_run(one, to_run_ns[one.rank], (codes, stacks), first)
        for one, first in zip(ranks, _firsts(ranks), strict=True)
    ]
    units: list[DrawnUnit] = []
    left_out: dict[str, str] = {}
    drawn = 0
    for name, (start_ns, end_ns) in bounds.items():
        spans = _of_unit(whole, start_ns, end_ns)
        if units and drawn + len(spans) > most:
            left_out[name] = f"the page holds {most:,} spans"
            continue
        drawn += len(spans)
        pieces = path.pieces if path is not None and path.unit == name else []
        units.append(DrawnUnit(name, start_ns, end_ns, spans, pieces))
    frames = np.array(list(stacks), np.int32) if stacks else np.empty((0, 0), np.int32)
    return _with_used_names(_with_used_stacks(Drawing(lanes, list(codes), units, left_out, _notes(ranks), frames)))


def _firsts(ranks: Sequence[RankDrawing]) -> list[int]:
    counts = [len(one.lanes) for one in ranks]
    return [sum(counts[:place]) for place in range(len(counts))]


def _in_run(
    one: RankDrawing,
    to_run_ns: Callable[[np.ndarray], np.ndarray],
    known: tuple[dict[str, int], dict[tuple[int, ...], int]],
    first_lane: int,
) -> Spans:
    """Return a rank's spans with the run's times, lanes, names and stacks."""
    codes, stacks = known
    # One place more than there are names: -1 stays -1.
    table = np.array([*(codes.setdefault(name, len(codes)) for name in one.names), -1], np.int32)
    frames = [tuple(row) for row in table[one.stacks].tolist()]
    numbers = np.array([*(stacks.setdefault(row, len(stacks)) for row in frames), -1], np.int32)
    spans = one.spans
    return replace(
        spans,
        lane=(spans.lane + first_lane).astype(np.int32),
        start_ns=to_run_ns(spans.start_ns),
        end_ns=to_run_ns(spans.end_ns),
        name=table[spans.name],
        use=table[spans.use],
        stack=numbers[spans.stack],
    )


def _of_unit(whole: Sequence[Spans], start_ns: int, end_ns: int) -> Spans:
    """Cut a unit out of all ranks, and make it as fine as an eye can use."""
    parts = []
    for spans in whole:
        inside = spans.take((spans.end_ns > start_ns) & (spans.start_ns < end_ns))
        cut = np.maximum(inside.start_ns, start_ns) - start_ns, np.minimum(inside.end_ns, end_ns) - start_ns
        parts.append(replace(inside, start_ns=cut[0], end_ns=cut[1]))
    return coarsen(Spans.joined(parts), (end_ns - start_ns) // FINEST)


def _with_used_stacks(drawing: Drawing) -> Drawing:
    """Keep the stacks that a drawn span has."""
    used, place = _used([unit.spans.stack for unit in drawing.units], len(drawing.stacks))
    units = [replace(unit, spans=replace(unit.spans, stack=place[unit.spans.stack])) for unit in drawing.units]
    return replace(drawing, units=units, stacks=drawing.stacks[used])


def _with_used_names(drawing: Drawing) -> Drawing:
    """Keep the names that a drawn span has."""
    columns = [column for unit in drawing.units for column in (unit.spans.name, unit.spans.use)]
    used, place = _used([*columns, drawing.stacks.reshape(-1)], len(drawing.names))
    units = [
        replace(unit, spans=replace(unit.spans, name=place[unit.spans.name], use=place[unit.spans.use]))
        for unit in drawing.units
    ]
    names = [drawing.names[code] for code in used.tolist()]
    return replace(drawing, names=names, units=units, stacks=place[drawing.stacks])


def _used(columns: Sequence[NDArray[np.int32]], n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return which of n codes stand in columns, and the new code of each; -1 stays -1."""
    found = np.unique(np.concatenate(columns)).astype(np.int64) if columns else np.empty(0, np.int64)
    used = found[found >= 0]
    place = np.full(n + 1, -1, np.int32)
    place[used] = np.arange(len(used))
    return used, place


def _notes(ranks: Sequence[RankDrawing]) -> list[str]:
    found = [f"rank {one.rank}: {one.threads_left_out} more threads" for one in ranks if one.threads_left_out]
    notes = [f"not drawn: {'; '.join(found[:4])}{'; …' if len(found) > 4 else ''}"] if found else []
    if not any(lane.kind == IDLE for one in ranks for lane in one.lanes):
        notes.append("no device was recorded: threads alone are drawn")
    return notes
