"""A history as a picture: SVG text, one panel for each series, that any browser shows and any page can hold."""

from __future__ import annotations

from html import escape as escape_markup
from typing import TYPE_CHECKING, Final

from longpole.records.history import VERDICTS, HistoryBaseline
from longpole.report.escape import escape
from longpole.units import format_ns

if TYPE_CHECKING:
    from longpole.records.history import History, HistorySeries

WIDTH: Final = 720
PANEL: Final = 220
LEFT: Final = 84
RIGHT: Final = 24
TOP: Final = 48
BOTTOM: Final = 34
_DOT: Final = "#0072b2"  # blue and vermilion, which most eyes tell apart
_ALARM: Final = "#d55e00"
_TITLE_CHARS: Final = 104
_TICKS: Final = 3


class _Panel:
    """Places the runs of one series on the page."""

    def __init__(self, series: HistorySeries, top: int) -> None:
        self.values = [
            (place, run.value_ns) for place, run in enumerate(series.runs) if isinstance(run.value_ns, float)
        ]
        found = [value for _, value in self.values]
        middle = series.baseline.value_ns if isinstance(series.baseline, HistoryBaseline) else found[0]
        self.low, self.high = min(*found, 0.97 * middle), max(*found, 1.03 * middle)
        self.count = len(series.runs)
        self.top = top

    def x(self, place: float) -> float:
        """Return the column of a run."""
        return LEFT + (place + 0.5) / max(self.count, 1) * (WIDTH - LEFT - RIGHT)

    def y(self, value_ns: float) -> float:
        """Return the line of a time."""
        share = (value_ns - self.low) / (self.high - self.low)
        return self.top + PANEL - BOTTOM - share * (PANEL - TOP - BOTTOM)


def render_picture(history: History) -> str:
    """Return the chart of all series that have a time, the gravest first, as SVG text with a line end."""
    shown = [series for series in history.series if any(isinstance(run.value_ns, float) for run in series.runs)]
    shown.sort(key=lambda series: VERDICTS.index(series.verdict))
    height = max(PANEL * len(shown), PANEL)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="12" role="img" aria-label="History of benchmarks">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for place, series in enumerate(shown):
        parts += _panel(series, _Panel(series, place * PANEL))
    return "\n".join([*parts, "</svg>", ""])


def _panel(series: HistorySeries, panel: _Panel) -> list[str]:
    parts = [_text(LEFT, panel.top + 20, _cut(series.benchmark or "benchmark"), 'font-size="14"')]
    parts.append(_text(LEFT, panel.top + 38, _cut(series.says), 'fill="#555"'))
    parts += _scale(panel)
    parts += _marks(series, panel)
    points = " ".join(f"{panel.x(place):.1f},{panel.y(value):.1f}" for place, value in panel.values)
    parts.append(f'<polyline points="{points}" fill="none" stroke="{_DOT}" stroke-opacity="0.4"/>')
    began = series.drift.began if series.drift is not None else panel.count
    for place, value in panel.values:
        run = series.runs[place]
        hint = _markup(f"{run.label}: {format_ns(value)} {run.started}".rstrip())
        colour = _ALARM if place >= began else _DOT
        at = f'cx="{panel.x(place):.1f}" cy="{panel.y(value):.1f}"'
        parts.append(f'<circle {at} r="3" fill="{colour}"><title>{hint}</title></circle>')
    labels = (0, panel.count - 1) if panel.count > 1 else (0,)
    for place, anchor in zip(labels, ("start", "end"), strict=False):
        text = _cut(series.runs[place].label, _TITLE_CHARS // 3)
        parts.append(_text(panel.x(place), panel.top + PANEL - 12, text, f'fill="#555" text-anchor="{anchor}"'))
    return parts


def _scale(panel: _Panel) -> list[str]:
    parts = []
    for tick in range(_TICKS):
        value = panel.low + tick / (_TICKS - 1) * (panel.high - panel.low)
        y = panel.y(value)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y + 4, format_ns(value), 'text-anchor="end" fill="#555"'))
    return parts


def _marks(series: HistorySeries, panel: _Panel) -> list[str]:
    """Draw the baseline with its threshold, and a line at every step."""
    parts = []
    if isinstance(series.baseline, HistoryBaseline):
        y = panel.y(series.baseline.value_ns)
        begin = panel.x(series.baseline.first - 0.5)
        end = panel.x(series.baseline.first + series.baseline.count - 0.5)
        parts.append(
            f'<rect x="{begin:.1f}" y="{panel.top + TOP}" width="{end - begin:.1f}" height="{PANEL - TOP - BOTTOM}" '
            'fill="#0072b2" fill-opacity="0.07"/>'
        )
        parts.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#555" stroke-dasharray="4 4"/>'
        )
    for step in series.steps:
        x = panel.x(step.run - 0.5)
        ends = f'y1="{panel.top + TOP}" y2="{panel.top + PANEL - BOTTOM}"'
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" {ends} stroke="{_ALARM}"/>')
        anchor, aside = ("end", -4) if x > WIDTH - LEFT - RIGHT else ("start", 4)
        share = f"{100 * step.share:+.1f} %"
        parts.append(_text(x + aside, panel.top + TOP + 10, share, f'fill="{_ALARM}" text-anchor="{anchor}"'))
    return parts


def _text(x: float, y: float, text: str, attributes: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{_markup(text)}</text>'


def _markup(text: str) -> str:
    return escape_markup(escape(text))


def _cut(text: str, most: int = _TITLE_CHARS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
