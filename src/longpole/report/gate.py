"""A gate's answer as one value; the page, Markdown, JUnit and JSON pour it out (`longpole.gate/1`)."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from longpole.records.gate import GateFigure, GateLook, GateReason, GateSide, GateStage
from longpole.records.verdict import Difference
from longpole.report.document import UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

SCHEMA: Final = "longpole.gate/1"


class Gate(msgspec.Struct):
    """The document of `longpole bench gate --json`.

    Attributes:
        schema: `longpole.gate/1`.
        longpole: Version of the package.
        verdict: `regressed`, `same`, `improved`, `inconclusive` or `invalid`.
        reason: `figure`, `stage`, `noise`, `few_processes`, `not_comparable`, `not_known`; empty where it passes.
        says: Why, in a sentence.
        next: The next command to type; empty where nothing needs to be done.
        exit_code: What the command ended with.
        benchmark: What was run.
        unit_kind: What a unit of work is.
        design: `paired`, `unpaired` or `single run`.
        fail_when: `likely`: the interval lies above 0 and the estimate beyond the threshold; `proven`: all of it does.
        inconclusive: What an inconclusive answer counts as: `neutral`, `fail` or `pass`.
        false_alarm_share: How often the whole gate, with all its figures and looks, may call regressed what is not.
        figures: What is gated.
        stages: Where the change lies, the largest first.
        explains: The stage that explains the change of the period, empty where none can be told.
        explanation: The same as a sentence.
        reasons: Differences that may lie behind a change: hypotheses.
        differences: What else tells the sides apart.
        invalid: Why the sides may not be compared.
        looks: When it looked; one where all processes were there before.
        base, new: The sides.
        notes: What else a reader should know.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    verdict: Literal["regressed", "same", "improved", "inconclusive", "invalid"]
    reason: str
    says: str
    next: str
    exit_code: int
    benchmark: str
    unit_kind: str
    design: str
    fail_when: str
    inconclusive: str
    false_alarm_share: float
    figures: list[GateFigure]
    stages: list[GateStage]
    explains: str
    explanation: str
    reasons: list[GateReason]
    differences: list[Difference]
    invalid: list[str]
    looks: list[GateLook]
    base: GateSide
    new: GateSide
    notes: list[str]
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def gate_schema() -> bytes:
    """Return the JSON Schema of `longpole bench gate --json`."""
    return document_schema(Gate, SCHEMA)
