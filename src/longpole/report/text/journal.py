"""The pages of `longpole journal`: lists, one entry, what was searched for, what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.journal.search import UNCHANGED
from longpole.records.journal import Entry, Expected, Measured
from longpole.report.escape import escape
from longpole.report.text.journal_summary import render_claims, render_summaries
from longpole.report.text.journal_words import (
    decision_words,
    effect_of,
    figures_of,
    headline,
    interval_words,
    lines_of_damage,
    says_verdict,
    value_words,
)
from longpole.report.text.layout import Style, columns_of, pad, wrap
from longpole.report.text.page import NARROWEST
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.advice.journal.search import Hit
    from longpole.report.journal import JournalDocument

_EFFECT, _VERDICT, _DECISION = 9, 15, 9
_LABEL: Final = 12
_HASH_SHOWN: Final = 12
_CHANGES_SHOWN: Final = 24
_SEARCHED: Final = "titles, candidates, configurations, tags, notes, side effects and records"


def render_journal(document: JournalDocument, *, width: int, color: bool) -> str:
    """Write what a command of `longpole journal` found.

    Args:
        document: Its answer.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from the journal is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = _PAGES[document.command](document, style)
    sections.append(lines_of_damage(document.damaged, style) if document.command != "check" else [])
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_added(document: JournalDocument, style: Style) -> list[list[str]]:
    entry = document.entries[0]
    head = headline("ADDED", f"{escape(entry.id)} to {escape(document.file)}", style)
    away = [link.path for link in entry.records if link.path.startswith(("../", "/"))]
    if away:
        text = f"outside the journal's folder, so a copy of it will lack them: {', '.join(map(escape, away))}"
        head += wrap(text, style.width, first="  ", rest="  ")
    return [head, *_render_entry(entry, document, style)]


def _render_list(document: JournalDocument, style: Style) -> list[list[str]]:
    entries = document.entries
    kept = sum(entry.decision == "kept" for entry in entries)
    noun = format_count(len(entries), "entry", "entries")
    text = f"{noun}, {kept} kept, {len(entries) - kept} reverted · {escape(document.file)}"
    return [headline("JOURNAL", text, style), _table(entries, style)]


def _table(entries: list[Entry], style: Style) -> list[str]:
    if not entries:
        return []
    room = style.width - 2 - _EFFECT - _VERDICT - _DECISION - 2
    longest = max(columns_of(escape(entry.id)) for entry in entries)
    width = min(max(longest, _LABEL), room)
    head = f"  {pad('change', width)}{'effect':>{_EFFECT}}  {pad('verdict', _VERDICT)}decision"
    rows = [
        f"  {_cut(escape(entry.id), width)}{effect_of(entry):>{_EFFECT}}"
        f"  {pad(says_verdict(entry.verdict), _VERDICT)}{decision_words(entry)}"
        for entry in entries
    ]
    return [style.faint(head), *rows]


def _cut(text: str, width: int) -> str:
    """Return a text of exactly `width` columns: an id is cut at its end, so that what is shown finds it."""
    return text + " " * (width - columns_of(text)) if columns_of(text) <= width else text[: width - 1] + "…"


def _render_shown(document: JournalDocument, style: Style) -> list[list[str]]:
    return [section for entry in document.entries for section in _render_entry(entry, document, style)]


def _render_entry(entry: Entry, document: JournalDocument, style: Style) -> list[list[str]]:
    who = [f"by {escape(entry.who)}"] if entry.who else []
    job = [f"job {escape(entry.job)}"] if entry.job else []
    reverts = [f"takes back {escape(entry.reverts)}"] if entry.reverts else []
    verdict = says_verdict(entry.verdict) + (f" ({escape(entry.reason)})" if entry.reason else "")
    head = headline("ENTRY", escape(entry.title), style)
    facts = " · ".join([verdict, entry.decision, *reverts, entry.date, *who, *job])
    head += wrap(facts, style.width, first="  ", rest="  ")
    head += wrap(escape(entry.id), style.width, first="  ", rest="  ")
    head += wrap(escape(entry.says), style.width, first="  ", rest="  ") if entry.says else []
    sections = [head, _effects(entry, style), _config(entry, style)]
    part = [entry.part] if entry.part and entry.part not in entry.says else []
    sections.append(_items("WHAT ELSE CHANGED", [*part, *entry.side_effects], style))
    sections += [_evidence(entry, style), render_claims(document.claims, style)]
    sections.append(_items("NOTES", [entry.notes] if entry.notes else [], style))
    sections.append(_items("TAGS", [", ".join(entry.tags)] if entry.tags else [], style))
    return sections


def _effects(entry: Entry, style: Style) -> list[str]:
    lines = [style.title("EFFECT", "of throughput: items in the same time")]
    if isinstance(entry.expected, Expected):
        source = " · ".join(escape(text) for text in (entry.expected.candidate, entry.expected.source) if text)
        error = ""
        if isinstance(entry.expected.error_share, float):
            error = f"; such predictions were off by {entry.expected.error_share:.0%}"
        lines += _labelled("expected", f"{effect_of(entry, which='expected')} from {source}{error}", style)
    if isinstance(entry.measured, Measured):
        text = " · ".join(filter(None, (effect_of(entry), interval_words(entry.measured), figures_of(entry.measured))))
        lines += _labelled("measured", text, style)
        lines += _labelled("", _method(entry.measured), style) if _method(entry.measured) else []
    else:
        lines += _labelled("measured", "not measured", style)
    return lines


def _method(measured: Measured) -> str:
    runs = f"{' and '.join(map(str, measured.runs))} runs" if measured.runs else ""
    single = "single run a side" if measured.single_run else ""
    return " · ".join(filter(None, (escape(measured.statistic), runs, single)))


def _labelled(label: str, text: str, style: Style) -> list[str]:
    return wrap(text, style.width, first=f"  {label:<{_LABEL}}", rest=" " * (_LABEL + 2))


def _config(entry: Entry, style: Style) -> list[str]:
    if not entry.config and not entry.diff:
        return []
    against = {"record": "the record before", "file": "the file before", "": ""}.get(
        entry.diff_against, escape(entry.diff_against)
    )
    rest = f"against {against}" if against else "nothing to compare it with"
    lines = [style.title("CONFIGURATION", rest)]
    if against and not entry.diff:
        lines.append("  nothing changed")
    for change in entry.diff[:_CHANGES_SHOWN]:
        text = f"{escape(change.key)}: {value_words(change.before)} → {value_words(change.after)}"
        lines += wrap(text, style.width, first="  ", rest="    ")
    if len(entry.diff) > _CHANGES_SHOWN:
        lines.append(f"  and {len(entry.diff) - _CHANGES_SHOWN} more; --json has them all")
    same = len(entry.config) - sum(change.key in entry.config for change in entry.diff)
    if same:
        lines.append(style.faint(f"  {format_count(same, 'other key' if entry.diff else 'key')}; --json has them"))
    return lines


def _evidence(entry: Entry, style: Style) -> list[str]:
    lines = [style.title("EVIDENCE", "with the beginning of each SHA-256")]
    groups: dict[tuple[str, str], list[str]] = {}
    for link in entry.records:
        text = f"{escape(link.path)} ({escape(link.sha256[:_HASH_SHOWN])}…)"
        groups.setdefault((link.side, link.kind), []).append(text)
    for (side, kind), texts in groups.items():
        label = escape(side)
        for text in texts:
            lines += _labelled(label, text + (f" {escape(kind)}" if label else ""), style)
            label = ""
    if not entry.records:
        lines += _labelled("no record", escape(entry.no_record), style)
    return lines


def _items(title: str, texts: list[str], style: Style) -> list[str]:
    lines = [style.title(title)] if texts else []
    for text in texts:
        for part in text.splitlines():
            lines += wrap(escape(part), style.width, first="  ", rest="    ")
    return lines


def _render_found(document: JournalDocument, style: Style) -> list[list[str]]:
    searched = document.searched if isinstance(document.searched, int) else 0
    hits = document.hits if isinstance(document.hits, list) else []
    asked = escape(document.query) if isinstance(document.query, str) else ""
    number = format_count(searched, "entry", "entries")
    if not hits:
        head = headline("NOT FOUND", f"nothing in {number} has a word of: {asked}", style)
        return [[*head, *wrap(f"Searched: {_SEARCHED}.", style.width, first="  ", rest="  ")]]
    kept = sum(entry.decision == "kept" for entry in document.entries)
    text = f"{len(hits)} of {number}, {kept} kept, {len(hits) - kept} reverted, for: {asked}"
    if all(hit.matched == [UNCHANGED] for hit in hits):
        text = f"no change of this, but {number} ran with it; for: {asked}"
        return [headline("NOT TRIED", text, style), _table(document.entries, style)]
    return [headline("FOUND", text, style), _table(document.entries, style), _where(hits, style)]


def _where(hits: list[Hit], style: Style) -> list[str]:
    lines = [style.title("WHERE IT STANDS", "the best match first")]
    for hit in hits:
        text = f"{', '.join(map(escape, hit.words))} in {', '.join(hit.matched)}"
        lines += wrap(f"{escape(hit.id)}: {text}", style.width, first="  ", rest="    ")
    return lines


def _render_summed(document: JournalDocument, style: Style) -> list[list[str]]:
    return render_summaries(document, style)


def _render_checked(document: JournalDocument, style: Style) -> list[list[str]]:
    problems = document.problems if isinstance(document.problems, list) else []
    errors = sum(problem.severity == "error" for problem in problems)
    records = document.checked if isinstance(document.checked, int) else 0
    unrecorded = sum(not entry.records for entry in document.entries)
    number = format_count(len(document.entries), "entry", "entries")
    what = f"{number}, {format_count(records, 'linked record')}"
    without = f"; {unrecorded} without a record, and each says why" if unrecorded else ""
    if errors:
        head = headline("NOT SOUND", f"{format_count(errors, 'error')} in {what}{without}", style, style.alarm)
    else:
        head = headline("SOUND", f"{what}: all are what they were{without}", style)
    lines = []
    for problem in problems:
        where = f"line {problem.line}" + (f", {escape(problem.id)}" if problem.id else "")
        text = f"{where}: {escape(problem.says)}"
        lines += wrap(text, style.width, first=f"  {problem.severity:<6}", rest="        ")
    return [head, lines]


_PAGES: Final[dict[str, Callable[[JournalDocument, Style], list[list[str]]]]] = {
    "add": _render_added,
    "list": _render_list,
    "show": _render_shown,
    "search": _render_found,
    "summary": _render_summed,
    "check": _render_checked,
}
