"""What remains of one rank's record once it was measured: small, without tables, mergeable."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from longpole.records.collectives import ComputeOverlap
from longpole.records.instances import Instances
from longpole.records.ledger import Ledger, StageTime, Unknown
from longpole.records.memory import RankMemory
from longpole.records.operator_work import RowWork
from longpole.records.program import ProgramRecord
from longpole.records.tables import ActivityRow, CopyRow, GapRow, KernelRow, ModuleRow, OperatorRow
from longpole.timeline.integrity import Finding

DIGEST_VERSION: Final = 8


class DeviceSpan(msgspec.Struct):
    """From the first to the last device span of the whole record: length, busy part, idle part."""

    span_ns: int | Unknown
    busy_ns: int | Unknown
    idle_ns: int | Unknown


class UnitDigest(msgspec.Struct):
    """One unit of work on one device row; `head` and `tail` are what lies before and behind all units.

    Attributes:
        start_ns: Start, in ns since the file's base time.
        completion_ns: When it was complete, in the same time; equal to the end for head and tail.
        device_by_time_ns: What ran during it.
        device_by_launch_ns: What ran of that which it launched, whenever that ran.
        one_off: What it paid once and no other unit does, empty for nothing.
        incomplete: Device spans of it are missing from the record.
        kernels: Compute kernels that it launched, or operators where no device was recorded.
        elements: Elements of its operators' inputs, -1 where shapes were not recorded.
        items: What it processed, as the program says, -1 where it does not.
        products: Multiplications in its products of matrices, -1 where no shapes of any were recorded.
    """

    name: str
    kind: str
    ordinal: int
    start_ns: int
    between_ns: int
    completion_ns: int
    device_by_time_ns: int
    device_by_launch_ns: int
    ledger: Ledger
    stages: dict[str, StageTime]
    one_off: str = ""
    one_off_ns: int = 0
    incomplete: bool = False
    kernels: int = 0
    elements: int = -1
    items: int = -1
    products: int = -1


class RowDigest(msgspec.Struct):
    """One device of one rank."""

    device: str
    device_name: str
    device_span: DeviceSpan
    units: list[UnitDigest]
    kernels: list[KernelRow]
    operators: list[OperatorRow]
    copies: list[CopyRow]
    gaps: list[GapRow]
    activities: list[ActivityRow]
    modules: list[ModuleRow] = []
    overlap: ComputeOverlap = msgspec.field(default_factory=ComputeOverlap)
    work: RowWork = msgspec.field(default_factory=RowWork)


class RankDigest(msgspec.Struct):
    """One rank of one file.

    Attributes:
        base_ns: Epoch time of the file's time 0, None where it is not known.
        start_ns, end_ns: First and last placed time, in ns since the file's base time.
        services_unknown: Object -> why its service and hidden time are not known.
        waiting_unknown: Why the waiting part of collectives is not known, None where it is.
        withheld: Why no bottleneck can be named, empty where one can.
        graph: Name of the file that keeps its graph, empty where none was built.
        instances: Its collective and point-to-point operations, ordered by start.
        memory: What its devices and the host held; empty where the profiler did not record memory.
        program: What the program said of itself, None where a profiler looked on.
    """

    version: int
    kind: str
    rank: int
    rank_assumed: bool
    world_size: int | None
    host: str
    base_ns: int | None
    start_ns: int
    end_ns: int
    path: str
    format: str
    format_version: str
    size_bytes: int
    n_events: int
    n_skipped: int
    n_repaired: int
    environment: dict[str, Any]
    findings: list[Finding]
    rows: list[RowDigest]
    services_unknown: dict[str, Unknown]
    withheld: str
    group_sizes: list[int]
    graph: str = ""
    instances: Instances = msgspec.field(default_factory=Instances.empty)
    memory: list[RankMemory] = []
    program: ProgramRecord | None = None
