"""The page of `longpole bench gate`: the verdict in a sentence, the figures, the stages, and the next command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.gate_rows import FIGURE_COLUMNS, STAGE_COLUMNS, figure_row, level_of, stage_row
from longpole.report.text.layout import Style, columns_of, pad, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.gate import GateSide
    from longpole.report.gate import Gate

_LINES: Final = 6
_STAGES: Final = 12
_REASONS: Final = 6
_DIFFERENCES: Final = 8
_WIDEST: Final = 100
_GOOD: Final = ("same", "improved")
_STATUS: Final = 6
_NAME_WIDTH: Final = 10
_DISPENSABLE: Final = ("n", "share", "limit", "base", "new")


def render_gate(gate: Gate, *, width: int, color: bool) -> str:
    """Write a gate's answer.

    Args:
        gate: The answer.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, but for the next command, which can be copied in one piece. Everything
        that comes from a record is escaped.
    """
    style = Style(min(max(width, NARROWEST), _WIDEST), color)
    sections = [
        _render_verdict(gate, style),
        _render_who(gate, style),
        _render_figures(gate, style),
        _render_stages(gate, style),
        _render_reasons(gate, style),
        _render_differences(gate, style),
        _render_next(gate, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_verdict(gate: Gate, style: Style) -> list[str]:
    title = gate.verdict.upper()
    lines = wrap(escape(gate.says), style.width, first=f"{title}  ", rest="  ", max_lines=_LINES)
    paint = {"inconclusive": style.warning}.get(gate.verdict, style.verdict if gate.verdict in _GOOD else style.alarm)
    lines[0] = paint(title) + lines[0][len(title) :]
    shown = [says for says in gate.invalid if says != gate.says]
    for says in (*shown, *(note for figure in gate.figures for note in figure.notes), *gate.notes):
        lines += wrap(escape(says), style.width, first="  ", rest="  ", max_lines=_LINES)
    return lines


def _render_who(gate: Gate, style: Style) -> list[str]:
    lines = []
    for name, side in (("base", gate.base), ("new", gate.new)):
        lines += wrap(escape(_side(gate, side)), style.width, first=f"{name:<6}", rest=" " * 6, max_lines=_LINES)
    rule = "likely" if gate.fail_when == "likely" else "proven beyond the threshold"
    looks = f", looked at {', '.join(str(look.pairs) for look in gate.looks)} pairs" if gate.looks else ""
    text = f"{gate.design}{looks}; fails when {rule}; at most {100 * gate.false_alarm_share:g} % false alarms in all"
    return lines + [style.faint(line) for line in wrap(text, style.width, first="how   ", rest=" " * 6)]


def _side(gate: Gate, side: GateSide) -> str:
    ran = side.command or gate.benchmark
    what = f" · {ran}" if ran and ran != side.name else ""
    counts = format_count(side.processes, "process", "processes")
    if gate.unit_kind != "process":
        counts += f", {plural(side.units, gate.unit_kind)}"
    text = f"{side.name}{what} · {counts}"
    return f"{text} · left out: {'; '.join(side.left_out)}" if side.left_out else text


def _render_figures(gate: Gate, style: Style) -> list[str]:
    if gate.invalid:
        return []
    lines = [style.title("FIGURES", f"change of new against base; {level_of(gate)}")]
    rows = [tuple(map(escape, figure_row(figure))) for figure in gate.figures]
    return lines + _table(FIGURE_COLUMNS, rows, style)


def _render_stages(gate: Gate, style: Style) -> list[str]:
    if not gate.stages:
        return []
    shown = gate.stages[:_STAGES]
    lines = [style.title("STAGES", "largest change first; verdicts corrected for their number (Holm)")]
    rows = [tuple(map(escape, stage_row(stage))) for stage in shown]
    lines += _table(STAGE_COLUMNS, rows, style)
    if len(shown) < len(gate.stages):
        lines.append(f"  and {len(gate.stages) - len(shown)} more; --json has them all")
    return lines


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> list[str]:
    """Lay columns out as wide as they must be, on lines too narrow for all of them without the less telling ones."""
    kept = list(range(len(columns)))
    widths = [max(columns_of(row[place]) for row in (columns, *rows)) for place in kept]
    for name in _DISPENSABLE:
        if _room(widths, kept, style) >= min(widths[0], _NAME_WIDTH):
            break
        kept = [place for place in kept if columns[place] != name]
    widths[0] = min(widths[0], max(_room(widths, kept, style), _STATUS))
    lines = [_line([row[place] for place in kept], [widths[place] for place in kept]) for row in (columns, *rows)]
    return [style.faint(lines[0]), *lines[1:]]


def _room(widths: Sequence[int], kept: Sequence[int], style: Style) -> int:
    """Return how wide the first column may be."""
    return style.width - sum(widths[place] for place in kept[1:]) - 2 * len(kept)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = pad(cells[0], widths[0])
    rest = "".join(
        "  " + " " * (width - columns_of(cell)) + cell for cell, width in zip(cells[1:], widths[1:], strict=True)
    )
    return f"  {first}{rest}".rstrip()


def _render_reasons(gate: Gate, style: Style) -> list[str]:
    if not gate.reasons:
        return []
    lines = [style.title("MAY LIE BEHIND IT", "hypotheses: that one made the other is not shown")]
    for reason in gate.reasons[:_REASONS]:
        cause = reason.cause.replace("_", " ")
        lines += wrap(escape(f"{cause}: {reason.says}"), style.width, first="  ? ", rest="    ", max_lines=2)
    if len(gate.reasons) > _REASONS:
        lines.append(f"  and {len(gate.reasons) - _REASONS} more; --json has them all")
    return lines


def _render_differences(gate: Gate, style: Style) -> list[str]:
    shown = [entry for entry in gate.differences if entry.severity != "note"][:_DIFFERENCES]
    if not shown:
        return []
    lines = [style.title("WHAT DIFFERS")]
    for entry in shown:
        wrapped = wrap(
            escape(entry.says), style.width, first=f"  {entry.severity:<{_STATUS}}", rest=" " * 8, max_lines=3
        )
        paint = style.alarm if entry.severity == "void" else style.warning
        wrapped[0] = "  " + paint(entry.severity) + wrapped[0][2 + len(entry.severity) :]
        lines += wrapped
    return lines


def _render_next(gate: Gate, style: Style) -> list[str]:
    if not gate.next:
        return []
    first = style.title("NEXT") + "  "
    return [first + escape(gate.next)]
