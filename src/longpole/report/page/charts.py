"""Bars and heat maps as SVG. Every mark carries its numbers as a title, which pointing at it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.report.page.markup import text
from longpole.report.palette import OBJECT_COLORS, text_color_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH: Final = 960
_LABEL: Final = 176
_LABEL_CHARS: Final = 25
_CHAR: Final = 7.0  # width of a letter, about
_ROW: Final = 22
_CELL_MAX: Final = 28
_CELL_WIDEST: Final = 64.0
_ROOM: Final = 40  # pixels of a part from which on its share fits into it, and below, its name too
_ROOM_NAMED: Final = 110
_READABLE: Final = 9  # pixels of a row from which on its label fits
_HEAT_SPAN: Final = 1.1  # from light to dark at least, or jitter would look like a slow rank
_HEAT: Final = ("#f7fbff", "#d0e1f2", "#94c4df", "#4a98c9", "#1764ab", "#08306b")
"""Light to dark blue: order is seen without telling colours apart."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One stacked bar.

    Attributes:
        label: What stands beside it.
        parts: Object -> (length, what pointing at it says).
        hidden: Object -> the same, drawn thin below.
    """

    label: str
    parts: Mapping[str, tuple[float, str]]
    hidden: Mapping[str, tuple[float, str]]


def stacked_bars(bars: Sequence[Bar], title: str) -> str:
    """Return horizontal stacked bars on one scale, what is hidden thin under what is exposed."""
    longest = max((sum(length for length, _ in bar.parts.values()) for bar in bars), default=0.0)
    longest = max(longest, *(sum(length for length, _ in bar.hidden.values()) for bar in bars), 1e-9)
    height = _ROW * len(bars) + 4
    marks = []
    for place, bar in enumerate(bars):
        top = _ROW * place + 2
        marks.append(f'<text x="{_LABEL - 8}" y="{top + 11}" text-anchor="end">{_short(bar.label)}</text>')
        marks += _stack(bar.parts, top, 13, longest)
        marks += _shares(bar, top, longest)
        marks += _stack(bar.hidden, top + 14, 4, longest, faint=True)
    return _svg(height, title, marks)


def _stack(
    parts: Mapping[str, tuple[float, str]], top: float, height: float, longest: float, *, faint: bool = False
) -> list[str]:
    marks = []
    at = float(_LABEL)
    for name, (length, says) in parts.items():
        wide = length / longest * (_WIDTH - _LABEL - 4)
        if wide > 0:
            opacity = ' fill-opacity="0.55"' if faint else ""
            color = OBJECT_COLORS.get(name, OBJECT_COLORS["unknown"])
            marks.append(
                f'<rect x="{at:.2f}" y="{top}" width="{wide:.2f}" height="{height}" fill="{color}"{opacity}'
                f' data-object="{text(name)}"><title>{text(says)}</title></rect>'
            )
        at += wide
    return marks


def _shares(bar: Bar, top: float, longest: float) -> list[str]:
    """Return what part of its bar each is, written into those that have the room."""
    whole = sum(length for length, _ in bar.parts.values())
    marks, at = [], float(_LABEL)
    for name, (length, _) in bar.parts.items():
        wide = length / longest * (_WIDTH - _LABEL - 4)
        if wide >= _ROOM and whole:
            ink = text_color_on(OBJECT_COLORS.get(name, OBJECT_COLORS["unknown"]))
            says = f"{name} {100 * length / whole:.0f} %" if wide >= _ROOM_NAMED else f"{100 * length / whole:.0f} %"
            marks.append(f'<text class=in x="{at + 5:.2f}" y="{top + 10.5}" fill="{ink}">{text(says)}</text>')
        at += wide
    return marks


def legend(names: Sequence[str]) -> str:
    """Return the colours of objects with their names."""
    items = "".join(
        f'<span class=key><svg width="12" height="12" aria-hidden="true"><rect width="12" height="12"'
        f' fill="{OBJECT_COLORS.get(name, OBJECT_COLORS["unknown"])}"/></svg> {text(name)}</span>'
        for name in names
    )
    return f"<p class=legend>{items}</p>"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a heat map.

    Attributes:
        value: Darker for more; None where it is not known.
        says: What pointing at it says.
    """

    value: float | None
    says: str


def heat_map(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[Cell]], title: str) -> str:
    """Return a heat map: a row for each label, a cell for each column.

    Args:
        rows: Labels of rows.
        columns: Labels of columns; the first, the middle and the last are written where they fit.
        cells: One row of cells for each label.
        title: What the picture is.
    """
    known = [cell.value for row in cells for cell in row if cell.value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    high = max(high, low * _HEAT_SPAN)
    wide = min((_WIDTH - _LABEL) / max(len(columns), 1), _CELL_WIDEST)
    tall = max(min(_CELL_MAX, 600 / max(len(rows), 1)), 1.5)
    marks = []
    for line, label in enumerate(rows):
        top = line * tall
        if tall >= _READABLE or line % max(len(rows) // 30, 1) == 0:
            at = f'x="{_LABEL - 8}" y="{top + tall / 2 + 4:.1f}"'
            marks.append(f'<text {at} text-anchor="end">{_short(label)}</text>')
        for place, cell in enumerate(cells[line]):
            box = f'x="{_LABEL + place * wide:.2f}" y="{top:.2f}" width="{max(wide - 0.6, 0.4):.2f}"'
            look = f'height="{max(tall - 0.6, 0.9):.2f}" fill="{_heat(cell.value, low, high)}"'
            marks.append(f"<rect {box} {look}><title>{text(cell.says)}</title></rect>")
    bottom = len(rows) * tall + 14
    for place, at_end in _labelled(columns, wide):
        at = f'x="{_LABEL + (place + at_end) * wide:.1f}" y="{bottom:.1f}"'
        anchor = ' text-anchor="end"' if at_end else ""
        marks.append(f"<text {at}{anchor}>{_short(columns[place])}</text>")
    return _svg(bottom + 6, title, marks)


def _labelled(columns: Sequence[str], wide: float) -> list[tuple[int, bool]]:
    """Return the columns whose labels are written, so that none runs into the next, and which end at their column."""
    lengths = [min(len(label), _LABEL_CHARS) * _CHAR + 8 for label in columns]
    last = len(columns) - 1
    if all(length <= wide for length in lengths):
        return [(place, False) for place in range(len(columns))]
    found = [(0, False)]
    middle = len(columns) // 2
    ends_at = len(columns) * wide
    if ends_at - lengths[last] > lengths[0]:
        found.append((last, True))
        if middle * wide > lengths[0] and middle * wide + lengths[middle] < ends_at - lengths[last]:
            found.append((middle, False))
    return found


def _short(label: str) -> str:
    """Return a label that fits beside its bar: of a long one the beginning and the end, where numbers stand."""
    return text(label if len(label) <= _LABEL_CHARS else f"{label[:11]}…{label[-12:]}")


def _heat(value: float | None, low: float, high: float) -> str:
    if value is None:
        return OBJECT_COLORS["unknown"]
    part = (value - low) / (high - low) if high > low else 0.0
    return _HEAT[min(int(part * len(_HEAT)), len(_HEAT) - 1)]


def _svg(height: float, title: str, marks: Sequence[str]) -> str:
    return (
        f'<div class=scroll><svg class=chart viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{text(title)}">'
        f"{''.join(marks)}</svg></div>"
    )
