"""A line chart with logarithmic axes as SVG text: growth in proportion is a slope of one, the dashed line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 190, 40, 48
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")  # told apart by most eyes


@dataclass(frozen=True)
class Line:
    """One line: its name, and its points, all above 0."""

    name: str
    x: list[float]
    y: list[float]


class _Axes:
    """Places values on the page."""

    def __init__(self, lines: list[Line]) -> None:
        xs = [math.log10(x) for line in lines for x in line.x]
        ys = [math.log10(y) for line in lines for y in line.y]
        self.low = (min(xs), math.floor(min(ys)))
        self.high = (max(xs), math.ceil(max(ys)))

    def x(self, value: float) -> float:
        share = (math.log10(value) - self.low[0]) / max(self.high[0] - self.low[0], 1e-9)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (math.log10(value) - self.low[1]) / max(self.high[1] - self.low[1], 1)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def picture(title: str, x_label: str, lines: list[Line]) -> str:
    """Return the chart.

    Args:
        title: Above it.
        x_label: Below it.
        lines: With common values of x.
    """
    axes = _Axes(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        *_grid(axes, sorted({x for line in lines for x in line.x})),
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>',
        *_in_proportion(axes, lines[0]),
    ]
    labels = sorted((axes.y(line.y[-1]), place) for place, line in enumerate(lines))
    label_y = _apart([y for y, _ in labels])
    for place, line in enumerate(lines):
        at = label_y[[own for _, own in labels].index(place)]
        parts += _drawn(axes, line, COLOURS[place % len(COLOURS)], at)
    return "\n".join([*parts, "</svg>", ""])


def _grid(axes: _Axes, xs: list[float]) -> list[str]:
    parts = []
    for power in range(axes.low[1], axes.high[1] + 1):
        y = axes.y(10.0**power)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    ticks = [f'<text x="{axes.x(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:,.0f}</text>' for x in xs]
    return parts + ticks


def _in_proportion(axes: _Axes, line: Line) -> list[str]:
    """Draw what growth in proportion to x would be, through the line's last point."""
    x = max(line.x[0], line.x[-1] * 10 ** axes.low[1] / line.y[-1])  # within the page
    y = line.y[-1] * x / line.x[-1]
    return [
        f'<line x1="{axes.x(x):.1f}" y1="{axes.y(y):.1f}" x2="{axes.x(line.x[-1]):.1f}" '
        f'y2="{axes.y(line.y[-1]):.1f}" stroke="#999" stroke-dasharray="4 4"/>'
    ]


def _drawn(axes: _Axes, line: Line, colour: str, label_y: float) -> list[str]:
    points = [(axes.x(x), axes.y(y)) for x, y in zip(line.x, line.y, strict=True)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points),
        f'<text x="{WIDTH - RIGHT + 8}" y="{label_y + 4:.1f}" fill="{colour}">{escape(line.name)}</text>',
    ]


def _apart(places: list[float], least: float = 15) -> list[float]:
    """Move labels down so that none covers another; ascending."""
    out: list[float] = []
    for y in places:
        out.append(max(y, out[-1] + least) if out else y)
    return out
