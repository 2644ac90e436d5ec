"""`longpole journal`: answers from the entries of a journal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from longpole.advice.journal.check import find_problems
from longpole.advice.journal.search import search as search_entries
from longpole.advice.journal.summary import summarise
from longpole.errors import UsageError
from longpole.pipeline.journal_claims import check_claims
from longpole.pipeline.journal_file import hash_record, need_journal, read_journal
from longpole.pipeline.version import package_version
from longpole.report.journal import SCHEMA, JournalDocument
from longpole.settings import Settings

if TYPE_CHECKING:
    from longpole.advice.journal.lines import Journal
    from longpole.advice.journal.summary import JobSummary
    from longpole.records.journal import Entry


def open_journal(named: Path | None = None, start: Path | None = None) -> tuple[Path, Journal]:
    """Find and read a journal: the named one, or the nearest in a folder or one above it.

    Raises:
        UsageError: There is none.
        InputError: It cannot be read, or is none.
    """
    path = need_journal(named, start or Path())
    return path, read_journal(path)


def list_entries(path: Path, journal: Journal, *, job: str = "", tag: str = "") -> JournalDocument:
    """Return the entries of a job and with a tag; empty for any.

    Raises:
        UsageError: There is no such job or tag.
    """
    return _document("list", path, journal, _chosen(journal.entries, job, tag))


def show_entry(path: Path, journal: Journal, name: str) -> JournalDocument:
    """Return the entry of an id, or of a beginning or a part of it or of the title that no other has.

    Raises:
        UsageError: None has it, or several have.
    """
    entries = journal.entries
    chosen = [entry for entry in entries if entry.id == name]
    chosen = chosen or [entry for entry in entries if entry.id.startswith(name)]
    chosen = chosen or [entry for entry in entries if name in entry.id or name.casefold() in entry.title.casefold()]
    if not chosen:
        msg = f"{name}: no entry of {path} has this id; `longpole journal list` shows them"
        raise UsageError(msg)
    if len({entry.id for entry in chosen}) > 1:
        msg = f"{name}: expected one entry, found {', '.join(entry.id for entry in chosen)}; write more of the id"
        raise UsageError(msg)
    return _document("show", path, journal, chosen)


def search(path: Path, journal: Journal, text: str, *, job: str = "", tag: str = "") -> JournalDocument:
    """Return the entries that have words of a text, the best first.

    Raises:
        UsageError: The text has no word, or there is no such job or tag.
    """
    if not any(char.isalnum() for char in text):
        msg = f"search: expected words to search for; found {text!r}"
        raise UsageError(msg)
    entries = _chosen(journal.entries, job, tag)
    hits = search_entries(entries, text)
    document = _document("search", path, journal, [entries[hit.place] for hit in hits])
    document.query, document.hits, document.searched = text, hits, len(entries)
    return document


def summarise_journal(path: Path, journal: Journal, *, job: str = "", tag: str = "") -> JournalDocument:
    """Return what the changes add up to, of each job.

    Raises:
        UsageError: There is no such job or tag.
    """
    entries = _chosen(journal.entries, job, tag)
    return _document("summary", path, journal, entries, summarise(entries, Settings().regression_min_share))


def check_journal(path: Path, journal: Journal) -> JournalDocument:
    """Return what is wrong: lines, ids, order, and records that are not what they were.

    Raises:
        InputError: A record cannot be read.
    """
    paths = {link.path for entry in journal.entries for link in entry.records}
    hashes = {linked: hash_record(path.parent / linked) for linked in sorted(paths)}
    document = _document("check", path, journal, journal.entries)
    document.problems, document.checked = find_problems(journal, hashes), len(paths)
    return document


def _document(
    command: str, path: Path, journal: Journal, entries: list[Entry], summary: list[JobSummary] | UnsetType = UNSET
) -> JournalDocument:
    claims, audits = check_claims(entries)
    return JournalDocument(
        SCHEMA, package_version(), command, str(path), entries, journal.damaged, claims, audits, summary=summary
    )


def _chosen(entries: list[Entry], job: str, tag: str) -> list[Entry]:
    for option, value, known in (
        ("--job", job, {entry.job for entry in entries if entry.job}),
        ("--tag", tag, {tag for entry in entries for tag in entry.tags}),
    ):
        if value and value not in known:
            msg = f"{option} {value}: no entry has it; there are {', '.join(sorted(known)) or 'none'}"
            raise UsageError(msg)
    return [entry for entry in entries if (not job or entry.job == job) and (not tag or tag in entry.tags)]
