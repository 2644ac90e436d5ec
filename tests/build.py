"""Timelines in a few words per span: what a test draws above itself, it writes down here.

Times are microseconds, so that a test reads like its picture; `Script.timeline` turns them into the tables that a
reader makes, in the order that a reader gives them. A script is data: `shifted`, `permuted` and the like make others.

    script = Script()
    script.step(0, 0, 100)
    launch = script.launch(10, 12)
    script.kernel(20, 90, launch)
    script.sync(30, 91)
    measure(script).rows[0].units[0].ledger
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from longpole.analyses.idle import find_gaps, idle_pieces
from longpole.analyses.name_book import NameBook
from longpole.analyses.one_offs import setup_rows
from longpole.analyses.pieces import join_pieces
from longpole.analyses.rungs import busy_pieces, device_row
from longpole.analyses.threads import Threads
from longpole.digest.digest import Selection, digest
from longpole.settings import Settings
from longpole.timeline.boundaries import find_units, marker_rows
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.intervals import complement, union
from longpole.timeline.tables import DeviceTable, FlowTable, HostTable, Sparse, Track
from longpole.timeline.timeline import Identity, Source, Timeline, find_main_track
from longpole.vocabulary.matcher import Vocabulary
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS, STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from longpole.analyses.idle import Gaps
    from longpole.analyses.pieces import Pieces
    from longpole.analyses.rungs import DeviceRow
    from longpole.digest.rank_digest import RankDigest, UnitDigest

VOCABULARY = Vocabulary.load()

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COPY_NAMES = {
    "htod": "Memcpy HtoD (Pinned -> Device)",
    "dtoh": "Memcpy DtoH (Device -> Pinned)",
    "dtod": "Memcpy DtoD (Device -> Device)",
    "ptop": "Memcpy PtoP (Device -> Device)",
    "unknown": "Memcpy (Unknown)",
    "memset": "Memset (Device)",
}
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKER_LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
GC = "<built-in function collect>"
OPTIMIZER = "Optimizer.step#AdamW.step"
MAIN = "main"


@dataclass(eq=False, slots=True)
class HostSpan:
    """A span of a thread; two spans that look alike are still two."""

    name: str
    start_ns: int
    end_ns: int
    kind: Kind
    thread: str = MAIN
    correlation: int = NONE_ID
    external_id: int = NONE_ID
    of_autograd: bool = False
    shapes: str = ""
    stack: str = ""
    types: str = ""
    values: str = ""
    sequence: str = ""


@dataclass(eq=False, slots=True)
class DeviceSpan:
    """A kernel, copy or memset; `call` launched it, and `linked` says whether the record knows."""

    name: str
    start_ns: int
    end_ns: int
    kind: Kind
    call: HostSpan | None = None
    linked: bool = True
    device: int = 0
    stream: int = 7
    size_bytes: int = -1


def to_ns(time_us: float) -> int:
    return round(time_us * 1000)


@dataclass(slots=True, repr=False)
class Script:
    """What was recorded of one rank."""

    rank: int = 0
    world_size: int | None = None
    base_ns: int | None = None
    path: str = "rank0.json"
    rank_assumed: bool = False
    hostname: str = ""
    host: list[HostSpan] = field(default_factory=list)
    device: list[DeviceSpan] = field(default_factory=list)
    aside: list[HostSpan] = field(default_factory=list)
    tasks: list[DeviceSpan] = field(default_factory=list)

    def __repr__(self) -> str:
        """Write one line per span, so that a failing example can be read."""
        lines = [f"rank {self.rank}, ns:"]
        for row in sorted(self.host, key=lambda row: (row.thread, row.start_ns, -row.end_ns)):
            mark = " (autograd)" if row.of_autograd else ""
            lines.append(f"  {row.thread}: {row.start_ns}-{row.end_ns} {row.kind.name.lower()} {row.name}{mark}")
        for span in sorted(self.device, key=lambda span: (span.device, span.stream, span.start_ns)):
            call = f"{span.call.thread} {span.call.start_ns}" if span.call else "nobody"
            by = f"by {call}" if span.linked else f"unlinked, by {call}"
            lines.append(f"  {span.device}/{span.stream}: {span.start_ns}-{span.end_ns} {span.name[:40]} {by}")
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Make Hypothesis show the lines above instead of all fields."""
        del cycle
        printer.text(repr(self))

    # --- the host ---------------------------------------------------------------------------------------------

    def span(
        self, name: str, start: float, end: float, *, kind: Kind = Kind.ANNOTATION, thread: str = MAIN
    ) -> HostSpan:
        row = HostSpan(name, to_ns(start), to_ns(end), kind, thread)
        self.host.append(row)
        return row

    def step(self, number: int, start: float, end: float, *, thread: str = MAIN) -> HostSpan:
        return self.span(f"ProfilerStep#{number}", start, end, thread=thread)

    def op(
        self, name: str, start: float, end: float, *, thread: str = MAIN, shapes: str = "", types: str = ""
    ) -> HostSpan:
        row = self.span(name, start, end, kind=Kind.OPERATOR, thread=thread)
        row.shapes, row.types = shapes, types
        return row

    def frame(self, name: str, start: float, end: float, *, thread: str = MAIN) -> HostSpan:
        return self.span(name, start, end, kind=Kind.PYTHON, thread=thread)

    def call(self, name: str, start: float, end: float, *, thread: str = MAIN) -> HostSpan:
        return self.span(name, start, end, kind=Kind.RUNTIME, thread=thread)

    def launch(self, start: float, end: float, *, thread: str = MAIN, name: str = "cudaLaunchKernel") -> HostSpan:
        return self.call(name, start, end, thread=thread)

    def sync(self, start: float, end: float, *, thread: str = MAIN, name: str = "cudaStreamSynchronize") -> HostSpan:
        return self.call(name, start, end, thread=thread)

    def backward(self, name: str, start: float, end: float, *, thread: str = "autograd") -> HostSpan:
        """Add an operator that names the forward thread it belongs to, as only autograd's threads do."""
        row = self.op(name, start, end, thread=thread)
        row.of_autograd = True
        return row

    # --- the device -------------------------------------------------------------------------------------------

    def kernel(
        self,
        start: float,
        end: float,
        call: HostSpan | None = None,
        *,
        name: str = "gemm_kernel",
        stream: int = 7,
        device: int = 0,
    ) -> DeviceSpan:
        row = DeviceSpan(name, to_ns(start), to_ns(end), Kind.KERNEL, call, device=device, stream=stream)
        self.device.append(row)
        return row

    def collective(
        self, start: float, end: float, call: HostSpan | None = None, *, stream: int = 13, name: str = ALL_REDUCE
    ) -> DeviceSpan:
        return self.kernel(start, end, call, name=name, stream=stream)

    def copy(
        self,
        way: str,
        start: float,
        end: float,
        call: HostSpan | None = None,
        *,
        size_bytes: int = 1 << 20,
        stream: int = 7,
    ) -> DeviceSpan:
        kind = Kind.MEMSET if way == "memset" else Kind.COPY
        row = DeviceSpan(COPY_NAMES[way], to_ns(start), to_ns(end), kind, call, stream=stream, size_bytes=size_bytes)
        self.device.append(row)
        return row

    # --- what is recorded and is no work ----------------------------------------------------------------------

    def sync_row(self, start: float, end: float) -> HostSpan:
        row = HostSpan("Stream Sync", to_ns(start), to_ns(end), Kind.SYNC_ROW, "stream 7")
        self.aside.append(row)
        return row

    def overhead(self, name: str, start: float, end: float) -> HostSpan:
        row = HostSpan(name, to_ns(start), to_ns(end), Kind.OVERHEAD, "overhead")
        self.aside.append(row)
        return row

    def task(self, name: str, start: float, end: float) -> DeviceSpan:
        row = DeviceSpan(name, to_ns(start), to_ns(end), Kind.DEVICE_TASK)
        self.tasks.append(row)
        return row

    def extent_ns(self) -> tuple[int, int]:
        """Return the first start and the last end of all that is placed."""
        starts = [*(row.start_ns for row in self.host), *(span.start_ns for span in self.device)]
        ends = [*(row.end_ns for row in self.host), *(span.end_ns for span in self.device)]
        return min(starts), max(ends)

    # --- other scripts ----------------------------------------------------------------------------------------

    def changed(self, host: Callable[[HostSpan], HostSpan], device: Callable[[DeviceSpan], DeviceSpan]) -> Script:
        """Return a script with other spans, in which calls and what they launched still belong together."""
        twin = {id(row): host(row) for row in self.host}
        spans = []
        for old in self.device:
            new = device(old)
            new.call = twin[id(old.call)] if old.call is not None else None
            spans.append(new)
        return replace(
            self,
            host=list(twin.values()),
            device=spans,
            aside=[host(row) for row in self.aside],
            tasks=[device(row) for row in self.tasks],
        )

    def shifted(self, by_ns: int) -> Script:
        """Return the same record on clocks that show another time; the base moves the other way."""

        def host(row: HostSpan) -> HostSpan:
            return replace(row, start_ns=row.start_ns + by_ns, end_ns=row.end_ns + by_ns)

        def device(row: DeviceSpan) -> DeviceSpan:
            return replace(row, start_ns=row.start_ns + by_ns, end_ns=row.end_ns + by_ns)

        return replace(self.changed(host, device), base_ns=None if self.base_ns is None else self.base_ns - by_ns)

    def scaled(self, factor: int) -> Script:
        """Return the same record with all times multiplied."""

        def host(row: HostSpan) -> HostSpan:
            return replace(row, start_ns=row.start_ns * factor, end_ns=row.end_ns * factor)

        def device(row: DeviceSpan) -> DeviceSpan:
            return replace(row, start_ns=row.start_ns * factor, end_ns=row.end_ns * factor)

        return self.changed(host, device)

    def permuted(self, key: Callable[[int], object]) -> Script:
        """Return the same record with its rows written in another order: sorted by `key(place)`."""
        host = [self.host[i] for i in sorted(range(len(self.host)), key=key)]  # type: ignore[arg-type]
        device = [self.device[i] for i in sorted(range(len(self.device)), key=key)]  # type: ignore[arg-type]
        return replace(self, host=host, device=device)

    def then(self, other: Script) -> Script:
        """Return a record that holds the rows of both."""
        return replace(
            self,
            host=[*self.host, *other.host],
            device=[*self.device, *other.device],
            aside=[*self.aside, *other.aside],
            tasks=[*self.tasks, *other.tasks],
        )

    # --- tables -----------------------------------------------------------------------------------------------

    def timeline(self) -> Timeline:
        """Build the tables as a reader would."""
        return _Lowered(self).timeline()


class _Lowered:
    """One script on its way into tables."""

    def __init__(self, script: Script) -> None:
        self.script = script
        rows: list[HostSpan | DeviceSpan] = [*script.host, *script.device, *script.aside, *script.tasks]
        self.event = {id(row): place for place, row in enumerate(rows)}
        # Sorted, so that codes do not depend on the order of rows.
        self.names = tuple(sorted({row.name for row in rows}))
        self.threads = sorted({row.thread for row in (*script.host, *script.aside)}, key=lambda t: (t != MAIN, t))
        calls = {id(row.call): row.call for row in script.device if row.call is not None and row.linked}
        in_time = sorted(calls.values(), key=lambda row: (row.start_ns, row.end_ns, self.event[id(row)]))
        self.correlation = {id(row): number for number, row in enumerate(in_time, 1)}
        self.host = sorted(script.host, key=self._host_key)
        self.place = {id(row): place for place, row in enumerate(self.host)}

    def _host_key(self, row: HostSpan) -> tuple[int, int, int, int]:
        return self.threads.index(row.thread), row.start_ns, -row.end_ns, self.event[id(row)]

    def timeline(self) -> Timeline:
        script, n_rows = self.script, len(self.event)
        return Timeline(
            identity=Identity(script.rank, script.rank_assumed, script.world_size, script.hostname),
            source=Source(script.path, "kineto", "1", 1000, n_rows, 0, 0),
            base_ns=script.base_ns,
            names=self.names,
            tracks=tuple(Track(1, place + 1, name) for place, name in enumerate(self.threads)),
            host=self._host_table(self.host),
            device=self._device_table(script.device),
            tasks=self._device_table(script.tasks),
            aside=self._host_table(sorted(script.aside, key=self._host_key)),
            flows=FlowTable.empty(),
            input_dims=self._sparse([row.shapes for row in self.host]),
            input_types=self._sparse([row.types for row in self.host]),
            input_values=self._sparse([row.values for row in self.host]),
            sequences=self._sparse([row.sequence for row in self.host]),
            call_stacks=self._sparse([row.stack for row in self.host]),
            backward=np.array([place for place, row in enumerate(self.host) if row.of_autograd], np.int64),
            collectives=(),
            main_track=-1,
        )

    def _host_table(self, rows: Sequence[HostSpan]) -> HostTable:
        correlation = [self.correlation.get(id(row), row.correlation) for row in rows]
        return HostTable(
            start_ns=_ints(row.start_ns for row in rows),
            end_ns=_ints(row.end_ns for row in rows),
            name=_ints(self.names.index(row.name) for row in rows).astype(np.int32),
            track=_ints(self.threads.index(row.thread) for row in rows).astype(np.int32),
            kind=_ints(int(row.kind) for row in rows).astype(np.uint8),
            correlation=_ints(correlation),
            external_id=_ints(row.external_id for row in rows),
            event=_ints(self.event[id(row)] for row in rows).astype(np.uint32),
        )

    def _device_table(self, spans: Iterable[DeviceSpan]) -> DeviceTable:
        rows = sorted(spans, key=lambda row: (row.device, row.start_ns, self.event[id(row)]))
        known = [row.call if row.linked else None for row in rows]
        return DeviceTable(
            start_ns=_ints(row.start_ns for row in rows),
            end_ns=_ints(row.end_ns for row in rows),
            name=_ints(self.names.index(row.name) for row in rows).astype(np.int32),
            device=_ints(row.device for row in rows).astype(np.int32),
            stream=_ints(row.stream for row in rows),
            kind=_ints(int(row.kind) for row in rows).astype(np.uint8),
            correlation=_ints(self.correlation[id(call)] if call else NONE_ID for call in known),
            external_id=_ints(NONE_ID for _ in rows),
            size_bytes=_ints(row.size_bytes for row in rows),
            launch=_ints(self.place[id(call)] if call else NONE_ID for call in known),
            event=_ints(self.event[id(row)] for row in rows).astype(np.uint32),
        )

    @staticmethod
    def _sparse(values: Sequence[str]) -> Sparse:
        rows = [place for place, value in enumerate(values) if value]
        texts = sorted({values[row] for row in rows})
        return Sparse(_ints(rows), _ints(texts.index(values[row]) for row in rows).astype(np.int32), tuple(texts))


def _ints(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)


# --- measuring --------------------------------------------------------------------------------------------------


def measure(script: Script, settings: Settings | None = None, *, step: str | None = None) -> RankDigest:
    """Digest a script as `longpole report` would."""
    return digest(script.timeline(), VOCABULARY, settings or Settings(), Selection(step_pattern=step))


def units(measured: RankDigest, row: int = 0) -> list[UnitDigest]:
    """Return the units of one device row, without head and tail."""
    return [unit for unit in measured.rows[row].units if unit.kind not in ("head", "tail")]


def idle_us(script: Script, settings: Settings | None = None) -> dict[str, float]:
    """Return why the device idled in the whole record: reason -> µs, reasons without time left out."""
    total: dict[str, float] = {}
    for unit in measure(script, settings).rows[0].units:
        for reason, time_ns in unit.ledger.idle_ns.items():
            if time_ns:
                total[reason] = total.get(reason, 0) + time_ns / 1000
    return total


def exposed_us(script: Script, settings: Settings | None = None) -> dict[str, float]:
    """Return what the whole record is charged to: object -> µs, objects without time left out."""
    total: dict[str, float] = {}
    for unit in measure(script, settings).rows[0].units:
        for name, time in unit.ledger.objects.items():
            if time.exposed_ns:
                total[name] = total.get(name, 0) + time.exposed_ns / 1000
    return total


@dataclass(frozen=True, slots=True)
class Cut:
    """The analyses of a device row up to its pieces, for tests that look at single pieces."""

    timeline: Timeline
    book: NameBook
    threads: Threads
    row: DeviceRow
    gaps: Gaps
    pieces: Pieces

    def lines(self) -> list[tuple[float, float, str]]:
        """Return the pieces as (start, end, reason or object), in µs."""
        pieces = self.pieces
        named = zip(pieces.reason.tolist(), pieces.object.tolist(), strict=True)
        names = [IDLE_REASONS[reason] if reason >= 0 else OBJECTS[charged] for reason, charged in named]
        return list(zip((pieces.start_ns / 1000).tolist(), (pieces.end_ns / 1000).tolist(), names, strict=True))

    def idle_lines(self) -> list[tuple[float, float, str]]:
        """Return the idle pieces as (start, end, reason), in µs."""
        return [line for line, reason in zip(self.lines(), self.pieces.reason.tolist(), strict=True) if reason >= 0]

    def stages(self) -> list[tuple[float, float, str]]:
        """Return the pieces as (start, end, stage), in µs, neighbours of one stage joined."""
        joined: list[tuple[float, float, str]] = []
        for start, end, stage in zip(
            self.pieces.start_ns.tolist(), self.pieces.end_ns.tolist(), self.pieces.stage.tolist(), strict=True
        ):
            if joined and joined[-1][2] == STAGES[stage] and joined[-1][1] == start / 1000:
                joined[-1] = (joined[-1][0], end / 1000, STAGES[stage])
            else:
                joined.append((start / 1000, end / 1000, STAGES[stage]))
        return joined


def cut(script: Script, settings: Settings | None = None, *, device: int = 0) -> Cut:
    """Cut the record of one device into pieces."""
    settings = settings or Settings()
    timeline = script.timeline()
    markers = marker_rows(find_units(timeline, VOCABULARY, None))
    timeline = replace(timeline, main_track=find_main_track(timeline.host, timeline.tracks, markers))
    book = NameBook(timeline, VOCABULARY)
    threads = Threads(timeline, book, setup_rows(timeline, book, settings))
    row = device_row(timeline, book, threads, device, settings)
    recorded = timeline.recorded()
    ran = union(row.spans.start_ns, row.spans.end_ns)
    gaps = find_gaps(threads, row, complement(ran, int(recorded.start_ns[0]), int(recorded.end_ns[0])))
    idle = idle_pieces(threads, row, gaps, settings)
    return Cut(timeline, book, threads, row, gaps, join_pieces([busy_pieces(row, recorded), idle]))
