"""The page of `longpole bench compare`: what differs first, then a line for each benchmark and each of its stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.bench.compare import NO_DIFFERENCE, NO_INTERVAL
from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import Style, columns_of, pad, shorten, wrap
from longpole.report.text.page import NARROWEST
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.compare import Compare, ComparedBenchmark, ComparedRow, ComparedSide
    from longpole.records.verdict import Difference

_NAME: Final = (14, 40)  # columns of names: at least, and at most
_FIGURE: Final = 9
_SPREAD: Final = 7
_CHANGE: Final = 8
_INTERVAL: Final = 16
_LAST: Final = 10  # two spaces, and what is counted or its part
_REFUSED_SHOWN: Final = 5
_DIFFERENCES_SHOWN: Final = 12
_LEGEND: Final = (
    "± is half the 90 % interval of a time. A change is ~ where it may as well be none, and has a ? where there is no"
    " interval. For a verdict against a threshold: longpole bench gate."
)


def render_compare(compare: Compare, *, width: int, color: bool) -> str:
    """Write a comparison.

    Args:
        compare: The comparison.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a file is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _render_differences(compare, style),
        _render_table(compare, style),
        _render_notes(compare, style),
        _render_one_sided(compare, style),
        _render_refused(compare.refused, style),
        [style.faint(line) for line in wrap(_LEGEND, style.width)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_differences(compare: Compare, style: Style) -> list[str]:
    """Show each difference once, with the benchmarks that it concerns where not all of them have it."""
    found: dict[Difference, list[str]] = {}
    for one in compare.benchmarks:
        for difference in one.differences:
            if difference.severity != "note":
                found.setdefault(difference, []).append(one.row.name)
    if not found:
        return []
    shown = sorted(found.items(), key=lambda item: item[0].severity != "void")
    title = "NOT THE SAME" if shown[0][0].severity == "void" else "DIFFERENT"
    paint = style.alarm if shown[0][0].severity == "void" else style.warning
    lines = [paint(title) + "   " + "what may explain a change better than the code does"]
    for difference, names in shown[:_DIFFERENCES_SHOWN]:
        of = f" ({', '.join(names[:2])})" if len(names) < len(compare.benchmarks) else ""
        lines += wrap(escape(difference.says + of), style.width, first="  ", rest="    ", max_lines=3)
    if len(shown) > _DIFFERENCES_SHOWN:
        lines.append(f"  and {len(shown) - _DIFFERENCES_SHOWN} more; --json has them all")
    return lines


def _render_table(compare: Compare, style: Style) -> list[str]:
    rows = [row for one in compare.benchmarks for row in (one.row, *one.stages)]
    widest = max(columns_of(escape(row.name)) + 2 for row in rows)
    others = 2 * (_FIGURE + _SPREAD) + _CHANGE + _INTERVAL + _LAST
    name_width = max(min(widest, _NAME[1], style.width - others), _NAME[0])
    side = " " * _SPREAD
    head = f"{'base':>{_FIGURE}}{side}{'new':>{_FIGURE}}{side}{'change':>{_CHANGE}} {'90 % interval':<{_INTERVAL}}"
    head += " n, part"
    lines = [style.faint(pad("", name_width) + head.rstrip())]
    for one in compare.benchmarks:
        label = escape(one.row.name or "time")
        lines.append(_row(label, one.row, (one.base, one.new), name_width, _count(one)))
        for stage in one.stages:
            share = stage.share_of_change
            of = f"{100 * share:.0f} %" if isinstance(share, float) else ""
            lines.append(_row(f"  {escape(stage.name)}", stage, None, name_width, of))
    if isinstance(compare.geomean_share, float):
        skipped = " " * (2 * (_FIGURE + _SPREAD))
        lines.append(pad("geometric mean", name_width) + skipped + f"{_signed(compare.geomean_share):>{_CHANGE}}")
    return [shorten(line, style.width) for line in lines]


def _count(one: ComparedBenchmark) -> str:
    if one.design == "paired":
        return format_count(one.n, "pair")
    if one.design == "single run":
        return f"{one.base.units}+{one.new.units}"
    return f"{one.base.processes}+{one.new.processes}"


def _row(
    name: str, row: ComparedRow, sides: tuple[ComparedSide, ComparedSide] | None, name_width: int, last: str
) -> str:
    spreads = [_half(side) for side in sides] if sides is not None else ["", ""]
    figures = "".join(
        f"{_time(value):>{_FIGURE}}{spread:<{_SPREAD}}"
        for value, spread in zip((row.base_ns, row.new_ns), spreads, strict=True)
    )
    if row.answer == NO_DIFFERENCE:
        change = f"{NO_DIFFERENCE:>{_CHANGE}}"
    else:
        mark = " ?" if row.answer == NO_INTERVAL else ""
        change = f"{_signed(row.change_share) + mark:>{_CHANGE}}"
    return (pad(name, name_width) + figures + change + f" {_interval(row):<{_INTERVAL}} {last}").rstrip()


def _half(side: ComparedSide) -> str:
    """Return half of the interval of a side as a share of its middle."""
    if isinstance(side.interval_ns, Unknown) or side.value_ns <= 0:
        return ""
    return f" ±{100 * (side.interval_ns[1] - side.interval_ns[0]) / 2 / side.value_ns:.0f} %"


def _interval(row: ComparedRow) -> str:
    if isinstance(row.interval_share, Unknown):
        return ""
    low, high = row.interval_share
    return f"[{_percent(low)}, {_percent(high)}] %"


def _time(value: float | Unknown) -> str:
    return "?" if isinstance(value, Unknown) else format_ns(value)


def _signed(share: float | Unknown) -> str:
    return "?" if isinstance(share, Unknown) else f"{_percent(share)} %"


def _percent(share: float) -> str:
    """Write a change; a decimal of one that is larger than the whole says nothing."""
    return f"{100 * share:+.1f}" if abs(share) < 1 else f"{100 * share:+.0f}"


def _render_notes(compare: Compare, style: Style) -> list[str]:
    """Say what limits the comparison, each once."""
    found: dict[str, list[str]] = {}
    for one in compare.benchmarks:
        for note in one.notes:
            found.setdefault(note, []).append(one.row.name)
    lines = []
    for note, names in found.items():
        of = f"{', '.join(names[:3])}: " if len(names) < len(compare.benchmarks) else ""
        lines += wrap(escape(of + note), style.width, first="  ", rest="    ", max_lines=3)
    return [style.title("TAKE WITH CARE"), *lines] if lines else []


def _render_one_sided(compare: Compare, style: Style) -> list[str]:
    lines = []
    for side, names in (("base", compare.only_base), ("new side", compare.only_new)):
        if names:
            lines += wrap(escape(f"only on the {side}: {', '.join(names)}"), style.width, rest="  ", max_lines=3)
    return lines


def _render_refused(refused: Sequence[str], style: Style) -> list[str]:
    if not refused:
        return []
    lines = [style.title("LEFT OUT", format_count(len(refused), "entry", "entries"))]
    for why in refused[:_REFUSED_SHOWN]:
        lines += wrap(escape(why), style.width, first="  ", rest="    ", max_lines=2)
    return lines
