"""Kernels, copies, memsets and rows of synchronisation of one process, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from longpole.readers.nsys.capture import DEVICE_TABLES
from longpole.readers.nsys.database import MISSING
from longpole.timeline.columns import NONE_ID, Kind, SyncKind
from longpole.timeline.placing import overlong_on_stream, strays
from longpole.timeline.tables import DeviceTable, SyncTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longpole.readers.nsys.capture import Capture, Columns
    from longpole.readers.nsys.complaints import Complaints
    from longpole.readers.nsys.names import Names
    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]

_KIND: Final = {
    "KERNEL": Kind.KERNEL,
    "MEMCPY": Kind.COPY,
    "MEMSET": Kind.MEMSET,
    "GRAPH_TRACE": Kind.KERNEL,
}
# `CUpti_ActivityMemcpyKind` and `CUpti_ActivityMemoryKind`, in Kineto's words, so that one set of rules names both.
_DIRECTION: Final = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "HtoD",
    12: "DtoH",
    13: "DtoD",
}
_MEMORY: Final = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
_SYNC: Final = {1: SyncKind.EVENT, 2: SyncKind.STREAM_WAIT, 3: SyncKind.STREAM, 4: SyncKind.CONTEXT}
_NO_STREAM: Final = (1 << 32) - 1
_DEVICE_MAX: Final = 1 << 31
IDLE_VOIDS: Final = ["@/ledger/device/idle_ns", "@/device_span/idle_ns"]


def device_table(
    capture: Capture, process: int | None, names: Names, complaints: Complaints, settings: Settings
) -> DeviceTable:
    """Return what ran on the devices of a process, in the table's order; launches are linked later.

    Args:
        capture: The export.
        process: `globalPid`; None where device rows name no process, and all belong to the one that is here.
        names: Takes the names.
        complaints: Hears of rows that cannot be placed.
        settings: Thresholds of placing.
    """
    parts = [_of_table(capture, kind, process, names, complaints) for kind in DEVICE_TABLES]
    rows = _Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    rows = _placed(rows, names, complaints, settings)
    order = np.lexsort((rows.event, rows.start_ns, rows.device))
    return DeviceTable(
        start_ns=rows.start_ns[order],
        end_ns=rows.end_ns[order],
        name=rows.name[order].astype(np.int32),
        device=rows.device[order].astype(np.int32),
        stream=rows.stream[order],
        kind=rows.kind[order].astype(np.uint8),
        correlation=rows.correlation[order],
        external_id=np.full(len(order), NONE_ID, np.int64),
        size_bytes=rows.size_bytes[order],
        launch=np.full(len(order), NONE_ID, np.int64),
        event=rows.event[order].astype(np.uint32),
    )


class _Rows(NamedTuple):
    """Columns while rows are being placed: `[N]` int64 each."""

    start_ns: Ints
    end_ns: Ints
    name: Ints
    device: Ints
    stream: Ints
    kind: Ints
    correlation: Ints
    size_bytes: Ints
    event: Ints

    def take(self, some: NDArray[np.intp] | NDArray[np.bool_]) -> _Rows:
        return _Rows(*(column[some] for column in self))


def belongs(columns: Columns, process: int | None) -> NDArray[np.bool_]:
    """Tell which rows of a table with `globalPid` belong to a process."""
    pids = columns["globalPid"]
    return np.ones(len(pids), np.bool_) if process is None else (pids == process) | (pids == MISSING)


def _of_table(capture: Capture, kind: str, process: int | None, names: Names, complaints: Complaints) -> _Rows:
    columns = capture.activities[kind]
    if not columns:
        return _Rows(*(np.empty(0, np.int64) for _ in _Rows._fields))
    mine = np.flatnonzero(belongs(columns, process))
    first = capture.first_event(f"CUPTI_ACTIVITY_KIND_{kind}")
    start_ns, end_ns = columns["start"][mine], columns["end"][mine]
    untimed = (start_ns == 0) & (end_ns == 0)
    unusable = (start_ns < 0) | (end_ns < 0)
    backwards = ~unusable & (end_ns < start_ns)
    written = _written_names(capture, kind, columns, mine, names)
    for code, wrong in (
        ("kernel.time.missing", untimed | unusable),
        ("event.negative_duration", backwards),
    ):
        complaints.rows(code, "warn", first + mine[wrong], [names.texts[n] for n in written[wrong][:1]], IDLE_VOIDS)
    good = ~(untimed | unusable | backwards)
    mine, written = mine[good], written[good]
    device = columns["deviceId"][mine]
    sizes = columns["bytes"][mine] if "bytes" in columns else np.full(len(mine), NONE_ID, np.int64)
    return _Rows(
        columns["start"][mine],
        columns["end"][mine],
        written,
        np.where((device >= 0) & (device < _DEVICE_MAX), device, 0),
        _none_if_missing(columns["streamId"][mine]),
        np.full(len(mine), int(_KIND[kind]), np.int64),
        _none_if_missing(columns["correlationId"][mine]),
        np.where(sizes >= 0, sizes, NONE_ID),
        first + mine,
    )


def _written_names(capture: Capture, kind: str, columns: Columns, mine: NDArray[np.intp], names: Names) -> Ints:
    """Return the name codes of rows of a device table."""
    if kind == "KERNEL":
        ids = np.where(columns["demangledName"] == MISSING, columns["shortName"], columns["demangledName"])[mine]
        return _coded(ids, lambda key: names.code(capture.strings.get(key, "")))
    if kind == "MEMSET":
        return _coded(columns["memKind"][mine], lambda key: names.code(f"Memset ({_MEMORY.get(key, 'Device')})"))
    if kind == "GRAPH_TRACE":
        return _coded(
            columns["graphId"][mine], lambda key: names.code(f"CUDA graph {key}" if key >= 0 else "CUDA graph")
        )
    packed = _packed(columns["copyKind"][mine], columns["srcKind"][mine], columns["dstKind"][mine])
    return _coded(packed, lambda key: names.code(_copy_name(key)))


_PART_BITS: Final = 8


def _packed(*parts: Ints) -> Ints:
    """Make one number of small ones; what is out of range becomes the last small number, which has no name."""
    most = (1 << _PART_BITS) - 1
    packed = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        packed = (packed << _PART_BITS) | np.where((part >= 0) & (part < most), part, most)
    return packed


def _copy_name(packed: int) -> str:
    most = (1 << _PART_BITS) - 1
    copy, source, target = (packed >> shift & most for shift in (2 * _PART_BITS, _PART_BITS, 0))
    direction = _DIRECTION.get(copy, "Unknown")
    return f"Memcpy {direction} ({_MEMORY.get(source, 'Unknown')} -> {_MEMORY.get(target, 'Unknown')})"


def _coded(keys: Ints, code_of: Callable[[int], int]) -> Ints:
    """Map each distinct key once."""
    distinct, place = np.unique(keys, return_inverse=True)
    codes = np.array([code_of(key) for key in distinct.tolist()], np.int64)
    return codes[place.reshape(-1)] if len(distinct) else np.empty(0, np.int64)


def _none_if_missing(values: Ints) -> Ints:
    return np.where((values < 0) | (values == _NO_STREAM), NONE_ID, values)


def _placed(rows: _Rows, names: Names, complaints: Complaints, settings: Settings) -> _Rows:
    """Leave out what lies absurdly far from the record, and cut what outlasts the work behind it."""
    far = strays(rows.start_ns, rows.end_ns, settings)
    complaints.rows(
        "event.time.stray", "warn", rows.event[far], [names.texts[n] for n in rows.name[far][:1]], IDLE_VOIDS
    )
    rows = rows.take(~far)
    if len(rows.start_ns) == 0:
        return rows
    lanes = np.unique(np.stack([rows.device, rows.stream]), axis=1, return_inverse=True)[1].reshape(-1)
    found = overlong_on_stream(lanes.astype(np.int32), rows.start_ns, rows.end_ns, rows.correlation, settings)
    if len(found.row):
        first = [names.texts[n] for n in rows.name[found.row][:1]]
        complaints.rows("kernel.duration.impossible", "warn", rows.event[found.row], first, IDLE_VOIDS)
        rows.end_ns[found.row] = found.end_ns
    return rows


def sync_table(capture: Capture, process: int | None) -> SyncTable:
    """Return what rows of synchronisation say: who waits for which stream or event."""
    columns = capture.activities["SYNCHRONIZATION"]
    if not columns:
        return SyncTable.empty()
    first = capture.first_event("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")
    usable = belongs(columns, process) & (columns["start"] >= 0) & (columns["end"] >= columns["start"])
    mine = np.flatnonzero(usable)
    mine = mine[np.lexsort((mine, columns["start"][mine]))]
    kind = np.array([_SYNC.get(key, SyncKind.OTHER) for key in columns["syncType"][mine].tolist()], np.uint8)
    stream, device = _none_if_missing(columns["streamId"][mine]), columns["deviceId"][mine]
    recorded = _records(capture, process, columns, mine)
    return SyncTable(
        start_ns=columns["start"][mine],
        end_ns=columns["end"][mine],
        kind=kind,
        device=np.where((device >= 0) & (device < _DEVICE_MAX), device, NONE_ID).astype(np.int32),
        stream=np.where(kind == SyncKind.EVENT, NONE_ID, stream),
        waited_stream=recorded[1],
        correlation=_none_if_missing(columns["correlationId"][mine]),
        record=recorded[0],
        event=(first + mine).astype(np.uint32),
    )


def _records(capture: Capture, process: int | None, columns: Columns, mine: NDArray[np.intp]) -> tuple[Ints, Ints]:
    """Return correlation and stream of the call that recorded each event, NONE_ID where no table says it.

    An event may be recorded many times; `eventSyncId` numbers the recordings.
    """
    nothing = np.full(len(mine), NONE_ID, np.int64)
    events = capture.activities["CUDA_EVENT"]
    if not events or len(mine) == 0:
        return nothing, nothing
    of_event = belongs(events, process) & (events["eventSyncId"] > 0)
    by_number = {
        number: (correlation, stream)
        for number, correlation, stream in zip(
            events["eventSyncId"][of_event].tolist(),
            _none_if_missing(events["correlationId"][of_event]).tolist(),
            _none_if_missing(events["streamId"][of_event]).tolist(),
            strict=True,
        )
    }
    found = [by_number.get(number, (NONE_ID, NONE_ID)) for number in columns["eventSyncId"][mine].tolist()]
    return np.array([one[0] for one in found], np.int64), np.array([one[1] for one in found], np.int64)
