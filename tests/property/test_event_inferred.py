"""Inferred event waits against a slow and obvious version, on small records full of waits, near misses and chance."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from longpole.graph.rules import event_inferred
from longpole.settings import Settings
from tests.build import MAIN, DeviceSpan, Script
from tests.grounds import lay

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

SETTINGS = Settings(event_candidates=3)
UNIT_US = 1000
THREADS = (MAIN, "other")
STREAMS = (7, 13, 20)
NAMES = ("k", "l")


@dataclass(frozen=True)
class Step:
    """What a thread does: launch a span on a stream, or, without a name, make a stream wait."""

    thread: str
    name: str
    stream: int
    by_graph: bool


@st.composite
def steps(draw: DrawFn) -> Step:
    waits = draw(st.integers(0, 2)) == 0
    name = "" if waits else draw(st.sampled_from(NAMES))
    by_graph = draw(st.integers(0, 9)) == 0
    return Step(draw(st.sampled_from(THREADS)), name, draw(st.sampled_from(STREAMS)), by_graph)


@st.composite
def records(draw: DrawFn) -> Script:
    """Draw a few units that do the same, each at its own pace; now and then a unit leaves something out."""
    script = Script()
    plan = draw(st.lists(steps(), min_size=3, max_size=10))
    spans: list[DeviceSpan] = []
    for unit in range(draw(st.integers(1, 4))):
        script.step(unit, unit * UNIT_US, (unit + 1) * UNIT_US)
        for place, step in enumerate(plan):
            if draw(st.integers(0, 19)) == 0:
                continue
            at = unit * UNIT_US + 10 + 10 * place
            if not step.name:
                script.call("cudaStreamWaitEvent", at, at + 1, thread=step.thread)
                continue
            call = "cudaGraphLaunch" if step.by_graph else "cudaLaunchKernel"
            launch = script.launch(at, at + draw(st.sampled_from([2, 8])), thread=step.thread, name=call)
            start = launch.end_ns / 1000 + draw(st.sampled_from([1, 5, 60]))
            if spans and bool(draw(st.booleans())):
                waited = draw(st.sampled_from(spans[-4:]))
                start = max(start, waited.end_ns / 1000 + draw(st.sampled_from([-8, -6, 0, 2, 20, 21])))
            for stream in (step.stream, 20) if step.by_graph else (step.stream,):
                end = start + draw(st.sampled_from([5, 30, 90]))
                spans.append(script.kernel(start, end, launch, name=step.name, stream=stream))
                start += 1
    return script


class Slow:
    """The rule of `event_inferred`, span by span."""

    def __init__(self, script: Script) -> None:
        self.spans = sorted(script.device, key=lambda span: (span.device, span.start_ns, script.device.index(span)))
        self.waits = [row for row in script.host if row.name == "cudaStreamWaitEvent"]
        self.ends = [row for row in script.host if row.name.startswith("ProfilerStep")]

    def queue(self, stream: int, before_ns: int) -> list[DeviceSpan]:
        """Return what was launched on a stream before a time, in order of launch."""
        mine = [span for span in self.spans if span.stream == stream and _launched(span) < before_ns]
        return sorted(mine, key=lambda span: (_launched(span), span.start_ns))

    def waiters(self) -> dict[int, int]:
        """Return the spans that come first on their thread and stream after a wait: id -> when the wait was made."""
        found = {}
        for span in self.spans:
            assert span.call is not None
            before = [row.start_ns for row in self.waits if row.thread == span.call.thread]
            before = [start for start in before if start < _launched(span)]
            others = [other for other in self.spans if other.call is not None and other.stream == span.stream]
            others = [other for other in others if other.call.thread == span.call.thread and other is not span]  # type: ignore[union-attr]
            earlier = [
                other for other in others if (_launched(other), other.start_ns) < (_launched(span), span.start_ns)
            ]
            last = max(before, default=None)
            if last is None or any(_launched(other) > last for other in earlier) or self.is_later_node(span):
                continue
            found[id(span)] = last
        return found

    def is_later_node(self, span: DeviceSpan) -> bool:
        nodes = [other for other in self.spans if other.call is span.call]
        return span is not min(nodes, key=lambda node: (node.start_ns, self.spans.index(node)))

    def late_ns(self, span: DeviceSpan) -> int:
        assert span.call is not None
        own = [o for o in self.spans if o.stream == span.stream and self.spans.index(o) < self.spans.index(span)]
        return span.start_ns - max([span.call.end_ns, *(other.end_ns for other in own)])

    def edges(self) -> set[tuple[int, int, bool]]:
        """Return (row waited for, row that waits, whether confirmed)."""
        waiters = self.waiters()
        groups: dict[tuple[int, str, int], list[DeviceSpan]] = defaultdict(list)
        seen: dict[tuple[int, int, str], int] = defaultdict(int)
        for span in sorted(self.spans, key=lambda span: (_launched(span), span.start_ns)):
            if id(span) in waiters:
                unit = sum(row.start_ns <= _launched(span) for row in self.ends)
                ordinal = seen[unit, span.stream, span.name]
                seen[unit, span.stream, span.name] += 1
                groups[span.stream, span.name, ordinal].append(span)
        chosen: dict[int, tuple[tuple[bool, float, int, int], int, bool]] = {}
        for (stream, _, _), members in groups.items():
            for other in sorted({span.stream for span in self.spans} - {stream}):
                for rank in range(SETTINGS.event_candidates):
                    self.try_one(members, waiters, (other, rank), chosen)
        return {(source, row, confirmed) for row, (_, source, confirmed) in chosen.items()}

    def try_one(
        self,
        members: list[DeviceSpan],
        waiters: dict[int, int],
        candidate: tuple[int, int],
        chosen: dict[int, tuple[tuple[bool, float, int, int], int, bool]],
    ) -> None:
        stream, rank = candidate
        pairs = []
        for span in members:
            queue = self.queue(stream, waiters[id(span)])
            if len(queue) > rank:
                pairs.append((span, queue[-1 - rank]))
        lags = [span.start_ns - source.end_ns for span, source in pairs]
        if not pairs or any(lag < -SETTINGS.coincident_before_ns for lag in lags):
            return
        if any(source.start_ns >= span.start_ns for span, source in pairs):
            return
        late = [self.late_ns(span) for span, _ in pairs]
        tested = [(lag, by) for lag, by in zip(lags, late, strict=True) if by > SETTINGS.late_start_ns]
        soon = sum(lag <= SETTINGS.resumes_within_ns for lag, _ in tested)
        nearly = sum(lag <= max(SETTINGS.resumes_within_ns, SETTINGS.event_lag_max_share * by) for lag, by in tested)
        fitting = max(soon, nearly if len(tested) > 1 else 0)
        confirmed = bool(tested) and fitting >= SETTINGS.event_confirmed_share * len(tested)
        if not confirmed and (tested or rank > 0):
            return
        median = abs(statistics.median_low([lag for lag, _ in tested] if confirmed else lags))
        for span, source in pairs:
            key, row = (not confirmed, median, stream, rank), self.spans.index(span)
            if row not in chosen or key < chosen[row][0]:
                chosen[row] = (key, self.spans.index(source), confirmed)


def _launched(span: DeviceSpan) -> int:
    assert span.call is not None
    return span.call.start_ns


@given(records())
def test_the_fast_version_finds_what_the_slow_one_finds(script: Script) -> None:
    ground = lay(script.timeline(), SETTINGS)
    waiters, best = event_inferred.find_rows(ground, np.zeros(len(script.device), np.bool_))

    has = best.source >= 0
    columns = (best.source[has].tolist(), waiters.row[has].tolist(), best.is_confirmed[has].tolist())
    fast = set(zip(*columns, strict=True))

    slow = Slow(script).edges() if script.device else set()
    event(f"confirmed: {any(sure for _, _, sure in slow)}, untested: {any(not sure for _, _, sure in slow)}")
    assert fast == slow


@given(records())
def test_what_waits_starts_after_what_it_waits_for_and_was_launched_later(script: Script) -> None:
    ground = lay(script.timeline(), SETTINGS)
    spans, points = ground.spans, ground.placed()

    edges = event_inferred.find(ground, np.zeros(len(script.device), np.bool_))

    source, target = points.row[edges.src], points.row[edges.dst]
    assert (spans.launch_ns[source] < spans.launch_ns[target]).all()
    assert (spans.start_ns[source] < spans.start_ns[target]).all()
    assert (points.time_ns[edges.src] - points.time_ns[edges.dst] <= SETTINGS.coincident_before_ns).all()
    assert len(set(target.tolist())) == len(target)
