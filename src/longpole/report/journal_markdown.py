"""A journal as Markdown, for a pull request: entries or a summary as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.journal.summary import gain
from longpole.records.journal import Expected, Measured
from longpole.report.markdown_text import plain
from longpole.report.text.journal_words import by_verdict, claim_words, shares_in_percent

if TYPE_CHECKING:
    from longpole.advice.journal.summary import JobSummary
    from longpole.records.journal import Entry
    from longpole.report.journal import JournalDocument

_NONE: Final = "–"


def render_markdown(document: JournalDocument) -> str:
    """Write a journal's answer as Markdown; everything that comes from the journal is escaped.

    Args:
        document: The answer of `add`, `list`, `show` or `summary`.
    """
    jobs = document.summary if isinstance(document.summary, list) else []
    parts = [_job(job) for job in jobs] if jobs else [_entries(document.entries)]
    if document.command in ("show", "add"):
        parts += [_details(entry) for entry in document.entries]
    parts += [_claims(document)] if document.claims else []
    if document.damaged:
        parts.append(f"Lines that could not be read: {', '.join(str(line.line) for line in document.damaged)}.\n")
    return "\n".join(parts)


def _entries(entries: list[Entry]) -> str:
    rows = [
        f"| {plain(entry.title)} | {_expected(entry)} | {_measured(entry)} | {plain(entry.verdict.replace('_', ' '))}"
        f" | {'a revert' if entry.reverts else entry.decision} |\n"
        for entry in entries
    ]
    return "| change | expected | measured | verdict | decision |\n| --- | ---: | ---: | --- | --- |\n" + "".join(rows)


def _expected(entry: Entry) -> str:
    return gain(entry.expected.speedup) if isinstance(entry.expected, Expected) else _NONE


def _measured(entry: Entry) -> str:
    measured = entry.measured
    if not isinstance(measured, Measured):
        return _NONE
    if isinstance(measured.low, float) and isinstance(measured.high, float):
        return f"{gain(measured.speedup)} [{gain(measured.low, 1)}, {gain(measured.high, 1)}]"
    return gain(measured.speedup)


def _details(entry: Entry) -> str:
    lines = [f"**{plain(entry.title)}** ({plain(entry.id)})\n"]
    lines += [f"- {plain(change.key)}: {_value(change.before)} → {_value(change.after)}" for change in entry.diff]
    lines += [f"- {plain(text)}" for text in (entry.part, entry.reason, *entry.side_effects, entry.notes) if text]
    lines += [f"- {link.side}: {plain(link.path)} (SHA-256 {plain(link.sha256[:12])}…)" for link in entry.records]
    lines += [f"- no record: {plain(entry.no_record)}"] if entry.no_record else []
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    return _NONE if type(value).__name__ == "UnsetType" else plain(str(value))


def _job(summary: JobSummary) -> str:
    head = f"**{plain(summary.job) + ': ' if summary.job else ''}{plain(summary.says)}**\n"
    rows = [
        f"| {plain(one.title)} | {gain(one.speedup)} | {gain(one.compound)} | {share} |\n"
        for one, share in zip(summary.kept, shares_in_percent(summary.kept), strict=True)
    ]
    table = "| kept change | effect | in all | share |\n| --- | ---: | ---: | ---: |\n" + "".join(rows) if rows else ""
    tried = [f"- not counted: {plain(one.title)}, {plain(one.why)}\n" for one in summary.not_counted]
    return "\n".join(filter(None, (head, table, "".join(tried))))


def _claims(document: JournalDocument) -> str:
    return "".join(
        f"- stated: {'; '.join(plain(claim_words(claim)) for claim in told)}. {plain(verdict)}\n"
        for verdict, told in by_verdict(document.claims)
    )
