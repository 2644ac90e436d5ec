"""The record of one rank: tables, identity, provenance and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from longpole.timeline.columns import HOST_KINDS
from longpole.timeline.intervals import Intervals, reach_in_groups
from longpole.timeline.tables import MemoryTable, Sparse, SyncTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.timeline.integrity import Finding
    from longpole.timeline.tables import CollectiveArgs, DeviceTable, FlowTable, HostTable, Track
    from longpole.timeline.told import Told


@dataclass(frozen=True, slots=True)
class Identity:
    """Who recorded.

    Attributes:
        rank: Rank in the job; provisional where `rank_assumed`.
        rank_assumed: Neither the file nor its name says the rank.
        world_size: Number of ranks in the job, None where not written.
        host: Host name as written, empty where not.
        groups: Process groups as the header lists them.
    """

    rank: int
    rank_assumed: bool
    world_size: int | None
    host: str
    groups: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The file behind a record.

    Attributes:
        path: As it was given.
        format: `kineto`, `longpole.spans`.
        version: The exporter's schema version, as written.
        size_bytes: Size of the file as stored.
        n_events: Elements of its event list.
        n_skipped: Elements that could not be used.
        n_repaired: Repairs made while decoding.
    """

    path: str
    format: str
    version: str
    size_bytes: int
    n_events: int
    n_skipped: int
    n_repaired: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything known of one rank; never changed after it was built.

    Attributes:
        base_ns: Time since the epoch at which the table times are 0; None where the file does not say.
        names: What the name codes stand for.
        tracks: What the track codes stand for.
        host: Placed spans of CPU threads.
        device: Placed kernels, copies and memsets.
        tasks: Device-side parts of collectives that lie inside their operation (waits, copies); never added to it.
        aside: Rows that are evidence but no work: synchronisation rows, annotations on devices, profiler rows.
        flows: Arrows.
        input_dims: Shapes of operators, by host row.
        input_types, input_values: Element types of operators' inputs, and what their other arguments were, as written.
        input_strides: Strides of operators' inputs, of those that repeat elements (a stride of 0), by host row.
        sequences: Numbers that autograd gives the nodes of its graph, by host row, of operators with shapes.
        occupancy: Share of its processors' warps that each kernel fills by the profiler's estimate, in percent, by
            device row.
        call_stacks: Recorded call stacks, by host row.
        backward: Host rows of operators that name the forward thread they belong to.
        collectives: What collectives say of themselves.
        main_track: The thread that carries the units, -1 where no thread was recorded.
        device_type: How frameworks call the devices: `cuda` (ROCm's too), `npu`, `xpu`, `mtia`, `hpu`, `tpu`.
        device_names: Model of each device, as far as the header says.
        environment: Versions and profiler options; never secrets.
        syncs: What rows of synchronisation say; the rows themselves stand aside.
        memory: Allocations and releases; empty where the profiler did not record them.
        device_bytes: Memory of each device, as far as the header says.
        told: What the program itself said, None where a profiler looked on. Device spans that a program times itself
            have no launching calls.
    """

    identity: Identity
    source: Source
    base_ns: int | None
    names: tuple[str, ...]
    tracks: tuple[Track, ...]
    host: HostTable
    device: DeviceTable
    tasks: DeviceTable
    aside: HostTable
    flows: FlowTable
    input_dims: Sparse
    call_stacks: Sparse
    backward: NDArray[np.int64]
    collectives: tuple[CollectiveArgs, ...]
    main_track: int
    device_type: str = "cuda"
    device_names: dict[int, str] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    syncs: SyncTable = field(default_factory=SyncTable.empty)
    memory: MemoryTable = field(default_factory=MemoryTable.empty)
    device_bytes: dict[int, int] = field(default_factory=dict)
    told: Told | None = None
    input_types: Sparse = field(default_factory=Sparse.empty)
    input_values: Sparse = field(default_factory=Sparse.empty)
    input_strides: Sparse = field(default_factory=Sparse.empty)
    sequences: Sparse = field(default_factory=Sparse.empty)
    occupancy: Sparse = field(default_factory=Sparse.empty)

    def device_name(self, device: int) -> str:
        """Return a device's model, empty where the header does not say.

        ROCm's tracer numbers devices behind the host's processors, the header from 0 on: where all listed devices are
        of one model, so are those that are not listed.
        """
        models = set(self.device_names.values())
        return self.device_names.get(device, models.pop() if len(models) == 1 else "")

    def devices(self) -> list[int]:
        """Return the devices that have spans, ascending."""
        return [int(device) for device in np.unique(self.device.device)]

    def recorded(self) -> Intervals:
        """Return the span from the first start to the last end of all placed rows; empty where there is none."""
        starts = [int(table.start_ns.min()) for table in (self.host, self.device) if len(table)]
        ends = [int(table.end_ns.max()) for table in (self.host, self.device) if len(table)]
        if not starts:
            return Intervals.none()
        return Intervals(np.array([min(starts)], np.int64), np.array([max(ends)], np.int64))


def find_main_track(host: HostTable, tracks: tuple[Track, ...], unit_rows: NDArray[np.intp]) -> int:
    """Return the thread that carries the unit boundaries, else the one that looks like the program's main thread.

    Args:
        host: Placed host spans.
        tracks: All tracks.
        unit_rows: Host rows of unit annotations, maybe none.

    Returns:
        A track code, -1 where no thread was recorded. Without annotations: the thread whose id is its process's
        (Linux numbers a process's first thread so), else the one with the most time under top-level spans.
    """
    if len(unit_rows):
        return int(np.bincount(host.track[unit_rows]).argmax())
    rows = np.flatnonzero(np.isin(host.kind, [int(kind) for kind in HOST_KINDS]))
    if len(rows) == 0:
        return -1
    busy_ns = np.bincount(host.track[rows], weights=_own_cover(host, rows), minlength=len(tracks))
    for code in np.argsort(-busy_ns):
        if busy_ns[code] > 0 and tracks[code].pid == tracks[code].tid:
            return int(code)
    return int(busy_ns.argmax())


def _own_cover(host: HostTable, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how far each span reaches beyond the spans before it on its thread, so that nesting counts once."""
    track, start_ns, end_ns = host.track[rows], host.start_ns[rows], host.end_ns[rows]
    reach_ns = reach_in_groups(track, end_ns)
    before_ns = start_ns.copy()
    same = track[1:] == track[:-1]
    before_ns[1:][same] = np.maximum(reach_ns[:-1], start_ns[1:])[same]
    return np.maximum(reach_ns - before_ns, 0).astype(np.float64)
