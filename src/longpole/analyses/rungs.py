"""The busy pieces of a device row: which span runs, on which rung, for which object (DESIGN 3.3).

compute     ├──── k1 ────┤        ├ k2 ┤
collective        ├──────── c1 ───────────┤
copy                                    ├── m1 ──┤
pieces      │     k1     │   c1   │ k2  │c1│  m1  │
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.name_book import CALL_CODE, OBJECT_CODE, STAGE_CODE
from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COMPUTE, RUNG_COPY, Pieces
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.intervals import Intervals, complement, expand, unite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.analyses.threads import Threads
    from longpole.settings import Settings
    from longpole.timeline.tables import DeviceTable
    from longpole.timeline.timeline import Timeline

# Copies of several objects at once: the instant goes to the first of these (our choice; DESIGN 3.3 names none).
_COPY_ORDER: Final = ("input", "artifact", "state", "output", "collective", "compute", "host", "unknown")
_DIRECTION_OBJECT: Final = {
    "htod": "input",
    "dtoh": "output",
    "dtod": "compute",
    "memset": "compute",
    "ptop": "collective",
}


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One device of one rank, with what each of its spans is.

    Attributes:
        device: The device number.
        rows: `[N]` int64: its rows of the timeline's device table, ascending in start.
        spans: Those rows as a table.
        rung: `[N]` int8.
        object: `[N]` int8: code into OBJECTS of what each span is charged to where it wins.
        launch_stage: `[N]` int8: code into STAGES.
    """

    device: int
    rows: NDArray[np.int64]
    spans: DeviceTable
    rung: NDArray[np.int8]
    object: NDArray[np.int8]
    launch_stage: NDArray[np.int8]
    is_fused: NDArray[np.bool_]


def device_row(timeline: Timeline, book: NameBook, threads: Threads, device: int, settings: Settings) -> DeviceRow:
    """Say of every span of a device what it is and what it carries."""
    rows = np.flatnonzero(timeline.device.device == device).astype(np.int64)
    spans = timeline.device.take(rows)
    on_copy_rung = (spans.kind == Kind.COPY) | (spans.kind == Kind.MEMSET) | _copies_by_name(timeline, book, spans)
    collective = book.is_collective[spans.name] & ~on_copy_rung
    rung = np.full(len(rows), RUNG_COMPUTE, np.int8)
    rung[collective] = RUNG_COLLECTIVE
    rung[on_copy_rung] = RUNG_COPY
    charged = np.full(len(rows), OBJECT_CODE["compute"], np.int8)
    charged[collective] = OBJECT_CODE["collective"]
    launch_stage, around, carried = _at_launch(timeline, book, threads, spans)
    copies = np.flatnonzero(on_copy_rung)
    implied = np.where(launch_stage == STAGE_CODE["optimizer"], OBJECT_CODE["state"], carried).astype(np.int8)
    charged[copies] = _freight(timeline, book, spans.take(copies), implied[copies], around[copies], settings)
    said = book.freight[spans.name]
    charged = np.where(on_copy_rung & (said >= 0), said, charged).astype(np.int8)
    if timeline.told is not None:  # no launching call says where in the unit a span lies, but the program may
        launch_stage = np.where(book.stage[spans.name] >= 0, book.stage[spans.name], launch_stage).astype(np.int8)
    return DeviceRow(device, rows, spans, rung, charged, launch_stage, book.is_fused[spans.name] & ~on_copy_rung)


def _copies_by_name(timeline: Timeline, book: NameBook, spans: DeviceTable) -> NDArray[np.bool_]:
    """Return which spans are copies by their names alone: the exporters of NPUs and MTIA give them no category."""
    if timeline.device_type not in ("npu", "mtia"):
        return np.zeros(len(spans), np.bool_)
    codes = [code for code in np.unique(spans.name).tolist() if book.copy(code).is_copy]
    return np.isin(spans.name, codes)


def _at_launch(
    timeline: Timeline, book: NameBook, threads: Threads, spans: DeviceTable
) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int8]]:
    """Return the stage of each span's launching call, the object activity around it, and what copies carry there.

    The last two are codes into OBJECTS, -1 for none.
    """
    stage = np.full(len(spans), STAGE_CODE["other"], np.int8)
    around = np.full(len(spans), -1, np.int8)
    carried = np.full(len(spans), -1, np.int8)
    carries = book.carries[timeline.host.name]
    linked = np.flatnonzero(spans.launch != NONE_ID)
    track = timeline.host.track[spans.launch[linked]]
    for code in np.unique(track).tolist():
        mine = linked[track == code]
        cover = threads.cover(code)
        place = spans.launch[mine] - cover.first_row
        stage[mine] = cover.row_stage[place]
        around[mine] = cover.row_object[place]
        own = carries[threads.rows_of(code)]
        if (own >= 0).any():
            carrier = cover.outwards(place, own >= 0)
            carried[mine] = np.where(carrier >= 0, own[np.maximum(carrier, 0)], -1)
    return stage, around, carried


def _freight(
    timeline: Timeline,
    book: NameBook,
    copies: DeviceTable,
    at_launch: NDArray[np.int8],
    around: NDArray[np.int8],
    settings: Settings,
) -> NDArray[np.int8]:
    """Return what each copy carries: the activity around its launch, else what its direction implies (DESIGN 3.3).

    What copies between host and device carry inside the launching call (`at_launch`) stands before their direction.
    """
    by_name = {int(code): book.copy(int(code)).direction for code in np.unique(copies.name)}
    direction = [
        "memset" if kind == Kind.MEMSET else by_name[code]
        for code, kind in zip(copies.name.tolist(), copies.kind.tolist(), strict=True)
    ]
    implied = np.array([OBJECT_CODE[_DIRECTION_OBJECT.get(d, "unknown")] for d in direction], np.int8)
    crossing = np.array([d in ("htod", "dtoh") for d in direction], np.bool_)
    implied = np.where(crossing & (at_launch >= 0), at_launch, implied).astype(np.int8)
    small = (copies.size_bytes >= 0) & (copies.size_bytes <= settings.readout_max_bytes)
    down = np.array([d == "dtoh" for d in direction], np.bool_)
    readout = small & down & (copies.launch != NONE_ID)
    readout[readout] = _blocks_after(timeline, book, copies.launch[readout], copies.end_ns[readout], settings)
    implied[readout] = OBJECT_CODE["host"]
    return np.where(around >= 0, around, implied).astype(np.int8)


def _blocks_after(
    timeline: Timeline,
    book: NameBook,
    launch: NDArray[np.int64],
    copy_end_ns: NDArray[np.int64],
    settings: Settings,
) -> NDArray[np.bool_]:
    """Tell whether the host waits for a copy: its own call does, or the next runtime call of its thread blocks."""
    host = timeline.host
    call = book.call[host.name]
    next_blocks = np.zeros(len(launch), np.bool_)
    for track in np.unique(host.track[launch]).tolist():
        mine = np.flatnonzero(host.track[launch] == track)
        calls = np.flatnonzero((host.kind == Kind.RUNTIME) & (host.track == track))
        # Behind the call, not only after its start: the runtime's call may hold one of the driver.
        place = np.searchsorted(host.start_ns[calls], host.end_ns[launch[mine]])
        following = np.append(calls, -1)[place]
        following = np.where(following == launch[mine], np.append(calls, [-1, -1])[place + 1], following)
        next_blocks[mine] = (following >= 0) & (call[following] == CALL_CODE["sync"])
    long_call = host.end_ns[launch] - host.start_ns[launch] > settings.blocking_copy_min_ns
    return next_blocks | (long_call & (host.end_ns[launch] >= copy_end_ns))


def busy_pieces(row: DeviceRow, recorded: Intervals) -> Pieces:
    """Cut the busy time of a device into pieces with one winning span each.

    On a rung the span that began first wins where several run; on the copy rung the objects take turns in a fixed
    order. A higher rung wins over a lower one.
    """
    taken = Intervals.none()
    parts: list[Pieces] = []
    groups = [np.flatnonzero(row.rung == RUNG_COMPUTE), np.flatnonzero(row.rung == RUNG_COLLECTIVE)]
    on_copy_rung = row.rung == RUNG_COPY
    groups += [np.flatnonzero(on_copy_rung & (row.object == OBJECT_CODE[name])) for name in _COPY_ORDER]
    for group in groups:
        if len(group) == 0:
            continue
        part = _added(row, group, taken, recorded)
        parts.append(part)
        taken = unite(taken, Intervals(part.start_ns, part.end_ns))
    return _joined(parts)


def _added(row: DeviceRow, group: NDArray[np.intp], taken: Intervals, recorded: Intervals) -> Pieces:
    """Return what each span of a group adds to the union of the spans before it, outside what is taken."""
    start_ns, end_ns = row.spans.start_ns[group], row.spans.end_ns[group]
    reach_ns = np.maximum.accumulate(end_ns)
    before_ns = np.concatenate([start_ns[:1], reach_ns[:-1]])
    from_ns = np.maximum(start_ns, before_ns)
    keep = end_ns > from_ns
    group, from_ns, end_ns = group[keep], from_ns[keep], end_ns[keep]
    free = complement(taken, int(recorded.start_ns[0]), int(recorded.end_ns[-1]))
    first = np.searchsorted(free.end_ns, from_ns, side="right")
    last = np.searchsorted(free.start_ns, end_ns, side="left")
    span, hole = expand(first, last)
    n = len(span)
    return Pieces(
        start_ns=np.maximum(from_ns[span], free.start_ns[hole]),
        end_ns=np.minimum(end_ns[span], free.end_ns[hole]),
        rung=row.rung[group[span]],
        object=row.object[group[span]],
        reason=np.full(n, -1, np.int8),
        stage=row.launch_stage[group[span]],
        row=row.rows[group[span]],
        gap=np.full(n, -1, np.int64),
    )


def _joined(parts: list[Pieces]) -> Pieces:
    from longpole.analyses.pieces import join_pieces

    return join_pieces(parts or [empty_pieces()])


def empty_pieces() -> Pieces:
    """Return no pieces."""
    small, large = np.empty(0, np.int8), np.empty(0, np.int64)
    return Pieces(large, large, small, small, small, small, large, large)
