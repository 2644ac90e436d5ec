"""Calls and annotations on the threads of one process, as a table, and what annotations say beside their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.readers.nsys.annotations import EVALUATE, read_text
from longpole.readers.nsys.capture import PID_MASK, PUSH_POP
from longpole.readers.nsys.database import MISSING
from longpole.readers.nsys.names import shown
from longpole.readers.nsys.nccl import Communicators, payload_of
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.placing import strays
from longpole.timeline.tables import FlowTable, HostTable, Sparse, Track

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.readers.nsys.annotations import Said
    from longpole.readers.nsys.capture import Capture, Columns, Range
    from longpole.readers.nsys.complaints import Complaints
    from longpole.readers.nsys.names import Names
    from longpole.settings import Settings
    from longpole.timeline.tables import CollectiveArgs

    Ints: TypeAlias = NDArray[np.int64]

_VERSION: Final = re.compile(r"_v\d+$")  # cudaLaunchKernel_v7000
_THREAD_BITS: Final = 0xFFFFFF
_PROCESS_SHIFT: Final = 24
_THREAD_NAME_MAX: Final = 128
FORWARD_TO_BACKWARD: Final = "fwdbwd"  # the category that Kineto gives these arrows


@dataclass(frozen=True, slots=True)
class HostSide:
    """What the threads of a process did.

    Attributes:
        table: Their spans.
        aside: What the profiler itself took.
        tracks: The threads.
        shapes: Shapes of operators, by row of the table.
        backward: Rows of operators that run a backward function.
        flows: From forward operators to the backward functions they made.
        collectives: What NCCL says of its calls.
    """

    table: HostTable
    aside: HostTable
    tracks: tuple[Track, ...]
    shapes: Sparse
    backward: Ints
    flows: FlowTable
    collectives: tuple[CollectiveArgs, ...]


@dataclass(slots=True)
class _Rows:
    """Columns before sorting: `[N]` int64 each; `said` is the place among the annotations, NONE_ID for calls."""

    start_ns: Ints
    end_ns: Ints
    name: Ints
    thread: Ints
    kind: Ints
    correlation: Ints
    event: Ints
    said: Ints

    def take(self, some: NDArray[np.intp] | NDArray[np.bool_]) -> _Rows:
        return _Rows(*(getattr(self, name)[some] for name in _FIELDS))


_FIELDS: Final = tuple(_Rows.__dataclass_fields__)


def host_side(
    capture: Capture, process: int | None, names: Names, complaints: Complaints, settings: Settings
) -> HostSide:
    """Return what the threads of a process did.

    Args:
        capture: The export.
        process: `globalPid`, None for all that is there.
        names: Takes the names.
        complaints: Hears of rows that cannot be placed.
        settings: Thresholds of placing.
    """
    ranges = capture.ranges_of(process)
    texts = [read_text(one.name) for one in ranges]
    calls = [
        _calls(capture, ("CUPTI_ACTIVITY_KIND_RUNTIME", capture.activities["RUNTIME"]), process, names, complaints),
        _calls(capture, ("OSRT_API", capture.os_calls), process, names, complaints),
    ]
    rows = _joined([*calls, _annotations(capture, (ranges, texts), names, complaints)])
    far = strays(rows.start_ns, rows.end_ns, settings)
    complaints.rows("event.time.stray", "warn", rows.event[far], [names.texts[n] for n in rows.name[far][:1]], [])
    rows = rows.take(~far)
    overhead = _calls(
        capture, ("CUPTI_ACTIVITY_KIND_OVERHEAD", capture.activities["OVERHEAD"]), process, names, complaints
    )
    threads = np.unique(np.concatenate([rows.thread, overhead.thread]))
    rows, track = _ordered(rows, threads)
    overhead, aside_track = _ordered(overhead, threads)
    table = _table(rows, track)
    places = np.flatnonzero(rows.said != NONE_ID)
    said_at = rows.said[places].tolist()
    read = [texts[said] for said in said_at]
    is_backward = np.array([said.name.startswith(EVALUATE) for said in read], np.bool_)
    return HostSide(
        table=table,
        aside=_table(overhead, aside_track),
        tracks=tuple(_track(int(thread), capture) for thread in threads),
        shapes=_sparse(places, [said.sizes for said in read]),
        backward=places[is_backward].astype(np.int64) if len(places) else np.empty(0, np.int64),
        flows=_flows(table, places, [said.sequence for said in read], is_backward, names),
        collectives=_collectives(ranges, dict(zip(said_at, places.tolist(), strict=True)), capture),
    )


def _collectives(ranges: list[Range], row_of: dict[int, int], capture: Capture) -> tuple[CollectiveArgs, ...]:
    """Return what NCCL says of its calls; communicators are heard of first, whenever they were created."""
    heard = Communicators()
    payloads = {number: payload_of(one, capture) for number, one in enumerate(ranges) if one.payload is not None}
    for payload in payloads.values():
        heard.hear(payload)
    said = (
        heard.args(ranges[number].name, row_of[number], payload)
        for number, payload in payloads.items()
        if number in row_of
    )
    return tuple(args for args in said if args is not None)


def _calls(
    capture: Capture, table: tuple[str, Columns], process: int | None, names: Names, complaints: Complaints
) -> _Rows:
    """Take the rows of a table of calls that belong to a process and have a time."""
    name, columns = table
    if not columns:
        return _Rows(*(np.empty(0, np.int64) for _ in _FIELDS))
    first = capture.first_event(name)
    thread = columns["globalTid"]
    mine = np.flatnonzero(np.ones(len(thread), np.bool_) if process is None else thread & PID_MASK == process)
    start_ns, end_ns = columns["start"][mine], columns["end"][mine]
    untimed, open_ended = start_ns < 0, (start_ns >= 0) & (end_ns == MISSING)
    backwards = ~untimed & ~open_ended & (end_ns < start_ns)
    for code, wrong in (
        ("event.no_timestamp", untimed),
        ("event.unfinished", open_ended),
        ("event.negative_duration", backwards),
    ):
        complaints.rows(code, "note", first + mine[wrong], [], [])
    mine = mine[~(untimed | open_ended | backwards)]
    kind = Kind.OVERHEAD if name.endswith("OVERHEAD") else Kind.OTHER if name == "OSRT_API" else Kind.RUNTIME
    distinct, place = np.unique(columns["nameId"][mine], return_inverse=True)
    codes = np.array(
        [names.code(_VERSION.sub("", capture.strings.get(key, ""))) for key in distinct.tolist()], np.int64
    )
    correlation = columns["correlationId"][mine] if "correlationId" in columns else np.full(len(mine), NONE_ID)
    return _Rows(
        columns["start"][mine],
        columns["end"][mine],
        codes[place.reshape(-1)] if len(mine) else np.empty(0, np.int64),
        thread[mine],
        np.full(len(mine), int(kind), np.int64),
        np.where(correlation > 0, correlation, NONE_ID).astype(np.int64),
        first + mine,
        np.full(len(mine), NONE_ID, np.int64),
    )


def _annotations(capture: Capture, told: tuple[list[Range], list[Said]], names: Names, complaints: Complaints) -> _Rows:
    """Make rows of the annotations that can stand on one thread.

    A range that was started on one thread and ended on another, or that lies across the borders of its thread's
    others, has no place among them.
    """
    ranges, texts = told
    first = capture.first_event("NVTX_EVENTS")
    crossing = _crossing(ranges)
    unfinished = [one.row for one in ranges if one.end_ns == MISSING]
    astray = [ranges[number].row for number in sorted(crossing)]
    for code, rows in (("event.unfinished", unfinished), ("nsys.range.crossing", astray)):
        complaints.rows(code, "note", first + np.array(rows, np.int64), _first_name(ranges, rows), [])
    columns = np.array(
        [
            (one.start_ns, one.end_ns, names.code(text.name), one.thread, text.kind, NONE_ID, first + one.row, number)
            for number, (one, text) in enumerate(zip(ranges, texts, strict=True))
            if 0 <= one.start_ns <= one.end_ns and number not in crossing
        ],
        np.int64,
    ).reshape(-1, len(_FIELDS))
    return _Rows(*(np.ascontiguousarray(column) for column in columns.T))


def _first_name(ranges: list[Range], rows: list[int]) -> list[str]:
    return [next(one.name for one in ranges if one.row == rows[0])] if rows else []


def _crossing(ranges: list[Range]) -> set[int]:
    """Find the started-and-ended ranges that cross another of their thread, or change threads."""
    loose = {number for number, one in enumerate(ranges) if one.kind != PUSH_POP and one.end_ns != MISSING}
    astray = {number for number in loose if ranges[number].end_thread != ranges[number].thread}
    threads = {ranges[number].thread for number in loose}
    for thread in threads:
        mine = [number for number, one in enumerate(ranges) if one.thread == thread and one.end_ns != MISSING]
        mine = sorted(set(mine) - astray, key=lambda number: (ranges[number].start_ns, -ranges[number].end_ns))
        open_: list[int] = []
        for number in mine:
            while open_ and ranges[open_[-1]].end_ns <= ranges[number].start_ns:
                open_.pop()
            if open_ and ranges[number].end_ns > ranges[open_[-1]].end_ns:
                outer = open_[-1]
                astray.add(number if number in loose else outer)
                if number in loose:
                    continue
                open_.pop()
            open_.append(number)
    return astray


def _joined(parts: list[_Rows]) -> _Rows:
    return _Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))


def _ordered(rows: _Rows, threads: Ints) -> tuple[_Rows, Ints]:
    """Order rows by thread, start and the longer one first; return the threads' places too."""
    track = np.searchsorted(threads, rows.thread)
    order = np.lexsort((rows.event, -rows.end_ns, rows.start_ns, track))
    return rows.take(order), track[order]


def _table(rows: _Rows, track: Ints) -> HostTable:
    return HostTable(
        start_ns=rows.start_ns,
        end_ns=rows.end_ns,
        name=rows.name.astype(np.int32),
        track=track.astype(np.int32),
        kind=rows.kind.astype(np.uint8),
        correlation=rows.correlation,
        external_id=np.full(len(track), NONE_ID, np.int64),
        event=rows.event.astype(np.uint32),
    )


def _track(thread: int, capture: Capture) -> Track:
    name = shown(capture.threads.get(thread, ""))[:_THREAD_NAME_MAX]
    return Track(thread >> _PROCESS_SHIFT & _THREAD_BITS, thread & _THREAD_BITS, name)


def _sparse(places: NDArray[np.intp], texts: list[str]) -> Sparse:
    having = [number for number, text in enumerate(texts) if text]
    if not having:
        return Sparse.empty()
    distinct = sorted({texts[number] for number in having})
    codes = {text: code for code, text in enumerate(distinct)}
    values = np.array([codes[texts[number]] for number in having], np.int32)
    return Sparse(places[having].astype(np.int64), values, tuple(distinct))


def _flows(
    table: HostTable, places: NDArray[np.intp], sequences: list[int | None], backward: NDArray[np.bool_], names: Names
) -> FlowTable:
    """Draw arrows from the first forward operator of a sequence number to the backward function that bears it."""
    forward: dict[int, int] = {}
    pairs: list[tuple[int, int, int]] = []
    for place, sequence, is_target in sorted(
        zip(places.tolist(), sequences, backward.tolist(), strict=True), key=lambda one: int(table.start_ns[one[0]])
    ):
        if sequence is None:
            continue
        if is_target and sequence in forward and table.track[forward[sequence]] != table.track[place]:
            pairs.append((sequence, forward.pop(sequence), place))
        elif not is_target:
            forward.setdefault(sequence, place)
    if not pairs:
        return FlowTable.empty()
    ends = np.array([row for _, source, target in pairs for row in (source, target)], np.int64)
    return FlowTable(
        id=np.repeat(np.array([sequence for sequence, _, _ in pairs], np.int64), 2),
        time_ns=table.start_ns[ends],
        track=table.track[ends],
        is_target=np.tile(np.array([False, True]), len(pairs)),
        category=np.full(len(ends), names.code(FORWARD_TO_BACKWARD), np.int32),
    )
