"""Slow and obvious versions of what `timeline` and `analyses` compute: they look at every instant, one by one.

Written from DESIGN 3.2 to 3.4, over the rows of a `Script` and without NumPy, so that they share no idea with the
code they judge. Only for records of some hundred nanoseconds and the names of `MEANINGS`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from longpole.timeline.columns import Kind
from tests.build import ALL_REDUCE, COPY_NAMES, GC, LOADER, MAIN, OPTIMIZER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.settings import Settings
    from tests.build import DeviceSpan, HostSpan, Script

FUSED = "MatmulAllReduce"
MOVED = ("compute", "collective", "input", "artifact", "state", "output")
# The strongest first: what decides where several are open on a thread.
STAGE_STRENGTH = ("optimizer", "input", "backward", "forward")
# Copies of several objects at once: the first of these takes the instant.
COPY_TURNS = ("input", "artifact", "state", "output", "collective", "compute", "host", "unknown")
CHARGED_TO_HOST = ("launch_call", "launch_latency", "kernel_gap")
CHARGED_TO_UNKNOWN = ("device.unexplained", "unlinked")


@dataclass(frozen=True)
class Meaning:
    """What a host name stands for."""

    obj: str = ""
    reason: str = ""
    stage: str = ""
    launches: bool = False
    communicates: bool = False
    is_backend: bool = False


MEANINGS = {
    LOADER: Meaning(obj="input", stage="input"),
    "save_checkpoint": Meaning(obj="output"),
    "load_weights": Meaning(obj="artifact"),
    "cpu_offload": Meaning(obj="state"),
    "init_process_group": Meaning(obj="collective"),
    GC: Meaning(reason="host.gc"),
    "cudaMalloc": Meaning(reason="host.alloc"),
    "cudaFree": Meaning(reason="host.alloc"),
    "cudaGraphInstantiate": Meaning(reason="host.compile"),
    "cudaStreamSynchronize": Meaning(reason="host.sync"),
    "cudaEventRecord": Meaning(),
    "cudaLaunchKernel": Meaning(launches=True),
    "cudaGraphLaunch": Meaning(launches=True),
    "cudaMemcpyAsync": Meaning(launches=True),
    "cudaMemsetAsync": Meaning(launches=True),
    OPTIMIZER: Meaning(stage="optimizer"),
    "autograd::engine::evaluate_function: MulBackward0": Meaning(stage="backward"),
    "aten::mul": Meaning(),
    "aten::linear": Meaning(),
    "train.py(7): train": Meaning(),
    "my_range": Meaning(),
    "c10d::allreduce_": Meaning(communicates=True),
    "gloo:all_reduce": Meaning(communicates=True, is_backend=True),
}


def meaning(name: str) -> Meaning:
    return Meaning() if name.startswith(("ProfilerStep#", "iter_")) else MEANINGS[name]


def charged_to(reason: str) -> str:
    if reason.startswith("host.") or reason in CHARGED_TO_HOST:
        return "host"
    return "unknown" if reason in CHARGED_TO_UNKNOWN else reason


# --- call trees -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A span in the call tree of its thread, cut at its parent's end."""

    start: int
    end: int
    parent: Node | None
    span: HostSpan | None = None

    def upwards(self) -> list[Node]:
        """Return the node, its parent, and so on to the root."""
        return [self, *(self.parent.upwards() if self.parent else [])]


def call_tree(spans: Iterable[tuple[int, int]]) -> list[Node]:
    """Return the nodes of spans that are ordered by start, the longer one first.

    A span's parent is the last one before it that is still open where it starts.
    """
    nodes: list[Node] = []
    for start, end in spans:
        around = [node for node in nodes if node.start <= start < node.end]
        parent = around[-1] if around else None
        nodes.append(Node(start, min(end, parent.end) if parent else end, parent))
    return nodes


def innermost_at(nodes: list[Node], time: int) -> Node | None:
    """Return the last node in order that is open at an instant."""
    around = [node for node in nodes if node.start <= time < node.end]
    return around[-1] if around else None


# --- one instant ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instant:
    """What one nanosecond is charged to."""

    rung: int
    obj: str
    reason: str
    stage: str


@dataclass
class Total:
    """Sums over one unit."""

    wall: int = 0
    exposed: Counter[str] = field(default_factory=Counter)
    service: Counter[str] = field(default_factory=Counter)
    hidden: Counter[str] = field(default_factory=Counter)
    idle: Counter[str] = field(default_factory=Counter)
    stage: Counter[str] = field(default_factory=Counter)
    stage_busy: Counter[str] = field(default_factory=Counter)
    busy: int = 0
    compute: int = 0
    collective: int = 0
    collective_exposed: int = 0
    copy: int = 0
    copy_exposed: int = 0


@dataclass(frozen=True)
class Gap:
    """A maximal stretch of idle time: K ends it, L launched K."""

    start: int
    end: int
    closer: DeviceSpan | None
    call: HostSpan | None
    thread: str

    @property
    def is_queued(self) -> bool:
        """Work that was launched before the gap began."""
        return self.call is not None and self.call.end_ns <= self.start


class Oracle:
    """One rank, measured instant by instant."""

    def __init__(self, script: Script, settings: Settings) -> None:
        self.script = script
        self.settings = settings
        self.main = self._main_thread()
        self.first, self.last = script.extent_ns()
        self.trees = {thread: self._tree(thread) for thread in {row.thread for row in script.host}}
        self.node_of = {id(node.span): node for nodes in self.trees.values() for node in nodes}
        self.autograd = {row.thread for row in script.host if row.of_autograd} - {self.main}
        self.calls = {thread: self._calls(thread) for thread in self.trees}
        self.launches = {id(span): self._launch_of(span) for span in script.device}
        self.freight = {id(span): self._freight_of(span) for span in script.device}

    def _tree(self, thread: str) -> list[Node]:
        spans = sorted((row for row in self.script.host if row.thread == thread), key=lambda r: (r.start_ns, -r.end_ns))
        nodes = call_tree((row.start_ns, row.end_ns) for row in spans)
        for node, row in zip(nodes, spans, strict=True):
            node.span = row
        return nodes

    def _calls(self, thread: str) -> list[HostSpan]:
        return [node.span for node in self.trees[thread] if node.span and node.span.kind == Kind.RUNTIME]

    # --- threads ----------------------------------------------------------------------------------------------

    def open_at(self, thread: str, time: int) -> list[HostSpan]:
        """Return the spans open on a thread, the innermost first."""
        node = innermost_at(self.trees.get(thread, []), time)
        return [n.span for n in node.upwards() if n.span] if node else []

    def around(self, span: HostSpan) -> list[HostSpan]:
        """Return a span and those that it lies in, the innermost first."""
        return [n.span for n in self.node_of[id(span)].upwards() if n.span]

    def stage_of(self, spans: list[HostSpan]) -> str:
        """Return the strongest stage of spans that lie in one another, the innermost first.

        What an optimizer is handed to call before its last gradient has stages of its own (its closure).
        """
        found = "other"
        for place, span in reversed(list(enumerate(spans))):
            own = self._own_stage(span)
            around = spans[place + 1] if place + 1 < len(spans) else None
            if around is not None and found == "optimizer" and span.start_ns < self._closure_end_ns(around):
                found = own or "other"
            else:
                found = next((stage for stage in STAGE_STRENGTH if stage in (found, own)), "other")
        return found

    def _closure_end_ns(self, span: HostSpan) -> float:
        """Return when the last gradient ends that lies in a span of the optimizer; before all time without one."""
        if self._own_stage(span) != "optimizer" or span.thread != self.main:
            return -math.inf
        gradients = [
            row.end_ns
            for row in self.script.host
            if row.of_autograd or (row.thread == self.main and self._own_stage(row) == "backward")
            if span.start_ns <= row.start_ns and row.end_ns <= span.end_ns
        ]
        return max(gradients, default=-math.inf)

    def _own_stage(self, span: HostSpan) -> str:
        if meaning(span.name).stage:
            return meaning(span.name).stage
        if span.of_autograd or span.thread in self.autograd:
            return "backward"
        return "forward" if span.kind == Kind.OPERATOR else ""

    @staticmethod
    def activity(spans: list[HostSpan]) -> str:
        """Walk outwards to the first object activity."""
        return next((meaning(span.name).obj for span in spans if meaning(span.name).obj), "")

    def host_reason(self, spans: list[HostSpan]) -> str:
        """Say what a thread does that has these spans open (DESIGN 3.4, host part)."""
        if self.activity(spans):
            return self.activity(spans)
        for span in spans:
            if meaning(span.name).reason:
                return meaning(span.name).reason
            if span.kind in (Kind.OPERATOR, Kind.RUNTIME):
                return "host.dispatch"
        return "host.python"

    # --- launches ---------------------------------------------------------------------------------------------

    def _launch_of(self, span: DeviceSpan) -> HostSpan | None:
        """Return L: by correlation, else first in, first out between linked neighbours on the stream."""
        if span.linked:
            return span.call
        lane = [s for s in self.script.device if (s.device, s.stream) == (span.device, span.stream)]
        lane.sort(key=lambda s: s.start_ns)
        place = lane.index(span)
        before = next((i for i in range(place - 1, -1, -1) if lane[i].linked), None)
        after = next((i for i in range(place + 1, len(lane)) if lane[i].linked), None)
        if before is None or after is None:
            return None
        low, high = lane[before].call, lane[after].call
        if low is high or low is None or high is None:
            return low if low is high else None
        if low.thread != high.thread:
            return None
        calls = self.calls[low.thread]
        taken = {id(s.call) for s in self.script.device if s.linked}
        free = [
            call
            for call in calls[calls.index(low) + 1 : calls.index(high)]
            if meaning(call.name).launches and id(call) not in taken
        ]
        return free[place - before - 1] if len(free) == after - before - 1 else None

    def _blocks_on(self, copy: DeviceSpan) -> bool:
        """Tell whether a copy's own call is long and returns after the copy's end (DESIGN 3.6)."""
        call = copy.call
        return (
            copy.linked
            and call is not None
            and call.end_ns - call.start_ns > self.settings.blocking_copy_min_ns
            and call.end_ns >= copy.end_ns
        )

    def _freight_of(self, span: DeviceSpan) -> str:
        """Return what a copy carries (DESIGN 3.3, freight of a copy), empty for a kernel."""
        if span.kind == Kind.KERNEL:
            return ""
        way = next(way for way, name in COPY_NAMES.items() if name == span.name)
        call = span.call if span.linked else None
        if call is not None and self.activity(self.around(call)):
            return self.activity(self.around(call))
        if way == "dtoh" and call is not None and 0 <= span.size_bytes <= self.settings.readout_max_bytes:
            following = next((c for c in self.calls[call.thread] if c.start_ns >= call.end_ns and c is not call), None)
            blocks = following is not None and meaning(following.name).reason == "host.sync"
            if blocks or self._blocks_on(span):
                return "host"
        if way in ("htod", "dtoh") and call is not None and self.stage_of(self.around(call)) == "optimizer":
            return "state"
        implied = {"htod": "input", "dtoh": "output", "dtod": "compute", "memset": "compute", "ptop": "collective"}
        return implied.get(way, "unknown")

    # --- devices ----------------------------------------------------------------------------------------------

    def running(self, device: int, time: int) -> list[DeviceSpan]:
        spans = [s for s in self.script.device if s.device == device and s.start_ns <= time < s.end_ns]
        return sorted(spans, key=lambda s: s.start_ns)

    @staticmethod
    def rung_of(span: DeviceSpan) -> int:
        if span.kind != Kind.KERNEL:
            return 3
        return 2 if span.name == ALL_REDUCE else 1

    def winner(self, spans: list[DeviceSpan]) -> DeviceSpan:
        """Return the span of the lowest rung; on one rung the one that began first, copies by what they carry."""

        def key(span: DeviceSpan) -> tuple[int, int]:
            rung = self.rung_of(span)
            return rung, COPY_TURNS.index(self.freight[id(span)]) if rung == 3 else 0

        return min(spans, key=key)

    def gaps(self, device: int) -> list[Gap]:
        found = []
        time = self.first
        while time < self.last:
            start = time
            while time < self.last and not self.running(device, time):
                time += 1
            if time > start:
                found.append(self._gap(device, start, time))
            time += 1
        return found

    def _gap(self, device: int, start: int, end: int) -> Gap:
        closers = [s for s in self.script.device if s.device == device and s.start_ns == end < s.end_ns]
        if not closers:
            return Gap(start, end, None, None, self.main)
        launched = [(call.start_ns, s) for s in closers if (call := self.launches[id(s)])]
        closer = min(launched, key=lambda pair: pair[0])[1] if launched else closers[0]
        call = self.launches[id(closer)]
        return Gap(start, end, closer, call, call.thread if call else self.main)

    def gap_limit(self, gaps: list[Gap]) -> int:
        """Return the 99th percentile, by nearest rank, of the gaps before work that was already queued."""
        lengths = sorted(gap.end - gap.start for gap in gaps if gap.is_queued)
        if len(lengths) < self.settings.p95_min_count:
            return self.settings.kernel_gap_default_ns
        at_least = next(i for i in range(len(lengths)) if 100 * (i + 1) >= 99 * len(lengths))
        return min(lengths[at_least], self.settings.kernel_gap_max_ns)

    def idle_at(self, device: int, gap: Gap, limit: int, time: int) -> Instant:
        if gap.closer is not None and gap.call is None:
            return self._idle("unlinked", "other")
        if gap.call is not None and time >= gap.call.start_ns:
            return self._idle(self._device_reason(gap, limit, time), self.stage_of(self.around(gap.call)))
        spans, thread = self.open_at(gap.thread, time), gap.thread
        if not spans:
            spans, thread = self.open_at(self.main, time), self.main
        reason = self.host_reason(spans)
        if reason in ("host.python", "host.dispatch") and time >= self._lead_lost_at(device, gap, thread):
            reason = "host.sync"
        return self._idle(reason, self.stage_of(spans))

    @staticmethod
    def _idle(reason: str, stage: str) -> Instant:
        return Instant(4, charged_to(reason), reason, stage)

    def _device_reason(self, gap: Gap, limit: int, time: int) -> str:
        assert gap.call is not None
        if gap.is_queued:
            return "kernel_gap" if time < gap.start + limit else "device.unexplained"
        if time < gap.call.end_ns:
            return "launch_call"
        latency = time - max(gap.call.end_ns, gap.start)
        return "launch_latency" if latency < self.settings.launch_latency_max_ns else "device.unexplained"

    def _lead_lost_at(self, device: int, gap: Gap, thread: str) -> float:
        """Return when the blocking call returned in which, or shortly after which, the device ran dry."""
        copies = [s for s in self.script.device if s.device == device and s.kind == Kind.COPY and self._blocks_on(s)]
        late = {id(s.call) for s in copies}
        returns = [
            call.end_ns
            for call in self.calls.get(thread, [])
            if (meaning(call.name).reason == "host.sync" or id(call) in late)
            and call.start_ns <= gap.start <= call.end_ns + self.settings.lost_lead_after_ns
        ]
        return max(returns, default=float("inf"))

    # --- a record without a device ----------------------------------------------------------------------------

    def operates(self, thread: str, time: int) -> bool:
        """Tell whether an operator runs on a thread; calls of collectives and waits are none (DESIGN 3.3)."""
        for span in self.open_at(thread, time):
            known = meaning(span.name)
            if known.communicates or known.reason == "host.sync":
                return False
            if span.kind == Kind.OPERATOR:
                return True
        return False

    def backend_runs(self, time: int) -> bool:
        return any(meaning(s.name).is_backend and s.start_ns <= time < s.end_ns for s in self.script.host)

    def host_instant(self, time: int) -> Instant:
        spans = self.open_at(self.main, time)
        stage = self.stage_of(spans)
        if self.operates(self.main, time):
            return Instant(1, "compute", "", stage)
        if self.backend_runs(time):
            return Instant(2, "collective", "", stage)
        return self._idle(self.host_reason(spans), stage)

    # --- sums -------------------------------------------------------------------------------------------------

    def markers(self) -> tuple[list[HostSpan], list[HostSpan]]:
        """Return the markers that start units, or those whose ends part them; units without length are none."""
        steps = self._outermost("ProfilerStep#")
        iterations = self._outermost("iter_")
        optimizer = self._outermost(OPTIMIZER)
        if steps or len(iterations) > 1:
            return steps or iterations, []
        return [], optimizer if len({row.end_ns for row in optimizer}) > 1 else []

    def _outermost(self, prefix: str) -> list[HostSpan]:
        """Return the markers of the thread that has most of them, without those that lie mostly inside another."""
        found = [row for row in self.script.host if row.name.startswith(prefix)]
        counts = Counter(row.thread for row in found)
        threads = sorted(counts, key=lambda thread: (-counts[thread], thread != MAIN, thread))
        mine = sorted((row for row in found if row.thread in threads[:1]), key=lambda r: (r.start_ns, -r.end_ns))
        kept: list[HostSpan] = []
        for place, row in enumerate(mine):
            reach = max((before.end_ns for before in mine[:place]), default=row.start_ns)
            if row.start_ns >= reach or row.start_ns + row.end_ns > 2 * reach:
                kept.append(row)
        return kept

    def _main_thread(self) -> str:
        """Return the thread that carries the units, else the program's first thread."""
        starts, ends = self.markers()
        return (starts or ends)[0].thread if starts or ends else MAIN

    def bounds(self) -> list[int]:
        """Return where head, units and tail begin, and where the tail ends (DESIGN 3.2)."""
        starts, ends = self.markers()
        if starts:
            inner = [*(row.start_ns for row in starts), starts[-1].end_ns]
        elif ends:
            inner = sorted({row.end_ns for row in ends})
        else:
            inner = [self.first, self.last]
        return [self.first, *inner, self.last]

    def totals(self, device: int | None) -> list[Total]:
        """Return sums over head, units and tail for one device, None for a record without any."""
        bounds = self.bounds()
        result = [Total(wall=high - low) for low, high in itertools.pairwise(bounds)]
        gaps = self.gaps(device) if device is not None else []
        limit = self.gap_limit(gaps)
        for low, high, total in zip(bounds, bounds[1:], result, strict=False):
            for time in range(low, high):
                if device is None:
                    instant, running = self.host_instant(time), []
                    services = self._host_services(time)
                else:
                    running = self.running(device, time)
                    gap = next((g for g in gaps if g.start <= time < g.end), None)
                    instant = self._busy(running) if gap is None else self.idle_at(device, gap, limit, time)
                    services = self._device_services(running, time)
                self._count(total, instant, running, services, time)
        return result

    def _busy(self, running: list[DeviceSpan]) -> Instant:
        span = self.winner(running)
        rung = self.rung_of(span)
        stage = self.stage_of(self.around(span.call)) if span.linked and span.call is not None else "other"
        return Instant(rung, {1: "compute", 2: "collective"}.get(rung) or self.freight[id(span)], "", stage)

    def _activities(self, time: int) -> set[str]:
        return {meaning(s.name).obj for s in self.script.host if s.start_ns <= time < s.end_ns} - {""}

    def _device_services(self, running: list[DeviceSpan], time: int) -> set[str]:
        served = self._activities(time)
        for span in running:
            rung = self.rung_of(span)
            served.add({1: "compute", 2: "collective"}.get(rung) or self.freight[id(span)])
            if span.name == FUSED:
                served.add("collective")
        return served & set(MOVED)

    def _host_services(self, time: int) -> set[str]:
        served = self._activities(time)
        if any(self.operates(thread, time) for thread in self.trees):
            served.add("compute")
        if self.backend_runs(time):
            served.add("collective")
        return served

    def _count(self, total: Total, instant: Instant, running: list[DeviceSpan], services: set[str], time: int) -> None:
        total.exposed[instant.obj] += 1
        total.stage[instant.stage] += 1
        total.idle[instant.reason] += instant.rung == 4
        total.busy += instant.rung != 4
        total.stage_busy[instant.stage] += instant.rung != 4
        for obj in services:
            total.service[obj] += 1
            total.hidden[obj] += instant.rung != 4 and instant.obj != obj
        rungs = {self.rung_of(span) for span in running}
        if not self.script.device:
            rungs = {rung for rung, on in ((1, instant.rung == 1), (2, self.backend_runs(time))) if on}
        total.compute += 1 in rungs
        total.collective += 2 in rungs
        total.copy += 3 in rungs
        total.collective_exposed += instant.rung == 2
        total.copy_exposed += instant.rung == 3

    def completions(self, device: int | None) -> list[int]:
        """Return when each unit was complete (DESIGN 3.2)."""
        inner = self.bounds()[1:-1]
        done: list[int] = []
        for low, high in itertools.pairwise(inner):
            spans = [s for s in self.script.device if s.device == device]
            mine = [s.end_ns for s in spans if low <= (s.call.start_ns if s.linked and s.call else s.start_ns) < high]
            done.append(max([high, *mine, *done[-1:]]))
        return done


# --- interval algebra -------------------------------------------------------------------------------------------


def instants(spans: Iterable[tuple[int, int]]) -> set[int]:
    """Return every integer instant that spans cover."""
    return {time for start, end in spans for time in range(start, end)}


def as_spans(times: set[int]) -> list[tuple[int, int]]:
    """Return the maximal spans that cover just these instants."""
    starts = sorted(time for time in times if time - 1 not in times)
    ends = sorted(time + 1 for time in times if time + 1 not in times)
    return list(zip(starts, ends, strict=True))
