"""The report on a job of timed operations as one value; the page and the JSON document pour it out."""

from __future__ import annotations

from typing import Final

import msgspec

from longpole.records.ledger import Unknown
from longpole.report.document import SourceEntry, UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema
from longpole.timeline.integrity import Finding

SCHEMA: Final = "longpole.operations/1"
WHATIF_SCHEMA: Final = "longpole.operations.whatif/1"


class Layout(msgspec.Struct, frozen=True):
    """How the job is laid out, as far as its tables show.

    Attributes:
        data_parallel: Data-parallel ranks.
        stages: Pipeline stages.
        tensor_parallel: Tensor-parallel ranks at each place that are in the tables.
        ranks: Global ranks in the tables, ascending.
        missing: Places that no rank holds; at most the first few.
        missing_count: How many such places there are.
        micro_batches: Forward passes of a worker in a step.
        operations: Operations that count.
        asynchronous: Types of communication that have a stream of their own.
    """

    data_parallel: int
    stages: int
    tensor_parallel: int
    ranks: list[int]
    missing: list[str]
    missing_count: int
    micro_batches: int
    operations: int
    asynchronous: list[str]


class StepEntry(msgspec.Struct, frozen=True):
    """One step.

    Attributes:
        step: Its number.
        measured_ns: From its first start to its last end.
        replayed_ns: The same in the replay.
        error: What the replay is off by, as a share of the measured time.
        slowdown: The replay over the ideal.
        worst_stage: The stage that alone slows the ideal most.
        worst_dp_rank: The data-parallel rank that does; so on.
        worst_rank: The rank at that place; None where nobody holds it.
    """

    step: int
    measured_ns: int
    replayed_ns: int
    error: float
    slowdown: float
    worst_stage: int
    worst_dp_rank: int
    worst_rank: int | None


class LeftOut(msgspec.Struct, frozen=True):
    """A step that no figure counts, and why."""

    step: int
    why: str


class Steps(msgspec.Struct, frozen=True):
    """The steps of the job; times are means over them.

    Attributes:
        count: Steps that count.
        left_out: Those that do not.
        measured_ns: As recorded.
        replayed_ns: In the unchanged replay.
        ideal_ns: Where nobody straggles.
        error: What the replayed mean is off by, as a share of the measured one; negative where it is too fast.
        error_largest: The largest error of a single step, by size.
        each: The steps, ascending.
    """

    count: int
    left_out: list[LeftOut]
    measured_ns: int
    replayed_ns: int
    ideal_ns: int
    error: float
    error_largest: float
    each: list[StepEntry]


class TypeEntry(msgspec.Struct, frozen=True):
    """One type of operation, or both ends of point-to-point communication in one direction.

    Attributes:
        name: The type, or `forward-send/recv`.
        kind: `compute`, `p2p` or `collective`.
        count: Operations.
        mean_ns: Mean duration, waiting included.
        waiting_ns: Mean time of that before the last member arrived; 0 for computation.
        slowdown: The ideal with only this as recorded, over the ideal.
    """

    name: str
    kind: str
    count: int
    mean_ns: int
    waiting_ns: int
    slowdown: float


class StageEntry(msgspec.Struct, frozen=True):
    """One pipeline stage.

    Attributes:
        stage: Its number.
        slowdown: The ideal with only this stage as recorded, over the ideal.
        explains: Share of the slowdown that goes when only this stage becomes ideal.
        compute_ns: Mean time of a worker's computation in a step.
    """

    stage: int
    slowdown: float
    explains: float | Unknown
    compute_ns: int


class DataRankEntry(msgspec.Struct, frozen=True):
    """One data-parallel rank, all its stages.

    Attributes:
        dp_rank: Its number.
        slowdown: The ideal with only this rank as recorded, over the ideal.
        steps_worst: Steps in which no other data-parallel rank slows the ideal more.
    """

    dp_rank: int
    slowdown: float
    steps_worst: int


class RankEntry(msgspec.Struct, frozen=True):
    """One worker.

    Attributes:
        rank: Its global rank.
        dp_rank, stage, tp_rank: Its place.
        slowdown: The ideal with only this worker as recorded, over the ideal; the worst few are replayed.
        slowdown_bound: The smaller one of its stage's and its data-parallel rank's.
        compute_ns: Mean time of its computation in a step.
        waiting_ns: Mean time in a step that it waits in communication for the last member to arrive.
        steps_worst: Steps in which it is the worst.
    """

    rank: int
    dp_rank: int
    stage: int
    tp_rank: int
    slowdown: float | Unknown
    slowdown_bound: float
    compute_ns: int
    waiting_ns: int
    steps_worst: int


class Share(msgspec.Struct, frozen=True):
    """How much of the slowdown some ranks, or a stage, explain.

    Attributes:
        ranks: Global ranks; empty for a stage.
        removed: Share that goes when these alone become ideal.
        added: Share that comes when these alone are as recorded.
    """

    ranks: list[int]
    removed: float
    added: float


class Culprit(msgspec.Struct, frozen=True):
    """The verdict.

    Attributes:
        kind: `worker`, `workers`, `stage`, `moving` (no rank is persistently slow), `spread` (persistent, and neither
            few workers nor one stage), or `none` (no slowdown worth naming).
        says: The verdict in a sentence.
        ranks: The ranks it names.
        stage: The stage it names.
    """

    kind: str
    says: str
    ranks: list[int] = []
    stage: int | None = None


class Operations(msgspec.Struct):
    """The document of `longpole report` on operation tables.

    Attributes:
        schema: `longpole.operations/1`.
        longpole: Version of the package.
        sources: The files.
        layout: How the job is laid out.
        steps: Measured, replayed and ideal times.
        slowdown: Replayed over ideal, means over steps.
        culprit: The verdict.
        explained_by_worker: How much the worst worker alone explains.
        explained_by_workers: How much the worst few workers explain.
        explained_by_last_stage: How much the last pipeline stage explains.
        persistent_share: Share of the slowdown that stays where every worker keeps its own mean pace in every step and
            micro-batch; the rest moves from rank to rank.
        by_optype: The worst type first.
        by_stage: All stages.
        by_dp_rank: Data-parallel ranks, the worst first; of very many those with the most extra work.
        by_rank: All workers, the worst first.
        worst_changes: In how many different data-parallel ranks' turn it was to be the worst.
        integrity: What is wrong with the tables.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    sources: list[SourceEntry]
    layout: Layout
    steps: Steps
    slowdown: float
    culprit: Culprit | Unknown
    explained_by_worker: Share | Unknown
    explained_by_workers: Share | Unknown
    explained_by_last_stage: Share | Unknown
    persistent_share: float | Unknown
    by_optype: list[TypeEntry]
    by_stage: list[StageEntry]
    by_dp_rank: list[DataRankEntry]
    by_rank: list[RankEntry]
    worst_changes: int
    integrity: list[Finding]
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)
            for finding in self.integrity:
                self.unknown += [UnknownEntry(at, f"{finding.code}: {finding.message}", []) for at in finding.voids]


class OperationChangeEntry(msgspec.Struct, frozen=True):
    """One change: as it is written, for a person, and how many operations it is about."""

    text: str
    says: str
    operations: int


class OperationWhatIf(msgspec.Struct):
    """The document of `longpole whatif` on operation tables; times are means over steps.

    Attributes:
        schema: `longpole.operations.whatif/1`.
        longpole: Version of the package.
        changes: What was changed, in order; all are replayed together.
        steps: Steps that count.
        measured_period_ns: A step as recorded.
        replayed_period_ns: A step of the unchanged replay.
        predicted_period_ns: A step with the changes.
        saving_ns: `replayed_period_ns` less `predicted_period_ns`: both of one replay, so its error cancels in part.
        error: What the unchanged replay is off by, as a share of the measured time.
        what_if_error: How far this kind of change may be believed; no pairs of tables, before and after, are shipped.
        refused: Why the prediction should not be used, empty where it may be.
        integrity: What is wrong with the tables.
        unknown: Everything not known, in one place.
    """

    schema: str
    longpole: str
    changes: list[OperationChangeEntry]
    steps: int
    measured_period_ns: int
    replayed_period_ns: int
    predicted_period_ns: int | Unknown
    saving_ns: int | Unknown
    error: float
    what_if_error: Unknown
    refused: str
    integrity: list[Finding]
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def say_error(error: float) -> str:
    """Write what a replay is off by.

    >>> say_error(-0.279)
    '−27.9 %'
    """
    return f"{100 * error:+.1f} %".replace("-", "−")


def operations_schema() -> bytes:
    """Return the JSON Schema of `longpole report --json` on operation tables."""
    return document_schema(Operations, SCHEMA)
