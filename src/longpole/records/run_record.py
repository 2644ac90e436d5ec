"""A run as it is kept, to be compared with others: every unit's sample, and what the figures rest on (`record/1`).

Our own programs write it (`longpole report --record`, and what else measures runs), and any other program may: only
`schema` and one unit with a `period_ns` are required. A comparison needs no more than what is in here.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from longpole.records.ledger import Unknown

SCHEMA: Final = "longpole.record/1"
NOT_RECORDED: Final = Unknown("not recorded")

Ns: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 62)]
Figure: TypeAlias = int | float | Unknown
Better: TypeAlias = Literal["higher", "lower", "equal"]
Status: TypeAlias = Literal["passed", "failed", "not_run"]


class _Strict(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a record: a key that is not known is a mistake, and what is not there is not written."""


class RecordTime(_Strict):
    """What one object took of a unit (DESIGN 3.3).

    Attributes:
        exposed_ns: The part charged to it.
        service_ns: How long its operations took.
        hidden_ns: The part of service under something else that ran.
        waiting_ns: For collectives: time spent waiting for other ranks.
    """

    exposed_ns: Ns
    service_ns: Ns | Unknown = NOT_RECORDED
    hidden_ns: Ns | Unknown = NOT_RECORDED
    waiting_ns: Ns | Unknown = NOT_RECORDED


class RecordStage(_Strict):
    """What a stage took of a unit, and how much of that something ran."""

    wall_ns: Ns
    busy_ns: Ns | Unknown = NOT_RECORDED


class RecordUnit(_Strict):
    """One unit of work of the run: a sample.

    Attributes:
        period_ns: From the completion of the unit before it to its own, over all ranks.
        name: As recorded.
        wall_ns: Its length on the host, mean over the rows; of a request, its latency.
        items: Tokens, samples or requests that all ranks together process in it; those of the record where left out.
        left_out: Why no statistic counts it; empty for one that counts.
        objects: Object -> what it took, mean over the rows.
        idle_ns: Idle reason -> time, mean over the rows.
        stages: Stage -> what it took, mean over the rows.
        process: Which of the record's processes it ran in, where there are several.
        conditions: What the machine was like meanwhile (pressure, throttling, clocks): name -> figure.
        flags: Conditions that make the sample suspect; it is counted all the same.
    """

    period_ns: Ns | Unknown
    name: str = ""
    wall_ns: Ns | Unknown = NOT_RECORDED
    items: Count | Unknown = NOT_RECORDED
    left_out: str = ""
    objects: dict[str, RecordTime] = {}
    idle_ns: dict[str, Ns] = {}
    stages: dict[str, RecordStage] = {}
    process: Annotated[int, Meta(ge=0)] = 0
    conditions: dict[str, float] = {}
    flags: list[str] = []


class RecordProcess(_Strict):
    """One process of a benchmark: the unit of replication (DESIGN 3.12).

    Attributes:
        process: Its number, as units name it.
        place: Where it stood in the order of all processes that were started, those of other records included.
        pair: The pair it belongs to; the other half is in the other record. None where it was not paired.
        exit_code: How it ended; negative for a signal.
        wall_ns: The whole process, from start to end.
        cpu_ns: User and system time of it and its children.
        peak_bytes: The most memory that it held.
        failure: Why it failed; empty where it did not.
        conditions: As of a unit, over the whole process.
        flags: As of a unit.
    """

    process: Annotated[int, Meta(ge=0)]
    place: Annotated[int, Meta(ge=0)] = 0
    pair: Annotated[int, Meta(ge=0)] | None = None
    exit_code: int = 0
    wall_ns: Ns | Unknown = NOT_RECORDED
    cpu_ns: Ns | Unknown = NOT_RECORDED
    peak_bytes: Ns | Unknown = NOT_RECORDED
    failure: str = ""
    conditions: dict[str, float] = {}
    flags: list[str] = []


class RecordDesign(_Strict):
    """How a benchmark was run.

    Attributes:
        kind: `sequential` processes, or `interleaved` with those of another record in random order.
        benchmark: What was run, in words that two records to be compared must share.
        semantic_id: Hash of what must be the same for samples to mean the same.
        warmup_units: Units of each process that were left out.
        order_seed: Of the random order.
        partner: Run id of the record on the other side.
    """

    kind: Literal["sequential", "interleaved"] = "sequential"
    benchmark: str = ""
    semantic_id: str = ""
    warmup_units: Annotated[int, Meta(ge=0)] = 0
    order_seed: int | None = None
    partner: str = ""


class RecordRow(_Strict):
    """One device of one rank: means over its units that count, and every unit's length.

    Attributes:
        rank: The rank.
        host: The machine.
        device: `cuda:0`, `cpu`.
        device_name: The model.
        wall_ns: Mean length of a unit.
        objects, idle_ns, stages: Means, as of a unit.
        walls_ns: Every unit's length, in order.
    """

    rank: Annotated[int, Meta(ge=0)]
    host: str = ""
    device: str = ""
    device_name: str = ""
    wall_ns: Ns | Unknown = NOT_RECORDED
    objects: dict[str, RecordTime] = {}
    idle_ns: dict[str, Ns] = {}
    stages: dict[str, RecordStage] = {}
    walls_ns: list[Ns] = []


class RecordCollective(_Strict):
    """The collectives of one kind: means over the units that count and the rows.

    Attributes:
        kind: `all_reduce` and so on.
        role: What their groups are for, as far as is known.
        count: Operations a unit, of all groups.
        bytes: Bytes a unit, of all groups.
        exposed_ns: Time charged to them.
        duration_ns: How long they took.
        waiting_ns: The part of that spent waiting for the last rank.
    """

    kind: str
    role: str = ""
    count: float | Unknown = NOT_RECORDED
    bytes: Ns | Unknown = NOT_RECORDED
    exposed_ns: Ns = 0
    duration_ns: Ns = 0
    waiting_ns: Ns | Unknown = NOT_RECORDED


class RecordEnvironment(_Strict):
    """Where it ran, by what a difference means for a comparison.

    Attributes:
        must_match: Hardware and the versions of what computes: other values give other figures.
        should_match: What may shift figures: options of the profiler, drivers, power limits, settings of threads.
        informational: What tells runs apart and shifts nothing: hosts, dates, paths.
    """

    must_match: dict[str, Any] = {}
    should_match: dict[str, Any] = {}
    informational: dict[str, Any] = {}


class RecordContract(_Strict):
    """What the job promises to do, whatever is tuned; None for what is not declared.

    Attributes:
        global_batch: Items or samples of all ranks in a unit.
        micro_batch: The same that one rank processes at once.
        length_distribution: Of the items: a name, or figures.
        dtype: Of the computation.
        sampler: Which data, in which order.
        seed: Of the sampler and the model.
        layout: How the ranks are divided: data, tensor, pipeline, expert, context.
        shapes: Operator -> its input shapes, as a fingerprint of what a unit computes.
        elements_per_unit: Elements of all operators' inputs in a unit, summed over the ranks.
        input_bytes_per_unit: Bytes copied to devices as input in a unit, summed over the ranks.
    """

    global_batch: Count | None = None
    micro_batch: Count | None = None
    length_distribution: Any = None
    dtype: str | None = None
    sampler: str | None = None
    seed: int | str | None = None
    layout: dict[str, int] | None = None
    shapes: dict[str, list[str]] | None = None
    elements_per_unit: Ns | None = None
    input_bytes_per_unit: Ns | None = None


class RecordCheck(_Strict):
    """One check of the results: values agree, nothing is lost, files can be read back."""

    name: str
    status: Status
    says: str = ""


class RecordMetric(_Strict):
    """One measure of quality, of several repetitions where there are some.

    Attributes:
        name: What is measured.
        values: At least one; several are repetitions.
        better: Which way is better; `equal` where it must stay the same.
        tolerance: By how much it may become worse.
        relative: The tolerance is a share of the value before, not an amount.
    """

    name: str
    values: Annotated[list[float], Meta(min_length=1)]
    better: Better = "lower"
    tolerance: Annotated[float, Meta(ge=0)] = 0.0
    relative: bool = False


class RecordCorrectness(_Strict):
    """Whether the run did what it was meant to.

    Attributes:
        checks: What was checked.
        metrics: Quality.
        outputs: Name -> fingerprint of a result that must not change.
    """

    checks: list[RecordCheck] = []
    metrics: list[RecordMetric] = []
    outputs: dict[str, str] = {}


class RecordSource(_Strict):
    """A file that the record was made from; `blake2b` of its bytes, 20 bytes in hexadecimal."""

    path: str
    bytes: Ns = 0
    blake2b: str = ""


class RecordNote(_Strict):
    """Something about the evidence that limits it, with its code of the integrity findings."""

    code: str
    severity: Literal["note", "warn", "void"]
    message: str = ""


class RunRecord(_Strict):
    """The record of one run.

    Attributes:
        schema: `longpole.record/1`.
        units: Every unit, in order.
        run_id: Tells runs apart; by default a hash of the record.
        label: What pages call it.
        written_by: Program and version.
        kind: `training`, `inference`, `serving`, `posttraining` or `unknown`.
        unit_kind: `step`, `request`, `iteration`, or `trace` where nothing marks units.
        item_kind: `token`, `sample`, `request`.
        items_per_unit: Items that all ranks together process in a unit.
        items_from: How they are known: `declared`, `recorded` or `shapes`.
        world_size: Ranks of the job.
        ranks_present: Those that were recorded.
        rows: By rank and device.
        collectives: By kind.
        environment: In three classes.
        configuration: What was set, free in form: flags, environment variables that matter, a git revision.
        contract: What the job promises.
        correctness: Whether it kept that.
        limits: Name -> figure that may be limited: `peak_bytes`, `p99_ms`, `gpu_s_per_item`, `cost_per_item`, others.
        integrity: What limits the evidence.
        sources: What it was made from.
        processes: Of a benchmark: every process that was started.
        design: Of a benchmark: how it was run.
        failure: Why the measurement did not come to its end; the samples until then are kept.
        extra: Anything else.
    """

    schema: Literal["longpole.record/1"]
    units: Annotated[list[RecordUnit], Meta(min_length=1)]
    run_id: str = ""
    label: str = ""
    written_by: str = ""
    kind: str = "unknown"
    unit_kind: str = "step"
    item_kind: str = ""
    items_per_unit: Count | Unknown = NOT_RECORDED
    items_from: str = ""
    world_size: Count | Unknown = NOT_RECORDED
    ranks_present: list[int] = []
    rows: list[RecordRow] = []
    collectives: list[RecordCollective] = []
    environment: RecordEnvironment = msgspec.field(default_factory=RecordEnvironment)
    configuration: dict[str, Any] = {}
    contract: RecordContract = msgspec.field(default_factory=RecordContract)
    correctness: RecordCorrectness = msgspec.field(default_factory=RecordCorrectness)
    limits: dict[str, Figure] = {}
    integrity: list[RecordNote] = []
    sources: list[RecordSource] = []
    processes: list[RecordProcess] = []
    design: RecordDesign | None = None
    failure: str = ""
    extra: dict[str, Any] = {}

    def counted(self) -> list[RecordUnit]:
        """Return the units that statistics count: those with a period that are not left out."""
        return [unit for unit in self.units if not unit.left_out and isinstance(unit.period_ns, int) and unit.period_ns]

    def items_of(self, unit: RecordUnit) -> int | Unknown:
        """Return how many items a unit processes: its own, else the record's."""
        return unit.items if isinstance(unit.items, int) else self.items_per_unit

    def devices(self) -> int | Unknown:
        """Return how many devices work on a unit: the rows, scaled to the ranks that are not recorded."""
        present = len({row.rank for row in self.rows}) or len(set(self.ranks_present))
        each = len(self.rows) / present if self.rows else 1.0
        if isinstance(self.world_size, int):
            return round(each * max(self.world_size, present))
        return round(each * present) if present else Unknown("the record does not say its ranks", ["world_size"])
