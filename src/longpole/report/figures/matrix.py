"""The resource-time matrix as a picture: what each operator asks of each resource, as a share of what it can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from longpole.records.ledger import Unknown
from longpole.report.figures.sheet import (
    SMALL,
    Drawn,
    new_figure,
    own_look,
    shown,
    text_color_on,
    write_notes,
)
from longpole.report.resource_words import at_least, covered_words
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from longpole.records.resources import Cell, Contention, Indicator, MatrixRow, Resources, StageIndicators

ROWS_MAX: Final = 24
WIDTH_MIN_IN: Final = 6.0
"""Ten columns with figures in them, and what bounds a row beside it."""
SHARE_MIN: Final = 0.005
"""Of compute time: rows below are told by their number."""
_ROW_IN: Final = 0.21
_BLUES: Final = ("#f7fbff", "#d0e1f2", "#94c4df", "#4a98c9", "#1764ab", "#08306b")
"""Light to dark: the order is seen without telling colours apart; the page's heat map has the same."""
_NOTHING: Final = "white"
_NOT_KNOWN: Final = "#e3e5e8"
_INDICATORS: Final = ("compute", "memory", "link")
_PAIRS_MAX: Final = 6
_PAIR_COLUMNS: Final = ("both need", "first takes", "second takes")
_HEAD_IN: Final = 0.7
"""Of a part: its title, its columns' names."""


@dataclass(frozen=True, slots=True)
class _Box:
    """A cell as drawn: how dark (None for not at all), and what is written."""

    value: float | None
    says: str
    asked: bool = True


def draw_matrix(resources: Resources, *, width_in: float) -> Drawn:
    """Draw the matrix, below it the three indicators by stage, and what ran at once.

    Args:
        resources: The matrix of a report.
        width_in: Width in inches.
    """
    rows = [row for row in resources.rows if row.time_share >= SHARE_MIN][:ROWS_MAX]
    columns = [column.name for column in resources.columns if any(column.name in row.cells for row in rows)]
    stages = resources.indicators
    pairs = resources.contention[:_PAIRS_MAX]
    says = f"What work asks of {resources.device_name or 'the device'}"
    with own_look():
        heights = [max(len(rows), 1), max(len(stages), 1), *([len(pairs)] if pairs else [])]
        figure = new_figure(width_in, 0.9 + _HEAD_IN * (len(heights) - 1) + _ROW_IN * sum(heights))
        upper, lower, *rest = figure.subplots(len(heights), 1, height_ratios=heights)
        figure.suptitle(shown(says, 90), x=0.01, ha="left", fontsize=8.5, fontweight="bold")
        _draw_grid(upper, [_name(row) for row in rows], columns, [_boxes(row, columns) for row in rows])
        _write_beside(upper, [_bound(row.bound_by, row.next_bound) for row in rows])
        lower.set_title("Indicators by stage", loc="left", fontsize=7.5, fontweight="bold")
        _draw_grid(lower, [_stage(one) for one in stages], _INDICATORS, [_indicators(one) for one in stages])
        _write_beside(lower, [_bound(one.bound_class, UNSET) for one in stages])
        for axes in rest:
            _draw_pairs(axes, pairs)
        notes = _notes(resources, columns, len(rows))
        write_notes(figure, notes)
    return Drawn(figure, f"{says}: {len(rows)} of {len(resources.rows)} rows", notes)


def _boxes(row: MatrixRow, columns: Sequence[str]) -> list[_Box]:
    return [_box(row.cells.get(name)) for name in columns]


def _box(cell: Cell | None) -> _Box:
    if cell is None:
        return _Box(None, "", asked=False)
    if not isinstance(cell.share, float | int) or isinstance(cell.demand, Unknown):
        return _Box(None, "?")
    return _Box(float(cell.share), f"{at_least(cell)}{100 * cell.share:.0f} %")


def _indicators(stage: StageIndicators) -> list[_Box]:
    found: list[Indicator] = [stage.compute, stage.memory, stage.link]
    return [
        _Box(one.share, f"{100 * one.share:.0f} %") if isinstance(one.share, float) else _Box(None, "?")
        for one in found
    ]


def _draw_pairs(axes: Axes, pairs: Sequence[Contention]) -> None:
    """Draw what pairs need together of the column that they fight over, and how much longer each takes than alone."""
    axes.set_title("Work that ran at once", loc="left", fontsize=7.5, fontweight="bold")
    names = [f"{shown(one.first, 24)} + {shown(one.second, 24)}  {format_ns(one.together_ns)}" for one in pairs]
    _draw_grid(axes, names, _PAIR_COLUMNS, [_pair(one) for one in pairs])
    _write_beside(axes, [one.column.replace("_", "-") if isinstance(one.column, str) else "" for one in pairs])


def _pair(one: Contention) -> list[_Box]:
    needs = one.demand_share
    need = _Box(needs, f"{100 * needs:.0f} %") if isinstance(needs, float) else _Box(None, "?")
    return [need, *(_slower(slow) for slow in (one.first_slowdown, one.second_slowdown))]


def _slower(slowdown: object) -> _Box:
    return _Box(max(slowdown - 1, 0.0), f"{slowdown:.2f} ×") if isinstance(slowdown, float) else _Box(None, "?")


def _name(row: MatrixRow) -> str:
    about = " ".join(part for part in (row.stage, row.dtype) if part)
    return f"{shown(row.name, 30)} {shown(about, 22)}  {100 * row.time_share:.0f} %"


def _stage(one: StageIndicators) -> str:
    return f"{shown(one.stage, 24)}  {format_ns(one.wall_ns)}"


def _bound(first: Any, second: Any) -> str:
    if not isinstance(first, str):
        return "not known"
    return f"{first}, then {second}" if isinstance(second, str) and second else first


def _left_out(resources: Resources) -> str:
    left = len(resources.contention) - _PAIRS_MAX
    return f"; {left} shorter pairs are in --json" if left > 0 else ""


def _draw_grid(axes: Axes, names: Sequence[str], columns: Sequence[str], boxes: Sequence[Sequence[_Box]]) -> None:
    """Draw a table of shades; the darkest is the whole of what a column can do."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex
    from matplotlib.patches import Rectangle

    shades: Colormap = LinearSegmentedColormap.from_list("shares", list(_BLUES))
    for line, row in enumerate(boxes):
        for place, box in enumerate(row):
            color = to_hex(shades(min(box.value, 1.0))) if box.value is not None else _NOT_KNOWN
            color = color if box.asked else _NOTHING
            axes.add_patch(Rectangle((place - 0.48, line - 0.46), 0.96, 0.92, facecolor=color, linewidth=0))
            if box.says:
                look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": SMALL}
                axes.text(place, line, box.says, color=text_color_on(color), **look)
    axes.set_xlim(-0.5, max(len(columns), 1) - 0.5)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), [name.replace("_", "-") for name in columns])
    axes.set_yticks(range(len(names)), list(names), fontsize=SMALL)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _write_beside(axes: Axes, texts: Sequence[str]) -> None:
    """Write what bounds each row to its right."""
    right = axes.get_xlim()[1]
    for line, says in enumerate(texts):
        axes.text(right + 0.05, line, shown(says, 34), fontsize=SMALL, va="center_baseline")


def _notes(resources: Resources, columns: Sequence[str], drawn: int) -> list[str]:
    covered = f"FLOPs or bytes are known of {covered_words(resources)}"
    notes = [
        "Each cell: the part of the row's own time that the column's peak would need for what the row asks of it;"
        " ? is not known, white is nothing asked. Right: what bounds the row. Left: its part of compute time.",
        f"{covered}, from {resources.basis}",
    ]
    if resources.contention:
        notes.append(
            "At once: what both need of the column that they fight over (right); how many times as long the first and"
            f" the second take as alone (dark: twice); ? is not known{_left_out(resources)}"
        )
    if isinstance(resources.device, Unknown):
        notes.append(f"no peaks: {resources.device.unknown}")
    empty = [column.name.replace("_", "-") for column in resources.columns if column.name not in columns]
    if empty:
        notes.append(f"left out for want of a cell: {', '.join(empty)}")
    if drawn < len(resources.rows):
        notes.append(f"the {drawn} longest of {len(resources.rows)} rows")
    return notes
