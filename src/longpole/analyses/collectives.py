"""The collective and point-to-point operations of one rank: what each is, in which group, how large (DESIGN 3.8).

thread   ├──── nccl:all_reduce ────┤              annotation: names the kind
           ├ record_param_comms ┤                 metadata: group, members, sequence, sizes
              ├ launch ┤                          issue_ns
stream                      ├──── kernel ────┤    start_ns, end_ns
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from longpole.analyses.comm_groups import Groups, element_bytes, full_bytes
from longpole.analyses.name_book import OBJECT_CODE
from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COMPUTE
from longpole.records.instances import RECEIVE, SEND, Instances
from longpole.timeline.columns import NONE_ID, NONE_NS, Kind
from longpole.timeline.intervals import covered_before, union
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.analyses.rungs import DeviceRow
    from longpole.timeline.intervals import Intervals
    from longpole.timeline.tables import CollectiveArgs, DeviceTable
    from longpole.timeline.timeline import Timeline

KIND_CODE: Final = {name: code for code, name in enumerate(COLLECTIVE_KINDS)}
_PEERS: Final = re.compile(r"(send|recv)\s*(\d+)\s*(?:->|<-)\s*(\d+)")
_AWAITS: Final = ("wait", "init")  # records that describe no operation (formats.md C.4)
_COALESCED: Final = "coalesced"
_MAY_BE_PAIRS: Final = ("", "send_recv")
_OUTWARD_MAX: Final = 6  # spans that begin before a launch and may still be open at it


@dataclass(slots=True)
class _Said:
    """What is known of one operation beside its span."""

    kind: str = ""
    args: tuple[CollectiveArgs, ...] = ()
    is_p2p: bool = False
    peer: int = -1
    direction: int = 0


def device_instances(
    timeline: Timeline, book: NameBook, rows: list[DeviceRow], unit_bounds_ns: NDArray[np.int64]
) -> Instances:
    """Collect the operations that ran on a rank's devices.

    Args:
        timeline: The record.
        book: Meanings of its names.
        rows: Its devices.
        unit_bounds_ns: `[P + 1]` int64 ns: where the row's units (head and tail included) begin and end.
    """
    groups = Groups(timeline)
    facts = _Facts(timeline, book)
    columns = _Columns(groups)
    kinds = _KindsByName()
    for row in rows:
        mine = np.flatnonzero(row.rung == RUNG_COLLECTIVE)
        spans = row.spans.take(mine)
        compute = union(row.spans.start_ns[row.rung == RUNG_COMPUTE], row.spans.end_ns[row.rung == RUNG_COMPUTE])
        covered_ns = covered_before(compute, spans.end_ns) - covered_before(compute, spans.start_ns)
        linked = spans.launch != NONE_ID
        issue_ns = (
            np.where(linked, timeline.host.start_ns[spans.launch], NONE_NS) if len(timeline.host) else spans.launch
        )
        stage = np.where(linked, row.launch_stage[mine], -1)
        said = facts.of_kernels(spans, row.rows[mine])
        kinds.note(spans.name.tolist(), said)
        exposed_ns = spans.end_ns - spans.start_ns - covered_ns
        table = (spans.start_ns, spans.end_ns, issue_ns, row.rows[mine], spans.stream, exposed_ns, stage)
        for one, (start, end, issue, place, stream, exposed, in_stage) in zip(
            said, zip(*(column.tolist() for column in table), strict=True), strict=True
        ):
            columns.add((start, end), issue, (place, 1, stream), one, exposed, in_stage)
    columns.complete_kinds(kinds.of_rows())
    return columns.finish(unit_bounds_ns)


class _KindsByName:
    """Kinds by kernel name: one whose launch was not recorded does what all others of its name do."""

    def __init__(self) -> None:
        self._names: list[int] = []
        self._kinds: dict[int, set[str]] = {}

    def note(self, names: list[int], said: list[_Said]) -> None:
        """Take in the names of some kernels and what is known of them."""
        self._names += names
        for name, one in zip(names, said, strict=True):
            if one.kind:
                self._kinds.setdefault(name, set()).add(one.kind)

    def of_rows(self) -> list[str]:
        """Return the kind that the name of each row has, empty where it has several or none."""
        only = {name: next(iter(kinds)) for name, kinds in self._kinds.items() if len(kinds) == 1}
        return [only.get(name, "") for name in self._names]


def host_instances(
    timeline: Timeline, book: NameBook, compute: Intervals, unit_bounds_ns: NDArray[np.int64]
) -> Instances:
    """Collect the operations of a backend on the host (gloo, MPI), whose spans last as long as the transfer.

    Args:
        timeline: A record without device spans.
        book: Meanings of its names.
        compute: When operators ran on the main thread.
        unit_bounds_ns: As above.

    Of one whose call returned at once the issue is known: that is how it is told from one that blocked.
    """
    host = timeline.host
    groups = Groups(timeline)
    columns = _Columns(groups)
    args = {said.row: said for said in timeline.collectives if not said.on_device}
    is_operation = book.is_backend[host.name] | book.is_in_flight[host.name]
    rows = np.flatnonzero(is_operation & (host.kind != Kind.PYTHON) & (host.kind != Kind.RUNTIME))
    covered = covered_before(compute, host.end_ns[rows]) - covered_before(compute, host.start_ns[rows])
    flies = book.is_in_flight[host.name[rows]]
    if flies.any():
        # What is in flight shows where the main thread waits for it, and nowhere else.
        waited = _awaited(timeline, book)
        shown = covered_before(waited, host.end_ns[rows]) - covered_before(waited, host.start_ns[rows])
        covered = np.where(flies, host.end_ns[rows] - host.start_ns[rows] - shown, covered)
    for row, covered_ns, in_flight in zip(rows.tolist(), covered.tolist(), flies.tolist(), strict=True):
        code = int(host.name[row])
        span_ns = int(host.start_ns[row]), int(host.end_ns[row])
        said = _Said(book.host(code).kind, (args[row],) if row in args else ())
        if said.kind == "send_recv":
            said.is_p2p, said.direction = True, RECEIVE if "recv" in timeline.names[code] else SEND
            if timeline.told is not None and said.args:
                peers = (said.args[0].target_rank, said.args[0].source_rank)
                said.peer = next((peer for peer in peers if peer is not None), -1)
        where = row, 0, int(host.track[row])
        issue_ns = span_ns[0] if in_flight else NONE_NS
        columns.add(span_ns, issue_ns, where, said, span_ns[1] - span_ns[0] - covered_ns, -1)
    return columns.finish(unit_bounds_ns)


def _awaited(timeline: Timeline, book: NameBook) -> Intervals:
    """Return when the main thread waits for collectives, as the program says."""
    host = timeline.host
    waits = (book.object[host.name] == OBJECT_CODE["collective"]) & ~book.is_in_flight[host.name]
    rows = np.flatnonzero(waits & (host.track == timeline.main_track))
    return union(host.start_ns[rows], host.end_ns[rows])


class _Launch(NamedTuple):
    """A launching call, -1 for none; the metadata and annotation open at it, and the end of the launch before it."""

    row: int
    metadata: int
    annotation: int
    before_ns: int


class _Facts:
    """Finds what the record says of the kernels of collectives."""

    def __init__(self, timeline: Timeline, book: NameBook) -> None:
        host = timeline.host
        self._timeline, self._book = timeline, book
        self._kinds: dict[str, str] = {}
        self._on_device = {args.row: args for args in timeline.collectives if args.on_device}
        described = {args.row: args for args in timeline.collectives if not args.on_device}
        self._described = {row: args for row, args in described.items() if args.name not in _AWAITS}
        external = host.external_id
        self._by_external = {int(external[row]): a for row, a in self._described.items() if external[row] != NONE_ID}
        self._metadata = _Openings(timeline, np.array(sorted(self._described), np.int64))
        backends = [code for code in np.unique(host.name).tolist() if book.host(code).backend]
        named = np.isin(host.name, backends) & (host.kind != Kind.PYTHON) & (host.kind != Kind.RUNTIME)
        self._annotations = _Openings(timeline, np.flatnonzero(named).astype(np.int64))

    def of_kernels(self, spans: DeviceTable, rows: NDArray[np.int64]) -> list[_Said]:
        """Return what is known of the kernels of one device, from the best source to the worst."""
        metadata = self._metadata.open_at(spans.launch).tolist()
        annotation = self._annotations.open_at(spans.launch).tolist()
        before_ns = self._launched_before(spans.launch).tolist()
        launches = map(_Launch, spans.launch.tolist(), metadata, annotation, before_ns)
        kernels = zip(rows.tolist(), spans.name.tolist(), spans.external_id.tolist(), launches, strict=True)
        return [self._of_kernel(*kernel) for kernel in kernels]

    def _of_kernel(self, row: int, name: int, external: int, at: _Launch) -> _Said:
        """Return what is known of one kernel: by its metadata, the annotation around its launch, its name."""
        book, annotation = self._book, at.annotation
        args = self._on_device.get(row) or self._by_external.get(external) or self._described.get(at.metadata)
        said = _Said(args=(args,) if args is not None else ())
        named = self._timeline.names[int(self._timeline.host.name[annotation])] if annotation >= 0 else ""
        if args is not None:
            said.kind = self._kind_of(args.name)
        if not said.kind and at.row != NONE_ID and (args is not None or _COALESCED in named):
            self._take_group(said, self._since(at), args)
        if said.kind in _MAY_BE_PAIRS:
            self._say_peers(said, named)
        if not said.kind and annotation >= 0:
            said.kind = book.host(int(self._timeline.host.name[annotation])).kind
        if not said.kind:
            said.kind = book.kernel(name).kind
        return said

    def _kind_of(self, written: str) -> str:
        if written not in self._kinds:
            self._kinds[written] = self._book.collective_kind(written)
        return self._kinds[written]

    def _launched_before(self, launch: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the end of the launch of a collective before each one on its thread; NONE_NS for the first."""
        host = self._timeline.host
        before_ns = np.full(len(launch), NONE_NS, np.int64)
        linked = np.flatnonzero(launch != NONE_ID)
        if len(linked) == 0:
            return before_ns
        rows = launch[linked]
        order = np.lexsort((host.start_ns[rows], host.track[rows]))
        rows, linked = rows[order], linked[order]
        same = (host.track[rows[1:]] == host.track[rows[:-1]]) & (rows[1:] != rows[:-1])
        before_ns[linked[1:][same]] = host.end_ns[rows[:-1]][same]
        return before_ns

    def _since(self, at: _Launch) -> tuple[CollectiveArgs, ...]:
        """Return the records on the launching thread since its last launch of a collective: a coalesced group."""
        host = self._timeline.host
        rows = self._metadata.between(int(host.track[at.row]), at.before_ns, int(host.end_ns[at.row]))
        return tuple(self._described[row] for row in rows)

    def _take_group(self, said: _Said, grouped: tuple[CollectiveArgs, ...], own: CollectiveArgs | None) -> None:
        """Take kind and sizes from the members of a coalesced group, where they are of one kind and group."""
        group = own.group_name if own is not None else grouped[-1].group_name if grouped else ""
        parts = [args for args in grouped if args.group_name == group]
        kinds = {self._kind_of(args.name) for args in parts} - {""}
        if len(kinds) == 1:
            said.kind = kinds.pop()
            said.args = tuple(args for args in parts if self._kind_of(args.name))

    def _say_peers(self, said: _Said, annotation: str) -> None:
        """Say who sends to whom: by the metadata's global ranks, else by the annotation's ranks in the group."""
        names = {args.name.lower() for args in said.args}
        sends = any("send" in name for name in names) or "send" in annotation
        receives = any("recv" in name for name in names) or "recv" in annotation
        is_named = said.kind == "send_recv" or (not said.kind and (sends or receives))
        if not is_named:
            return
        said.is_p2p, said.direction = True, SEND * sends + RECEIVE * receives
        said.kind = said.kind or "send_recv"
        peers = {args.target_rank if "send" in args.name.lower() else args.source_rank for args in said.args}
        match = _PEERS.search(annotation)
        if len(peers) == 1 and None not in peers:
            said.peer = int(peers.pop() or 0)
        elif match:
            said.peer = int(match[3])


class _Openings:
    """Which of some host rows is open on a thread at a time."""

    def __init__(self, timeline: Timeline, rows: NDArray[np.int64]) -> None:
        host = timeline.host
        self._host = host
        self._by_track = {int(t): rows[host.track[rows] == t] for t in np.unique(host.track[rows])}
        self._starts = {t: host.start_ns[mine] for t, mine in self._by_track.items()}

    def open_at(self, launch: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the innermost row that is open on the thread of each launch when that begins, -1 for none."""
        host = self._host
        found = np.full(len(launch), -1, np.int64)
        linked = np.flatnonzero(launch != NONE_ID)
        track = host.track[launch[linked]]
        for code in np.unique(track).tolist():
            if code not in self._by_track:
                continue
            mine = linked[track == code]
            rows, time_ns = self._by_track[code], host.start_ns[launch[mine]]
            last = np.searchsorted(self._starts[code], time_ns, side="right") - 1
            for back in range(_OUTWARD_MAX):
                place = last - back
                candidate = rows[np.maximum(place, 0)]
                is_open = (place >= 0) & (host.end_ns[candidate] > time_ns) & (found[mine] < 0)
                found[mine[is_open]] = candidate[is_open]
        return found

    def between(self, track: int, after_ns: int, until_ns: int) -> list[int]:
        """Return the rows of a thread that begin in a time."""
        if track not in self._by_track:
            return []
        low, high = np.searchsorted(self._starts[track], [after_ns, until_ns], side="left")
        found: list[int] = self._by_track[track][low:high].tolist()
        return found


class _Columns:
    """The columns under construction."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._dtypes: dict[str, int] = {}
        self._rows: list[tuple[int, ...]] = []

    def add(
        self,
        span_ns: tuple[int, int],
        issue_ns: int,
        where: tuple[int, int, int],
        said: _Said,
        exposed_ns: int,
        stage: int,
    ) -> None:
        """Append one operation; `where` is row, whether on a device, stream."""
        row, on_device, stream = where
        first = said.args[0] if said.args else None
        group = self._groups.number_of(first) if first is not None else -1
        dtype = self._dtypes.setdefault(first.dtype, len(self._dtypes)) if first is not None and first.dtype else -1
        size = self._groups.size_of(group)
        n_bytes = sum_known([full_bytes(said.kind, args, size) for args in said.args])
        sequence = next((args.sequence for args in said.args if args.sequence is not None), NONE_ID)
        comms_id = next((args.comms_id for args in said.args if args.comms_id is not None), NONE_ID)
        peer = said.peer
        if peer >= 0 and first is not None and first.source_rank is None and first.target_rank is None:
            peer = self._groups.global_rank(group, peer)
        self._rows.append(
            (
                *span_ns,
                issue_ns,
                row,
                on_device,
                KIND_CODE[said.kind],
                group,
                sequence,
                comms_id,
                int(said.is_p2p),
                peer,
                n_bytes,
                dtype,
                stream,
                exposed_ns,
                said.direction,
                stage,
            )
        )

    def complete_kinds(self, kinds: list[str]) -> None:
        """Fill in kinds that are not known, in the order in which rows were added."""
        at = _ORDER.index("kind")
        for place, kind in enumerate(kinds):
            if kind and self._rows[place][at] == KIND_CODE[""]:
                row = self._rows[place]
                self._rows[place] = (*row[:at], KIND_CODE[kind], *row[at + 1 :])

    def finish(self, unit_bounds_ns: NDArray[np.int64]) -> Instances:
        """Order by start, place each operation in the unit that issued it, and store."""
        table = np.array(self._rows, np.int64).reshape(-1, len(_ORDER))
        table = table[np.lexsort((table[:, 3], table[:, 1], table[:, 0]))]
        columns = dict(zip(_ORDER, table.T, strict=True))
        # A collective belongs to the unit that issued it; where that is not recorded, to the one it starts in.
        since_ns = np.where(columns["issue_ns"] != NONE_NS, columns["issue_ns"], columns["start_ns"])
        unit = np.searchsorted(unit_bounds_ns, since_ns, side="right") - 1
        n_units = len(unit_bounds_ns) - 1
        # At the very end of the record the last unit holds its own end.
        unit = np.where((unit == n_units) & (since_ns == unit_bounds_ns[-1]), n_units - 1, unit)
        columns["unit"] = np.where((unit >= 0) & (unit < n_units), unit, -1)
        return Instances.from_columns(groups=self._groups.listed(), dtypes=list(self._dtypes), **columns)


_ORDER: Final = (
    "start_ns",
    "end_ns",
    "issue_ns",
    "row",
    "on_device",
    "kind",
    "group",
    "sequence",
    "comms_id",
    "is_p2p",
    "peer",
    "bytes",
    "dtype",
    "stream",
    "exposed_ns",
    "direction",
    "stage",
)


def sum_known(sizes: list[int]) -> int:
    """Add sizes, -1 where one of them is not known or there is none."""
    return -1 if not sizes or min(sizes) < 0 else sum(sizes)


__all__ = ["KIND_CODE", "device_instances", "element_bytes", "host_instances", "sum_known"]
