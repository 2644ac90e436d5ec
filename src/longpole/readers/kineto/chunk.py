"""One chunk of the event list, from bytes to columns.

A chunk is decoded by itself, in any process; its names, threads and shapes are numbered within it, and the numbers
are made common when chunks are joined (`raw.py`). Event numbers count from the chunk's own first event.
"""

from __future__ import annotations

import gc
import re
import zlib
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from longpole.readers.kineto.event import (
    Event,
    EventArgs,
    ExactEvent,
    ExactMemoryEvent,
    MemoryArgs,
    MemoryEvent,
    kind_of_category,
)
from longpole.readers.kineto.times import InexactTimesError, parse_text, parse_us
from longpole.timeline.columns import NONE_BYTES, NONE_ID, NONE_NS, Kind
from longpole.timeline.shapes import count_elements

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

# By whether times are left as text, and whether there are memory events.
_DECODERS: Final[dict[tuple[bool, bool], msgspec.json.Decoder[Any]]] = {
    (False, False): msgspec.json.Decoder(list[Event]),
    (True, False): msgspec.json.Decoder(list[ExactEvent]),
    (False, True): msgspec.json.Decoder(list[MemoryEvent]),
    (True, True): msgspec.json.Decoder(list[ExactMemoryEvent]),
}
_ONE_DECODERS: Final[dict[tuple[bool, bool], msgspec.json.Decoder[Any]]] = {
    (False, False): msgspec.json.Decoder(Event),
    (True, False): msgspec.json.Decoder(ExactEvent),
    (False, True): msgspec.json.Decoder(MemoryEvent),
    (True, True): msgspec.json.Decoder(ExactMemoryEvent),
}

SKIP_REASONS: Final = (
    "not_an_object",
    "no_phase",
    "no_timestamp",
    "no_duration",
    "negative_duration",
    "memory_unusable",
)
_UNREAD_PHASES: Final = frozenset("iIRCbenNODPpvVScFabgGmMT()")  # instants, counters, async and object events
_INSTANTS: Final = ("i", "I")
_MEMORY: Final = "[memory]"
_MEMORY_MARK: Final = b'"[memory]"'
_FLOW_ENDS: Final = {"s": False, "t": True, "f": True}


class Numbering(dict[Any, int]):
    """Give each distinct key the next number, in C for the keys already seen."""

    def __missing__(self, key: Any) -> int:
        """Give a new key the next number."""
        number = self[key] = len(self)
        return number


@dataclass(slots=True)
class Chunk:
    """Columns of one chunk; codes index into the chunk's own `names`, `tracks`, `categories` and `texts`.

    Attributes:
        n_events: How many elements the chunk holds, those not read included.
        span: Columns of complete events: start_ns, dur_ns, name, track, category, correlation, external_id, event.
        device: Columns of those that carry a stream or a device: row (into span), device, stream, size_bytes.
        sync: Columns of synchronisation rows: row (into span), device, stream, waited_stream, record.
        sparse: Rare values of spans: field name -> (row, code into texts).
        flow: Columns of arrows: id, time_ns, track, is_target, category.
        memory: Columns of memory events: time_ns, track, device_type, device, allocated_bytes, reserved_bytes,
            size_bytes, event; NONE_BYTES for a total that is not written.
        begin_end: Begin and end events: (is_end, event, time_ns, track, name, category).
        metadata: (event, name, pid, tid, value) of process and thread names and labels.
        collectives: (row, args) of spans that describe a collective.
        skipped: Reason -> numbers of the events left out.
        exact: The times were decoded as text.
    """

    n_events: int
    names: list[str] = field(default_factory=list)
    tracks: list[tuple[Any, Any]] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    span: dict[str, NDArray[Any]] = field(default_factory=dict)
    device: dict[str, NDArray[Any]] = field(default_factory=dict)
    sync: dict[str, NDArray[Any]] = field(default_factory=dict)
    sparse: dict[str, tuple[NDArray[np.int64], NDArray[np.int32]]] = field(default_factory=dict)
    flow: dict[str, NDArray[Any]] = field(default_factory=dict)
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    begin_end: list[tuple[bool, int, int, int, int, int]] = field(default_factory=list)
    metadata: list[tuple[int, str, Any, Any, str]] = field(default_factory=list)
    collectives: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    skipped: dict[str, list[int]] = field(default_factory=dict)
    exact: bool = False


def decode_chunk(body: bytes, *, exact: bool) -> Chunk:
    """Decode the elements of one stretch of the event list.

    Args:
        body: Elements separated by commas, without the list's brackets.
        exact: Read the times as text from the start; otherwise only once a double cannot hold them.

    Raises:
        msgspec.DecodeError: The stretch is not valid JSON; recover it first.
    """
    text = b"[" + body.strip(b" \t\r\n,") + b"]"
    with_memory = _MEMORY_MARK in text
    # Events refer to nothing but text and numbers: a collector would search them for cycles in vain.
    collecting = gc.isenabled()
    gc.disable()
    try:
        if not exact:
            try:
                return _to_columns(_DECODERS[False, with_memory].decode(text), exact=False, with_memory=with_memory)
            except InexactTimesError:
                pass
        return _to_columns(_DECODERS[True, with_memory].decode(text), exact=True, with_memory=with_memory)
    finally:
        if collecting:
            gc.enable()


def decode_elements(elements: Iterable[bytes], *, exact: bool) -> Chunk:
    """Decode elements that were recovered one by one; what is no event is counted, never fatal."""
    kept = list(elements)
    with_memory = any(_MEMORY_MARK in element for element in kept)
    decoder = _ONE_DECODERS[exact, with_memory]
    events: list[Event | ExactEvent | None] = []
    for element in kept:
        try:
            events.append(decoder.decode(element))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            events.append(_salvage(element, exact=exact))
    try:
        return _to_columns(events, exact=exact, with_memory=with_memory)
    except InexactTimesError:
        return decode_elements(kept, exact=True)


def _salvage(element: bytes, *, exact: bool) -> Event | ExactEvent | None:
    """Decode an object whose `args` are not an object; None for anything else."""
    try:
        fields = msgspec.json.decode(element, type=dict[str, msgspec.Raw])
        fields.pop("args", None)
        return _ONE_DECODERS[exact, False].decode(msgspec.json.encode(fields))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _to_columns(events: Sequence[Any], *, exact: bool, with_memory: bool) -> Chunk:
    """Sort events by phase, in bulk: there are millions, and each pass over them in Python counts."""
    chunk = Chunk(len(events), exact=exact)
    phases = Numbering()
    codes = _number(phases, [None if event is None else event.ph for event in events])
    numbers = _Numbers()
    flows: list[NDArray[np.intp]] = []
    edges: list[NDArray[np.intp]] = []
    complete = np.empty(0, np.intp)
    for phase, code in phases.items():
        places = np.flatnonzero(codes == code)
        if phase == "X":
            complete = places
        elif phase in _FLOW_ENDS:
            flows.append(places)
        elif phase in ("B", "E"):
            edges.append(places)
        elif phase == "M":
            for place in places.tolist():
                _add_metadata(chunk, place, events[place])
        elif not (isinstance(phase, str) and phase and phase in _UNREAD_PHASES):
            for place in places.tolist():
                reason = "not_an_object" if events[place] is None else "no_phase"
                chunk.skipped.setdefault(reason, []).append(place)
    _add_spans(chunk, numbers, _chosen(events, complete), complete)
    arrows = np.sort(np.concatenate(flows)) if flows else np.empty(0, np.intp)
    _add_flows(chunk, numbers, _chosen(events, arrows))
    ends = np.sort(np.concatenate(edges)) if edges else np.empty(0, np.intp)
    _add_edges(chunk, numbers, _chosen(events, ends), ends.tolist())
    if with_memory:
        instants = np.flatnonzero(np.isin(codes, [code for phase, code in phases.items() if phase in _INSTANTS]))
        _add_memory(chunk, numbers, events, instants)
    chunk.names = [_text(key) for key in numbers.name]
    chunk.tracks = [(_plain(pid), _plain(tid)) for pid, tid in numbers.track]
    chunk.categories = [_text(key) for key in numbers.category]
    chunk.texts = [_text(key) for key in numbers.text]
    return chunk


def _chosen(events: Sequence[Any], places: NDArray[np.intp]) -> Sequence[Any]:
    if len(places) == len(events):
        return events
    return [events[place] for place in places.tolist()]


class _Numbers:
    """The numberings of one chunk."""

    def __init__(self) -> None:
        self.name = Numbering()
        self.track = Numbering()
        self.category = Numbering()
        self.text = Numbering()


def _number(numbering: Numbering, values: Sequence[Any]) -> NDArray[np.int32]:
    """Return the numbers of values; those that cannot be keys are numbered by their text."""
    try:
        return np.fromiter(map(numbering.__getitem__, values), np.int32, len(values))
    except TypeError:
        return np.fromiter([numbering[_key(value)] for value in values], np.int32, len(values))


def _key(value: Any) -> Any:
    return value if isinstance(value, int | float | str | bytes | None) else _text(value)


def _add_spans(chunk: Chunk, numbers: _Numbers, events: Sequence[Any], place: NDArray[np.intp]) -> None:
    start_ns = _times([event.ts for event in events], exact=chunk.exact)
    dur_ns = _times([event.dur for event in events], exact=chunk.exact)
    bad = _unusable(start_ns, dur_ns)
    if bad:
        for reason, mask in bad.items():
            chunk.skipped.setdefault(reason, []).extend(place[mask].tolist())
        kept = np.flatnonzero(~np.logical_or.reduce(list(bad.values())))
        events, place, start_ns, dur_ns = _chosen(events, kept), place[kept], start_ns[kept], dur_ns[kept]
    chunk.span = {
        "start_ns": start_ns,
        "dur_ns": dur_ns,
        "name": _number(numbers.name, [event.name for event in events]),
        "track": _tracks(numbers, events),
        "category": _number(numbers.category, [event.cat for event in events]),
        "event": place.astype(np.uint32),
    }
    args = [event.args for event in events]
    _add_args(chunk, numbers, args if all(args) else [arg or _NO_ARGS for arg in args])


def _tracks(numbers: _Numbers, events: Sequence[Any]) -> NDArray[np.int32]:
    """Return the numbers of threads; process and thread are numbered apart, which spares a pair of each event."""
    pids, tids = Numbering(), Numbering()
    pid = _number(pids, [event.pid for event in events])
    tid = _number(tids, [event.tid for event in events])
    both = pid.astype(np.int64) * len(tids) + tid
    used = np.flatnonzero(np.bincount(both)) if len(pids) * len(tids) < _DENSE_MAX else np.unique(both)
    pid_of, tid_of = list(pids), list(tids)
    codes = [numbers.track[pid_of[pair // len(tids)], tid_of[pair % len(tids)]] for pair in used.tolist()]
    return np.array(codes, np.int32)[np.searchsorted(used, both)]


_DENSE_MAX: Final = 1 << 16
_NO_ARGS: Final = EventArgs()


def _times(values: Sequence[Any], *, exact: bool) -> NDArray[np.int64]:
    return parse_text([bytes(value) for value in values]) if exact else parse_us(values)


def _unusable(start_ns: NDArray[np.int64], dur_ns: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Name the rows that cannot be placed: reason -> mask, only for reasons that occur."""
    no_time = start_ns == NONE_NS
    no_duration = (dur_ns == NONE_NS) & ~no_time
    negative = (dur_ns < 0) & ~no_time & ~no_duration
    masks = {"no_timestamp": no_time, "no_duration": no_duration, "negative_duration": negative}
    return {reason: mask for reason, mask in masks.items() if mask.any()}


def _add_args(chunk: Chunk, numbers: _Numbers, args: Sequence[EventArgs]) -> None:
    """Spread the arguments into columns, and what few spans have into sparse ones, kind by kind."""
    chunk.span["correlation"] = _ids([arg.correlation for arg in args])
    chunk.span["external_id"] = _ids([arg.external_id for arg in args])
    by_category = [kind_of_category(_text(category)) or Kind.OTHER for category in numbers.category]
    kind = np.array([*by_category, Kind.OTHER], np.uint8)[chunk.span["category"]]
    with_device = np.flatnonzero(np.isin(kind, _WITH_DEVICE)).tolist()
    device_args = [args[row] for row in with_device]
    chunk.device = _device_columns(with_device, device_args)
    syncs = np.flatnonzero(kind == Kind.SYNC_ROW).tolist()
    chunk.sync = _sync_columns(syncs, [args[row] for row in syncs])
    operators = np.flatnonzero((kind == Kind.OPERATOR) | (kind == Kind.ANNOTATION)).tolist()
    operator_args = [args[row] for row in operators]
    dims = [(row, bytes(arg.input_dims)) for row, arg in zip(operators, operator_args, strict=True) if arg.input_dims]
    _add_sparse(chunk, numbers, "input_dims", dims)
    shaped = [(row, arg) for row, arg in zip(operators, operator_args, strict=True) if arg.input_dims]
    _add_sparse(chunk, numbers, "input_types", [(row, bytes(arg.input_type)) for row, arg in shaped if arg.input_type])
    values = [(row, bytes(arg.input_values)) for row, arg in shaped if arg.input_values]
    _add_sparse(chunk, numbers, "input_values", values)
    strides = [(row, bytes(arg.input_strides)) for row, arg in shaped if _ZERO.search(arg.input_strides)]
    _add_sparse(chunk, numbers, "input_strides", strides)
    nodes = [(row, str(arg.node)) for row, arg in shaped if type(arg.node) is int and 0 <= arg.node < _NODE_MAX]
    _add_sparse(chunk, numbers, "sequence", nodes)
    threads = [arg.forward_thread for arg in operator_args]
    backward = [(row, "") for row, thread in zip(operators, threads, strict=True) if thread]
    _add_sparse(chunk, numbers, "backward", backward)
    frames = np.flatnonzero(kind == Kind.PYTHON).tolist()
    _add_sparse(chunk, numbers, "unfinished", [(row, "") for row in frames if args[row].finished is False])
    stacks = [(row, _text(arg.call_stack)) for row, arg in zip(operators, operator_args, strict=True) if arg.call_stack]
    _add_sparse(chunk, numbers, "call_stack", stacks)
    tasks = [(row, arg.ascend_task_type) for row, arg in zip(with_device, device_args, strict=True)]
    _add_sparse(chunk, numbers, "task_type", [(row, _text(task)) for row, task in tasks if task is not None])
    occupied = [(row, arg.occupancy) for row, arg in zip(with_device, device_args, strict=True)]
    _add_sparse(chunk, numbers, "occupancy", [(row, _text(one)) for row, one in occupied if one is not None])
    _add_odd_ids(chunk, args)
    with_args = [row for row in (*operators, *with_device) if args[row].collective is not None]
    described = [(row, _collective(args[row])) for row in with_args]
    described += _backend_spans(chunk, numbers, operators, operator_args)
    chunk.collectives = sorted(described, key=itemgetter(0))


def _backend_spans(
    chunk: Chunk, numbers: _Numbers, rows: list[int], args: list[EventArgs]
) -> list[tuple[int, dict[str, Any]]]:
    """Describe a backend's own spans by the shapes of their inputs, for they say nothing else of their operation."""
    begins = [_text(name).startswith(_BACKENDS) for name in numbers.name]
    if not any(begins):
        return []
    is_backend = np.array(begins, np.bool_)[chunk.span["name"]]
    names = [_text(name) for name in numbers.name]
    described = []
    for row, arg in zip(rows, args, strict=True):
        if is_backend[row] and arg.collective is None and arg.input_dims and arg.input_type:
            name = names[int(chunk.span["name"][row])].partition(":")[2]
            elements = count_elements(bytes(arg.input_dims))
            own = {"name": name, "in_elements": elements, "dtype": _first_type(bytes(arg.input_type))}
            described.append((row, {**_collective(_NO_ARGS), **own}))
    return described


_NODE_MAX: Final = 1 << 62
_ZERO: Final = re.compile(rb"[\[ ,]0[,\] \n]")  # strides without it tell nothing that shapes do not
_BACKENDS: Final = ("gloo:", "mpi:", "ucc:")


def _first_type(types: bytes) -> str:
    try:
        written = msgspec.json.decode(types)
    except msgspec.DecodeError:
        return ""
    return next((one for one in written if isinstance(one, str) and one), "") if isinstance(written, list) else ""


def _add_odd_ids(chunk: Chunk, args: Sequence[EventArgs]) -> None:
    """Take external ids as they were spelt in 2021, where the first spans of the chunk have them."""
    if all(arg.external_id_2021 is None for arg in args[:_SAMPLE]):
        return
    ids = _ids([arg.external_id_2021 for arg in args])
    chunk.span["external_id"] = np.where(ids != NONE_ID, ids, chunk.span["external_id"])


_SAMPLE: Final = 256


def _add_sparse(chunk: Chunk, numbers: _Numbers, name: str, pairs: list[tuple[int, Any]]) -> None:
    if pairs:
        rows = np.array([row for row, _ in pairs], np.int64)
        chunk.sparse[name] = (rows, _number(numbers.text, [text for _, text in pairs]))


_WITH_DEVICE: Final = [int(kind) for kind in (Kind.OTHER, Kind.KERNEL, Kind.COPY, Kind.MEMSET)]


def _device_columns(rows: list[int], args: list[EventArgs]) -> dict[str, NDArray[Any]]:
    """Return device, stream and size of spans that may run on a device; Ascend and MTIA name them otherwise."""
    return {
        "row": np.array(rows, np.int64),
        "device": _ids([arg.device for arg in args]),
        "stream": _ids([arg.stream if arg.stream is not None else arg.ascend_stream for arg in args]),
        "size_bytes": _ids([arg.bytes if arg.bytes is not None else arg.size for arg in args]),
    }


def _sync_columns(rows: list[int], args: list[EventArgs]) -> dict[str, NDArray[Any]]:
    """Return who waits for what in rows of synchronisation."""
    return {
        "row": np.array(rows, np.int64),
        "device": _ids([arg.device for arg in args]),
        "stream": _ids([arg.stream for arg in args]),
        "waited_stream": _ids([arg.waited_stream for arg in args]),
        "record": _ids([arg.event_record for arg in args]),
    }


def _collective(arg: EventArgs) -> dict[str, Any]:
    return {
        "name": _text(arg.collective),
        "in_elements": arg.in_elements,
        "out_elements": arg.out_elements,
        "group_size": arg.group_size,
        "dtype": _text(arg.dtype),
        "group_name": _text(arg.group_name),
        "group_ranks": _text(arg.group_ranks),
        "group_description": _text(arg.group_description),
        "rank_start": arg.rank_start,
        "rank_stride": arg.rank_stride,
        "source_rank": arg.source_rank,
        "target_rank": arg.target_rank,
        "sequence": arg.sequence,
        "comms_id": arg.comms_id,
    }


def _add_flows(chunk: Chunk, numbers: _Numbers, events: Sequence[Any]) -> None:
    time_ns = _times([event.ts for event in events], exact=chunk.exact)
    ids = _ids([event.id for event in events])
    columns: dict[str, NDArray[Any]] = {
        "id": ids,
        "time_ns": time_ns,
        "track": _tracks(numbers, events),
        "is_target": np.fromiter([_FLOW_ENDS[event.ph] for event in events], np.bool_, len(events)),
        "category": _number(numbers.category, [event.cat for event in events]),
    }
    usable = (time_ns != NONE_NS) & (ids != NONE_ID)
    chunk.flow = columns if usable.all() else {name: column[usable] for name, column in columns.items()}


def _add_edges(chunk: Chunk, numbers: _Numbers, events: Sequence[Any], places: list[int]) -> None:
    if not events:
        return
    time_ns = _times([event.ts for event in events], exact=chunk.exact).tolist()
    tracks = _tracks(numbers, events).tolist()
    names = _number(numbers.name, [event.name for event in events]).tolist()
    categories = _number(numbers.category, [event.cat for event in events]).tolist()
    for row, place in enumerate(places):
        if time_ns[row] == NONE_NS:
            chunk.skipped.setdefault("no_timestamp", []).append(place)
        else:
            is_end = events[row].ph == "E"
            chunk.begin_end.append((is_end, place, time_ns[row], tracks[row], names[row], categories[row]))


def _add_memory(chunk: Chunk, numbers: _Numbers, events: Sequence[Any], instants: NDArray[np.intp]) -> None:
    """Keep the memory events among instant events; those that do not say how much of what changed are counted."""
    places = np.array([place for place in instants.tolist() if events[place].name == _MEMORY], np.intp)
    chosen = _chosen(events, places)
    args = [event.args or _NO_MEMORY_ARGS for event in chosen]
    allocated, reserved = [arg.allocated for arg in args], [arg.reserved for arg in args]
    columns: dict[str, NDArray[Any]] = {
        "time_ns": _times([event.ts for event in chosen], exact=chunk.exact),
        "track": _tracks(numbers, chosen),
        "device_type": _amounts([arg.memory_type for arg in args]),
        "device": _amounts([arg.memory_device for arg in args]),
        "allocated_bytes": _amounts(allocated),
        "reserved_bytes": _amounts(reserved),
        "size_bytes": _amounts([arg.changed for arg in args]),
        "event": places.astype(np.uint32),
    }
    no_time = columns["time_ns"] == NONE_NS
    unusable = (columns["size_bytes"] == NONE_BYTES) | (columns["device_type"] < 0)
    unusable |= (columns["device_type"] > 0) & ((columns["device"] < 0) | (columns["device"] > _DEVICE_MAX))
    unusable |= (columns["allocated_bytes"] < 0) & _written(allocated)
    unusable |= (columns["reserved_bytes"] < 0) & _written(reserved)
    for reason, mask in (("no_timestamp", no_time), ("memory_unusable", unusable & ~no_time)):
        if mask.any():
            chunk.skipped.setdefault(reason, []).extend(places[mask].tolist())
    usable = ~(no_time | unusable)
    chunk.memory = {name: column[usable] for name, column in columns.items()}


_NO_MEMORY_ARGS: Final = MemoryArgs()
_DEVICE_MAX: Final = 1 << 16


def _written(values: Sequence[Any]) -> NDArray[np.bool_]:
    return np.fromiter((value is not None for value in values), np.bool_, len(values))


def _amounts(values: Sequence[Any]) -> NDArray[np.int64]:
    """Return `[N]` int64 of amounts, which may be negative; NONE_BYTES for what is none or absurd."""
    if set(map(type, values)) <= {int}:
        try:
            found = np.fromiter(values, np.int64, len(values))
        except OverflowError:
            pass
        else:
            return np.where(np.abs(found) < _AMOUNT_MAX, found, NONE_BYTES)
    return np.fromiter(map(_amount, values), np.int64, len(values))


_AMOUNT_MAX: Final = 1 << 56


def _amount(value: Any) -> int:
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return NONE_BYTES
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _AMOUNT_MAX:
        return NONE_BYTES
    return value


def _add_metadata(chunk: Chunk, number: int, event: Any) -> None:
    args = event.args or _NO_ARGS
    value = args.labels if event.name == "process_labels" else args.name
    if value is not None and event.name in ("process_name", "process_labels", "thread_name"):
        chunk.metadata.append((number, event.name, _plain(event.pid), _plain(event.tid), _text(value)))


def _ids(values: Sequence[Any]) -> NDArray[np.int64]:
    """Return `[N]` int64 of ids as exporters write them; NONE_ID where there is none."""
    if set(map(type, values)) <= {int}:
        try:
            return np.fromiter(values, np.int64, len(values))
        except OverflowError:
            pass
    return np.fromiter(map(_id, values), np.int64, len(values))


def _id(value: Any) -> int:
    if isinstance(value, str):
        try:
            value = int(value, 0)
        except ValueError:
            return NONE_ID if not value else zlib.crc32(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return NONE_ID
    return value if -(1 << 63) <= value < 1 << 63 else _fold(value)


def _fold(value: int) -> int:
    """Bring an id beyond 64 bits into range; equal ids stay equal."""
    return value & ((1 << 62) - 1)


_TEXT_MAX: Final = 512
_LIST_MAX: Final = 1 << 16  # lists of tensors have thousands of shapes, which are of use only as a whole


def _text(value: Any) -> str:
    """Return a value as the text to show, a list as on one line; None as the empty text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        line = msgspec.json.format(value, indent=0) if b"\n" in value else value
        return line.decode("utf-8", "replace")[:_LIST_MAX]
    return "" if value is None else str(value)[:_TEXT_MAX]


def _plain(value: Any) -> Any:
    """Return a process or thread id in a form that can be a key."""
    return value if isinstance(value, int | str) and not isinstance(value, bool) else _text(value)
