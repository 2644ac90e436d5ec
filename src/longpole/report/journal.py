"""What `longpole journal` says, as one value; the pages and the JSON document pour it out (`longpole.journal/1`)."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from longpole.advice.journal.check import Problem
from longpole.advice.journal.search import Hit
from longpole.advice.journal.summary import JobSummary
from longpole.records.audit import Audit, Verdict
from longpole.records.journal import DamagedLine, Entry
from longpole.records.ledger import Unknown
from longpole.report.document import UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

SCHEMA: Final = "longpole.journal/1"


class ClaimCheck(msgspec.Struct, frozen=True):
    """What came of holding a stated figure against the others of its side, and against what the entry measured.

    Attributes:
        verdict: As of `longpole audit`.
        says: The verdict in a sentence.
    """

    verdict: Verdict
    says: str


class ClaimAudit(msgspec.Struct, frozen=True):
    """All stated figures of a job, each side of an entry a statement.

    Attributes:
        job: Which job.
        audit: What `longpole audit` finds in them.
    """

    job: str
    audit: Audit


class ClaimEntry(msgspec.Struct, frozen=True):
    """A figure that somebody stated, and what became of it.

    Attributes:
        entry: Id of the entry that carries it.
        of: `before` or `after` its change, or `both`.
        what: What is stated, such as `mfu`.
        stated: As it was stated.
        check: Whether it can be true beside what else is stated and measured.
    """

    entry: str
    of: str
    what: str
    stated: str
    check: ClaimCheck | Unknown


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
        audits: Of these figures, by job.
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
    audits: list[ClaimAudit] = []
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


def journal_schema() -> bytes:
    """Return the JSON Schema of `longpole journal … --json`."""
    return document_schema(JournalDocument, SCHEMA)
