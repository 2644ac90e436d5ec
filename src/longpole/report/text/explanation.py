"""The whole contract of one row of the catalogue, and why it applies to a run or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import columns_of, wrap
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.findings import CandidateEntry
    from longpole.report.candidates import CheckEntry, Explanation
    from longpole.report.text.layout import Style

_MARKS: Final = {True: "yes", False: "no", None: "?"}
_LABEL: Final = 16


def render_explanation(row: Explanation, entry: CandidateEntry | None, style: Style) -> list[list[str]]:
    """Return the sections of the page.

    Args:
        row: The row, and what was found of it.
        entry: The candidate that it is on this run; None where it is none.
        style: Width and colour.
    """
    return [_head(row, style), _here(row, entry, style), _conditions(row, style), _contract(row, style)]


def _head(row: Explanation, style: Style) -> list[str]:
    lines = [style.title(row.id, f"{row.table} · {row.object} · {row.effort} effort")]
    return lines + wrap(escape(row.says), style.width, first="  ", rest="  ")


def _here(row: Explanation, entry: CandidateEntry | None, style: Style) -> list[str]:
    lines = [style.verdict(f"ON THIS RUN: {row.verdict.upper()}")]
    for why in row.why:
        lines += wrap(escape(why), style.width, first="  ", rest="    ")
    if entry is None:
        return lines
    if isinstance(entry.predicted_period_ns, Unknown):
        words = f"No prediction: {entry.refused}"
    else:
        share = entry.predicted_gain_share
        gain = f" ({share:+.1%} gain)" if isinstance(share, float) else ""
        words = f"Predicted period: {format_ns(entry.predicted_period_ns)}{gain}"
    lines += wrap(escape(words), style.width, first="  ", rest="    ")
    if isinstance(entry.ceiling_ns, int):
        lines.append(f"  At most {format_ns(entry.ceiling_ns)} per unit")
    return lines + command_lines(entry.command, style.width, first="  Try: ", rest="    ")


def command_lines(command: str, width: int, *, first: str, rest: str) -> list[str]:
    """Break a command between its words; a word that is longer than a line stands whole.

    Args:
        command: As it is typed; empty for none.
        width: Columns of a line.
        first: What the first line begins with.
        rest: What every other line begins with.
    """
    lines: list[str] = []
    line, empty = first, True
    for word in escape(command).split(" "):
        if not empty and columns_of(line) + 3 + columns_of(word) > width:
            lines.append(line + " \\")
            line, empty = rest, True
        line += word if empty else f" {word}"
        empty = False
    return [*lines, line] if command else []


def _conditions(row: Explanation, style: Style) -> list[str]:
    lines = [style.title("CONDITIONS", "yes, no, or ? for not known on this run")]
    lines += _rows(style, "answers", [", ".join(row.answers)] if row.answers else [])
    lines += _checks(style, "applies when", row.applies_when)
    lines += _checks(style, "not when", row.not_when)
    return lines + _rows(style, "excludes", [", ".join(row.conflicts)] if row.conflicts else [])


def _checks(style: Style, label: str, checks: Sequence[CheckEntry]) -> list[str]:
    texts = []
    for check in checks:
        why = f": {check.why}" if check.why else ""
        texts.append(f"{_MARKS[check.holds]}  {check.says}{why} ({check.found})")
    return _rows(style, label, texts)


def _contract(row: Explanation, style: Style) -> list[str]:
    lines = [style.title("CONTRACT")]
    lines += _rows(style, "the change", row.change or [row.no_change])
    lines += _rows(style, "assumes", row.assumes)
    lines += _rows(style, "spreads", row.spreads)
    lines += _rows(style, "exposes", row.exposes)
    lines += _rows(style, "pairs", row.pairs)
    missing = set(row.missing)
    fields = [f"{name} (missing here)" if name in missing else name for name in row.must_record]
    lines += _rows(style, "must record", fields)
    others = [name for name in row.missing if name not in row.must_record]
    lines += _rows(style, "missing too", others)
    lines += _rows(style, "must shrink", [row.part])
    lines += _rows(style, "proved by", row.proved_by)
    lines += _rows(style, "irreplaceable", [row.cannot_replace])
    lines += _rows(style, "costs", row.costs)
    lines += _rows(style, "check with", row.check_with)
    for place, address in enumerate(row.references):
        lines.append(f"  {'read on' if place == 0 else '':<{_LABEL}}{escape(address)}")
    return lines


def _rows(style: Style, label: str, texts: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for place, text in enumerate(texts):
        first = f"  {label if place == 0 else '':<{_LABEL}}"
        lines += wrap(escape(text), style.width, first=first, rest=" " * (_LABEL + 4))
    return lines
