"""What collectives take on a machine, as it is kept (`bench-collectives/1`): measured by us, or read from nccl-tests.

Sizes are the full buffer's, as nccl-tests counts: the input of a reduce-scatter, the output of an all-gather. Rates are
decimal gigabytes per second.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from longpole.records.ledger import Unknown
from longpole.records.run_record import RecordEnvironment

SCHEMA: Final = "longpole.bench-collectives/1"
DEFAULT_SETTING: Final = "default"

Origin: TypeAlias = Literal["bench", "nccl-tests"]
Correctness: TypeAlias = Literal["passed", "failed", "not_checked"]
Placement: TypeAlias = Literal["out_of_place", "in_place"]
Statistic: TypeAlias = Literal["median", "mean"]


class CollectivesMachine(msgspec.Struct):
    """Where it ran.

    Attributes:
        backend: `gloo` or `nccl`; empty where a log does not say.
        device: Model of the devices, `cpu` for the host; empty where not known, several names with commas.
        nodes: Machines that took part; None where not known.
        versions: Library -> version, as far as recorded.
    """

    backend: str = ""
    device: str = ""
    nodes: int | None = None
    versions: dict[str, str] = {}


class CollectivesDesign(msgspec.Struct):
    """How it was measured; of nccl-tests what its log says.

    Attributes:
        repeats, warmup: Timed and untimed operations of each point, in each process.
        rounds: How often fresh processes were started for each setting.
        seed: Of the order of points and settings.
        dtype: Element type.
        timed: What the time of one operation is.
        semantic_id: Hash of what must be the same for two records to be compared; empty for a log.
    """

    repeats: int | None = None
    warmup: int | None = None
    rounds: int = 1
    seed: int | None = None
    dtype: str = ""
    timed: str = ""
    semantic_id: str = ""


class CollectivesSource(msgspec.Struct):
    """A file that was read.

    Attributes:
        path: As given.
        format: `text`, `json` or `record`.
        tests: Tests in it.
        complaints: What could not be used of it, each with its line where it has one.
    """

    path: str
    format: str
    tests: int
    complaints: list[str] = []


class CollectivesSetting(msgspec.Struct):
    """One way of running them.

    Attributes:
        name: As points name it: `default`, or what is different from it.
        variables: Environment variables that were set for it.
        bucket_bytes: The buffer went in operations of this size, all begun before the first was waited for; None whole.
        status: `measured`, `failed` or `not_run`.
        failure: Why it failed, or was not run.
    """

    name: str
    variables: dict[str, str] = {}
    bucket_bytes: int | None = None
    status: Literal["measured", "failed", "not_run"] = "measured"
    failure: str = ""


class CollectivesRound(msgspec.Struct):
    """What one set of fresh processes measured of a point.

    Attributes:
        round: Its number; rounds of one number ran one after the other.
        samples_ns: One for each repeat: the longest of the ranks' times.
        skew_ns: Median over the repeats of how much later the last rank began than the first; it is in the samples.
    """

    round: int
    samples_ns: list[int]
    skew_ns: int | None = None


class CollectivesPoint(msgspec.Struct):
    """One kind at one size under one setting.

    Attributes:
        kind: As in a report: `all_reduce`, …
        ranks: How many take part.
        bytes: Of the full buffer.
        time_ns: The statistic over all repeats; not known where the result was wrong.
        statistic: `median`; `mean` for nccl-tests, which keeps no more.
        p95_ns: Nearest rank, from 20 repeats on.
        repeats: How many the statistic is over; None where a log does not say.
        correctness: Whether the result was what it must be.
        wrong: Elements of the result that were not; None where not checked.
    """

    kind: str
    ranks: int
    dtype: str
    setting: str
    placement: Placement
    bytes: int
    time_ns: int | Unknown
    statistic: Statistic
    p95_ns: int | Unknown
    repeats: int | None
    algbw_gb_per_s: float | Unknown
    busbw_gb_per_s: float | Unknown
    correctness: Correctness
    wrong: int | None = None
    rounds: list[CollectivesRound] = []


class CollectivesFit(msgspec.Struct):
    """Time of S bytes under one setting: alpha + gamma * sqrt(S) + S / rate (DESIGN 3.8).

    Attributes:
        alpha_ns: What an operation of no size takes.
        gamma: In ns per square root of a byte.
        gb_per_s: The rate that large operations approach.
        half_bytes: Below this size alpha is the larger part than the bytes: latency rules.
        error_median, error_max: |fitted / measured - 1| over the sizes.
        why_none: Why there is no model; empty where there is one.
    """

    kind: str
    ranks: int
    setting: str
    placement: Placement
    sizes: int
    alpha_ns: int | None = None
    gamma: float | None = None
    gb_per_s: float | None = None
    half_bytes: int | None = None
    error_median: float | None = None
    error_max: float | None = None
    why_none: str = ""


class CollectivesBand(msgspec.Struct):
    """The best setting for neighbouring sizes of a kind.

    Attributes:
        from_bytes, to_bytes: The smallest and the largest size measured of the band, both included.
        setting: The fastest one that is faster than the default beyond noise; `default` where every other one is
            slower beyond noise; empty where neither is so.
        gain_low, gain_high: How many times faster than the default, over the band's sizes; of the default, than the
            fastest other one; 0 where no difference was seen.
        why: What the choice rests on, or why none is made.
    """

    kind: str
    ranks: int
    from_bytes: int
    to_bytes: int
    setting: str
    gain_low: float = 0.0
    gain_high: float = 0.0
    why: str = ""


class CollectivesCrossover(msgspec.Struct):
    """Where the best setting of a kind changes: between two sizes that were measured.

    Attributes:
        fitted_bytes: Where the two fitted curves cross between them; None where they do not, or one is missing.
    """

    kind: str
    ranks: int
    below: str
    above: str
    between_bytes: tuple[int, int]
    fitted_bytes: int | None = None


class NotRun(msgspec.Struct):
    """Something that was not measured, and why."""

    what: str
    why: str


class CollectivesRecord(msgspec.Struct):
    """A record of collectives.

    Attributes:
        record_id: Hash of what it holds.
        label: What the user calls it.
        origin: Who measured.
        created: When, UTC, ISO 8601; empty for a log.
        status: `passed`; `failed` where a setting failed; `invalid` where a result was wrong.
        says: One sentence for a person.
        environment: Of the machine that measured, as in a run record; nothing for a log.
    """

    schema: Literal["longpole.bench-collectives/1"]
    longpole: str
    record_id: str
    label: str
    origin: Origin
    created: str
    status: Literal["passed", "failed", "invalid"]
    says: str
    machine: CollectivesMachine
    design: CollectivesDesign
    environment: RecordEnvironment
    sources: list[CollectivesSource]
    settings: list[CollectivesSetting]
    points: list[CollectivesPoint]
    fits: list[CollectivesFit]
    best: list[CollectivesBand]
    crossovers: list[CollectivesCrossover]
    not_run: list[NotRun]
