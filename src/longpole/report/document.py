"""The report as one value; every renderer pours it out, and nothing else is computed on the way (REPORT-JSON)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from longpole.digest.rank_digest import DeviceSpan
from longpole.records.collectives import CollectiveEntry, LinkRow, OverlapEntry, PipelineEntry, StragglerEntry
from longpole.records.critical_path import CriticalPath
from longpole.records.findings import CandidateEntry, CauseFinding
from longpole.records.ledger import DeviceTime, Ledger, ObjectTime, StageTime, Unknown
from longpole.records.program import NeverEntered, QueueUse
from longpole.records.replay import Replay
from longpole.records.resources import Resources
from longpole.records.tables import ActivityRow, CopyRow, GapRow, KernelRow, ModuleRow, OperatorRow
from longpole.timeline.integrity import Finding

SCHEMA: Final = "longpole.report/1"
NO_RESOURCES: Final = Unknown("what operators ask of the device was not counted", [])
NO_MEMORY: Final = Unknown("the profiler was not asked for it", ["profile_memory=True"])

__all__ = [
    "NO_MEMORY",
    "NO_RESOURCES",
    "SCHEMA",
    "ClockEntry",
    "DeviceTime",
    "Headline",
    "Items",
    "Ledger",
    "LeftOut",
    "ObjectTime",
    "PeriodStatistics",
    "RankEntry",
    "Report",
    "RowMemory",
    "RunMemory",
    "RunSummary",
    "SelectionEntry",
    "SourceEntry",
    "StageTime",
    "Top",
    "UnitEntry",
    "UnitMemory",
    "UnitSummary",
    "Unknown",
    "UnknownEntry",
]


class SourceEntry(msgspec.Struct):
    """One file: what it is, how large, how many events, and how many of them were left out or repaired."""

    path: str
    format: str
    version: str
    bytes: int
    events: int
    skipped: int
    repaired: int


class SelectionEntry(msgspec.Struct):
    """What part of the run was asked for; None for all of it."""

    units: str | None = None
    ranks: list[int] | None = None
    step: str | None = None


class RunSummary(msgspec.Struct):
    """Who ran.

    Attributes:
        kind: training, inference, serving, posttraining or unknown.
        ranks_present: Ranks with a file, ascending.
        world_size: Number of ranks of the job.
        ranks_assumed: At least one file does not say its rank.
        sources: The files.
        environment: Versions, device names and profiler options; never secrets.
    """

    kind: str
    ranks_present: list[int]
    world_size: int | Unknown
    ranks_assumed: bool
    sources: list[SourceEntry]
    environment: dict[str, Any]
    selection: SelectionEntry


class Headline(msgspec.Struct):
    """The verdict in a sentence."""

    says: str
    cause: str
    cost_ns_per_unit: int
    basis: str
    rank: int | None = None
    object: str = ""


class LeftOut(msgspec.Struct):
    """A unit that no mean counts, and why."""

    unit: str
    why: str
    rank: int | None = None


class Items(msgspec.Struct):
    """What a unit processes, and how many of it.

    Attributes:
        kind: What items count.
        per_unit: Of all ranks together, mean over the steady units.
        per_s: How many the run processes in a second: items of the units with a period over those periods; left out
            where that is not known.
    """

    kind: str | Unknown
    per_unit: int | Unknown
    per_s: float | UnsetType = UNSET


class PeriodStatistics(msgspec.Struct):
    """Period of the steady units over the run; the 95th percentile is the nearest rank, from 20 samples on."""

    median: int | Unknown
    p95: int | Unknown
    mean: int | Unknown
    n: int


class UnitSummary(msgspec.Struct):
    """The units of the run."""

    kind: str
    count: int
    left_out: list[LeftOut]
    items: Items
    period_ns: PeriodStatistics


class UnitMemory(msgspec.Struct):
    """What one memory held in one unit.

    Attributes:
        memory: Name of the device, `cpu` for the host's memory.
        peak_allocated_bytes: The most that was allocated.
        end_allocated_bytes: What was allocated at the unit's end.
        peak_reserved_bytes: The most that the allocator had taken from the driver; left out for the host.
        largest_spare_bytes: The most that was reserved and not allocated; left out for the host.
    """

    memory: str
    peak_allocated_bytes: int
    end_allocated_bytes: int
    peak_reserved_bytes: int | UnsetType = UNSET
    largest_spare_bytes: int | UnsetType = UNSET


class UnitEntry(msgspec.Struct):
    """One unit of one row; times since the run's base. `head` and `tail` are what lies outside all units."""

    name: str
    kind: str
    steady: bool
    start_ns: int
    wall_ns: int
    between_ns: int
    completion_ns: int
    period_ns: int | Unknown
    lag_ns: int
    items: int | Unknown
    device_by_time_ns: int
    device_by_launch_ns: int
    exposed_ns: dict[str, int]
    stages: dict[str, StageTime]
    single_unit: bool | UnsetType = UNSET
    memory: list[UnitMemory] = []


class Top(msgspec.Struct):
    """Tables over the row's units."""

    kernels: list[KernelRow]
    operators: list[OperatorRow]
    gaps: list[GapRow]
    copies: list[CopyRow]


class RowMemory(msgspec.Struct):
    """One memory of a row over the whole record.

    Attributes:
        memory: Name of the device, `cpu` for the host's memory.
        from_start: What was allocated before the record is not counted: figures may be compared with each other only.
        events: Allocations and releases that were recorded.
        peak_allocated_bytes: The most that was allocated.
        peak_reserved_bytes: The most that the allocator had taken from the driver; left out where it is not written.
        reserved_at_peak_bytes: What it had taken when most was allocated; left out likewise.
        capacity_bytes: What the device has; left out where the header does not say.
    """

    memory: str
    from_start: bool
    events: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int | UnsetType = UNSET
    reserved_at_peak_bytes: int | UnsetType = UNSET
    capacity_bytes: int | UnsetType = UNSET


class RunMemory(msgspec.Struct):
    """The device that holds most at its peak.

    Attributes:
        rank: Whose device.
        memory: Name of the device.
        peak_allocated_bytes: The most that was allocated on it.
        peak_reserved_bytes: The most that its allocator had taken from the driver.
        capacity_bytes: What it has.
        peak_share: Peak allocated as a share of that.
    """

    rank: int
    memory: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int | Unknown
    capacity_bytes: int | Unknown
    peak_share: float | Unknown


class RankEntry(msgspec.Struct):
    """One row: a device of a rank."""

    rank: int
    host: str
    device: str
    device_name: str
    source: int
    recorded_ns: int
    head_ns: int
    tail_ns: int
    device_span: DeviceSpan
    ledger: Ledger
    gaps_by_activity: list[ActivityRow]
    units: list[UnitEntry]
    stages: dict[str, StageTime]
    modules: list[ModuleRow]
    top: Top
    memory: list[RowMemory] = []
    queues: list[QueueUse] = []


class UnknownEntry(msgspec.Struct):
    """One figure that is not known: a JSON Pointer to it, why, and what would have to be recorded."""

    at: str
    why: str
    missing: list[str]


class ClockEntry(msgspec.Struct):
    """How a rank's clock was brought to the run's.

    Attributes:
        offset_ns: What was added to the times that base times give; where there are none, to the rank's own times.
        uncertainty_ns: How far off the clock may be within the record.
        method: `base_time`, `matched_ends` or `none`.
        drift: How much faster the run's clock goes, in ns per ns; `offset_ns` holds in the middle of the record.
    """

    rank: int
    offset_ns: int | Unknown
    uncertainty_ns: int | Unknown
    method: str
    drift: float = 0.0


class Report(msgspec.Struct):
    """The whole report. Parts of later stages of the product are empty lists or unknown."""

    schema: str
    longpole: str
    run: RunSummary
    headline: Headline | Unknown
    unit: UnitSummary
    ledger: Ledger
    ranks: list[RankEntry]
    integrity: list[Finding]
    unknown: list[UnknownEntry]
    clock: list[ClockEntry]
    collectives: list[CollectiveEntry]
    overlap: list[OverlapEntry]
    critical_path: CriticalPath | Unknown
    replay: Replay | Unknown
    findings: list[CauseFinding]
    long_pole: str | None
    candidates: list[CandidateEntry]
    stragglers: list[StragglerEntry] = []
    links: list[LinkRow] = []
    pipeline: list[PipelineEntry] = []
    memory: RunMemory | Unknown = msgspec.field(default_factory=lambda: NO_MEMORY)
    never_entered: list[NeverEntered] = []
    resources: Resources | Unknown = msgspec.field(default_factory=lambda: NO_RESOURCES)
