"""The page of `longpole verify`: the verdict in a sentence, what it rests on, and what would settle it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.figures import scale_for
from longpole.report.text.layout import Style, pad, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural, unit_noun
from longpole.units import NS_PER_S, format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.records.verdict import PartChange, RunEntry, RunSpread
    from longpole.report.text.figures import Scale
    from longpole.report.verify import Verify

_LINES: Final = 6
_SHOWN: Final = 6
_NAME_WIDTH: Final = 30
_COLUMN: Final = 11
_STATUS_WIDTH: Final = 10
_DASH: Final = "–"
_FIGURES: Final = {
    "p95_over_median": "95th percentile / median",
    "cv": "spread of units",
    "peak_bytes": "peak memory",
    "gpu_s_per_item": "device time per item",
}


def render_verify(verify: Verify, *, width: int, color: bool) -> str:
    """Write the verdict on a change.

    Args:
        verify: The verdict, and what it rests on.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a run is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _render_who(verify, style),
        _render_verdict(verify, style),
        _render_effect(verify, style),
        _render_changes(verify, style),
        _render_predicted(verify, style),
        _render_promises(verify, style),
        _render_figures(verify, style),
        _render_differences(verify, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_who(verify: Verify, style: Style) -> list[str]:
    lines = []
    for name, runs in (("before", verify.before), ("after", verify.after)):
        labels = ", ".join(escape(run.label) for run in runs)
        units = plural(sum(run.units for run in runs), verify.unit_kind)
        n_processes = sum(run.processes for run in runs)
        runs_text = f"{len(runs)} runs" if len(runs) > 1 else "1 run"
        runs_text += f" of {format_count(n_processes, 'process', 'processes')}" if n_processes else ""
        lines += wrap(f"{labels} · {runs_text}, {units}{_items(runs)}", style.width, first=f"{name:<8}", rest=" " * 8)
    return lines


def _items(runs: Iterable[RunEntry]) -> str:
    counts = {run.items_per_unit for run in runs if not isinstance(run.items_per_unit, Unknown)}
    return f" of {' or '.join(f'{count:,.6g}' for count in sorted(counts))} items" if counts else ""


def _render_verdict(verify: Verify, style: Style) -> list[str]:
    title = verify.verdict.upper()
    words = "" if verify.verdict == "accepted" else f"({verify.reason.replace('_', ' ')}) "
    lines = wrap(f"{words}{escape(verify.says)}", style.width, first=f"{title}  ", rest="  ", max_lines=_LINES)
    paint = style.verdict if verify.verdict == "accepted" else style.alarm
    lines[0] = paint(title) + lines[0][len(title) :]
    if verify.needs.says:
        lines += wrap(escape(verify.needs.says), style.width, first="  ", rest="  ", max_lines=_LINES)
    if not isinstance(verify.effect, Unknown) and verify.effect.single_run:
        spread = f" (±{100 * verify.effect.run_spread:g} % assumed)" if verify.effect.run_spread else ""
        says = f"single run: how much one run differs from the next is not seen here{spread}"
        lines += wrap(says, style.width, first="  ", rest="  ")
    for also in verify.also:
        lines += wrap(escape(also), style.width, first="  ", rest="  ", max_lines=_LINES)
    return lines


def _render_effect(verify: Verify, style: Style) -> list[str]:
    effect = verify.effect
    if isinstance(effect, Unknown):
        return []
    noun = "item" if effect.per_item else unit_noun(verify.unit_kind)
    lines = [style.title(f"TIME PER {noun.upper()}", f"{effect.statistic}; change against before")]
    estimate = _share(effect.estimate)
    if isinstance(effect.interval, Unknown):
        interval = "not known"
    else:
        interval = f"{_share(effect.interval[0])} to {_share(effect.interval[1])}"
    rows = [("change", estimate), ("90 % interval", interval), ("threshold", f"{100 * effect.threshold:g} %")]
    if not isinstance(effect.smallest_seen, Unknown):
        rows.append(("smallest change seen", f"{100 * effect.smallest_seen:.1f} % in 4 of 5 cases"))
    rows.append(("how", effect.method))
    if isinstance(effect.mean_estimate, float):
        other = "mean" if effect.statistic.startswith("median") else "median"
        rows.append((f"change of the {other}", _share(effect.mean_estimate)))
    for name, text in rows:
        lines += wrap(text, style.width, first=f"  {pad(name, 22)}", rest=" " * 24)
    return lines


def _share(value: float | Unknown) -> str:
    if isinstance(value, Unknown):
        return "not known"
    return f"{100 * value:+.1f} %"


def _render_changes(verify: Verify, style: Style) -> list[str]:
    """Show the part, and what else fell and grew."""
    part = verify.part
    rows: list[tuple[str, int, int]] = []
    if not isinstance(part, Unknown) and isinstance(part.before_ns, int) and isinstance(part.after_ns, int):
        rows.append((f"{part.part} (the part)", part.before_ns, part.after_ns))
    named = part.part if not isinstance(part, Unknown) else ""
    rows += [(change.part, change.before_ns, change.after_ns) for change in _shown(verify, named)]
    if not rows:
        return []
    scale = scale_for(max(max(before, after) for _, before, after in rows))
    noun = unit_noun(verify.unit_kind)
    lines = [style.title("WHERE TIME WENT", f"{scale.unit} per {noun}, for as many items as one holds before")]
    name_width = min(_NAME_WIDTH, style.width - 2 - 3 * _COLUMN)
    lines.append(style.faint(_row("", ("before", "after", "change"), name_width)))
    lines += [_row(escape(name), _cells(before, after, scale), name_width) for name, before, after in rows]
    return lines


def _shown(verify: Verify, named: str) -> list[PartChange]:
    changes = [change for change in (*verify.moved.fell, *verify.moved.grew) if change.part != named]
    return sorted(changes, key=lambda change: -abs(change.change_ns))[:_SHOWN]


def _cells(before_ns: int, after_ns: int, scale: Scale) -> tuple[str, str, str]:
    change_ns = after_ns - before_ns
    change = ("+" if change_ns > 0 else "") + scale.write(change_ns)
    return scale.write(before_ns), scale.write(after_ns), change


def _row(name: str, cells: Iterable[str], name_width: int) -> str:
    return f"  {pad(name, name_width)}" + "".join(f"{cell:>{_COLUMN}}" for cell in cells)


def _render_predicted(verify: Verify, style: Style) -> list[str]:
    predicted = verify.predicted
    if isinstance(predicted, Unknown):
        return []
    changes = f"   {escape(' '.join(predicted.changes))}" if predicted.changes else ""
    lines = [style.title("PREDICTED", changes.strip())]
    first = "  MISS  " if predicted.missed else "  "
    return lines + wrap(escape(predicted.says), style.width, first=first, rest="  ", max_lines=_LINES)


def _render_promises(verify: Verify, style: Style) -> list[str]:
    """Show limits and the contract, what is broken first."""
    rows = [(limit.status, limit.says) for limit in verify.limits]
    rows += [(item.status, item.says) for item in verify.contract]
    if not rows:
        return []
    order = ("broken", "unknown", "unsettled", "met", "held")
    rows.sort(key=lambda row: order.index(row[0]))
    return [style.title("LIMITS AND CONTRACT"), *_status_lines(rows, style)]


def _status_lines(rows: Iterable[tuple[str, str]], style: Style) -> list[str]:
    lines: list[str] = []
    for status, says in rows:
        rest = " " * (2 + _STATUS_WIDTH)
        wrapped = wrap(escape(says), style.width, first=f"  {status:<{_STATUS_WIDTH}}", rest=rest, max_lines=_LINES)
        paint = {"broken": style.alarm, "void": style.alarm}.get(status, style.faint)
        paint = style.warning if status in ("unknown", "unsettled", "warn") else paint
        wrapped[0] = "  " + paint(status) + wrapped[0][2 + len(status) :]
        lines += wrapped
    return lines


def _render_figures(verify: Verify, style: Style) -> list[str]:
    rows = [
        ("median period", _time(verify.spread.before, "median_ns"), _time(verify.spread.after, "median_ns"), ""),
        ("95th percentile", _time(verify.spread.before, "p95_ns"), _time(verify.spread.after, "p95_ns"), ""),
    ]
    rows += [
        (_FIGURES[f.figure], _figure(f.figure, f.before), _figure(f.figure, f.after), "rose" if f.says else "")
        for f in verify.figures
        if not (isinstance(f.before, Unknown) and isinstance(f.after, Unknown))
    ]
    lines = [style.title("BESIDE IT", "periods and devices as they are, not brought to equal items")]
    lines.append(style.faint(f"  {pad('', _NAME_WIDTH)}{'before':>{_COLUMN}}{'after':>{_COLUMN}}"))
    return lines + [
        f"  {pad(name, _NAME_WIDTH)}{before:>{_COLUMN}}{after:>{_COLUMN}}{f'  {note}' if note else ''}"
        for name, before, after, note in rows
    ]


def _time(spread: RunSpread, field: str) -> str:
    value = getattr(spread, field)
    return _DASH if isinstance(value, Unknown) else format_ns(value)


def _figure(figure: str, value: float | Unknown) -> str:
    if isinstance(value, Unknown):
        return _DASH
    if figure == "peak_bytes":
        return format_bytes(value)
    if figure == "cv":
        return f"{100 * value:.1f} %"
    return format_ns(value * NS_PER_S) if figure == "gpu_s_per_item" else f"{value:.3f}"


def _render_differences(verify: Verify, style: Style) -> list[str]:
    if not verify.differences:
        return []
    shown = verify.differences[: 2 * _SHOWN]
    lines = [style.title("WHAT ELSE DIFFERS"), *_status_lines([(d.severity, d.says) for d in shown], style)]
    if len(shown) < len(verify.differences):
        lines.append(f"  and {len(verify.differences) - len(shown)} more; --json has them all")
    return lines
