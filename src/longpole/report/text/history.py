"""The page of `longpole bench history`: series as sentences, their runs as bars, what changed when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import Style, shorten, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.history import History, HistoryRun, HistorySeries

_BARS: Final = "▁▂▃▄▅▆▇█"
_TITLES: Final = {"slower": "SLOWER", "faster": "FASTER", "steady": "STEADY", "unknown": "NOT KNOWN"}
_REFUSED_SHOWN: Final = 5
_SURE: Final = 1e-4


def render_history(history: History, *, width: int, color: bool) -> str:
    """Write how the benchmarks of a folder went.

    Args:
        history: What was found.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a file is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [_render_who(history, style)]
    sections += [_render_series(series, style) for series in _by_gravity(history.series)]
    sections.append(_render_refused(history.refused, style))
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _by_gravity(series: Sequence[HistorySeries]) -> list[HistorySeries]:
    order = list(_TITLES)
    return sorted(series, key=lambda one: order.index(one.verdict))


def _render_who(history: History, style: Style) -> list[str]:
    runs = sum(len(series.runs) for series in history.series)
    text = f"{plural(len(history.series), 'benchmark')} · {plural(runs, 'record')} in {escape(history.folder)}"
    return wrap(f"{text} · alarm from {100 * history.threshold:g} % on", style.width, rest="  ")


def _render_series(series: HistorySeries, style: Style) -> list[str]:
    title = _TITLES[series.verdict]
    lines = wrap(escape(series.says), style.width, first=f"{title}  ", rest="  ")
    paint = style.alarm if series.verdict == "slower" else style.verdict
    lines[0] = paint(title) + lines[0][len(title) :]
    lines += _render_line(series, style)
    for stage in series.stages:
        change = f"{format_ns(stage.before_ns)} → {format_ns(stage.after_ns)}"
        share = f"{100 * abs(stage.share_of_change):.0f} % of what changed"
        lines.append(shorten(f"    stage {escape(stage.stage)}: {change}, {share}", style.width))
    for step in series.steps:
        label = escape(series.runs[step.run].label)
        chance = "beyond chance" if step.chance < _SURE else f"by chance once in {1 / step.chance:,.0f}"
        text = f"step of {100 * step.share:+.1f} % at {label} ({chance})"
        changed = f"; changed with it: {', '.join(step.changed)}" if step.changed else ""
        lines += wrap(escape(text + changed), style.width, first="    ", rest="      ")
    if isinstance(series.baseline, Unknown):
        return lines
    first = escape(series.runs[series.baseline.first].label)
    because = f" (accepted: {escape(series.baseline.because)})" if series.baseline.because else ""
    text = (
        f"baseline: {plural(series.baseline.count, 'run')} from {first} on{because}, which differ from one another"
        f" by {100 * series.baseline.spread_share:.1f} %"
    )
    lines += [style.faint(line) for line in wrap(text, style.width, first="    ", rest="      ")]
    return lines


def _render_line(series: HistorySeries, style: Style) -> list[str]:
    """Draw the runs as bars between the fastest and the slowest one; a dot for a run that failed."""
    values = [run.value_ns for run in series.runs if isinstance(run.value_ns, float)]
    if not values:
        return []
    low, high = min(values), max(values)
    room = style.width - 4
    shown = series.runs[-room:]
    left_out = f"; the last {len(shown):,} of {len(series.runs):,}" if len(shown) < len(series.runs) else ""
    scale = f"{format_ns(low)} to {format_ns(high)} per {escape(series.per)}{left_out}"
    return ["    " + style.bar("".join(_bar(run, low, high) for run in shown)), "    " + style.faint(scale)]


def _bar(run: HistoryRun, low: float, high: float) -> str:
    if isinstance(run.value_ns, Unknown):
        return "·"
    share = (run.value_ns - low) / (high - low) if high > low else 0.0
    return _BARS[min(int(share * len(_BARS)), len(_BARS) - 1)]


def _render_refused(refused: Sequence[str], style: Style) -> list[str]:
    if not refused:
        return []
    lines = [style.title("LEFT OUT", format_count(len(refused), "entry", "entries"))]
    for why in refused[:_REFUSED_SHOWN]:
        lines += wrap(escape(why), style.width, first="  ", rest="    ", max_lines=2)
    return lines
