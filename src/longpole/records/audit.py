"""What an audit of claims found, as it is stored (`longpole.audit/1`)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

SCHEMA: Final = "longpole.audit/1"

Verdict: TypeAlias = Literal[
    "consistent", "consistent_under", "underdetermined", "implausible", "inconsistent", "impossible"
]
VERDICTS: Final[tuple[Verdict, ...]] = (
    "consistent", "consistent_under", "underdetermined", "implausible", "inconsistent", "impossible",
)  # fmt: skip
"""From the best to the worst; a file has the worst of its statements."""
Status: TypeAlias = Literal["holds", "holds_under", "implausible", "contradicts", "impossible"]


class AuditFigure(msgspec.Struct, frozen=True):
    """A figure that is stated, or follows.

    Attributes:
        field: Its key.
        what: For a reader.
        value: In `unit`.
        low, high: Between which it lies, given how what it rests on was rounded; null where it has no end.
        unit: `s`, `B`, `B/s`, `FLOP`, `FLOP/s`, `tokens/s`, or empty for counts and shares.
        text: As it was written; of a figure that follows, the formula with its values.
    """

    field: str
    what: str
    value: float
    low: float | None
    high: float | None
    unit: str
    text: str


class AuditCorrection(msgspec.Struct, frozen=True):
    """What one figure would have to be, if all others of a finding hold.

    Attributes:
        field, what, unit: Of the figure.
        stated: What it is now.
        value: What it would have to be.
        low, high: Between which that lies, given how the others were rounded.
        formula: How it follows, with its values.
    """

    field: str
    what: str
    unit: str
    stated: float
    value: float
    low: float | None
    high: float | None
    formula: str


class AuditFinding(msgspec.Struct, frozen=True):
    """One relation, and what came of it.

    Attributes:
        code: `R1` to `R12`.
        status: Whether it holds; `holds_under` where it takes a reading or rounding that is not printed.
        says: In a sentence.
        fields: The stated figures that it holds against each other.
        factor: Stated by expected; 1 where it holds, null where there is no factor.
        corrections: What would repair it, the likeliest first.
    """

    code: str
    status: Status
    says: str
    fields: list[str]
    factor: float | None
    corrections: list[AuditCorrection] = []


class AuditConvention(msgspec.Struct, frozen=True):
    """A way to count FLOPs that was tried.

    Attributes:
        name: Of the convention.
        says: What it counts.
        flops_per_token: What it gives, null where that is not known.
        field: The figure that it decides on; empty where none.
        expected: What that figure would be, null where that is not known.
        holds: Whether everything holds under it.
    """

    name: str
    says: str
    flops_per_token: float | None
    field: str
    expected: float | None
    holds: bool


class AuditExplanation(msgspec.Struct, frozen=True):
    """One slip, or two, that would make a contradiction vanish.

    Attributes:
        says: How the statement is to be read.
        factors: Field -> what it has to be multiplied by.
        repaired: Field -> what it then is, in the unit of the field.
        claim: The repaired claim in a line.
    """

    says: str
    factors: dict[str, float]
    repaired: dict[str, float]
    claim: str


class AuditStatement(msgspec.Struct, frozen=True):
    """One statement, and what came of it.

    Attributes:
        name: What the file calls it.
        quote: The claim in words, if the file gives it.
        verdict: See `VERDICTS`.
        qualifier: `after rounding`, `wording` or `wrong model` where that is what there is to say; else empty.
        says: The verdict in a sentence.
        readings: How it has to be read for that: conventions, roundings, words that mean more than one thing.
        stated: What the file states.
        assumed: What was taken for granted.
        unread: Keys that mean no figure.
        findings: Relations, the gravest first.
        conventions: Ways to count FLOPs that were tried.
        explanations: What would make it hold, the simplest first.
        tried: How many slips and pairs of them were tried for that.
        nearest: Where none would, what the likeliest one would make of it; else empty.
        implied: What follows from it and is not stated.
    """

    name: str
    quote: str
    verdict: Verdict
    qualifier: str
    says: str
    readings: list[str]
    stated: list[AuditFigure]
    assumed: list[str]
    unread: list[str]
    findings: list[AuditFinding]
    conventions: list[AuditConvention]
    explanations: list[AuditExplanation]
    tried: int
    nearest: str
    implied: list[AuditFigure]


class AuditAcross(msgspec.Struct, frozen=True):
    """What two statements say of each other.

    Attributes:
        code: `R5` or `R12`.
        status: As of a finding.
        statements: Their names.
        says: In a sentence.
        stated, expected: The two ratios that should be equal.
        factor: The first by the second.
    """

    code: str
    status: Status
    statements: list[str]
    says: str
    stated: float
    expected: float
    factor: float


class Audit(msgspec.Struct, frozen=True):
    """The document of `longpole audit --json`.

    Attributes:
        schema: `longpole.audit/1`.
        longpole: Version of the package.
        title: Of the file.
        verdict: The worst of its statements.
        says: The verdict in a sentence.
        statements: In the order of the file.
        across: Statements held against each other.
    """

    schema: Literal["longpole.audit/1"]
    longpole: str
    title: str
    verdict: Verdict
    says: str
    statements: list[AuditStatement]
    across: list[AuditAcross] = []
