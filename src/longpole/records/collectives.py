"""What a report says of collectives, clocks and stragglers, as it is stored."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from longpole.records.ledger import Unknown

Time: TypeAlias = int | Unknown
Rate: TypeAlias = float | Unknown


class CostModel(msgspec.Struct):
    """Transfer time of S bytes: alpha + gamma * sqrt(S) + S / rate (DESIGN 3.8).

    Attributes:
        alpha_ns: What an operation of no size takes.
        gamma: In ns per square root of a byte: the cost of filling a pipeline of chunks.
        gb_per_s: The rate that large operations approach, in decimal gigabytes per second.
        source: `fit` to this run's sizes, a user's `record`, or a `shipped` fit.
        says: Which record or shipped fit, empty for a fit to this run.
    """

    alpha_ns: int
    gamma: float
    gb_per_s: float
    source: str
    says: str = ""


class SizeRow(msgspec.Struct):
    """The operations of one size; exposed over the members present, transfer once an operation."""

    bytes: int
    count: int
    transfer_ns: Time
    exposed_ns: int
    duration_ns: int
    skew_ns: Time


class StageRow(msgspec.Struct):
    """The operations that one stage issued; duration and exposed over the members present."""

    stage: str
    count: int
    duration_ns: int
    exposed_ns: int


class WaitRow(msgspec.Struct):
    """How long a rank waited for another one that arrived last."""

    rank: int
    for_rank: int
    waiting_ns: int
    count: int


class CollectiveEntry(msgspec.Struct):
    """All operations of one kind, group and element type in the steady units.

    Duration, skew, exposed and waiting are sums over operations and the members present; transfer and bytes count
    once an operation. Skew, transfer and waiting are over the operations that could be split.

    Attributes:
        group: The group's name, empty where none is recorded.
        role: What the group is for, as far as its description says.
        members: Global ranks; empty where not known.
        members_present: Those of them that have a trace.
        count, count_split: Operations, and how many of them could be split.
        split: `known` where all but a negligible part could be split.
        rate_from: What the rates rest on: `transfer`, or the shortest member's `duration`, waiting included, which
            makes them lower bounds.
        bound: `skew`, `latency`, `bandwidth`, `mixed` or `unknown`.
        culprit_rank: The rank that caused most of the waiting, where it is one rank's doing.
        culprit_share: Share of the operations in which that rank was last.
        culprit_by_unit: For each steady unit in which the group has operations, the rank that caused most of the
            waiting; None where no rank was late.
        waits: Who waited how long for whom, the longest first.
    """

    kind: str
    group: str
    role: str
    members: list[int]
    members_present: list[int]
    dtype: str
    count: int
    count_split: int
    bytes: int | Unknown
    duration_ns: int
    split: str
    transfer_ns: Time
    skew_ns: Time
    exposed_ns: int
    model: CostModel | Unknown
    algbw_gb_per_s: Rate
    busbw_gb_per_s: Rate
    rate_from: str
    bound: str
    by_size: list[SizeRow]
    by_stage: list[StageRow]
    culprit_rank: int | Unknown
    culprit_share: Rate
    culprit_by_unit: list[int | None] | Unknown
    waiting_ns_by_rank: dict[str, Time]
    waits: list[WaitRow]
    on_host: bool | UnsetType = UNSET


class LinkRow(msgspec.Struct):
    """What one rank sent another one directly: an entry of the communication matrix.

    Attributes:
        slow: The rate is far below that of the median pair.
    """

    from_rank: int
    to_rank: int
    count: int
    bytes: int | Unknown
    transfer_ns: Time
    gb_per_s: Rate
    slow: bool = False


class PipelineEntry(msgspec.Struct):
    """A pipeline, as its point-to-point operations show it.

    Attributes:
        stages: Ranks by stage, in the order in which activations flow.
        micro_batches: Sends to the next stage in a unit.
        bubble_share: Share of the units in which the stages did not compute, mean over the stages.
        imbalance: The slowest stage's compute time over the mean stage's, less 1.
        compute_ns: Stage -> compute time per unit, mean over the stage's ranks.
    """

    stages: list[list[int]]
    micro_batches: int
    bubble_share: float
    imbalance: float
    compute_ns: list[int]


class OverlapEntry(msgspec.Struct):
    """How well two kinds of work run at once (DESIGN 2), from operations that also ran undisturbed.

    Attributes:
        efficiency: (alone + alone - together) / the shorter alone: 1 hides all, 0 gains nothing.
        slowdown: Kind of work -> how many times longer it takes while the other one runs.
        covers_share: Share of the overlapped compute time for which undisturbed operations exist.
    """

    kinds: list[str]
    efficiency: Rate
    slowdown: dict[str, Rate]
    covers_share: float


class ComputeOverlap(msgspec.Struct):
    """Kernels that ran beside collectives.

    Attributes:
        beside_ns: Their time.
        compared_ns: The part of it in kernels that also ran undisturbed often enough.
        alone_ns: What that part would have taken undisturbed.
    """

    beside_ns: int = 0
    compared_ns: int = 0
    alone_ns: int = 0


class StragglerEntry(msgspec.Struct):
    """A rank that others waited for, and why it was late.

    Attributes:
        rank: The late rank; never one that waits.
        reason: `more_work`, `slower_work`, `host`, `input`, `pause`, `profiler_start` or `unknown`.
        caused_ns_per_unit: Waiting that it caused, mean over steady units, the longest waiting rank's.
        in_units: Units in which it caused most of the waiting.
        share: Share of all waiting in the run that it caused.
        late_ns: How much later than the others it arrived, in those units.
        evidence: What it did in that time, and what the others did: name -> ns per unit, beyond the others' median.
        says: One sentence.
    """

    rank: int
    reason: str
    caused_ns_per_unit: int
    in_units: list[str]
    share: float
    late_ns: int
    evidence: dict[str, int]
    says: str
