"""One rank's graph reduced to the points at which ranks meet: exact, since (max, +) is associative.

host      h0 ─► h1 ─► h2 ─► h3            kept: entries and exits of collectives, completions of units, sources,
           │     │     │     │                  and join points whose removal would add edges
           ▼     ▼     ▼     ▼
stream    k1 ─► k2 ─► k3 ─► entry ═► exit     becomes     h0 ─► entry ═► exit

Five steps are repeated until little comes of it; each looks at all points at once, and none adds an edge:
points that lead to no kept point go; points with one edge in hand their edges to that edge's source; points with one
edge out likewise; points that follow one another while all wait for one common source (a stream and its host) are led
back to that source and to where they began; edges that a way over another point always matches go.
docs/decisions/0015-contraction.md has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.graph.sweep import NEVER_NS, roots_of
from longpole.timeline.groups import opens

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longpole.graph.edges import Edges
    from longpole.graph.rank_graph import RankGraph

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]
    Flags: TypeAlias = NDArray[np.bool_]

WITH_REPLAY_NS: Final = NEVER_NS + 1
"""Floor of points that a change left without an edge: they start with the replay (DESIGN 3.7)."""
STAYS: Final = -1
"""In `Contracted.inside`: an edge that holds whichever operations can be split."""

_FAN_MAX: Final = 64  # points with more edges both in and out are not looked through: it bounds the work by 64 E

_ROUND_WORTH: Final = 100
"""A round that removes less than 1 % of the edges is the last one.

Where each unit waits for what the one before it became, a round gains a few edges; a rank of 558 units then went
through 1,116 rounds in 10 s, to end with 15,621 edges instead of the 21,179 that three rounds in 1 s leave.
"""


class Added(NamedTuple):
    """Points that a change added; their numbers count on from the graph's. Columns `[A]`, ns on the rank's clock.

    Attributes:
        time_ns: int64: about when they would have happened.
        floor_ns: int64: they never happen earlier; NEVER_NS for none.
    """

    time_ns: Ints
    floor_ns: Ints


@dataclass(frozen=True, slots=True)
class Contracted:
    """What the other ranks must know of one rank's graph.

    Attributes:
        rank: The rank.
        units: Names of its units.
        begin_ns: When its first unit began, ns since the file's base.
        first_ns: The time of the full graph's first point.
        earliest_ns: The earliest time of any of its points.
        point: `[Q]` int32: kept points, ascending; numbers of the full graph.
        time_ns: `[Q]` int64 ns: recorded times since the file's base.
        source: `[S]` int32: places (in `point`) with a floor.
        floor_ns: `[S]` int64 ns: their floors; WITH_REPLAY_NS for those that start with the replay.
        src, dst: `[E]` int32: places of the edges' ends; edges are ordered by `src`, `dst`, `inside`.
        length_ns: `[E]` int64 ns: the longest way between the two that meets no other kept point.
        inside: `[E]` int32: STAYS, else a point of the full graph: the edge gives way where that point lies from the
            entry of an operation that could be split to before its exit.
        empties: `[E]` bool: giving way leaves an edge of length 0 (a thread's order) instead of none.
        entry, exit: `[I]` int32: places of the instances' entries and exits.
        completion: `[U]` int32: places of the units' completions.
    """

    rank: int
    units: tuple[str, ...]
    begin_ns: int
    first_ns: int
    earliest_ns: int
    point: Places
    time_ns: Ints
    source: Places
    floor_ns: Ints
    src: Places
    dst: Places
    length_ns: Ints
    inside: Places
    empties: Flags
    entry: Places
    exit: Places
    completion: Places

    def given_way(self, met: Flags) -> tuple[Places, Places, Ints]:
        """Return the edges that hold once operations are split: source and target places, and lengths, `[E']` each.

        Args:
            met: `[I]` bool: instances whose operation could be split into waiting and moving.
        """
        if not met.any() or not (self.inside >= 0).any():
            return self.src, self.dst, self.length_ns
        opened = np.sort(self.point[self.entry[met]])
        closed = np.sort(self.point[self.exit[met]])
        depth = np.searchsorted(opened, self.inside, "right") - np.searchsorted(closed, self.inside, "right")
        gives = (self.inside >= 0) & (depth > 0)
        length_ns = np.where(gives, 0, self.length_ns)
        left = ~gives | self.empties
        return self.src[left], self.dst[left], length_ns[left]


class _Work(NamedTuple):
    """Edges while they are contracted, all columns of one length."""

    src: Places
    dst: Places
    length_ns: Ints
    inside: Places
    empties: Flags

    def take(self, rows: NDArray[np.intp] | Flags) -> _Work:
        return _Work(self.src[rows], self.dst[rows], self.length_ns[rows], self.inside[rows], self.empties[rows])


def contract(
    graph: RankGraph, edges: Edges | Callable[[RankGraph], Edges] | None = None, added: Added | None = None
) -> Contracted:
    """Reduce a rank's graph to the points that matter for the run.

    Whatever the other ranks do, a sweep over the result gives every kept point the time that a sweep over the full
    graph gives it.

    Args:
        graph: The rank.
        edges: Its edges after a change, or a change that returns them; None for the recorded ones.
        added: Points that the change added.
    """
    if callable(edges):
        edges = edges(graph)
    floor_ns, time_ns = graph.floors_ns(), graph.time_ns
    if added is not None:
        floor_ns, time_ns = np.concatenate([floor_ns, added.floor_ns]), np.concatenate([time_ns, added.time_ns])
    if edges is None:
        edges = graph.edges
    else:
        lost = floor_ns == NEVER_NS
        lost[edges.dst] = False
        floor_ns[lost] = WITH_REPLAY_NS
    wanted = np.zeros(len(time_ns), np.bool_)
    for points in (graph.entry, graph.exit, graph.completion):
        wanted[points] = True
    work = _reduce(_give_way_alone(graph, edges), wanted | (floor_ns != NEVER_NS))
    return _numbered(graph, work, wanted, time_ns, floor_ns)


def _give_way_alone(graph: RankGraph, edges: Edges) -> _Work:
    """Mark the edges that may give way with the stretch they lie in: no two stretches differ in what covers them."""
    bounds = np.unique(np.concatenate([graph.entry, graph.exit]))
    depth = np.zeros(len(bounds) + 1, np.int64)
    np.add.at(depth, np.searchsorted(bounds, graph.entry) + 1, 1)
    np.add.at(depth, np.searchsorted(bounds, graph.exit) + 1, -1)
    stretch = np.searchsorted(bounds, edges.src, "right")
    empties = edges.kind == EdgeKind.MEMBER
    may = (np.cumsum(depth)[stretch] > 0) & (empties | (edges.kind == EdgeKind.DURATION))
    inside = np.full(len(edges), STAYS, np.int32)
    inside[may] = bounds[stretch[may] - 1]
    return _Work(edges.src, edges.dst, edges.length_ns, inside, empties & may)


def _reduce(work: _Work, keep: Flags) -> _Work:
    """Repeat the steps until little comes of it; `keep` `[P]` marks points that stay."""
    number = np.arange(len(keep), dtype=np.int32)
    work = _distinct(_skip(work, keep, forwards=True))
    going = True
    while going:
        before = len(work.src)
        work, number, keep = _renumbered(work, number, keep)
        work = _distinct(_skip(_reaching(work, keep), keep, forwards=False))
        work = _distinct(_skip(_led_back(work, keep), keep, forwards=True))
        work = _without_detours(work, len(keep))
        going = before - len(work.src) > before // _ROUND_WORTH
    return work._replace(src=number[work.src], dst=number[work.dst])


def _renumbered(work: _Work, number: Places, keep: Flags) -> tuple[_Work, Places, Flags]:
    """Give new numbers to the points with edges where most have none, so that a round costs what is left."""
    used = np.zeros(len(keep), np.bool_)
    used[work.src] = True
    used[work.dst] = True
    points = np.flatnonzero(used)
    if 2 * len(points) > len(keep):
        return work, number, keep
    place = np.cumsum(used, dtype=np.int32) - 1
    return work._replace(src=place[work.src], dst=place[work.dst]), number[points], keep[points]


def _reaching(work: _Work, keep: Flags) -> _Work:
    """Drop edges into points that lead nowhere."""
    while True:
        leads = keep.copy()
        leads[work.src] = True
        leading = leads[work.dst]
        if leading.all():
            return work
        work = work.take(leading)


def _skip(work: _Work, keep: Flags, *, forwards: bool) -> _Work:
    """Let edges skip points that have one edge in (`forwards`) or one edge out, and need not stay."""
    near, far = (work.src, work.dst) if forwards else (work.dst, work.src)
    n = len(keep)
    single = (np.bincount(far, minlength=n) == 1) & ~keep & ~_mixed(work, n)
    if not single.any():
        return work
    root, way_ns = roots_of(n, far, near, work.length_ns, single, ahead=not forwards)
    left = work.take(~single[far])
    near = left.src if forwards else left.dst
    length_ns = left.length_ns + way_ns[near]
    ends = (root[near], left.dst) if forwards else (left.src, root[near])
    return _Work(*ends, length_ns, left.inside, left.empties)


def _mixed(work: _Work, n: int) -> Flags:
    """Return the points between edges that may give way and others: no edge may run over such a point."""
    own = np.flatnonzero(work.inside >= 0)
    if len(own) == 0:
        return np.zeros(n, np.bool_)
    ends = np.concatenate([work.src[own], work.dst[own]])
    count = np.bincount(ends, minlength=n)
    of_any = np.bincount(work.src, minlength=n) + np.bincount(work.dst, minlength=n)
    return np.asarray((count > 0) & (count != of_any))


def _distinct(work: _Work) -> _Work:
    """Of edges between the same two points keep the longest; order by source, target, and what they lie inside of."""
    by = np.lexsort((work.inside, work.dst, work.src))
    work = work.take(by)
    if len(by) == 0:
        return work
    starts = np.flatnonzero(opens(work.src, work.dst, work.inside))
    longest_ns = np.maximum.reduceat(work.length_ns, starts)
    return work.take(starts)._replace(length_ns=longest_ns)


def _led_back(work: _Work, keep: Flags) -> _Work:
    """Lead points that follow one another and wait for one common source back to it and to where they began.

    t[v] = max(t[a] + x, t[b] + y) and t[b] = max(t[a] + x', t[c] + y') give t[v] = max(t[a] + max(x, x' + y),
    t[c] + y' + y): the steps are composed by doubling. The number of edges stays; b may be left with one edge out.
    No b is a point that stays: its edges do not say when it happens where other ranks or a floor hold it up.
    """
    n = len(keep)
    first, second, points = _two_sources(work, n)
    if len(points) == 0:
        return work
    at = np.full(n, -1, np.int32)
    passed = np.flatnonzero(~keep[points])
    at[points[passed]] = passed
    from_first, from_second = work.src[first], work.src[second]
    common, before = _links(at, from_first, from_second)
    linked = np.flatnonzero(before >= 0)
    if len(linked) == 0:
        return work
    # Beginnings of chains take the common source of what follows them; where followers differ, one of them wins.
    starts = linked[before[before[linked]] < 0]
    common[before[starts]] = common[starts]
    before[linked[common[before[linked]] != common[linked]]] = -1
    swapped = common == from_first
    to_common, to_other = np.where(swapped, first, second), np.where(swapped, second, first)
    wait_ns, way_ns, last = work.length_ns[to_common], work.length_ns[to_other], work.src[to_other]
    moving = np.flatnonzero(before >= 0)
    if len(moving) == 0:
        return work
    changed = moving
    while len(moving):
        back = before[moving]
        wait_ns[moving] = np.maximum(wait_ns[moving], wait_ns[back] + way_ns[moving])
        way_ns[moving] += way_ns[back]
        last[moving] = last[back]
        before[moving] = before[back]
        moving = moving[before[moving] >= 0]
    src, length_ns = work.src.copy(), work.length_ns.copy()
    length_ns[to_common[changed]] = wait_ns[changed]
    length_ns[to_other[changed]] = way_ns[changed]
    src[to_other[changed]] = last[changed]
    return _distinct(_Work(src, work.dst, length_ns, work.inside, work.empties))


def _two_sources(work: _Work, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Places]:
    """Return the two edges into each point that has exactly two, both holding whatever is split, and those points."""
    by = np.argsort(work.dst, kind="stable")
    count = np.bincount(work.dst, minlength=n)
    fixed = np.ones(n, np.bool_)
    fixed[work.dst[work.inside >= 0]] = False
    points = np.flatnonzero((count == 2) & fixed).astype(np.int32)
    first = by[np.searchsorted(work.dst[by], points)]
    second = by[np.searchsorted(work.dst[by], points) + 1]
    distinct = work.src[first] != work.src[second]
    return first[distinct], second[distinct], points[distinct]


def _links(at: Places, first: Places, second: Places) -> tuple[Places, Places]:
    """Return for each point the source it shares with the other one's point, and that other's place; -1 for none."""
    common, before = np.full(len(first), -1, np.int32), np.full(len(first), -1, np.int32)
    for shared, other in ((first, second), (second, first)):
        place = at[other]
        known = np.maximum(place, 0)
        links = (place >= 0) & ((first[known] == shared) | (second[known] == shared))
        common[links], before[links] = shared[links], place[links]
    return common, before


def _without_detours(work: _Work, n: int) -> _Work:
    """Drop edges that a way over one other point always matches: a -> v where a -> b -> v is at least as long.

    That way may itself lose an edge to a longer one; as no edge points back, one that is as long stays for each edge
    dropped. Only edges that hold whatever is split can stand for another.
    """
    holds = np.flatnonzero(work.inside < 0)
    source, target = work.src[holds], work.dst[holds]
    key = source.astype(np.int64) * n + target  # ascending: edges are ordered by source, then target
    begin = np.searchsorted(source, np.arange(n + 1))
    fan = np.diff(begin)
    narrow = np.minimum(fan, np.bincount(target, minlength=n)) <= _FAN_MAX
    counts = np.where(narrow, fan, 0)[target]  # for each edge a -> b, the edges b -> v
    left = np.repeat(np.arange(len(holds)), counts)
    right = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts - begin[target], counts)
    wanted = source[left].astype(np.int64) * n + target[right]
    at = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    hit = key[at] == wanted
    left, right, over = holds[left[hit]], holds[right[hit]], holds[at[hit]]
    matched = work.length_ns[left] + work.length_ns[right] >= work.length_ns[over]
    stays = np.ones(len(work.src), np.bool_)
    stays[over[matched]] = False
    return work.take(stays)


def _numbered(graph: RankGraph, work: _Work, wanted: Flags, time_ns: Ints, floor_ns: Ints) -> Contracted:
    """Give the points that are left their places."""
    left = wanted.copy()
    left[work.src] = True
    left[work.dst] = True
    point = np.flatnonzero(left).astype(np.int32)
    place = np.full(len(left), -1, np.int32)
    place[point] = np.arange(len(point), dtype=np.int32)
    source = np.flatnonzero(floor_ns[point] != NEVER_NS).astype(np.int32)
    return Contracted(
        rank=graph.rank,
        units=graph.units,
        begin_ns=int(graph.unit_start_ns[0]) if len(graph.unit_start_ns) else int(graph.time_ns[0]),
        first_ns=int(graph.time_ns[0]),
        earliest_ns=int(graph.time_ns.min()),
        point=point,
        time_ns=time_ns[point],
        source=source,
        floor_ns=floor_ns[point[source]],
        src=place[work.src],
        dst=place[work.dst],
        length_ns=work.length_ns,
        inside=work.inside,
        empties=work.empties,
        entry=place[graph.entry],
        exit=place[graph.exit],
        completion=place[graph.completion],
    )
