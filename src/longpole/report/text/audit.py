"""The page of `longpole audit`: the verdict, what contradicts and by how much, what it should be, what would hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.claims.words import write
from longpole.report.escape import escape
from longpole.report.text.layout import Style, wrap
from longpole.report.text.page import NARROWEST

if TYPE_CHECKING:
    from longpole.records.audit import Audit, AuditCorrection, AuditFinding, AuditStatement

_LABEL: Final = 13
_LINES: Final = 8
_SHOWN: Final = 4
_ROWS: Final = 24
_GOOD: Final = ("consistent", "consistent_under")
_WRONG: Final = ("impossible", "contradicts", "implausible")
_FOLLOWS: Final = (
    "mfu", "hfu", "tok_s", "tok_s_gpu", "flops_gpu", "flops_token", "flops_step", "ideal_step_s", "least_comm_s",
    "tp_step_comm_s", "message", "comm_bytes", "busbw", "dp", "ga", "tokens_step", "time_s", "gpu_s", "cost",
    "least_memory", "least_bubble",
)  # fmt: skip


def render_audit(audit: Audit, *, width: int, color: bool, everything: bool = False) -> str:
    """Write what an audit found.

    Args:
        audit: What was found.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.
        everything: Whether relations that hold and all that follows are shown too.

    Returns:
        Lines of at most that many columns, each with its line end. Everything from the file is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [_verdict(audit, style)]
    single = len(audit.statements) == 1
    detailed = [one for one in audit.statements if everything or single or _is_wrong(one)]
    sections += [_statement(one, style, everything=everything, single=single) for one in detailed[:_ROWS]]
    left = len(detailed) - _ROWS
    if left > 0:
        sections.append([f"and {left} more with something wrong; --json has them all"])
    sections += [_across(audit, style), _others(audit, detailed, style), _next(audit, style)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _is_wrong(one: AuditStatement) -> bool:
    return one.verdict not in (*_GOOD, "underdetermined") or one.qualifier in ("wording", "wrong model")


def _verdict(audit: Audit, style: Style) -> list[str]:
    title = audit.verdict.replace("_", " ").upper()
    if audit.verdict in _GOOD and any(one.qualifier == "wrong model" for one in audit.statements):
        title = "WRONG MODEL"
    if audit.verdict in _GOOD and any(one.qualifier == "wording" for one in audit.statements):
        title = "WRONG WORDING"
    good = title.startswith("CONSISTENT") or title == "UNDERDETERMINED"
    lines = wrap(escape(audit.says), style.width, first=f"{title}  ", rest="  ", max_lines=_LINES)
    lines[0] = (style.verdict if good else style.alarm)(title) + lines[0][len(title) :]
    if audit.title:
        lines.append(style.faint(f"  {escape(audit.title)}"[: style.width]))
    return lines


def _statement(one: AuditStatement, style: Style, *, everything: bool, single: bool) -> list[str]:
    word = f"{one.verdict.replace('_', ' ')}{f' ({one.qualifier})' if one.qualifier else ''}"
    lines = [] if single else [style.title(escape(one.name), word)]
    if one.quote:
        lines += _row("claim", f"“{escape(one.quote)}”", style)
    for finding in one.findings:
        if finding.status in _WRONG or (finding.status == "holds_under" and finding.corrections):
            lines += _finding(finding, style, told=single and escape(one.says).startswith(escape(finding.says)))
    if one.qualifier == "wording" or (not single and not any(f.status in _WRONG for f in one.findings)):
        lines += _row("", escape(one.says), style)
    lines += _counted(one, style)
    lines += _explained(one, style)
    lines += _read(one, style)
    if everything:
        lines += [line for f in one.findings if f.status not in _WRONG for line in _finding(f, style, told=False)]
    lines += _follows(one, style, everything=everything, single=single)
    return lines


def _row(label: str, text: str, style: Style, paint: str = "") -> list[str]:
    lines = wrap(text, style.width, first=f"  {label:<{_LABEL}}", rest=" " * (_LABEL + 2), max_lines=_LINES)
    if label and paint:
        painted = {"alarm": style.alarm, "warning": style.warning, "faint": style.faint}[paint](label)
        lines[0] = f"  {painted}" + lines[0][2 + len(label) :]
    return lines


def _finding(finding: AuditFinding, style: Style, *, told: bool) -> list[str]:
    paint = "alarm" if finding.status in ("impossible", "contradicts") else "faint"
    paint = "warning" if finding.status in ("implausible", "holds_under") else paint
    label = f"{finding.code} {finding.status.replace('_', ' ')}"
    label = label if len(label) < _LABEL else finding.code
    lines = [] if told else _row(label, escape(finding.says), style, paint)
    if not finding.corrections:
        return lines
    first, *rest = finding.corrections
    lines += _row("corrected", _correction(first), style)
    if first.formula:
        lines += [style.faint(line) for line in _row("", escape(first.formula), style)]
    if rest and finding.status in ("contradicts", "holds_under"):
        others = " · ".join(f"{one.what} {write(one.field, one.value)}" for one in rest[:6])
        lines += _row("or", escape(others), style)
    return lines


def _correction(one: AuditCorrection) -> str:
    low, high = one.low, one.high
    between = ""
    if low is not None and high is not None and high > low * 1.003:
        between = f", between {write(one.field, low)} and {write(one.field, high)}"
    return escape(f"{one.what} {write(one.field, one.value, 4)}{between}")


def _counted(one: AuditStatement, style: Style) -> list[str]:
    """Show what each convention makes of the figure that hangs on it."""
    if not one.conventions:
        return []
    shown = [
        f"{counted.name} {write(counted.field, counted.expected, 3)}{' ✓' if counted.holds else ''}"
        for counted in one.conventions
        if counted.expected is not None
    ]
    if not shown:
        return []
    what = one.conventions[0].field
    return _row("counted as", f"{' · '.join(shown)}   ({what})", style)


def _explained(one: AuditStatement, style: Style) -> list[str]:
    lines: list[str] = []
    for number, explanation in enumerate(one.explanations[:_SHOWN]):
        lines += _row("holds if" if number == 0 else "or if", escape(explanation.says), style)
        lines += [style.faint(line) for line in _row("", escape(f"→ {explanation.claim}"), style)]
    counts = "it would hold with" in one.says
    if _is_wrong(one) and not one.explanations and one.tried and not counts and one.qualifier != "wording":
        lines += _row("holds if", f"no slip that is known repairs it ({one.tried:,} tried, pairs included)", style)
        if one.nearest:
            lines += _row("closest", escape(one.nearest), style)
    elif one.explanations:
        lines += [style.faint(line) for line in _row("", f"of {one.tried:,} slips and pairs that were tried", style)]
    return lines


def _read(one: AuditStatement, style: Style) -> list[str]:
    lines: list[str] = []
    if one.readings and one.qualifier != "wording":
        told = " ".join(finding.says for finding in one.findings if finding.corrections)
        for number, reading in enumerate(reading for reading in one.readings if reading not in told):
            lines += _row("read as" if number == 0 else "", escape(reading), style)
    for number, note in enumerate(one.assumed):
        lines += _row("assumed" if number == 0 else "", escape(note), style)
    for number, note in enumerate(one.unread):
        lines += _row("not read" if number == 0 else "", escape(note), style, "warning" if number == 0 else "")
    return lines


def _follows(one: AuditStatement, style: Style, *, everything: bool, single: bool) -> list[str]:
    chosen = one.implied if everything else [figure for figure in one.implied if figure.field in _FOLLOWS]
    if not everything and not single and one.verdict != "underdetermined":
        return []
    lines: list[str] = []
    for number, figure in enumerate(chosen if everything else chosen[: 2 * _SHOWN]):
        text = f"{figure.what} {write(figure.field, figure.value, 4)}"
        lines += _row("follows" if number == 0 else "", escape(text), style)
        if everything or one.verdict == "underdetermined":
            lines += [style.faint(line) for line in _row("", escape(f"  {figure.text}"), style)]
    return lines


def _across(audit: Audit, style: Style) -> list[str]:
    if not audit.across:
        return []
    lines = [style.title("ROWS AGAINST EACH OTHER")]
    for one in audit.across[:_ROWS]:
        lines += _row(one.code, escape(f"{one.statements[0]} and {one.statements[1]}: {one.says}"), style, "alarm")
    return lines


def _others(audit: Audit, detailed: list[AuditStatement], style: Style) -> list[str]:
    """List what holds, a line each; what is read alike together where there are many."""
    rest = [one for one in audit.statements if one not in detailed]
    if not rest:
        return []
    lines = [style.title("WHAT HOLDS" if all(one.verdict in _GOOD for one in rest) else "THE OTHERS")]
    grouped: dict[str, list[str]] = {}
    for one in rest:
        word = one.verdict.replace("_", " ") + (f", {one.qualifier}" if one.qualifier else "")
        reading = f"{word}: {'; '.join(one.readings)}" if one.readings else word
        grouped.setdefault(reading, []).append(one.name)
    for reading, names in list(grouped.items())[:_ROWS]:
        few = ", ".join(names) if len(names) <= _SHOWN else f"{', '.join(names[:3])} and {len(names) - 3:,} more"
        lines += wrap(escape(f"{few} · {reading}"), style.width, first="  ", rest="    ", max_lines=_SHOWN)
    if len(grouped) > _ROWS:
        lines.append(f"  and {len(grouped) - _ROWS} more readings; --json has them all")
    return lines


def _next(audit: Audit, style: Style) -> list[str]:
    unread = any(one.unread for one in audit.statements)
    if audit.verdict == "underdetermined":
        text = "state more: params or model, gpus, device or peak, and one of tok_s, step_s or mfu, to compare figures"
    elif audit.verdict in _GOOD:
        text = "--all shows every relation that was looked at, and what else follows from what is stated"
    else:
        text = "ask for the figure that was meant; --all shows every relation, --json the formulas"
    text += ". Keys that are not read are in docs/reference/claims.md" if unread else ""
    return wrap(text, style.width, first="next: ", rest="      ")
