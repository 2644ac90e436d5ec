"""THE RECORD: what is wrong with the evidence; first what withdraws or limits figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.text.layout import wrap
from longpole.report.text.words import plural, ranks_as_text
from longpole.timeline.integrity import CODES

if TYPE_CHECKING:
    from longpole.report.document import Report
    from longpole.report.text.layout import Style
    from longpole.timeline.integrity import Finding

_SHOWN: Final = 5
_NOTES_SHOWN: Final = 2
_LINES: Final = 3


def render_record(report: Report, style: Style) -> list[str]:
    """Show the integrity findings of a report."""
    return render_findings(report.integrity, style)


def render_findings(findings: list[Finding], style: Style) -> list[str]:
    """Show integrity findings, those of one code together; notes in one line unless they are few."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    grave = [group for severity in ("void", "warn") for (s, _), group in groups.items() if s == severity]
    notes = [group for (severity, _), group in groups.items() if severity == "note"]
    if not groups:
        return []
    title = "WRONG WITH THE RECORD" if grave else "THE RECORD"
    lines = [style.title(title, "void withdraws figures, warn limits them" if grave else "")]
    for group in grave[:_SHOWN]:
        lines += _finding_lines(group, style)
    if len(grave) > _SHOWN:
        lines.append(f"  and {len(grave) - _SHOWN} more kinds; --json has them all")
    if len(notes) <= _NOTES_SHOWN:
        for group in notes:
            lines += _finding_lines(group, style)
    else:
        names = ", ".join(escape(group[0].code) for group in notes)
        text = f"{plural(len(notes), 'kind')} of note, which change no figure: {names}"
        lines += wrap(text, style.width, first="  note  ", rest="        ", max_lines=_LINES)
    return lines


def _finding_lines(group: list[Finding], style: Style) -> list[str]:
    """Show findings of one code: the message of a single one, else their number and ranks."""
    first = group[0]
    severity = first.severity
    ranks = {finding.rank for finding in group if finding.rank is not None}
    where = f"{ranks_as_text(ranks)}: " if ranks else ""
    if len(group) == 1:
        text = f"{where}{escape(first.message)}"
    else:
        text = f"{where}{sum(finding.count for finding in group):,} × {CODES.get(first.code, escape(first.message))}"
    lines = wrap(text, style.width, first=f"  {severity:<6}", rest="        ", max_lines=_LINES)
    paint = {"void": style.alarm, "warn": style.warning}.get(severity, style.faint)
    lines[0] = "  " + paint(severity) + lines[0][2 + len(severity) :]
    return lines
