"""What `longpole bench io` measured, as it is kept (`longpole.bench-io/1`): every sample, and what rests on them.

docs/reference/bench-io-record.md describes each key. Times are whole nanoseconds; rates are decimal gigabytes a second.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from longpole.records.ledger import Unknown

SCHEMA: Final = "longpole.bench-io/1"
P95: Final = "nearest_rank"

Ns: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]
Size: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]
Evidence: TypeAlias = Literal["measured", "simulated", "invalid", "failed"]
Status: TypeAlias = Literal["measured", "invalid", "failed"]
Checked: TypeAlias = Literal["passed", "differs", "failed", "not_run"]
Verdict: TypeAlias = Literal["accept", "tune", "inconclusive", "invalid", "not_measured"]
NOT_MEASURED: Final = Unknown("not measured")


class _Strict(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a record: a key that is not known is a mistake, and what is not there is not written."""


class IoFigure(_Strict):
    """What a number of samples come to.

    Attributes:
        n: Samples behind it, warm-ups not among them.
        median_ns: Their median.
        p95_ns: Their 95th percentile; not known below 20 samples.
        p95_definition: `nearest_rank`: the smallest sample that at least 95 % of all do not exceed.
        p95_upper_ns: Upper end of its one-sided 95 % interval, an order statistic; not known below 59 samples.
    """

    n: Annotated[int, Meta(ge=1)]
    median_ns: Ns
    p95_ns: Ns | Unknown = NOT_MEASURED
    p95_definition: Literal["nearest_rank"] = "nearest_rank"
    p95_upper_ns: Ns | Unknown = NOT_MEASURED


class IoCheck(_Strict):
    """What was checked, and how it came out.

    Attributes:
        status: `passed`; `differs`: the bytes are right, and a side effect is not what other paths have; `failed`.
        says: What is wrong, in a sentence; empty where nothing is.
        samples: How many samples were checked, warm-ups among them.
    """

    status: Checked
    says: str = ""
    samples: Annotated[int, Meta(ge=0)] = 0


class IoCase(_Strict):
    """One path at one size: every sample in the order in which it was taken.

    Attributes:
        size_bytes: Bytes of one object: what its tensors hold, not what a format puts around them.
        objects: How many objects one sample moves; the times of a sample are those of all of them.
        service: Of one object: to the first full touch, the last call that its durability needs, or the copy's end.
        returned: Of one object, of a load: until the call came back. Never a bandwidth: nothing may be read by then.
        gb_per_s: `size_bytes` over the median of `service`.
        stages: Stage -> figures of one object: `write`, `fsync`, `replace`, `fsync-folder`, `upload` and so on.
        evidence: What its samples are.
        reason: Why they are that, where they are not `measured`.
        correctness: Of every sample.
        warmups: The first samples, which no figure counts.
        planned: Samples that were to be taken, warm-ups among them.
        rounds: In which round each sample was taken; all cases of a round are taken in random order.
        service_ns: The samples.
        returned_ns: Of a load.
        stages_ns: Stage -> samples.
        resident_before: Bytes in the page cache before each sample, where that matters.
        conditions: Name -> what the machine was like during each sample; null where not known.
        flags: Flag -> places of the samples that carry it. They are counted all the same.
    """

    size_bytes: Size
    objects: Annotated[int, Meta(ge=1)] = 1
    service: IoFigure | None = None
    returned: IoFigure | None = None
    gb_per_s: float | Unknown = NOT_MEASURED
    stages: dict[str, IoFigure] = {}
    evidence: Evidence = "measured"
    reason: str = ""
    correctness: IoCheck = msgspec.field(default_factory=lambda: IoCheck("not_run"))
    warmups: Annotated[int, Meta(ge=0)] = 0
    planned: Annotated[int, Meta(ge=0)] = 0
    rounds: list[int] = []
    service_ns: list[Ns] = []
    returned_ns: list[Ns] = []
    stages_ns: dict[str, list[Ns]] = {}
    resident_before: list[Size] = []
    conditions: dict[str, list[float | None]] = {}
    flags: dict[str, list[int]] = {}


class IoPiece(_Strict):
    """The law `latency + bytes / bandwidth` for the sizes from one on.

    Attributes:
        from_bytes, to_bytes: The sizes it is fitted on.
        latency_ns: What one object takes whatever its size.
        latency_interval_ns: 90 % interval, from samples drawn anew within sizes.
        gb_per_s: What its bytes flow at; not known where the fit gives them no time at all.
        gb_per_s_interval: The same.
    """

    from_bytes: Size
    to_bytes: Size
    latency_ns: float
    latency_interval_ns: tuple[float, float]
    gb_per_s: float | Unknown
    gb_per_s_interval: tuple[float, float] | Unknown


class IoModel(_Strict):
    """A path's service time as a law.

    Attributes:
        status: `fitted`; `invalid`: a size is off by more than a quarter, so the table holds and nothing may be
            extrapolated; `not_fitted`: too few sizes, or no valid samples.
        says: Why it is not fitted, in a sentence.
        pieces: One law, or two with a break between them; of an invalid model too, so that it can be looked at.
        break_bytes: First size of the second law.
        worst_error: The largest relative error at a size, as a share.
        errors: Size -> (predicted - median) / median.
        left_out_errors: Size -> the same, predicted without that size.
        decades_out_errors: Size -> the same, predicted without its whole power of ten.
        crossover_bytes: Below it latency rules: the latency equals the time of the bytes there.
        half_performance_bytes: The smallest size that reaches half of the bandwidth of large ones.
        draws: Resamples behind the intervals.
        seed: Of the resamples.
    """

    status: Literal["fitted", "invalid", "not_fitted"]
    says: str = ""
    pieces: list[IoPiece] = []
    break_bytes: Size | None = None
    worst_error: float | Unknown = NOT_MEASURED
    errors: dict[str, float] = {}
    left_out_errors: dict[str, float] = {}
    decades_out_errors: dict[str, float] = {}
    crossover_bytes: float | Unknown = NOT_MEASURED
    half_performance_bytes: float | Unknown = NOT_MEASURED
    draws: Annotated[int, Meta(ge=0)] = 0
    seed: int = 0


class IoPath(_Strict):
    """One way of moving bytes.

    Attributes:
        name: Such as `torch.load.warm`.
        says: What it does, in a phrase.
        object: What it moves: `artifact`, `state`, `output` or `input`.
        operation: `load`, `save` or `copy`.
        format: `raw`, `torch`, `torch-mmap`, `safetensors`, `files`, `memory` or `device`.
        cache: State of the page cache before a load: `warm` or `guest-cold`; empty for others.
        cold_method: How it was made cold.
        durability: What a save promises when it returns: `cache`, `fsync` or `fsync+dir`; empty for others.
        target: Of a save: `new` file, `overwrite` in place, or `replace` by renaming.
        evidence: What its samples are, taken together.
        reason: Why, where they are not `measured`.
        correctness: Of all its samples.
        side_effects: What else a save does: name -> figure or text (`mode`, `file_bytes`, `peak_disk_bytes`).
        cases: By size.
        model: Its law.
    """

    name: str
    says: str
    object: str
    operation: Literal["load", "save", "copy"]
    format: str
    cache: str = ""
    cold_method: str = ""
    durability: str = ""
    target: str = ""
    evidence: Evidence = "measured"
    reason: str = ""
    correctness: IoCheck = msgspec.field(default_factory=lambda: IoCheck("not_run"))
    side_effects: dict[str, Any] = {}
    cases: list[IoCase] = []
    model: IoModel = msgspec.field(default_factory=lambda: IoModel("not_fitted", "not measured"))

    def case_of(self, size_bytes: int) -> IoCase | None:
        """Return the case of one size, None where there is none."""
        return next((case for case in self.cases if case.size_bytes == size_bytes), None)


class IoSkipped(_Strict):
    """A path that was not measured, and why."""

    name: str
    reason: str


class IoWorkload(_Strict):
    """What was moved, and how often.

    Attributes:
        size_bytes: The object that decisions look at.
        sizes: All sizes, ascending.
        dtype: Of its tensors.
        tensors: How many tensors an object is divided into.
        warmups: Samples that no figure counts, at `size_bytes`; other sizes have fewer.
        repeats: Samples that count, at `size_bytes`; other sizes have fewer.
        seed: Of the content and of the order.
        content: `random`: no storage can compress or share it.
        content_blake2b: Of the largest object's bytes; smaller ones are its beginning.
        threads: Threads that libraries may use.
        swept_bytes: Memory that is read before each sample, so that none finds its bytes in a CPU's cache.
        rounds: Rounds that were taken.
        rounds_planned: Rounds that were to be taken.
        budget_s: Time after which no round begins; None for no end.
    """

    size_bytes: Size
    sizes: list[Size]
    dtype: str
    tensors: int
    warmups: int
    repeats: int
    seed: int
    content: str
    content_blake2b: str
    threads: int
    swept_bytes: Size
    rounds: int = 0
    rounds_planned: int = 0
    budget_s: float | None = None


class IoStorage(_Strict):
    """What the files lay on.

    Attributes:
        folder: Where they were.
        filesystem: Its type.
        mount: Where it is mounted.
        options: Of the mount and the file system.
        source: What is mounted.
        device: The disk below.
        model: The disk's model.
        rotational: Whether the disk says that it turns.
        free_bytes: Before the run.
        cache_scope: Which caches an eviction reaches, in a sentence.
        residency_method: `cachestat`, `mincore`, or empty where neither answers.
    """

    folder: str
    filesystem: str = ""
    mount: str = ""
    options: list[str] = []
    source: str = ""
    device: str = ""
    model: str = ""
    rotational: bool | None = None
    free_bytes: Size = 0
    cache_scope: str = ""
    residency_method: str = ""


class IoExposure(_Strict):
    """What a save costs a step that goes on: pairs of the step with and without it (bench-io B7).

    exposed = with - without = block + slowdown + drain.

    Attributes:
        method: Such as `torch.save+fsync in the step`.
        says: What it does.
        size_bytes: What is saved.
        steps: Steps of computing in one arm.
        pairs: How many pairs there are.
        block_ns: Each pair: how long the call held the step up.
        slowdown_ns: Each pair: how much longer the computing took.
        drain_ns: Each pair: what was left to wait for at the end.
        exposed_ns: Each pair: with less without.
        without_ns: Each pair: the steps alone.
        service_ns: Each pair: the save alone, without computing.
        conditions: Name -> what the machine was like during each arm with the save.
        estimate_ns: Mean of `exposed_ns`.
        interval_ns: 90 % t interval over the pairs.
        overlap_efficiency: 1 - exposed / service, of medians.
        exposed_share: Exposed time over the time between two saves, with its interval, where that time was given.
        peak_bytes: The most memory that the save held, a copy that it keeps between saves included; median.
        evidence: What the pairs are.
        reason: Why, where they are not `measured`.
        correctness: Of the files that were written.
    """

    method: str
    says: str
    size_bytes: Size
    steps: int = 0
    pairs: int = 0
    block_ns: list[Ns] = []
    slowdown_ns: list[int] = []
    drain_ns: list[Ns] = []
    exposed_ns: list[int] = []
    without_ns: list[Ns] = []
    service_ns: list[Ns] = []
    conditions: dict[str, list[float | None]] = {}
    estimate_ns: int | Unknown = NOT_MEASURED
    interval_ns: tuple[int, int] | Unknown = NOT_MEASURED
    overlap_efficiency: float | Unknown = NOT_MEASURED
    exposed_share: tuple[float, float, float] | Unknown = NOT_MEASURED
    peak_bytes: Size | Unknown = NOT_MEASURED
    evidence: Evidence = "measured"
    reason: str = ""
    correctness: IoCheck = msgspec.field(default_factory=lambda: IoCheck("not_run"))


class IoDecision(_Strict):
    """What follows for one object.

    Attributes:
        object: `artifact`, `state`, `output` or `input`.
        question: What is decided, such as `load 64 MiB, warm`.
        verdict: `accept` a faster path, `tune` what takes most, `inconclusive`, `invalid` or `not_measured`.
        path: The path that is accepted, or that is to be tuned.
        against: The usual path that it was compared with.
        change: Relative change of the service time against that, with its 90 % interval.
        dominant: What takes most of it: `latency`, `bytes`, `below_ceiling`, `slowdown` or `block`.
        says: The verdict in a sentence.
        next: What to do.
    """

    object: str
    question: str
    verdict: Verdict
    path: str = ""
    against: str = ""
    change: tuple[float, float, float] | None = None
    dominant: str = ""
    says: str = ""
    next: str = ""


class BenchIo(_Strict):
    """The record of one run of `longpole bench io`.

    Attributes:
        schema: `longpole.bench-io/1`.
        profile: `default`, or `custom` where the workload is another one.
        semantic_id: Hash of what must be the same for samples to mean the same.
        label: What this run is called.
        written_by: Program and version.
        started_at: UTC.
        elapsed_s: Of the whole run.
        status: `measured`; `invalid`: a path's samples are not what it says; `failed`: bytes were wrong, or the run did
            not come to its end.
        failure: Why it did not; the samples until then are kept.
        evidence: What its figures are, and where they end, in a sentence.
        framework: Versions of what saved and loaded.
        hardware: What it ran on.
        environment: Everything else that could shift the figures, in three classes.
        storage: What the files lay on.
        workload: What was moved.
        memory_gb_per_s: Measured copy of host memory, against which lazy loads are told; not known where not measured.
        correctness: Of all samples.
        paths: By name.
        skipped: What was not measured.
        exposed: What saves cost a step that goes on.
        decisions: By object.
    """

    schema: Literal["longpole.bench-io/1"]
    profile: str
    semantic_id: str
    label: str
    written_by: str
    started_at: str
    status: Status
    workload: IoWorkload
    storage: IoStorage
    evidence: str = ""
    elapsed_s: float = 0.0
    failure: str = ""
    framework: dict[str, str] = {}
    hardware: dict[str, Any] = {}
    environment: dict[str, dict[str, Any]] = {}
    memory_gb_per_s: float | Unknown = NOT_MEASURED
    correctness: IoCheck = msgspec.field(default_factory=lambda: IoCheck("not_run"))
    paths: list[IoPath] = []
    skipped: list[IoSkipped] = []
    exposed: list[IoExposure] = []
    decisions: list[IoDecision] = []

    def path_named(self, name: str) -> IoPath | None:
        """Return a path by its name, None where it was not measured."""
        return next((path for path in self.paths if path.name == name), None)
