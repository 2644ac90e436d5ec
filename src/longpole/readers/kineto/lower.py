"""From the columns of one file to the timelines of the ranks in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.readers.kineto.begin_end import pair_edges
from longpole.readers.kineto.complaints import Complaints
from longpole.readers.kineto.credentials import redact
from longpole.readers.kineto.identity import environment_of, find_identity, rank_prefixes, version_of
from longpole.readers.kineto.kinds import row_kinds
from longpole.readers.kineto.links import link_launches
from longpole.readers.kineto.raw import normal_id, show_controls
from longpole.timeline.columns import DEVICE_KINDS, HOST_KINDS, NONE_ID, Kind
from longpole.timeline.placing import duplicates, overlong_on_stream, overrunning, unclosed_frames, untimed
from longpole.timeline.tables import CollectiveArgs, DeviceTable, FlowTable, HostTable, Sparse, Track
from longpole.timeline.timeline import Source, Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.readers.kineto.raw import RawTrace
    from longpole.readers.kineto.read import Break
    from longpole.settings import Settings

_SHOWN_MAX: Final = 128  # characters of a thread's or device's name
_ASIDE_KINDS: Final = (Kind.SYNC_ROW, Kind.DEVICE_ANNOTATION, Kind.OVERHEAD)


@dataclass(slots=True)
class _Rows:
    """The rows of one rank while they are being placed; masks and columns over all spans of the file."""

    raw: RawTrace
    kind: NDArray[np.uint8]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    mine: NDArray[np.bool_]

    def rows(self, kinds: tuple[Kind, ...]) -> NDArray[np.int64]:
        wanted = np.isin(self.kind, [int(kind) for kind in kinds]) & self.mine
        return np.flatnonzero(wanted).astype(np.int64)


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
    timelines = []
    prefixes = rank_prefixes(raw)
    for prefix, rank in prefixes.items() or {None: None}.items():
        mine = _mine(raw, prefix)
        rows = _Rows(raw, kind, raw.span["start_ns"], raw.span["start_ns"] + raw.span["dur_ns"], mine)
        identity = find_identity(raw.header, path, rank)
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
    return timelines


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
        (normal_id(pid), normal_id(tid)): redact(show_controls(value))[:_SHOWN_MAX]
        for _, what, pid, tid, value in raw.metadata
        if what == "thread_name"
    }
    return tuple(Track(pid, tid, names.get((pid, tid), "")) for pid, tid in raw.tracks)


def _mine(raw: RawTrace, prefix: str | None) -> NDArray[np.bool_]:
    if prefix is None:
        return np.ones(len(raw.span["start_ns"]), np.bool_)
    of_track = np.array([isinstance(pid, str) and pid.startswith(prefix) for pid, _ in raw.tracks], np.bool_)
    return of_track[raw.span["track"]]


def _timeline(
    rows: _Rows,
    tracks: tuple[Track, ...],
    identity: Any,
    source: Source,
    complaints: Complaints,
    settings: Settings,
) -> Timeline:
    raw = rows.raw
    device_columns = _device_columns(rows)
    _place(rows, device_columns, complaints, settings)
    host_rows = _host_order(rows, rows.rows(HOST_KINDS))
    host = _host_table(rows, host_rows)
    device = _device_table(rows, device_columns, rows.rows(DEVICE_KINDS))
    tasks = _device_table(rows, device_columns, rows.rows((Kind.DEVICE_TASK,)))
    flows = _flow_table(raw)
    device_rows = _device_order(rows, device_columns, rows.rows(DEVICE_KINDS))
    device = replace(
        device, launch=link_launches(host, device, raw.span["track"][device_rows].astype(np.int64), flows, raw.names)
    )
    position = np.full(len(rows.kind), -1, np.int64)
    position[host_rows] = np.arange(len(host_rows))
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
        aside=_host_table(rows, _host_order(rows, rows.rows(_ASIDE_KINDS))),
        flows=flows,
        input_dims=_sparse(raw, "input_dims", position),
        call_stacks=_sparse(raw, "call_stack", position),
        backward=_sparse(raw, "backward", position).row,
        collectives=_collectives(raw, position),
        main_track=-1,
        device_type=_device_type(raw),
        device_names=_device_names(raw.header),
        environment=environment_of(raw.header),
        findings=tuple(complaints.findings),
    )


def _base_ns(written: object, host: HostTable, device: DeviceTable) -> int | None:
    """Return the epoch time of table time 0: as written, else 0 where the times themselves look like epoch times."""
    if isinstance(written, str) and written.strip().isdigit():
        written = int(written)
    if isinstance(written, int) and not isinstance(written, bool) and 0 < written < 1 << 62:
        return written
    starts = [int(table.start_ns.min()) for table in (host, device) if len(table)]
    return 0 if starts and min(starts) > _EPOCH_LIKELY_NS else None


_EPOCH_LIKELY_NS: Final = 10**18  # September 2001; a clock that counts from boot does not get there


def _device_columns(rows: _Rows) -> dict[str, NDArray[np.int64]]:
    """Spread the device columns over all spans: device from the arguments, else the process; stream likewise."""
    raw = rows.raw
    n = len(rows.kind)
    columns = {name: np.full(n, NONE_ID, np.int64) for name in ("device", "stream", "size_bytes")}
    if raw.device:
        for name, column in columns.items():
            column[raw.device["row"][raw.device["row"] < n]] = raw.device[name]
    pid = np.array([_number_of(pid) for pid, _ in raw.tracks] or [0], np.int64)[raw.span["track"]]
    tid = np.array([_number_of(tid) for _, tid in raw.tracks] or [0], np.int64)[raw.span["track"]]
    # Ascend's exporter gives the parts of one device processes of their own, and no category.
    bare = np.array([not category for category in raw.categories] or [False], np.bool_)[raw.span["category"]]
    columns["device"] = np.where(columns["device"] < 0, np.where(bare, 0, pid), columns["device"])
    columns["stream"] = np.where(columns["stream"] < 0, tid, columns["stream"])
    return columns


def _number_of(value: Any) -> int:
    """Return the number in a process or thread id: `7`, `stream 7`, `[TP01] 0`."""
    if isinstance(value, int):
        return value if -(1 << 62) < value < 1 << 62 else value & ((1 << 62) - 1)
    digits = "".join(c if c.isascii() and c.isdigit() else " " for c in str(value)[:256]).split()
    return int(digits[-1]) if digits and len(digits[-1]) < 19 else 0


def _place(
    rows: _Rows, device_columns: dict[str, NDArray[np.int64]], complaints: Complaints, settings: Settings
) -> None:
    """Take rows that cannot be placed out, cut those that are too long, and complain of each kind."""
    raw = rows.raw
    raw_unfinished = np.zeros(len(rows.kind), np.bool_)
    if "unfinished" in raw.sparse:
        raw_unfinished[raw.sparse["unfinished"][0]] = True
    placeable = np.isin(rows.kind, [int(k) for k in (*DEVICE_KINDS, *HOST_KINDS)]) & rows.mine
    no_time = untimed(rows.start_ns, rows.end_ns, rows.kind) & rows.mine
    n_device = len(rows.rows(DEVICE_KINDS))
    remark = f"; {n_device - int(no_time.sum()):,} of {n_device:,} device spans have a time"
    complaints.rows("kernel.time.missing", "warn", np.flatnonzero(no_time), _IDLE_VOIDS, remark)
    rows.mine = rows.mine & ~no_time
    frames = np.flatnonzero(placeable & ~no_time)
    late = np.zeros(len(rows.kind), np.bool_)
    late[frames] = unclosed_frames(rows.end_ns[frames], rows.kind[frames], raw_unfinished[frames])
    complaints.rows("python.frame.unclosed", "note", np.flatnonzero(late), [])
    rows.mine = rows.mine & ~late
    _drop_duplicates(rows, device_columns, complaints)
    _cut_overlong(rows, device_columns, complaints, settings)
    placed = np.flatnonzero(placeable & rows.mine)
    overrun = np.zeros(len(rows.kind), np.bool_)
    on_device = np.isin(rows.kind, [int(k) for k in DEVICE_KINDS])
    least_ns = np.where(on_device[placed], settings.overrun_min_ns, settings.host_overrun_min_ns)
    overrun[placed] = overrunning(rows.start_ns[placed], rows.end_ns[placed], least_ns, settings)
    complaints.rows("kernel.duration.impossible", "warn", np.flatnonzero(overrun & on_device), _IDLE_VOIDS)
    complaints.rows("host.duration.impossible", "warn", np.flatnonzero(overrun & ~on_device), [])
    rows.mine = rows.mine & ~overrun


_IDLE_VOIDS: Final = ["@/ledger/device/idle_ns", "@/device_span/idle_ns"]


def _drop_duplicates(rows: _Rows, device_columns: dict[str, NDArray[np.int64]], complaints: Complaints) -> None:
    """Leave out rows that repeat another in every recorded field."""
    span = rows.raw.span
    twice = np.zeros(len(rows.kind), np.bool_)
    for kinds in (DEVICE_KINDS, HOST_KINDS):
        some = rows.rows(kinds)
        keys = (
            span["external_id"][some],
            span["correlation"][some],
            device_columns["stream"][some],
            span["name"][some],
            rows.end_ns[some],
            span["track"][some],
            rows.start_ns[some],
        )
        twice[some[duplicates(keys)]] = True
    complaints.rows("event.duplicate", "note", np.flatnonzero(twice), [])
    rows.mine = rows.mine & ~twice


def _cut_overlong(
    rows: _Rows, device_columns: dict[str, NDArray[np.int64]], complaints: Complaints, settings: Settings
) -> None:
    some = rows.rows(DEVICE_KINDS)
    if len(some) == 0:
        return
    lane = _lanes(device_columns["device"][some], device_columns["stream"][some])
    found = overlong_on_stream(
        lane, rows.start_ns[some], rows.end_ns[some], rows.raw.span["correlation"][some], settings
    )
    bad = some[found.row]
    excess_ns = int((rows.end_ns[bad] - found.end_ns).sum())
    remark = f"; cut where their stream goes on, {excess_ns:,} ns left out"
    complaints.rows("kernel.duration.impossible", "warn", bad, _IDLE_VOIDS, remark)
    rows.end_ns[bad] = found.end_ns


def _lanes(device: NDArray[np.int64], stream: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return a number for each stream of each device."""
    device_codes = np.unique(device, return_inverse=True)[1].reshape(-1)
    streams, stream_codes = np.unique(stream, return_inverse=True)
    return (device_codes * len(streams) + stream_codes.reshape(-1)).astype(np.int32)


def _host_order(rows: _Rows, some: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order rows by track, start, and the longer one first, so that a parent precedes its children."""
    if len(some) == 0:
        return some
    track, start_ns = rows.raw.span["track"][some].astype(np.int64), rows.start_ns[some]
    low_ns = int(start_ns.min())
    width = int(start_ns.max()) - low_ns + 1
    if width > (1 << 62) // (int(track.max()) + 1):
        return some[np.lexsort((rows.raw.span["event"][some], -rows.end_ns[some], start_ns, track))]
    # One key sorts several times faster than four; only rows that start together need the rest.
    key = track * width + (start_ns - low_ns)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    tied = np.zeros(len(order), np.bool_)
    tied[1:] = ordered[1:] == ordered[:-1]
    tied[:-1] |= tied[1:]
    among = order[tied]
    order[tied] = among[np.lexsort((rows.raw.span["event"][some[among]], -rows.end_ns[some[among]], key[among]))]
    return some[order]


def _host_table(rows: _Rows, some: NDArray[np.int64]) -> HostTable:
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


def _device_order(rows: _Rows, columns: dict[str, NDArray[np.int64]], some: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order rows by device, start and event."""
    return some[np.lexsort((rows.raw.span["event"][some], rows.start_ns[some], columns["device"][some]))]


def _device_table(rows: _Rows, columns: dict[str, NDArray[np.int64]], some: NDArray[np.int64]) -> DeviceTable:
    span = rows.raw.span
    some = _device_order(rows, columns, some)
    return DeviceTable(
        start_ns=rows.start_ns[some],
        end_ns=rows.end_ns[some],
        name=span["name"][some],
        device=columns["device"][some].astype(np.int32),
        stream=columns["stream"][some],
        kind=rows.kind[some],
        correlation=span["correlation"][some],
        external_id=span["external_id"][some],
        size_bytes=columns["size_bytes"][some],
        launch=np.full(len(some), NONE_ID, np.int64),
        event=span["event"][some],
    )


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


def _collectives(raw: RawTrace, position: NDArray[np.int64]) -> tuple[CollectiveArgs, ...]:
    return tuple(
        CollectiveArgs(
            row=int(position[row]),
            on_device=bool(position[row] < 0),
            name=args["name"],
            in_elements=_count_of(args["in_elements"]),
            out_elements=_count_of(args["out_elements"]),
            group_size=_count_of(args["group_size"]),
            dtype=args["dtype"],
            group_name=args["group_name"],
            group_ranks=args["group_ranks"],
            sequence=_count_of(args["sequence"]),
        )
        for row, args in raw.collectives
        if position[row] >= 0
    )


def _count_of(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def _device_type(raw: RawTrace) -> str:
    seen = {category.lower() for category in raw.categories}
    if any(category.startswith("mtia") for category in seen):
        return "mtia"
    if any(category.startswith("xpu") for category in seen):
        return "xpu"
    return "cuda" if seen & {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"} else "npu"


def _device_names(header: dict[str, Any]) -> dict[int, str]:
    names: dict[int, str] = {}
    for key in ("deviceProperties", "computeProperties"):
        entries = header.get(key)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and isinstance(entry.get("id"), int) and isinstance(entry.get("name"), str):
                names.setdefault(entry["id"], redact(show_controls(entry["name"]))[:_SHOWN_MAX])
    return names
