"""What is worth trying on a run as one value; the page and the JSON document pour it out (`longpole.candidates/1`)."""

from __future__ import annotations

from typing import Final

import msgspec

from longpole.records.findings import CandidateEntry, CauseFinding
from longpole.records.ledger import Unknown
from longpole.records.replay import Replay
from longpole.report.document import RunSummary, UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema
from longpole.report.whatif import WhatIf

SCHEMA: Final = "longpole.candidates/1"


class RowVerdict(msgspec.Struct, frozen=True):
    """Whether one row of the catalogue applies to the run.

    Attributes:
        id: The row.
        table: `change`, `layout` or `scenario`.
        verdict: `applies`, `silenced`, `does not apply` or `not known`.
        why: Figures and findings that say so.
    """

    id: str
    table: str
    verdict: str
    why: list[str]


class CheckEntry(msgspec.Struct, frozen=True):
    """One condition of a row, looked at on the run.

    Attributes:
        says: The condition.
        found: The figure's value in this run.
        holds: None where it is not known.
        why: What it means where it holds; empty for a condition under which the row applies.
    """

    says: str
    found: str
    holds: bool | None
    why: str = ""


class Explanation(msgspec.Struct, frozen=True):
    """The whole contract of one row, and why it applies to the run or not.

    Attributes:
        id, object, stage, says, effort, must_record, proved_by, cannot_replace, costs, part, references, check_with:
            As in a candidate.
        table: `change`, `layout` or `scenario`.
        buys: `time` or `memory`.
        answers: Causes that it answers.
        verdict: As in `RowVerdict`.
        why: Figures and findings that say so.
        applies_when: Conditions under which it applies without a finding.
        not_when: Conditions that silence it.
        missing: What this run does not record of what it takes to judge it.
        change: Options of `longpole whatif`, with placeholders.
        no_change: Why nothing can be replayed; empty where something can.
        assumes: What a prediction assumes.
        conflicts: Rows that exclude it.
        spreads, exposes, pairs: Of a layout.
    """

    id: str
    table: str
    object: str
    stage: str
    says: str
    effort: str
    buys: str
    answers: list[str]
    verdict: str
    why: list[str]
    applies_when: list[CheckEntry]
    not_when: list[CheckEntry]
    missing: list[str]
    change: list[str]
    no_change: str
    assumes: list[str]
    must_record: list[str]
    proved_by: list[str]
    cannot_replace: str
    costs: list[str]
    part: str
    conflicts: list[str]
    references: list[str]
    check_with: list[str] = []
    spreads: list[str] = []
    exposes: list[str] = []
    pairs: list[str] = []


class Overlap(msgspec.Struct, frozen=True):
    """What the candidates bring together, against the sum of what each brings alone.

    Attributes:
        ids: The candidates that were replayed together, the most gainful first.
        left_out: Candidates with a gain that one of them excludes, that change nothing else, or that cannot be replayed
            as they are written.
        sum_ns: Sum of their single savings per unit.
        together_ns: What all of them save.
        overlap_ns: The sum less that: what is counted twice in it; negative where they help each other.
    """

    ids: list[str]
    left_out: list[str]
    sum_ns: int
    together_ns: int | Unknown
    overlap_ns: int | Unknown


class Candidates(msgspec.Struct):
    """What is worth trying on a run.

    Attributes:
        schema: `longpole.candidates/1`.
        longpole: Version of the package.
        run: Who ran.
        unit_kind: What a unit of work is: step, request, iteration.
        catalogue: The user's catalogue; empty for the shipped one alone.
        measured_period_ns: Median measured period of the steady units.
        replayed_period_ns: Median period of the unchanged replay.
        replay: How far the replay may be believed.
        findings: The causes that were found, the most costly first.
        candidates: Ranked: by predicted gain, then without a prediction by ceiling, then what gains nothing, then
            what only records.
        together: A what-if of all that gain something and do not exclude each other; None for fewer than two.
        overlap: Their single savings against what they bring together; None for fewer than two.
        rows: Every row of the catalogue, and whether it applies.
        explained: The row that was asked about; None for none.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    run: RunSummary
    unit_kind: str
    catalogue: str
    measured_period_ns: int | Unknown
    replayed_period_ns: int | Unknown
    replay: Replay | Unknown
    findings: list[CauseFinding]
    candidates: list[CandidateEntry]
    together: WhatIf | None
    overlap: Overlap | None
    rows: list[RowVerdict]
    explained: Explanation | None = None
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def candidates_schema() -> bytes:
    """Return the JSON Schema of `longpole candidates --json`."""
    return document_schema(Candidates, SCHEMA)
