"""The timeline of one unit: a row for each thread and stream of each rank, and the critical path through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.digest.rank_drawing import IDLE, THREAD, coarsen
from longpole.report.figures.sheet import (
    SMALL,
    Drawn,
    add_boxes,
    add_legend,
    color_of,
    fitting,
    label_room,
    new_figure,
    own_look,
    shown,
    text_color_on,
    time_scale,
    write_notes,
)
from longpole.report.palette import PATH_COLOR
from longpole.units import format_count, format_ns
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from longpole.digest.rank_drawing import Spans
    from longpole.records.critical_path import PathPiece
    from longpole.report.drawing import Drawing, DrawnUnit

FINEST: Final = 2048
"""Of a unit, what is drawn alone at least: 300 dots an inch on a figure as wide as a page."""
ROWS_MAX: Final = 40
"""Lanes of a figure; more are thinner than their names."""
_LEVEL: Final = 0.55  # height of one level of calls, a stream's being 1
_IDLE: Final = 0.6
_SPACE: Final = 0.32
_UNIT_IN: Final = 0.17  # inches of a stream's height
_NAMES_MAX: Final = 300
_LABELS: Final = 0.27  # what names of rows take of the width, about


@dataclass(frozen=True, slots=True)
class _Row:
    """A lane's place: its top, counted downwards, and the height of one level."""

    lane: int
    label: str
    top: float
    level: float
    levels: int

    @property
    def below(self) -> float:
        """Where the critical path runs, which hides no name there."""
        return self.bottom + _SPACE * 0.35

    @property
    def middle(self) -> float:
        return self.top + self.level * self.levels / 2

    @property
    def bottom(self) -> float:
        return self.top + self.level * self.levels


def draw_gantt(drawing: Drawing, *, width_in: float) -> Drawn:
    """Draw the first unit of a drawing.

    Args:
        drawing: With at least one unit.
        width_in: Width in inches.
    """
    unit = drawing.units[0]
    length_ns = max(unit.end_ns - unit.start_ns, 1)
    finest_ns = max(length_ns // FINEST, 1)
    spans = coarsen(unit.spans, finest_ns)
    rows, notes = _place_rows(drawing, unit, spans, label_room(width_in))
    spans = spans.take(np.isin(spans.lane, [row.lane for row in rows]))
    says = f"{unit.name}: {format_ns(length_ns)} from the first start to the last completion"
    height = max((row.bottom for row in rows), default=1.0)
    notes = [*drawing.notes, *notes]
    merged = int((spans.count > 1).sum())
    if merged:
        notes.append(f"spans under {format_ns(finest_ns)} are drawn together with their neighbours")
    with own_look():
        figure = new_figure(width_in, 1.25 + height * _UNIT_IN)
        axes = figure.add_subplot()
        _draw_spans(axes, spans, rows, length_ns, finest_ns)
        _name_spans(axes, drawing, spans, rows, width_in * (1 - _LABELS) / length_ns)
        extra = _draw_path(axes, drawing, unit, rows, finest_ns)
        _set_axes(axes, rows, length_ns, height)
        used = set(np.unique(spans.object).tolist())
        add_legend(figure, says, [(name, name) for code, name in enumerate(OBJECTS) if code in used], extra)
        write_notes(figure, notes)
    return Drawn(figure, f"{says}, {format_count(len(spans), 'span')} in {format_count(len(rows), 'row')}", notes)


def _place_rows(drawing: Drawing, unit: DrawnUnit, spans: Spans, room: int) -> tuple[list[_Row], list[str]]:
    """Return the lanes to draw from top to bottom, and what is left out."""
    lanes = drawing.lanes
    busy_ns = np.bincount(spans.lane, weights=spans.end_ns - spans.start_ns, minlength=len(lanes))
    on_path = {(piece.rank, piece.track) for piece in unit.pieces}
    used = [place for place in range(len(lanes)) if busy_ns[place] > 0]

    def importance(place: int) -> tuple[bool, bool, float]:
        one = lanes[place]
        return (one.rank, one.lane.track) in on_path, one.lane.kind != THREAD, float(busy_ns[place])

    kept = sorted(sorted(used, key=importance, reverse=True)[:ROWS_MAX])
    ranks = {one.rank for one in lanes}
    rows: list[_Row] = []
    top = 0.0
    for place in kept:
        one = lanes[place]
        if rows and lanes[rows[-1].lane].rank != one.rank:
            top += _SPACE
        levels = int(spans.depth[spans.lane == place].max()) + 1 if one.lane.kind == THREAD else 1
        level = _LEVEL if one.lane.kind == THREAD else _IDLE if one.lane.kind == IDLE else 1.0
        label = one.lane.label
        if len({(other.rank, other.lane.device) for other in lanes if other.lane.device}) <= len(ranks):
            label = label.removeprefix(f"{one.lane.device} ")  # the rank says which device
        label = f"rank {one.rank} · {label}" if len(ranks) > 1 else label
        rows.append(_Row(place, shown(label, room), top, level, levels))
        top += level * levels + _SPACE
    left_out = len(used) - len(kept)
    notes = [f"{format_count(left_out, 'more thread or stream', 'more threads and streams')} not drawn"]
    return rows, notes if left_out else []


def _draw_spans(axes: Axes, spans: Spans, rows: Sequence[_Row], length_ns: int, finest_ns: int) -> None:
    """Draw the spans, at least as wide as can be seen, by object."""
    step_ns, _ = time_scale(length_ns)
    tops, levels = _by_lane(rows, spans)
    top = tops + levels * spans.depth
    right_ns = np.maximum(spans.end_ns, spans.start_ns + finest_ns)
    boxes = np.stack([spans.start_ns / step_ns, top + levels * 0.92, right_ns / step_ns, top], axis=1)
    for code, name in enumerate(OBJECTS):
        mine = np.flatnonzero(spans.object == code)
        add_boxes(axes, boxes[mine], color_of(name), gid=name)  # type: ignore[arg-type]


def _by_lane(rows: Sequence[_Row], spans: Spans) -> tuple[Any, Any]:
    most = max((row.lane for row in rows), default=-1) + 1
    tops, levels = np.zeros(most), np.zeros(most)
    for row in rows:
        tops[row.lane], levels[row.lane] = row.top, row.level
    return tops[spans.lane], levels[spans.lane]


def _name_spans(axes: Axes, drawing: Drawing, spans: Spans, rows: Sequence[_Row], in_per_ns: float) -> None:
    """Write names into the spans that have room for them, the longest first."""
    by_lane = {row.lane: row for row in rows}
    lengths_ns = spans.end_ns - spans.start_ns
    step_ns, _ = time_scale(drawing.units[0].end_ns - drawing.units[0].start_ns)
    for place in np.argsort(-lengths_ns, kind="stable")[:_NAMES_MAX].tolist():
        row = by_lane[int(spans.lane[place])]
        name = drawing.names[int(spans.name[place])]
        if drawing.lanes[row.lane].lane.kind == IDLE:
            name = f"{name} {format_ns(int(lengths_ns[place]))}"
        says = fitting(name, float(lengths_ns[place]) * in_per_ns) if spans.count[place] == 1 else ""
        if says:
            middle = (spans.start_ns[place] + spans.end_ns[place]) / 2 / step_ns
            at = row.top + row.level * (int(spans.depth[place]) + 0.48)
            color = text_color_on(color_of(OBJECTS[int(spans.object[place])]))
            size = SMALL if row.level >= 1 else SMALL - 1.2
            axes.text(middle, at, says, fontsize=size, ha="center", va="center", color=color, clip_on=True)


def _draw_path(axes: Axes, drawing: Drawing, unit: DrawnUnit, rows: Sequence[_Row], finest_ns: int) -> list[Any]:
    """Draw the critical path through the rows; where no drawn row shows it, dotted. Return what the legend says."""
    if not unit.pieces:
        return []
    from matplotlib.lines import Line2D

    at = {(drawing.lanes[row.lane].rank, drawing.lanes[row.lane].lane.track): row.below for row in rows}
    step_ns, _ = time_scale(unit.end_ns - unit.start_ns)
    solid: list[tuple[float, float]] = []
    dotted: list[tuple[float, float]] = []
    height = rows[0].below if rows else 0.0
    for piece in _longest_of_columns(unit, finest_ns):
        start = (piece.start_ns - unit.start_ns) / step_ns
        end = (piece.start_ns + piece.dur_ns - unit.start_ns) / step_ns
        place = at.get((piece.rank, piece.track)) if piece.rank is not None and piece.track else None
        if place is None:
            dotted += [(start, height), (end, height), (np.nan, np.nan)]
            solid.append((np.nan, np.nan))
        else:
            height = place
            solid += [(start, height), (end, height)]
    axes.plot(*zip(*solid, strict=True), color="white", linewidth=2.0, alpha=0.7, solid_joinstyle="round")
    axes.plot(*zip(*solid, strict=True), color=PATH_COLOR, linewidth=1.1, gid="critical path")
    extra = [Line2D([], [], color=PATH_COLOR, linewidth=1.4, label="critical path")]
    if dotted:
        axes.plot(*zip(*dotted, strict=True), color=PATH_COLOR, linewidth=0.9, linestyle=":")
        extra.append(Line2D([], [], color=PATH_COLOR, linestyle=":", linewidth=1.2, label="no row shows it"))
    return extra


def _longest_of_columns(unit: DrawnUnit, finest_ns: int) -> list[PathPiece]:
    """Return the pieces that can be told apart: of those that begin in one column, the longest."""
    longest: dict[int, PathPiece] = {}
    for piece in unit.pieces:
        column = (piece.start_ns - unit.start_ns) // finest_ns
        if column not in longest or piece.dur_ns > longest[column].dur_ns:
            longest[column] = piece
    return list(longest.values())


def _set_axes(axes: Axes, rows: Sequence[_Row], length_ns: int, height: float) -> None:
    step_ns, name = time_scale(length_ns)
    axes.set_xlim(0, length_ns / step_ns)
    axes.set_ylim(height + 0.2, -0.1)
    axes.set_yticks([row.middle for row in rows], [row.label for row in rows], fontsize=SMALL)
    axes.set_xlabel(f"{name} since the unit began")
    if not rows:
        axes.text(0.5, 0.5, "no span was recorded in it", transform=axes.transAxes, ha="center")
