"""The pictures of a run's units: every rank's spans in the run's time, unit by unit, with the path through them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.digest.rank_drawing import IDLE, Spans, coarsen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
    """

    lanes: list[DrawnLane]
    names: list[str]
    units: list[DrawnUnit]
    left_out: dict[str, str]
    notes: list[str]


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
    whole = [_in_run(one, to_run_ns[one.rank], codes, first) for one, first in zip(ranks, _firsts(ranks), strict=True)]
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
    return _with_used_names(Drawing(lanes, list(codes), units, left_out, _notes(ranks)))


def _firsts(ranks: Sequence[RankDrawing]) -> list[int]:
    counts = [len(one.lanes) for one in ranks]
    return [sum(counts[:place]) for place in range(len(counts))]


def _in_run(
    one: RankDrawing, to_run_ns: Callable[[np.ndarray], np.ndarray], codes: dict[str, int], first_lane: int
) -> Spans:
    """Return a rank's spans with the run's times, lanes and names."""
    table = np.array([codes.setdefault(name, len(codes)) for name in one.names], np.int32)
    spans = one.spans
    return replace(
        spans,
        lane=(spans.lane + first_lane).astype(np.int32),
        start_ns=to_run_ns(spans.start_ns),
        end_ns=to_run_ns(spans.end_ns),
        name=table[spans.name] if len(table) else spans.name,
    )


def _of_unit(whole: Sequence[Spans], start_ns: int, end_ns: int) -> Spans:
    """Cut a unit out of all ranks, and make it as fine as an eye can use."""
    parts = []
    for spans in whole:
        inside = spans.take((spans.end_ns > start_ns) & (spans.start_ns < end_ns))
        cut = np.maximum(inside.start_ns, start_ns) - start_ns, np.minimum(inside.end_ns, end_ns) - start_ns
        parts.append(replace(inside, start_ns=cut[0], end_ns=cut[1]))
    return coarsen(Spans.joined(parts), (end_ns - start_ns) // FINEST)


def _with_used_names(drawing: Drawing) -> Drawing:
    """Keep the names that a drawn span has."""
    used = np.unique(np.concatenate([unit.spans.name for unit in drawing.units])) if drawing.units else np.empty(0)
    place = np.zeros(len(drawing.names), np.int32)
    place[used.astype(np.int64)] = np.arange(len(used))
    units = [replace(unit, spans=replace(unit.spans, name=place[unit.spans.name])) for unit in drawing.units]
    return Drawing(
        drawing.lanes, [drawing.names[code] for code in used.astype(int)], units, drawing.left_out, drawing.notes
    )


def _notes(ranks: Sequence[RankDrawing]) -> list[str]:
    found = [f"rank {one.rank}: {one.threads_left_out} more threads" for one in ranks if one.threads_left_out]
    notes = [f"not drawn: {'; '.join(found[:4])}{'; …' if len(found) > 4 else ''}"] if found else []
    if not any(lane.kind == IDLE for one in ranks for lane in one.lanes):
        notes.append("no device was recorded: threads alone are drawn")
    return notes
