"""What a gate found, as it is stored: each figure that is gated, the stages, and what may lie behind (DESIGN 3.12)."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from longpole.records.ledger import Unknown

Amount: TypeAlias = float | Unknown
Span: TypeAlias = list[float] | Unknown

VERDICTS: Final = ("regressed", "invalid", "inconclusive", "same", "improved")
"""What a gate answers, the gravest first; of several figures the gravest is the gate's. Invalid stands above all."""


class GateLook(msgspec.Struct, frozen=True):
    """One look at the pairs made until then.

    Attributes:
        pairs: How many.
        tail_share: How often each end of its interval may be missed.
        verdict: What the pairs said then.
    """

    pairs: int
    tail_share: float
    verdict: str


class GateFigure(msgspec.Struct):
    """One figure that is gated.

    Attributes:
        metric: `time`, `throughput`, `latency`, `latency_p95`, `peak_memory` or `collective`.
        better: `lower` or `higher`.
        unit: `ns`, `per_s` or `bytes`, of `base`, `new` and `difference`.
        statistic: What is compared of each process.
        threshold_share: A change for the worse counts from this share of the base on.
        threshold_from: `given`, `default`, or `calibration` where the measured noise floor raised it.
        base: Median over the processes of the baseline.
        new: The same of the other side.
        change_share: Change as a share of the base: 0.05 is 5 % more, whether that is better or worse.
        interval_share: Where it may lie: two ends, each missed with probability `tail_share`.
        difference: Change in the figure's unit.
        tail_share: See `interval_share`.
        method: How the interval was found.
        n: Pairs, or processes of the smaller side; of a single run, units.
        spread_share: Standard deviation of one pair's ratio, or of one process against another.
        smallest_seen_share: The smallest change for the worse that would be called regressed in four of five cases.
        pairs_needed: How many pairs in all would settle it, if it is what it seems.
        rank_p: How likely ranks at least as bad are by chance (signed ranks, from 8 pairs on).
        verdict: One of `VERDICTS`.
        says: One sentence.
        notes: What limits it.
    """

    metric: str
    better: str
    unit: str
    statistic: str
    threshold_share: float
    threshold_from: str
    base: Amount
    new: Amount
    change_share: Amount
    interval_share: Span
    difference: Amount
    tail_share: float
    method: str
    n: int
    spread_share: Amount
    smallest_seen_share: Amount
    pairs_needed: int | Unknown
    rank_p: Amount
    verdict: str
    says: str
    notes: list[str] = []


class GateStage(msgspec.Struct):
    """One stage, or one object where no stages are recorded, of a unit.

    Attributes:
        stage: Its name; `(rest)` is the period less all stages, negative where they overlap.
        statistic: `median` or `mean` of the units of a process: the mean where it lies in few units.
        base_ns: Median over the processes of the baseline.
        new_ns: The same of the other side.
        change_share: Change as a share of the base.
        interval_share: Where it may lie.
        change_ns: Change of the time.
        interval_ns: Where that may lie.
        share_of_change: Of the change of the period, as far as that can be told from none.
        p_adjusted: How likely it is by chance, corrected for the number of stages (Holm).
        verdict: `regressed`, `same`, `improved` or `inconclusive`.
        critical: It was named as one whose regression always counts.
        fails: It makes the gate fail although the period may not have regressed.
        n: Pairs, or processes of the smaller side; of a single run, units.
    """

    stage: str
    statistic: str
    base_ns: Amount
    new_ns: Amount
    change_share: Amount
    interval_share: Span
    change_ns: Amount
    interval_ns: Span
    share_of_change: Amount
    p_adjusted: Amount
    verdict: str
    critical: bool
    fails: bool
    n: int


class GateReason(msgspec.Struct, frozen=True):
    """A difference between the sides that may lie behind a change: a hypothesis, not a finding.

    Attributes:
        cause: `synchronisation`, `allocator`, `garbage_collection`, `compilation`, `collectives`, `topology`,
            `settings`, `shapes`, `versions`, `memory`, `input`, `artifact`, `state` or `output`.
        says: One sentence with figures.
        before: What it was.
        after: What it is.
    """

    cause: str
    says: str
    before: str
    after: str


class GateSide(msgspec.Struct):
    """One side of a gate.

    Attributes:
        name: What pages call it.
        paths: The records; empty where commands were run.
        run_ids: Their ids.
        command: What was run, where it is known.
        processes: How many took part.
        left_out: How many did not, and why.
        units: Units that count, of those processes.
        machine: Where it ran, empty where the records do not say.
    """

    name: str
    paths: list[str]
    run_ids: list[str]
    command: str
    processes: int
    left_out: list[str]
    units: int
    machine: str
