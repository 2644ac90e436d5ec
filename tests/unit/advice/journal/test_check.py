"""What is wrong with a journal is found, and nothing where all is well."""

from __future__ import annotations

from longpole.advice.journal.check import MISSING, find_problems
from longpole.advice.journal.lines import Journal
from longpole.records.journal import DamagedLine, RecordLink
from tests.journals import entry


def test_a_sound_journal_has_no_problems() -> None:
    journal = Journal([entry("a", records=[RecordLink("r.json", "1")]), entry("b")], [1, 2])

    assert find_problems(journal, {"r.json": "1"}) == []


def test_records_that_are_gone_or_changed_are_errors() -> None:
    links = [RecordLink("gone.json", "1"), RecordLink("other.json", "2"), RecordLink("same.json", "3")]
    journal = Journal([entry("a", records=links)], [4])

    problems = find_problems(journal, {"gone.json": MISSING, "other.json": "9", "same.json": "3"})

    assert [(one.code, one.severity, one.line, one.id) for one in problems] == [
        ("record.missing", "error", 4, "a"),
        ("record.changed", "error", 4, "a"),
    ]


def test_lines_ids_and_reverts() -> None:
    entries = [entry("a"), entry("a"), entry("b", reverts="z", decision="reverted")]

    problems = find_problems(Journal(entries, [1, 3, 4], [DamagedLine(2, "not JSON")]), {})

    assert [(one.code, one.line) for one in problems] == [("line.damaged", 2), ("id.twice", 3), ("reverts.unknown", 4)]


def test_an_order_that_a_merge_makes_is_a_warning() -> None:
    entries = [entry("a", date="2026-12-02"), entry("b", date="2026-12-01T10:00:00Z"), entry("c", date="2026-12-02")]

    (problem,) = find_problems(Journal(entries, [1, 2, 3]), {})

    assert (problem.code, problem.severity, problem.id) == ("order", "warn", "b")
