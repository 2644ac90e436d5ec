"""Hypothesis strategies: small graphs, and records in which host and device wait for each other as they do in life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from hypothesis import strategies as st

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from tests.build import ALL_REDUCE, GC, LOADER, Script

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]

KINDS = (EdgeKind.SECTION, EdgeKind.DURATION, EdgeKind.LAUNCH, EdgeKind.STREAM, EdgeKind.EVENT_UNTESTED)


@dataclass(frozen=True, slots=True)
class Dag:
    """A graph without circles.

    Attributes:
        time_ns: `[P]` int64 ns: recorded times, many of them equal; edges may contradict them a little.
        edges: In any order.
        floor_ns: `[P]` int64 ns.
    """

    time_ns: Ints
    edges: Edges
    floor_ns: Ints

    @property
    def n(self) -> int:
        """Return the number of points."""
        return len(self.time_ns)


@st.composite
def dags(draw: st.DrawFn, max_points: int = 12, min_weight: int = -3) -> Dag:
    """Draw a graph whose edges point forward in a hidden order that recorded times follow only roughly."""
    n = draw(st.integers(1, max_points))
    hidden = draw(st.permutations(range(n)))
    pairs = [(u, v) for place, u in enumerate(hidden) for v in hidden[place + 1 :]]
    chosen: list[tuple[int, int]] = draw(st.lists(st.sampled_from(pairs), max_size=3 * n)) if pairs else []
    m = len(chosen)
    weights = draw(st.lists(st.integers(min_weight, 6), min_size=m, max_size=m))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=m, max_size=m))
    steps = draw(st.lists(st.sampled_from((0, 0, 1, 3)), min_size=n, max_size=n))
    jitter = draw(st.lists(st.sampled_from((0, 0, 0, -2, 2)), min_size=n, max_size=n))
    time_ns = np.empty(n, np.int64)
    time_ns[np.array(hidden)] = np.cumsum(np.array(steps)) + np.array(jitter)
    src = np.array([u for u, _ in chosen], np.int32)
    dst = np.array([v for _, v in chosen], np.int32)
    edges = Edges(src, dst, np.array(kinds, np.uint8), np.array(weights, np.int64))
    floors = np.full(n, -(1 << 62), np.int64)
    floors[~np.isin(np.arange(n), dst)] = time_ns[~np.isin(np.arange(n), dst)]
    return Dag(time_ns, edges, floors)


def longest_times(dag: Dag) -> list[int]:
    """Return when every point happens, by visiting all predecessors recursively: slow, and obviously right."""
    into: dict[int, list[tuple[int, int]]] = {}
    for u, v, w in zip(dag.edges.src.tolist(), dag.edges.dst.tolist(), dag.edges.length_ns.tolist(), strict=True):
        into.setdefault(v, []).append((u, w))
    known: dict[int, int] = {}

    def at(point: int) -> int:
        if point not in known:
            known[point] = max([int(dag.floor_ns[point]), *(at(u) + w for u, w in into.get(point, []))])
        return known[point]

    return [at(point) for point in range(dag.n)]


def all_paths(dag: Dag, last: int) -> list[list[int]]:
    """Return every path that ends in a point and begins where nothing is waited for, as edge numbers."""
    into = np.flatnonzero(dag.edges.dst == last).tolist()
    if not into:
        return [[]]
    return [[*before, edge] for edge in into for before in all_paths(dag, int(dag.edges.src[edge]))]


# --- records ----------------------------------------------------------------------------------------------------


class _Job:
    """A simulated rank: a host that launches, two streams that run in order, waits that end when the device does.

    Records are made by simulation, so that they are what a machine could have written: a launch takes 3 µs, a span
    starts 6 µs after its launch or 1 µs after the one before it on its stream, a wait returns 8 µs after the last end.
    """

    def __init__(self, draw: Callable[..., object], rank: int, world: int) -> None:
        self.script = Script(rank=rank, base_ns=0, world_size=world, path=f"rank{rank}.json")
        self._draw = draw
        self.now = 0.0
        self.free = {7: 0.0, 13: 0.0}

    def number(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))  # type: ignore[call-overload]

    def act(self, name: str) -> None:
        match name:
            case "launch" | "side":
                self.launch(7 if name == "launch" else 13)
            case "sync":
                self.sync()
            case "load":
                self.spend(LOADER, self.number(50, 900))
            case "gc":
                self.spend(GC, self.number(30, 300))
            case "op":
                start = self.now
                self.now += self.number(1, 200)
                self.script.op("aten::add", start, self.now)
            case _:
                self.now += self.number(1, 120)

    def spend(self, name: str, dur: int) -> None:
        self.script.span(name, self.now, self.now + dur)
        self.now += dur

    def launch(self, stream: int) -> None:
        call = self.script.launch(self.now, self.now + 3)
        start = max(self.now + 6, self.free[stream] + 1)
        end = start + self.number(1, 700)
        self.script.kernel(start, end, call, stream=stream, name=f"kernel_{stream}")
        self.free[stream] = end
        self.now += 4

    def sync(self) -> None:
        start, busy = self.now, max(self.free.values())
        self.now = max(start + 5, busy + 8) if busy > start else start + 5
        self.script.sync(start, self.now, name="cudaDeviceSynchronize")
        self.now += 1


@st.composite
def jobs(draw: Callable[..., object], min_steps: int = 3, max_steps: int = 5) -> Script:
    """Draw a record of one rank whose steps are all alike in what they do, but not in how long it takes."""
    job = _Job(draw, 0, 1)
    acts = draw(
        st.lists(st.sampled_from(("launch", "launch", "side", "sync", "load", "gc", "op", "pause")), max_size=7)
    )
    for step in range(int(draw(st.integers(min_steps, max_steps)))):  # type: ignore[call-overload]
        begin = job.now
        for act in (*acts, "launch", "sync"):  # type: ignore[misc]
            job.act(act)
        job.script.step(step, begin, job.now)
        job.now += 2
    return job.script


@st.composite
def teams(draw: Callable[..., object], ranks: int = 2, steps: int = 3) -> list[Script]:
    """Draw records of ranks that meet in an all-reduce at the end of every step."""
    team = [_Job(draw, rank, ranks) for rank in range(ranks)]
    acts = draw(st.lists(st.sampled_from(("launch", "side", "sync", "load", "gc", "pause")), max_size=4))
    for step in range(steps):
        begins = [job.now for job in team]
        calls = []
        for job in team:
            for act in (*acts, "launch"):  # type: ignore[misc]
                job.act(act)
            calls.append(job.script.launch(job.now, job.now + 3))
        starts = [max(job.now + 6, max(job.free.values()) + 1) for job in team]
        end = max(starts) + int(draw(st.integers(5, 300)))  # type: ignore[call-overload]
        for job, call, start, begin in zip(team, calls, starts, begins, strict=True):
            job.script.collective(start, end, call, name=ALL_REDUCE)
            job.free[13] = end
            job.now += 4
            job.sync()
            job.script.step(step, begin, job.now)
            job.now += 2
    return [job.script for job in team]
