"""Exports of Nsight Systems: databases with the tables of version 3.25, written row by row or from a Kineto trace."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

_MACHINE: Final = 281474976710656  # hardware id 1, as exports have it
_TABLES: Final = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER",
    "TARGET_INFO_GPU": "vmId INTEGER, id INTEGER, name TEXT, totalMemory INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT",
    "ThreadNames": "nameId INTEGER, priority INTEGER, globalTid INTEGER",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,"
        " globalPid INTEGER, demangledName INTEGER, shortName INTEGER, graphNodeId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,"
        " globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,"
        " globalPid INTEGER, value INTEGER, bytes INTEGER, memKind INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,"
        " globalPid INTEGER, graphId INTEGER, graphExecId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER,"
        " returnValue INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,"
        " globalPid INTEGER, syncType INTEGER, eventId INTEGER, eventSyncId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, eventId INTEGER,"
        " eventSyncId INTEGER"
    ),
    "OSRT_API": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, nameId INTEGER",
    "NVTX_EVENTS": (
        "start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, text TEXT, globalTid INTEGER,"
        " endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, jsonText TEXT, binaryData BLOB"
    ),
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": (
        "domainId INTEGER, schemaId INTEGER, idx INTEGER, flags INTEGER, type INTEGER, name TEXT, description TEXT,"
        " arrayOrUnionDetail INTEGER, offset INTEGER"
    ),
}
_COPY: Final = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "PtoP": 10}
_MEMORY: Final = {"Pageable": 0, "Pinned": 1, "Device": 2}
_COPY_NAME: Final = re.compile(r"Memcpy (\w+) \((\w+) -> (\w+)\)")
NCCL_DOMAIN: Final = 1
_CREATE: Final = 16777218
_MOVE: Final = 16777220
_FIELDS: Final = {
    _CREATE: (("NCCL communicator ID", 18, 0), ("No. of ranks", 5, 8), ("Rank", 5, 12), ("CUDA device", 5, 16)),
    _MOVE: (("NCCL communicator ID", 18, 0), ("Message size [bytes]", 22, 8)),
}


def process_id(pid: int) -> int:
    """Return the `globalPid` of a process."""
    return _MACHINE | pid << 24


@dataclass
class Export:
    """Rows of an export by table; times in nanoseconds since the session began."""

    epoch_ns: int = 1_700_000_000_000_000_000
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _strings: dict[str, int] = field(default_factory=dict)

    def add(self, table: str, **cells: Any) -> None:
        """Add a row; cells that are not given are NULL."""
        self.rows.setdefault(table, []).append(cells)

    def string(self, text: str) -> int:
        """Return the id of a text."""
        if text not in self._strings:
            self._strings[text] = len(self._strings)
            self.add("StringIds", id=self._strings[text], value=text)
        return self._strings[text]

    def kernel(self, name: str, start: int, end: int, correlation: int, **more: Any) -> None:
        """Add a kernel; `pid`, `device` and `stream` besides."""
        where = _where(correlation, more)
        code = self.string(name)
        self.add(
            "CUPTI_ACTIVITY_KIND_KERNEL", start=start, end=end, demangledName=code, shortName=code, **(where | more)
        )

    def copy(self, way: str, start: int, end: int, correlation: int, **more: Any) -> None:
        """Add a copy; `way` as in `HtoD (Pinned -> Device)`; `bytes` besides."""
        found = _COPY_NAME.match(f"Memcpy {way}")
        assert found
        kinds = {"copyKind": _COPY[found[1]], "srcKind": _MEMORY[found[2]], "dstKind": _MEMORY[found[3]]}
        where = _where(correlation, more)
        self.add("CUPTI_ACTIVITY_KIND_MEMCPY", start=start, end=end, **(where | kinds | more))

    def call(
        self, name: str, start: int, end: int, correlation: int, *, pid: int = 100, tid: int | None = None
    ) -> None:
        """Add a call of the runtime, with the version that exports put behind its name."""
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=start,
            end=end,
            globalTid=process_id(pid) | (pid if tid is None else tid),
            correlationId=correlation,
            nameId=self.string(f"{name}_v7000"),
        )

    def range(
        self, text: str | None, start: int, end: int | None, *, pid: int = 100, tid: int | None = None, **more: Any
    ) -> None:
        """Add an annotation, pushed and popped unless `eventType` says otherwise."""
        thread = process_id(pid) | (pid if tid is None else tid)
        cells = {"start": start, "end": end, "eventType": 59, "text": text, "globalTid": thread, "domainId": 0}
        self.add("NVTX_EVENTS", **(cells | more))

    def nccl(self, name: str, start: int, end: int, payload: tuple[int, ...], **more: Any) -> None:
        """Add an annotation of NCCL with its payload as a blob: (communicator, ranks, rank, device) or (…, bytes)."""
        schema, form = (_CREATE, "<Q3i") if len(payload) == 4 else (_MOVE, "<2Q")
        data = struct.pack(form, *payload)
        blob = struct.pack("<4Q", NCCL_DOMAIN, schema, len(data), 32) + data
        self.range(None, start, end, textId=self.string(name), domainId=NCCL_DOMAIN, binaryData=blob, **more)

    def write(self, path: Path) -> Path:
        """Write the database; tables without a row are not there, as exports have it."""
        if any(row.get("binaryData") for row in self.rows.get("NVTX_EVENTS", ())):
            for schema, fields in _FIELDS.items():
                for name, kind, offset in fields:
                    entry = {"domainId": NCCL_DOMAIN, "schemaId": schema, "type": kind, "name": name}
                    self.add("NVTX_PAYLOAD_SCHEMA_ENTRIES", **entry, offset=offset)
        self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=self.epoch_ns)
        self.add("META_DATA_EXPORT", name="EXPORT_SCHEMA_VERSION", value="3.25.0")
        with sqlite3.connect(path) as connection:
            for table, rows in self.rows.items():
                connection.execute(f"CREATE TABLE {table} ({_TABLES[table]})")
                for row in rows:
                    marks = ", ".join("?" * len(row))
                    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", [*row.values()])
        connection.close()
        return path


def _where(correlation: int, more: dict[str, Any]) -> dict[str, Any]:
    """Take where a span ran out of what is given of it."""
    return {
        "deviceId": more.pop("device", 0),
        "contextId": 1,
        "streamId": more.pop("stream", 7),
        "correlationId": correlation,
        "globalPid": process_id(more.pop("pid", 100)),
    }


def export_of_kineto(files: list[Path]) -> Export:
    """Write what Kineto traces of one host say as Nsight Systems would have: one process a file, on one clock.

    Python frames, annotations on devices and arrows have no counterpart and are left out.
    """
    traces = [
        json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()) for path in files
    ]
    events = [trace["traceEvents"] if isinstance(trace, dict) else trace for trace in traces]
    first_ns = min(_ns(event["ts"]) for some in events for event in some if event.get("ph") == "X")
    export = Export(epoch_ns=first_ns)
    for place, some in enumerate(events):
        spans = sorted((e for e in some if e.get("ph") == "X"), key=lambda e: (_ns(e["ts"]), -_ns(e["dur"])))
        sizes = _communicators(export, spans, pid=5000 + place)
        for number, event in enumerate(spans):
            start = _ns(event["ts"]) - first_ns
            _add_event(export, event, (start, start + _ns(event["dur"])), (5000 + place, number), sizes)
    return export


def _ns(value_us: Any) -> int:
    return int(Decimal(str(value_us)) * 1000)


def _communicators(export: Export, spans: list[dict[str, Any]], pid: int) -> dict[str, int]:
    """Add the creation of each group's communicator, and return their ids."""
    found: dict[str, int] = {}
    for event in spans:
        args = event.get("args", {})
        if "Collective name" in args and args["Process Group Name"] not in found:
            name = str(args["Process Group Name"])
            found[name] = 0xABC0 + len(found)
            export.nccl("ncclCommInitRankConfig", 0, 0, (found[name], args["Group size"], pid - 5000, 0), pid=pid)
    return found


def _add_event(
    export: Export, event: dict[str, Any], span: tuple[int, int], where: tuple[int, int], groups: dict[str, int]
) -> None:
    category, args, (pid, number) = event["cat"], event.get("args", {}), where
    tid = pid if event["tid"] == event["pid"] else event["tid"]
    if category in ("kernel", "gpu_memcpy"):
        place = {"pid": pid, "device": args["device"], "stream": args["stream"]}
        if category == "kernel":
            export.kernel(event["name"], *span, args["correlation"], **place)
        else:
            way = event["name"].removeprefix("Memcpy ")
            export.copy(way, *span, args["correlation"], bytes=args["bytes"], **place)
    elif category == "cuda_runtime":
        export.call(event["name"], *span, args["correlation"], pid=pid, tid=tid)
    elif "Collective name" in args:
        n_bytes = args["In msg nelems"] * {"Float": 4, "BFloat16": 2, "Half": 2}[args["dtype"]]
        group = groups[str(args["Process Group Name"])]
        name = {"allreduce": "ncclAllReduce"}[args["Collective name"]]
        export.nccl(name, *span, (group, n_bytes), pid=pid, tid=tid)
    elif category == "cpu_op":
        sizes = f", sizes = {json.dumps(args['Input Dims'])}" if "Input Dims" in args else ""
        export.range(f"{event['name']}, op_id = {number}{sizes}", *span, pid=pid, tid=tid)
    elif category == "user_annotation":
        export.range(event["name"], *span, pid=pid, tid=tid)
