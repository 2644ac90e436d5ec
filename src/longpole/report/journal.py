"""What `longpole journal` says, as one value; the pages and the JSON document pour it out (`longpole.journal/1`)."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from longpole.advice.journal.check import Problem
from longpole.advice.journal.search import Hit
from longpole.advice.journal.summary import JobSummary
from longpole.records.journal import DamagedLine, Entry
from longpole.records.ledger import Unknown
from longpole.report.document import UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

SCHEMA: Final = "longpole.journal/1"
NOT_CHECKED: Final = Unknown("system model not part of this version: cannot be checked", ["the system model"])


class ClaimEntry(msgspec.Struct, frozen=True):
    """A figure that somebody stated, and what became of it.

    Attributes:
        entry: Id of the entry that carries it.
        of: `before` or `after` its change.
        what: What is stated, such as `mfu`.
        stated: As it was stated.
        check: Whether it can be true.
    """

    entry: str
    of: str
    what: str
    stated: str
    check: Unknown


class JournalDocument(msgspec.Struct):
    """The document of every `longpole journal … --json`.

    Attributes:
        schema: `longpole.journal/1`.
        longpole: Version of the package.
        command: `add`, `list`, `show`, `search`, `summary` or `check`.
        file: The journal.
        entries: Those that were asked for, in the order of the file; of `search`, the best first.
        damaged: Lines that are no entries, whatever was asked for.
        claims: Stated figures of these entries.
        query: What was searched for.
        hits: How well each entry matches; of `search` only.
        searched: How many entries were searched; of `search` only.
        summary: What changes add up to, by job; of `summary` only.
        problems: What is wrong; of `check` only.
        checked: How many linked records were looked at; of `check` only.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    command: str
    file: str
    entries: list[Entry]
    damaged: list[DamagedLine]
    claims: list[ClaimEntry]
    query: str | UnsetType = UNSET
    hits: list[Hit] | UnsetType = UNSET
    searched: int | UnsetType = UNSET
    summary: list[JobSummary] | UnsetType = UNSET
    problems: list[Problem] | UnsetType = UNSET
    checked: int | UnsetType = UNSET
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def claims_of(entries: list[Entry]) -> list[ClaimEntry]:
    """Return the stated figures of entries; none of them can be checked in this version."""
    return [
        ClaimEntry(entry.id, claim.of, claim.what, claim.stated, NOT_CHECKED)
        for entry in entries
        for claim in entry.claims
    ]


def journal_schema() -> bytes:
    """Return the JSON Schema of `longpole journal … --json`."""
    return document_schema(JournalDocument, SCHEMA)
