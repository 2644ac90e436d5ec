"""The tables of a device row: kernels, operators, copies, and idle time by the activity that ran meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.pieces import RUNG_COPY
from longpole.records.tables import ActivityRow, CopyRow, KernelRow, OperatorRow, ShapeRow, Where
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.intervals import Intervals, covered_before, union_by_group
from longpole.units import gb_per_s
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.analyses.rungs import DeviceRow
    from longpole.analyses.threads import Threads
    from longpole.timeline.timeline import Timeline

ROWS_KEPT: Final = 50
_SHAPE_MAX: Final = 512  # characters: a list of tensors fills more than a line
_SHAPES_KEPT: Final = 3


def kernel_rows(timeline: Timeline, row: DeviceRow, window: Intervals, busy_ns: int) -> list[KernelRow]:
    """Return the kernels, copies and memsets of a device by name, the longest first."""
    start_ns, end_ns, inside = _clip(row.spans.start_ns, row.spans.end_ns, window)
    names = row.spans.name[inside]
    if len(names) == 0:
        return []
    union_ns = _unions(names, start_ns, end_ns)
    rows = []
    order = np.argsort(names, kind="stable")
    codes, first, counts = np.unique(names[order], return_index=True, return_counts=True)
    sums = np.add.reduceat((end_ns - start_ns)[order], first)
    for place in np.argsort(-sums, kind="stable")[:ROWS_KEPT].tolist():
        code, sample = int(codes[place]), int(inside[order[first[place]]])
        rows.append(
            KernelRow(
                name=timeline.names[code],
                object=OBJECTS[int(row.object[sample])],
                count=int(counts[place]),
                sum_ns=int(sums[place]),
                mean_ns=round(int(sums[place]) / int(counts[place])),
                union_ns=union_ns[code],
                share=union_ns[code] / busy_ns if busy_ns else 0.0,
                where=Where(
                    int(row.spans.start_ns[sample]), int(row.spans.event[sample]), f"stream {row.spans.stream[sample]}"
                ),
            )
        )
    return rows


def operator_rows(timeline: Timeline, threads: Threads, row: DeviceRow | None, window: Intervals) -> list[OperatorRow]:
    """Return the operators by name, those with the most device time first, then those with the most host time."""
    host = timeline.host
    operators = np.flatnonzero(host.kind == Kind.OPERATOR)
    start_ns, end_ns, inside = _clip(host.start_ns[operators], host.end_ns[operators], window)
    rows = operators[inside]
    if len(rows) == 0:
        return []
    device_ns = _device_time(timeline, threads, row, window)
    names = host.name[rows]
    union_ns = _unions(names, start_ns, end_ns)
    order = np.argsort(names, kind="stable")
    codes, first, counts = np.unique(names[order], return_index=True, return_counts=True)
    sums = np.add.reduceat((end_ns - start_ns)[order], first)
    on_device = np.add.reduceat(device_ns[rows][order], first)
    total_ns = max(int(device_ns.sum()), 1)
    result = []
    for place in np.lexsort((-sums, -on_device))[:ROWS_KEPT].tolist():
        code = int(codes[place])
        mine = rows[order[first[place] : first[place] + counts[place]]]
        result.append(
            OperatorRow(
                name=timeline.names[code],
                count=int(counts[place]),
                sum_ns=int(sums[place]),
                union_ns=union_ns[code],
                device_ns=int(on_device[place]),
                share=float(on_device[place]) / total_ns,
                shapes=_shapes(timeline, mine, device_ns),
                where=Where(int(host.start_ns[mine[0]]), int(host.event[mine[0]]), _track_name(timeline, mine[0])),
            )
        )
    return result


def copy_rows(timeline: Timeline, book: NameBook, row: DeviceRow, window: Intervals) -> list[CopyRow]:
    """Return the copies of a device by name and by what they carry, the longest first."""
    start_ns, end_ns, inside = _clip(row.spans.start_ns, row.spans.end_ns, window)
    copies = row.rung[inside] == RUNG_COPY
    inside, dur_ns = inside[copies], (end_ns - start_ns)[copies]
    groups: dict[tuple[int, int], list[int]] = {}
    for place, (name, charged) in enumerate(
        zip(row.spans.name[inside].tolist(), row.object[inside].tolist(), strict=True)
    ):
        groups.setdefault((name, charged), []).append(place)
    rows = []
    for (name, charged), places in groups.items():
        size = row.spans.size_bytes[inside[places]]
        took = dur_ns[places]
        healthy = (size > 0) & (took > 0)
        rows.append(
            CopyRow(
                name=timeline.names[name],
                direction=book.copy(name).direction,
                object=OBJECTS[charged],
                count=len(places),
                size_bytes=int(size[size > 0].sum()),
                sum_ns=int(took.sum()),
                gb_per_s=gb_per_s(int(size[healthy].sum()), int(took[healthy].sum())) if healthy.any() else None,
            )
        )
    return sorted(rows, key=lambda r: (-r.sum_ns, r.name, r.object))[:ROWS_KEPT]


def activity_rows(timeline: Timeline, idle: Intervals, skip: NDArray[np.intp]) -> list[ActivityRow]:
    """Return idle time by the name of what ran on the host meanwhile, the most idle first.

    Spans of one name are united, on all threads together, so that recursion counts once.

    Args:
        timeline: The record.
        idle: When the device idled, within the units.
        skip: Host rows that mark units.
    """
    host = timeline.host
    if len(host) == 0 or len(idle.start_ns) == 0:
        return []
    prefix_of: dict[str, int] = {}
    used = np.unique(host.name)
    group_of = np.zeros(len(timeline.names), np.int32)
    for code in used.tolist():
        group_of[code] = prefix_of.setdefault(_prefix(timeline.names[code]), len(prefix_of))
    names = list(prefix_of)
    under_ns = covered_before(idle, host.end_ns) - covered_before(idle, host.start_ns)
    under_ns[skip] = 0
    rows = np.flatnonzero(under_ns > 0)
    group, start_ns, end_ns = union_by_group(group_of[host.name[rows]], host.start_ns[rows], host.end_ns[rows])
    inside_ns = covered_before(idle, end_ns) - covered_before(idle, start_ns)
    total_ns = np.zeros(len(names), np.int64)
    np.add.at(total_ns, group, inside_ns)
    counts = np.bincount(group_of[host.name[rows]], minlength=len(names))
    best = np.argsort(-total_ns, kind="stable")[:ROWS_KEPT].tolist()
    return [ActivityRow(names[g], int(total_ns[g]), int(counts[g])) for g in best if total_ns[g] > 0]


def _clip(
    start_ns: NDArray[np.int64], end_ns: NDArray[np.int64], window: Intervals
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Clip spans to the window; return starts, ends and which spans are left. Empty spans inside it are kept."""
    if len(window.start_ns) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.intp)
    low_ns, high_ns = int(window.start_ns[0]), int(window.end_ns[-1])
    inside = np.flatnonzero((start_ns < high_ns) & ((end_ns > low_ns) | ((start_ns >= low_ns) & (end_ns >= low_ns))))
    return np.maximum(start_ns[inside], low_ns), np.minimum(end_ns[inside], high_ns), inside


def _unions(names: NDArray[np.int32], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> dict[int, int]:
    """Return the length of the union of the spans of each name."""
    total: dict[int, int] = dict.fromkeys(np.unique(names).tolist(), 0)
    group, first_ns, last_ns = union_by_group(names, start_ns, end_ns)
    if len(group):
        codes, first = np.unique(group, return_index=True)
        total.update(zip(codes.tolist(), np.add.reduceat(last_ns - first_ns, first).tolist(), strict=True))
    return total


def _device_time(timeline: Timeline, threads: Threads, row: DeviceRow | None, window: Intervals) -> NDArray[np.int64]:
    """Return, for each host row, the time of the device spans launched directly under it (operators only)."""
    total = np.zeros(len(timeline.host), np.int64)
    if row is None:
        return total
    start_ns, end_ns, inside = _clip(row.spans.start_ns, row.spans.end_ns, window)
    launch = row.spans.launch[inside]
    linked = np.flatnonzero(launch != NONE_ID)
    track = timeline.host.track[launch[linked]]
    for code in np.unique(track).tolist():
        mine = linked[track == code]
        cover = threads.cover(code)
        operator = cover.row_operator[launch[mine] - cover.first_row]
        has = operator >= 0
        np.add.at(total, operator[has], (end_ns - start_ns)[mine[has]])
    return total


def _shapes(timeline: Timeline, rows: NDArray[np.intp], device_ns: NDArray[np.int64]) -> list[ShapeRow]:
    """Return the input shapes of some calls with the most device time."""
    dims = timeline.input_dims
    if len(dims.row) == 0:
        return []
    place = np.minimum(np.searchsorted(dims.row, rows), len(dims.row) - 1)
    known = dims.row[place] == rows
    codes = dims.value[place[known]]
    time_ns = device_ns[rows[known]]
    if len(codes) == 0:
        return []
    unique, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, inverse.reshape(-1), time_ns)
    best = np.lexsort((-counts, -sums))[:_SHAPES_KEPT].tolist()
    return [ShapeRow(dims.texts[int(unique[i])][:_SHAPE_MAX], int(counts[i]), int(sums[i])) for i in best]


def _track_name(timeline: Timeline, row: int | np.intp) -> str:
    return track_label(timeline, int(timeline.host.track[row]))


def track_label(timeline: Timeline, track: int) -> str:
    """Return how a thread is called in viewers."""
    if track < 0:
        return ""
    thread = timeline.tracks[track]
    return thread.name or f"thread {thread.tid}"


def _prefix(name: str) -> str:
    """Return a name up to its first `#`, the whole name where it begins with one."""
    return name.split("#", 1)[0] or name
