"""What is read of an export: columns of its tables, texts, and what it says of the machine.

Tables are written where there is something to write, and columns move between versions (3.24 to 3.25): whatever is
missing is empty here. Times are nanoseconds since the session began.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from longpole.errors import NotATraceError
from longpole.readers.nsys.database import MISSING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longpole.readers.nsys.database import Database

    Ints: TypeAlias = NDArray[np.int64]
    Columns: TypeAlias = dict[str, Ints]

_CUPTI: Final = "CUPTI_ACTIVITY_KIND_"
_PLACE: Final = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
_KINDS: Final = {
    "KERNEL": (*_PLACE, "demangledName", "shortName", "graphNodeId"),
    "MEMCPY": (*_PLACE, "bytes", "copyKind", "srcKind", "dstKind"),
    "MEMSET": (*_PLACE, "bytes", "memKind"),
    "GRAPH_TRACE": (*_PLACE, "graphId"),
    "RUNTIME": ("start", "end", "globalTid", "correlationId", "nameId"),
    "SYNCHRONIZATION": (*_PLACE, "syncType", "eventId", "eventSyncId"),
    "CUDA_EVENT": ("streamId", "correlationId", "globalPid", "eventId", "eventSyncId"),
    "OVERHEAD": ("start", "end", "globalTid", "nameId", "overheadType"),
}
_OS_CALLS: Final = ("start", "end", "globalTid", "nameId")
_RANGE_CELLS: Final = ("start", "end", "eventType", "globalTid", "endGlobalTid", "text", "textId", "jsonText")
DEVICE_TABLES: Final = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
PUSH_POP: Final = 59  # ENUM_NSYS_EVENT_TYPE
START_END: Final = 60
PID_MASK: Final = ~0xFFFFFF  # globalTid = hardware (8) | machine (8) | process (24) | thread (24)


class Range(NamedTuple):
    """An annotation: a row of NVTX_EVENTS with a beginning.

    Attributes:
        start_ns, end_ns: MISSING for an end that was not reached.
        kind: PUSH_POP, START_END.
        thread, end_thread: As `globalTid`.
        name: Resolved.
        payload: What was attached to it: stored bytes, or text in JSON; None for nothing.
        row: Its row in the table.
    """

    start_ns: int
    end_ns: int
    kind: int
    thread: int
    end_thread: int
    name: str
    payload: bytes | str | None
    row: int


@dataclass(slots=True)
class Capture:
    """An export.

    Attributes:
        shown: The file, as it was given.
        activities: Columns by the end of the table's name: `KERNEL`, `RUNTIME`, …; a table that is not there has none.
        os_calls: Calls of the operating system.
        ranges: Annotations by process (`globalPid`), in the table's order.
        strings: Texts by id.
        threads: Names of threads by `globalTid`.
        processes: Names of processes by `globalPid`.
        devices: Model by device, per process where the export says whose numbers they are (`globalPid`'s process).
        device_bytes: Memory likewise.
        payload_fields: By (domain, schema): fields by name, each as (offset, type).
        session_epoch_ns: When the session began, None where it is not said.
        host: Name of the machine.
        environment: Versions and options; nothing secret.
        schema_version: Of the export.
        rows: Rows of each table that was read, by the table's name, in the order of reading.
        damaged: Tables that could be read in part, and why.
    """

    shown: str
    activities: dict[str, Columns] = field(default_factory=dict)
    os_calls: Columns = field(default_factory=dict)
    ranges: dict[int, list[Range]] = field(default_factory=dict)
    strings: dict[int, str] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)
    devices: dict[tuple[int, int], str] = field(default_factory=dict)
    device_bytes: dict[tuple[int, int], int] = field(default_factory=dict)
    payload_fields: dict[tuple[int, int], dict[str, tuple[int, int]]] = field(default_factory=dict)
    session_epoch_ns: int | None = None
    host: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    schema_version: str = ""
    rows: dict[str, int] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)

    def ranges_of(self, process: int | None) -> list[Range]:
        """Return the annotations of a process, of all where None."""
        if process is None:
            return sorted((one for ranges in self.ranges.values() for one in ranges), key=lambda one: one.row)
        return self.ranges.get(process, [])

    def first_event(self, table: str) -> int:
        """Return the number of a table's first row, where the rows of all tables are counted through."""
        before = 0
        for name, count in self.rows.items():
            if name == table:
                return before
            before += count
        return before


def read_capture(database: Database) -> Capture:
    """Read what is needed of an export.

    Raises:
        NotATraceError: The database is none of Nsight Systems, or holds no event.
    """
    capture = Capture(database.shown)
    if not any(table.startswith(_CUPTI) or table == "NVTX_EVENTS" for table in database.tables()):
        found = "an SQLite database without the tables of Nsight Systems"
        raise NotATraceError.at(database.shown, None, found, "Export a report: nsys export --type sqlite REPORT")
    capture.strings = {
        key: value
        for key, value in database.cells("StringIds", ("id", "value"))
        if isinstance(key, int) and isinstance(value, str)
    }
    for kind, columns in _KINDS.items():
        capture.activities[kind] = database.numbers(_CUPTI + kind, columns) if _CUPTI + kind in database else {}
        capture.rows[_CUPTI + kind] = _length(capture.activities[kind])
    capture.os_calls = database.numbers("OSRT_API", _OS_CALLS) if "OSRT_API" in database else {}
    capture.rows["OSRT_API"] = _length(capture.os_calls)
    _read_ranges(database, capture)
    _read_machine(database, capture)
    capture.damaged = dict(database.damaged)
    if not sum(capture.rows.values()):
        hint = "Record CUDA and NVTX: nsys profile --trace=cuda,nvtx"
        raise NotATraceError.at(database.shown, None, "an export of Nsight Systems without a timed event", hint)
    return capture


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def _read_ranges(database: Database, capture: Capture) -> None:
    cells = (*_RANGE_CELLS, "binaryData")
    rows = database.cells("NVTX_EVENTS", cells)
    capture.rows["NVTX_EVENTS"] = len(rows)
    for number, (start, end, kind, thread, end_thread, text, text_id, text_of_json, blob) in enumerate(rows):
        if kind not in (PUSH_POP, START_END) or not isinstance(start, int) or not isinstance(thread, int):
            continue
        if not isinstance(text, str):
            text = capture.strings.get(text_id, "") if isinstance(text_id, int) else ""  # noqa: PLW2901
        attached = blob if isinstance(blob, bytes) else text_of_json if isinstance(text_of_json, str) else None
        capture.ranges.setdefault(thread & PID_MASK, []).append(
            Range(
                start,
                end if isinstance(end, int) else MISSING,
                kind,
                thread,
                end_thread if isinstance(end_thread, int) else thread,
                text,
                attached,
                number,
            )
        )
    for domain, schema, name, offset, kind in database.cells(
        "NVTX_PAYLOAD_SCHEMA_ENTRIES", ("domainId", "schemaId", "name", "offset", "type")
    ):
        if isinstance(domain, int) and isinstance(schema, int) and isinstance(name, str) and isinstance(kind, int):
            fields = capture.payload_fields.setdefault((domain, schema), {})
            fields[name] = (offset if isinstance(offset, int) else 0, kind)


def _read_machine(database: Database, capture: Capture) -> None:
    for thread, name in database.cells("ThreadNames", ("globalTid", "nameId")):
        if isinstance(thread, int) and isinstance(name, int):
            capture.threads[thread] = capture.strings.get(name, "")
    for process, name in database.cells("PROCESSES", ("globalPid", "name")):
        if isinstance(process, int) and isinstance(name, str):
            capture.processes[process] = name
    for (epoch_ns,) in database.cells("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))[:1]:
        if isinstance(epoch_ns, int) and 0 < epoch_ns < 1 << 62:
            capture.session_epoch_ns = epoch_ns
    _read_devices(database, capture)
    exported = dict(_texts(database, "META_DATA_EXPORT"))
    capture.schema_version = _plain(exported.get("EXPORT_SCHEMA_VERSION", ""))
    if version := _plain(exported.get("EXPORT_PRODUCT_VERSION", "")):
        capture.environment["nsys_version"] = version
    # The environment of the recording's programs is in there too (DeviceEnvironment): it stays there.
    machine = dict(_texts(database, "TARGET_INFO_SYSTEM_ENV"))
    capture.host = machine.get("Hostname", "")
    if driver := _plain(machine.get("NvDriverVersion", "")):
        capture.environment["driver_version"] = driver


def _texts(database: Database, table: str) -> list[tuple[str, str]]:
    rows = database.cells(table, ("name", "value"))
    return [(name, value) for name, value in rows if isinstance(name, str) and isinstance(value, str)]


_VERSION: Final = re.compile(r"[\w.+-]{1,32}")


def _plain(text: str) -> str:
    return text if _VERSION.fullmatch(text) else ""


def _read_devices(database: Database, capture: Capture) -> None:
    """Tell the model of each device by the number that a process gives it, else by the machine's."""
    models: dict[int, tuple[str, int]] = {}
    for number, name, size in database.cells("TARGET_INFO_GPU", ("id", "name", "totalMemory")):
        if isinstance(number, int) and isinstance(name, str):
            models[number] = name, size if isinstance(size, int) and 0 < size < 1 << 62 else 0
    seen = [
        (process, device, model)
        for model, device, process in database.cells("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"))
        if isinstance(model, int) and isinstance(device, int) and isinstance(process, int)
    ]
    for process, device, model in [*((0, number, number) for number in models), *seen]:
        name, size = models.get(model, ("", 0))
        if name:
            capture.devices[process, device] = name
        if size:
            capture.device_bytes[process, device] = size
