"""From the columns of one file to the timelines of the ranks in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.readers.kineto.begin_end import pair_edges
from longpole.readers.kineto.complaints import Complaints
from longpole.readers.kineto.elsewhere import claim_unknown, device_type
from longpole.readers.kineto.identity import environment_of, find_identity, version_of
from longpole.readers.kineto.kinds import row_kinds
from longpole.readers.kineto.links import link_launches
from longpole.readers.kineto.memory import device_bytes, memory_table
from longpole.readers.kineto.merged import find_shares
from longpole.readers.kineto.place import place
from longpole.readers.kineto.rows import Rows
from longpole.readers.spelling import normal_id, show_controls
from longpole.records.credentials import redact
from longpole.timeline.columns import DEVICE_KINDS, HOST_KINDS, NONE_ID, Kind, SyncKind
from longpole.timeline.tables import CollectiveArgs, DeviceTable, FlowTable, HostTable, Sparse, SyncTable, Track
from longpole.timeline.timeline import Source, Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.readers.kineto.raw import RawTrace
    from longpole.readers.kineto.read import Break
    from longpole.settings import Settings

_SHOWN_MAX: Final = 128  # characters of a thread's or device's name
_ASIDE_KINDS: Final = (Kind.SYNC_ROW, Kind.DEVICE_ANNOTATION, Kind.OVERHEAD)


def lower(raw: RawTrace, breaks: list[Break], path: str, size_bytes: int, settings: Settings) -> list[Timeline]:
    """Build the timelines of one file: one per rank in it.

    Args:
        raw: The columns; its arrays are taken over.
        breaks: Where events were lost in the middle of the file.
        path: The file, as it was given.
        size_bytes: Its size as stored.
        settings: Thresholds of placing.

    Raises:
        TwoWritersError: Two processes wrote into the file at once.
        NotATraceError: No event of the file carries time.
    """
    complaints = Complaints(path, raw)
    complaints.refuse_two_writers(breaks)
    _add_paired(raw, complaints)
    complaints.refuse_no_timed_event()
    tracks = _tracks(raw)
    kind = row_kinds(raw)
    complaints.rows("event.category.unknown", "note", claim_unknown(raw, kind), [])
    end_ns = raw.span.pop("dur_ns")
    end_ns += raw.span["start_ns"]
    timelines = []
    shares = find_shares(raw, kind, complaints)
    for share in shares:
        ends_ns = end_ns.copy() if len(shares) > 1 else end_ns
        rows = Rows(raw, kind, raw.span["start_ns"], ends_ns, share.mine)
        identity = find_identity(raw.header, path, share.rank)
        if share.place is not None:
            identity = replace(identity, rank=share.place, rank_assumed=True)
        own = complaints.for_rank(identity.rank)
        source = Source(
            path=path,
            format="kineto",
            version=version_of(raw.header),
            size_bytes=size_bytes,
            n_events=raw.n_events,
            n_skipped=sum(len(events) for events in raw.skipped.values()),
            n_repaired=sum(damage.count for damage in raw.damages),
        )
        timelines.append(_timeline(rows, tracks, identity, source, own, settings))
    placed = [timeline for timeline in timelines if len(timeline.host) or len(timeline.device)]
    if not placed:
        complaints.refuse_nothing_placed()
    return placed


def _add_paired(raw: RawTrace, complaints: Complaints) -> None:
    """Append the spans that begin and end events make."""
    paired = pair_edges(raw.begin_end)
    complaints.edges(paired)
    if not paired.spans:
        return
    columns = np.array(paired.spans, np.int64)
    extra: dict[str, NDArray[Any]] = {
        "start_ns": columns[:, 0],
        "dur_ns": columns[:, 1],
        "name": columns[:, 2].astype(np.int32),
        "track": columns[:, 3].astype(np.int32),
        "category": columns[:, 4].astype(np.int32),
        "correlation": np.full(len(columns), NONE_ID, np.int64),
        "external_id": np.full(len(columns), NONE_ID, np.int64),
        "event": columns[:, 5].astype(np.uint32),
    }
    raw.span = {key: np.concatenate([raw.span[key], extra[key]]) for key in raw.span} if raw.span else extra


def _tracks(raw: RawTrace) -> tuple[Track, ...]:
    names = {
        (normal_id(pid), normal_id(tid)): value for _, what, pid, tid, value in raw.metadata if what == "thread_name"
    }
    return tuple(Track(pid, tid, _shown(names.get((pid, tid), ""))) for pid, tid in raw.tracks)


def _shown(name: str) -> str:
    """Return the name of a thread or device, harmless and of bounded length."""
    return redact(show_controls(name))[:_SHOWN_MAX]


def _timeline(
    rows: Rows,
    tracks: tuple[Track, ...],
    identity: Any,
    source: Source,
    complaints: Complaints,
    settings: Settings,
) -> Timeline:
    raw = rows.raw
    recorded_by = rows.pids()
    place(rows, complaints, settings)
    host_rows = _host_order(rows, rows.of(HOST_KINDS))
    host = _host_table(rows, host_rows)
    device_rows = _device_order(rows, rows.of(DEVICE_KINDS))
    device = _device_table(rows, device_rows)
    tasks = _device_table(rows, _device_order(rows, rows.of((Kind.DEVICE_TASK,))))
    flows = _flow_table(raw)
    device = replace(
        device, launch=link_launches(host, device, raw.span["track"][device_rows].astype(np.int64), flows, raw.names)
    )
    position = np.full(len(rows.kind), -1, np.int64)
    position[host_rows] = np.arange(len(host_rows))
    on_device = np.full(len(rows.kind), -1, np.int64)
    on_device[device_rows] = np.arange(len(device_rows))
    base = raw.header.get("baseTimeNanoseconds")
    return Timeline(
        identity=identity,
        source=source,
        base_ns=_base_ns(base, host, device),
        names=tuple(raw.names),
        tracks=tracks,
        host=host,
        device=device,
        tasks=tasks,
        aside=_host_table(rows, _host_order(rows, rows.of(_ASIDE_KINDS))),
        flows=flows,
        input_dims=_sparse(raw, "input_dims", position),
        input_types=_sparse(raw, "input_types", position),
        input_values=_sparse(raw, "input_values", position),
        input_strides=_sparse(raw, "input_strides", position),
        sequences=_sparse(raw, "sequence", position),
        occupancy=_sparse(raw, "occupancy", on_device),
        call_stacks=_sparse(raw, "call_stack", position),
        backward=_sparse(raw, "backward", position).row,
        collectives=_collectives(raw, position, on_device),
        main_track=-1,
        device_type=device_type(raw, rows.kind),
        device_names=_device_names(raw.header),
        device_bytes=device_bytes(raw.header),
        memory=memory_table(raw, recorded_by, (host, device), complaints),
        environment=environment_of(raw.header),
        findings=tuple(complaints.findings),
        syncs=_sync_table(rows),
    )


def _base_ns(written: object, host: HostTable, device: DeviceTable) -> int | None:
    """Return the epoch time of table time 0: as written, else 0 where the times themselves look like epoch times."""
    if isinstance(written, str) and written.strip().isdigit():
        written = int(written)
    if isinstance(written, float) and written.is_integer():
        written = int(written)  # off by 128 ns at most, which lies within the uncertainty of any clock
    if isinstance(written, int) and not isinstance(written, bool) and 0 < written < 1 << 62:
        return written
    starts = [int(table.start_ns.min()) for table in (host, device) if len(table)]
    return 0 if starts and min(starts) > _EPOCH_LIKELY_NS else None


_EPOCH_LIKELY_NS: Final = 10**18  # September 2001; a clock that counts from boot does not get there


def _host_order(rows: Rows, some: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order rows by track, start, and the longer one first, so that a parent precedes its children."""
    if len(some) == 0:
        return some
    low_ns, high_ns = int(rows.start_ns[some].min()), int(rows.start_ns[some].max())
    n_tracks = len(rows.raw.tracks)
    if high_ns - low_ns >= (1 << 62) // n_tracks:
        keys = (rows.raw.span["event"][some], -rows.end_ns[some], rows.start_ns[some], rows.raw.span["track"][some])
        return some[np.lexsort(keys)]
    # One key sorts several times faster than four, in less memory; only rows that start together need the rest.
    key = rows.raw.span["track"][some].astype(np.int64)
    key *= high_ns - low_ns + 1
    key += rows.start_ns[some]
    key -= low_ns
    order = np.argsort(key, kind="stable")
    key = key[order]
    tied = np.zeros(len(order), np.bool_)
    tied[1:] = key[1:] == key[:-1]
    tied[:-1] |= tied[1:]
    among = order[tied]
    rest = (rows.raw.span["event"][some[among]], -rows.end_ns[some[among]], key[tied])
    order[tied] = among[np.lexsort(rest)]
    return some[order]


def _host_table(rows: Rows, some: NDArray[np.int64]) -> HostTable:
    span = rows.raw.span
    return HostTable(
        start_ns=rows.start_ns[some],
        end_ns=rows.end_ns[some],
        name=span["name"][some],
        track=span["track"][some],
        kind=rows.kind[some],
        correlation=span["correlation"][some],
        external_id=span["external_id"][some],
        event=span["event"][some],
    )


def _device_order(rows: Rows, some: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order rows by device, start and event."""
    return some[np.lexsort((rows.raw.span["event"][some], rows.start_ns[some], rows.on_device(some).device))]


def _device_table(rows: Rows, some: NDArray[np.int64]) -> DeviceTable:
    span = rows.raw.span
    on_device = rows.on_device(some)
    return DeviceTable(
        start_ns=rows.start_ns[some],
        end_ns=rows.end_ns[some],
        name=span["name"][some],
        device=on_device.device.astype(np.int32),
        stream=on_device.stream,
        kind=rows.kind[some],
        correlation=span["correlation"][some],
        external_id=span["external_id"][some],
        size_bytes=on_device.size_bytes,
        launch=np.full(len(some), NONE_ID, np.int64),
        event=span["event"][some],
    )


def _sync_table(rows: Rows) -> SyncTable:
    """Read rows of synchronisation; a stream that does not exist is written as -1, with 32 bits or 64."""
    sync, span = rows.raw.sync, rows.raw.span
    if not sync or len(sync["row"]) == 0:
        return SyncTable.empty()
    kept = np.flatnonzero((rows.kind[sync["row"]] == Kind.SYNC_ROW) & rows.mine[sync["row"]])
    kept = kept[np.lexsort((span["event"][sync["row"][kept]], rows.start_ns[sync["row"][kept]]))]
    row, names = sync["row"][kept], rows.raw.names
    kinds = np.array([_SYNC_KINDS.get(name, SyncKind.OTHER) for name in names], np.uint8)

    def number(column: str) -> NDArray[np.int64]:
        values = sync[column][kept]
        return np.where((values < 0) | (values == _NO_STREAM), NONE_ID, values)

    return SyncTable(
        start_ns=rows.start_ns[row],
        end_ns=rows.end_ns[row],
        kind=kinds[span["name"][row]],
        device=np.minimum(number("device"), np.iinfo(np.int32).max).astype(np.int32),
        stream=number("stream"),
        waited_stream=number("waited_stream"),
        correlation=span["correlation"][row],
        record=number("record"),
        event=span["event"][row],
    )


_SYNC_KINDS: Final = {
    "Stream Wait Event": SyncKind.STREAM_WAIT,
    "Event Sync": SyncKind.EVENT,
    "Stream Sync": SyncKind.STREAM,
    "Context Sync": SyncKind.CONTEXT,
}
_NO_STREAM: Final = (1 << 32) - 1


def _flow_table(raw: RawTrace) -> FlowTable:
    if not raw.flow or len(raw.flow["id"]) == 0:
        return FlowTable.empty()
    offset = len(raw.names)
    raw.names.extend(raw.categories)
    return FlowTable(
        id=raw.flow["id"],
        time_ns=raw.flow["time_ns"],
        track=raw.flow["track"],
        is_target=raw.flow["is_target"],
        category=(raw.flow["category"] + offset).astype(np.int32),
    )


def _sparse(raw: RawTrace, key: str, position: NDArray[np.int64]) -> Sparse:
    """Move rare values from rows of the file to rows of the host table."""
    if key not in raw.sparse:
        return Sparse(np.empty(0, np.int64), np.empty(0, np.int32), ())
    row, code = raw.sparse[key]
    place = position[row]
    keep = place >= 0
    place, code = place[keep], code[keep]
    order = np.argsort(place)
    used, value = np.unique(code[order], return_inverse=True)
    return Sparse(place[order], value.reshape(-1).astype(np.int32), tuple(raw.texts[c] for c in used.tolist()))


def _collectives(raw: RawTrace, on_host: NDArray[np.int64], on_device: NDArray[np.int64]) -> tuple[CollectiveArgs, ...]:
    return tuple(
        CollectiveArgs(
            row=int(max(on_host[row], on_device[row])),
            on_device=bool(on_device[row] >= 0),
            name=args["name"],
            in_elements=_count_of(args["in_elements"]),
            out_elements=_count_of(args["out_elements"]),
            group_size=_count_of(args["group_size"]),
            dtype=args["dtype"],
            group_name=_shown(args["group_name"]),
            group_ranks=args["group_ranks"],
            sequence=_count_of(args["sequence"]),
            group_description=_shown(args["group_description"]),
            rank_start=_count_of(args["rank_start"]),
            rank_stride=_count_of(args["rank_stride"]),
            source_rank=_count_of(args["source_rank"]),
            target_rank=_count_of(args["target_rank"]),
            comms_id=_id_of(args["comms_id"]),
        )
        for row, args in raw.collectives
        if on_host[row] >= 0 or on_device[row] >= 0
    )


def _id_of(value: Any) -> int | None:
    """Return a hash of up to 64 bits as a number that fits a column, None where none is written."""
    if isinstance(value, str) and value.strip().lstrip("-").isdigit() and len(value) <= _ID_DIGITS:
        value = int(value)
    return value & ((1 << 62) - 1) if isinstance(value, int) and not isinstance(value, bool) else None


_ID_DIGITS: Final = 24


def _count_of(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def _device_names(header: dict[str, Any]) -> dict[int, str]:
    names: dict[int, str] = {}
    for key in ("deviceProperties", "computeProperties"):
        entries = header.get(key)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and isinstance(entry.get("id"), int) and isinstance(entry.get("name"), str):
                names.setdefault(entry["id"], _shown(entry["name"]))
    return names
