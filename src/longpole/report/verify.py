"""The verdict on a change as one value; the page and the JSON document pour it out (`longpole.verify/1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from longpole.records.ledger import Unknown
from longpole.records.verdict import (
    ContractItem,
    Difference,
    Effect,
    Limit,
    Moved,
    Needs,
    Part,
    Predicted,
    RunEntry,
    RunSpread,
    SideFigure,
)
from longpole.report.document import UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

if TYPE_CHECKING:
    from longpole.advice.verify.judge import Judgement

SCHEMA: Final = "longpole.verify/1"


class Spreads(msgspec.Struct, frozen=True):
    """How much the units of each side differ."""

    before: RunSpread
    after: RunSpread


class Verify(msgspec.Struct):
    """The document of `longpole verify --json`.

    Attributes:
        schema: `longpole.verify/1`.
        longpole: Version of the package.
        verdict: `accepted`, `rejected`, `mixed`, `inconclusive` or `not verifiable`.
        reason: Why, in a word: one of `longpole.records.verdict.REASONS`.
        says: Why, in a sentence.
        candidate: Id of the candidate that was tried, empty where none was named.
        unit_kind: What a unit of work is.
        effect: What came of the time of an item.
        part: What was to shrink.
        moved: Where time went.
        limits: What the after side must keep.
        contract: Correctness, quality, batch.
        differences: What else tells the sides apart.
        predicted: The replay's prediction beside it.
        needs: What would settle it.
        spread: Of the units.
        figures: What else a change may cost.
        also: What else a reader should know.
        before, after: The runs.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    verdict: str
    reason: str
    says: str
    candidate: str
    unit_kind: str
    effect: Effect | Unknown
    part: Part | Unknown
    moved: Moved
    limits: list[Limit]
    contract: list[ContractItem]
    differences: list[Difference]
    predicted: Predicted | Unknown
    needs: Needs
    spread: Spreads
    figures: list[SideFigure]
    also: list[str]
    before: list[RunEntry]
    after: list[RunEntry]
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def make_verify(
    judgement: Judgement, before: list[RunEntry], after: list[RunEntry], *, version: str, candidate: str
) -> Verify:
    """Put a judgement into a document.

    Args:
        judgement: What was found.
        before: The runs before.
        after: The runs after.
        version: Version of the package.
        candidate: Id of the candidate, empty for none.
    """
    return Verify(
        schema=SCHEMA,
        longpole=version,
        verdict=judgement.verdict,
        reason=judgement.reason,
        says=judgement.says,
        candidate=candidate,
        unit_kind=judgement.comparison.before.runs[0].unit_kind,
        effect=judgement.effect,
        part=judgement.part,
        moved=judgement.moved,
        limits=judgement.limits,
        contract=judgement.contract,
        differences=judgement.differences,
        predicted=judgement.predicted,
        needs=judgement.needs,
        spread=Spreads(judgement.spread_before, judgement.spread_after),
        figures=judgement.figures,
        also=judgement.also,
        before=before,
        after=after,
    )


def verify_schema() -> bytes:
    """Return the JSON Schema of `longpole verify --json`."""
    return document_schema(Verify, SCHEMA)
