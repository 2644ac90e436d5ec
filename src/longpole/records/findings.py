"""Findings, candidates and symptoms as reports store them; no logic."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from longpole.records.ledger import Unknown

Time: TypeAlias = int | Unknown
Share: TypeAlias = float | Unknown


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where to look in a viewer.

    Attributes:
        rank: The rank; None where it is all of them.
        name: Name of the row as recorded.
        start_ns: When it begins, in ns since the run's base; None where the evidence is a sum.
        track: Thread or stream.
        unit: Unit of work.
    """

    rank: int | None = None
    name: str = ""
    start_ns: int | None = None
    track: str = ""
    unit: str = ""


class Evidence(msgspec.Struct, frozen=True):
    """One figure that a finding rests on, and a row that shows it.

    Attributes:
        what: What the figure is, with its unit at the end where it has one (`calls per unit`, `blocked_ns`).
        value: The figure.
        where: Where to look.
    """

    what: str
    value: int | float | str
    where: Place


class CauseFinding(msgspec.Struct):
    """One cause of lost time: what it costs, on what that rests, and where to look.

    Attributes:
        id: `f1` is the most costly.
        cause: One of `vocabulary.causes.CAUSES`.
        object: What the time is charged to.
        stage: Where in the unit, empty where it is everywhere or not known.
        ranks: Ranks that cause it, never those that wait.
        units: Units that pay for it.
        cost_ns_per_unit: Median replayed period less the one without the cause, or by `cost_statistic`.
        cost_statistic: `median`, `mean` (over periods, where the median shows nothing) or `one_off`.
        cost_share: The cost as a share of the period.
        basis: `replay`, or `ledger` where the replay is refused or cannot reach the cause.
        ceiling_ns: The most that the removal could buy per unit: what the ledger charges, or the replayed saving.
        once: Only marked units pay it: a set-up, a search.
        cost_once_ns: What those units paid for it in all; 0 where every unit pays.
        evidence_grade: The least sure of what it rests on: `recorded`, `ordered` or `inferred`.
        rests_on: Share of the replayed path that is recorded or ordered; 1 where only the ledger is used.
        says: One sentence.
        evidence: Figures and rows.
        what_if: Options of `longpole whatif` that remove the cause; empty where none stands for it.
        page: The page of the documentation.
        cost_between_ns: The least and the most that it costs per unit, where the record leaves open which of two
            things it is, such as a slow rank or one with more work; empty where it does not.
    """

    id: str
    cause: str
    object: str
    stage: str
    ranks: list[int]
    units: list[str]
    cost_ns_per_unit: int
    cost_statistic: str
    cost_share: float
    basis: str
    ceiling_ns: int
    once: bool
    cost_once_ns: int
    evidence_grade: str
    rests_on: float
    says: str
    evidence: list[Evidence]
    what_if: list[str] = []
    page: str = ""
    cost_between_ns: list[int] = []


class CandidateEntry(msgspec.Struct):
    """One change worth trying, with its contract of evidence (DESIGN 3.11).

    Attributes:
        id: `object.verb`.
        object: What it is about.
        stage: Where in the unit, empty for everywhere.
        says: The change in a sentence.
        because: Why it applies here: figures and findings.
        findings: Ids of the findings that it answers.
        predicted_period_ns: Median period with the change.
        predicted_gain_share: Share of the period that it saves.
        ceiling_ns: The most it could save per unit.
        error_share: Spread of recorded pairs of this kind of change.
        effort: `low`, `medium` or `high`.
        costs: What it takes, and its side effects.
        must_record: Fields without which the change cannot be judged.
        missing: Those of them that this run does not record.
        proved_by: What proves it.
        cannot_replace: The measurement that nothing can replace.
        assumptions: What the prediction assumes.
        changes: Options of `longpole whatif` that stand for it.
        command: A command that tries it on the recorded run.
        part: What must shrink: an object, `stage:NAME` or `idle:REASON`.
        refused: Why there is no prediction, empty where there is one.
        references: Where to read on.
        check_with: Commands that say beforehand what it would bring here, or which value to choose.
    """

    id: str
    object: str
    stage: str
    says: str
    because: list[str]
    findings: list[str]
    predicted_period_ns: Time
    predicted_gain_share: Share
    ceiling_ns: Time
    error_share: Share
    effort: str
    costs: list[str]
    must_record: list[str]
    missing: list[str]
    proved_by: list[str]
    cannot_replace: str
    assumptions: list[str] = []
    changes: list[str] = []
    command: str = ""
    part: str = ""
    refused: str = ""
    references: list[str] = []
    check_with: list[str] = []
