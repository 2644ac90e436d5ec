"""From an export to the timelines of the ranks in it: one for each process that used a device.

Which rank a process is, the file's name says where it is alone; several are counted in the order of a communicator
of all, else of their devices, and marked as assumed. Correlation ids belong to a process: nothing is joined across two
of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from longpole.errors import NotATraceError
from longpole.readers.correlation import launches_by_correlation
from longpole.readers.nsys.capture import DEVICE_TABLES, PID_MASK, read_capture
from longpole.readers.nsys.complaints import Complaints
from longpole.readers.nsys.database import MISSING, open_database
from longpole.readers.nsys.device_rows import device_table, sync_table
from longpole.readers.nsys.host_rows import host_side
from longpole.readers.nsys.names import Names, shown
from longpole.readers.nsys.nccl import job_of
from longpole.readers.nsys.sniff import NOT_EXPORTED, is_report
from longpole.readers.rank_in_name import rank_in_name
from longpole.timeline.columns import Kind
from longpole.timeline.tables import DeviceTable
from longpole.timeline.timeline import Identity, Source, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from longpole.readers.nsys.capture import Capture
    from longpole.settings import Settings

FORMAT: Final = "nsys"
_HOST_MAX: Final = 64
_PROCESS_SHIFT: Final = 24
_PROCESS_BITS: Final = 0xFFFFFF
_Value = TypeVar("_Value")


def read_nsys(
    path: Path, shown_as: str, size_bytes: int, settings: Settings, member: str | None = None
) -> list[Timeline]:
    """Read an export into the timelines of the ranks in it.

    Args:
        path: The database, plain or packed.
        shown_as: How it is called in messages.
        size_bytes: Its size as stored.
        settings: Thresholds of placing, and the bound on expansion.
        member: Which member of an archive.

    Raises:
        InputError: It cannot be read.
        NotATraceError: It is no export of Nsight Systems, or holds no timed event.
    """
    if is_report(path.name):
        raise NotATraceError.at(shown_as, None, NOT_EXPORTED, "Then give the .sqlite file")
    with open_database(path, shown_as, settings, member) as database:
        capture = read_capture(database)
    callers = _callers(capture)
    processes = _in_order(capture, _processes(capture, callers))
    ranks = zip(processes, _identities(capture, len(processes)), strict=True)
    others = _names_of(capture, callers.keys() - set(processes)) if None not in processes else []
    timelines: list[Timeline] = []
    for process, identity in ranks:
        complaints = Complaints(capture, identity.rank)
        complaints.damage()
        if not timelines:  # of the file, and said once
            complaints.others(others)
        timelines.append(_timeline(capture, process, (identity, complaints), size_bytes, settings))
    n_skipped = sum(timeline.source.n_skipped for timeline in timelines)  # of the file, like all that a source says
    return [
        replace(timeline, source=replace(timeline.source, n_skipped=n_skipped))
        for timeline in timelines
        if len(timeline.host) or len(timeline.device)
    ]


def _processes(capture: Capture, callers: dict[int, int]) -> list[int | None]:
    """Return the processes that are ranks, in order of their devices; None for all that there is."""
    first_device: dict[int, int] = {}
    for kind in DEVICE_TABLES:
        columns = capture.activities[kind]
        if not columns:
            continue
        pids, devices = columns["globalPid"], columns["deviceId"]
        for pid in np.unique(pids[pids != MISSING]).tolist():
            device = int(devices[pids == pid].min())
            first_device[pid] = min(first_device.get(pid, device), device)
    users: list[int | None] = [pid for _, pid in sorted((device, pid) for pid, device in first_device.items())]
    if users:
        return users
    # Without device rows the process with the most calls is the program; rows that name no process belong to it.
    if len(callers) > 1 and not any(_length(capture, kind) for kind in DEVICE_TABLES):
        return [max(callers, key=lambda pid: callers[pid])]
    return [None]


def _length(capture: Capture, kind: str) -> int:
    return capture.rows[f"CUPTI_ACTIVITY_KIND_{kind}"]


def _callers(capture: Capture) -> dict[int, int]:
    """Count the recorded calls and annotations of each process."""
    counts: dict[int, int] = {}
    for columns in (capture.activities["RUNTIME"], capture.os_calls):
        if columns:
            threads = columns["globalTid"][columns["globalTid"] != MISSING]
            for pid, count in zip(*np.unique(threads & PID_MASK, return_counts=True), strict=True):
                counts[int(pid)] = counts.get(int(pid), 0) + int(count)
    for pid, ranges in capture.ranges.items():
        counts[pid] = counts.get(pid, 0) + len(ranges)
    return counts


def _in_order(capture: Capture, processes: list[int | None]) -> list[int | None]:
    """Put ranks in the order of a communicator of which all are members, each at a place of its own.

    It need not hold the whole job: of a pair in each of four files, all would call themselves ranks 0 and 1 of 2. So
    it tells the order, and neither numbers nor how many ranks there are.
    """
    jobs = {process: job_of(capture.ranges_of(process), capture) for process in processes}
    told = [job for job in jobs.values() if job is not None]
    if len(set(told)) < len(processes) or len({size for size, _ in told}) > 1:
        return processes
    return sorted(processes, key=lambda process: jobs[process] or (0, 0))


def _identities(capture: Capture, n_ranks: int) -> list[Identity]:
    """Tell the ranks: by the file's name where a process is alone, else they are counted."""
    host = shown(capture.host)[:_HOST_MAX]
    named = rank_in_name(PurePath(capture.shown).name) if n_ranks == 1 else None
    if named is not None:
        return [Identity(named, rank_assumed=False, world_size=None, host=host)]
    return [Identity(place, rank_assumed=True, world_size=None, host=host) for place in range(n_ranks)]


def _timeline(
    capture: Capture, process: int | None, told: tuple[Identity, Complaints], size_bytes: int, settings: Settings
) -> Timeline:
    identity, complaints = told
    names = Names()
    device = device_table(capture, process, names, complaints, settings)
    side = host_side(capture, process, names, complaints, settings)
    calls = np.flatnonzero(side.table.kind == Kind.RUNTIME)
    device = replace(device, launch=launches_by_correlation(side.table, calls, device))
    complaints.whole_graphs(int(np.isin(device.event, _graph_events(capture)).sum()))
    return Timeline(
        identity=identity,
        source=Source(
            path=capture.shown,
            format=FORMAT,
            version=capture.schema_version,
            size_bytes=size_bytes,
            n_events=sum(capture.rows.values()),
            n_skipped=complaints.n_left_out,
            n_repaired=0,
        ),
        base_ns=capture.session_epoch_ns,
        names=tuple(names.texts),
        tracks=side.tracks,
        host=side.table,
        device=device,
        tasks=DeviceTable.empty(),
        aside=side.aside,
        flows=side.flows,
        input_dims=side.shapes,
        call_stacks=type(side.shapes).empty(),
        backward=side.backward,
        collectives=side.collectives,
        main_track=-1,
        device_names=_by_device(capture.devices, process),
        device_bytes=_by_device(capture.device_bytes, process),
        environment=dict(capture.environment),
        findings=tuple(complaints.findings),
        syncs=sync_table(capture, process),
    )


def _graph_events(capture: Capture) -> np.ndarray:
    first = capture.first_event("CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
    return np.arange(first, first + _length(capture, "GRAPH_TRACE"))


def _names_of(capture: Capture, processes: Iterable[int]) -> list[str]:
    """Name processes, by their numbers where the export does not."""
    return [
        shown(capture.processes.get(pid, "") or f"process {pid >> _PROCESS_SHIFT & _PROCESS_BITS}")
        for pid in sorted(processes)
    ]


def _by_device(found: dict[tuple[int, int], _Value], process: int | None) -> dict[int, _Value]:
    """Return what is known of each device by the number that a process gives it; the machine's numbers stand behind."""
    pid = process >> _PROCESS_SHIFT & _PROCESS_BITS if process is not None else 0
    return {
        device: value
        for (owner, device), value in sorted(found.items(), key=lambda item: item[0][0] == pid)
        if owner in (0, pid)
    }
