"""What is wrong with a journal: lines, ids, order, and linked records that are no longer what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.advice.journal.lines import Journal
    from longpole.records.journal import Entry

MISSING = ""
"""Stands for the hash of a record that is not there."""


class Problem(msgspec.Struct, frozen=True):
    """Something wrong with a journal.

    Attributes:
        code: `line.damaged`, `record.missing`, `record.changed`, `id.twice`, `reverts.unknown` or `order`.
        severity: `error`, or `warn` where every figure still stands.
        line: The line of the journal.
        id: The entry; empty of a line that is none.
        says: What is wrong, and what to do.
    """

    code: str
    severity: str
    line: int
    id: str
    says: str


def find_problems(journal: Journal, hashes: Mapping[str, str]) -> list[Problem]:
    """Return what is wrong, by line.

    Args:
        journal: All of its lines.
        hashes: Path of a linked record, as entries write it -> the hash of what lies there now, or `MISSING`.
    """
    problems = [Problem("line.damaged", "error", line.line, "", line.why) for line in journal.damaged]
    first_line: dict[str, int] = {}
    latest = ""
    for line, entry in zip(journal.lines, journal.entries, strict=True):
        if entry.id in first_line:
            says = f"line {first_line[entry.id]} has the same id; give one of them another"
            problems.append(Problem("id.twice", "error", line, entry.id, says))
        first_line.setdefault(entry.id, line)
        if entry.date[:10] < latest:
            says = f"it is of {entry.date[:10]}, and stands behind one of {latest}; summaries go by the date"
            problems.append(Problem("order", "warn", line, entry.id, says))
        latest = max(latest, entry.date[:10])
        problems += _of_records(entry, line, hashes)
    known = set(first_line)
    problems += [
        Problem("reverts.unknown", "error", line, entry.id, f"it takes back {entry.reverts}, which is no entry here")
        for line, entry in zip(journal.lines, journal.entries, strict=True)
        if entry.reverts and entry.reverts not in known
    ]
    return sorted(problems, key=lambda problem: problem.line)


def _of_records(entry: Entry, line: int, hashes: Mapping[str, str]) -> list[Problem]:
    problems = []
    for link in entry.records:
        now = hashes.get(link.path, MISSING)
        if now == MISSING:
            says = f"{link.path}: there is no such record any more; restore it"
            problems.append(Problem("record.missing", "error", line, entry.id, says))
        elif now != link.sha256:
            says = f"{link.path}: not what it was when the entry was written (its SHA-256 differs); restore it"
            problems.append(Problem("record.changed", "error", line, entry.id, says))
    return problems
