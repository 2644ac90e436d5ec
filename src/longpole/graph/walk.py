"""Walk a graph backwards from a completion: always to the edge that arrives last (DESIGN 3.6).

The same choice serves the observed path, on recorded times, and the replayed one, on replayed times.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.graph.kinds import GRADE_OF_KIND, GRADES
from longpole.graph.sweep import NEVER_NS
from longpole.timeline.groups import opens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.edges import Edges

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]
    Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of walks, each ascending in time; columns `[N]`.

    Attributes:
        unit: int32: place of the unit whose period the step lies in.
        edge: int64: the edge walked, -1 where a point had none.
        start_ns, end_ns: int64 ns on the run's clock; steps of one unit touch and fill its period.
    """

    unit: NDArray[np.int32]
    edge: Ints
    start_ns: Ints
    end_ns: Ints


@dataclass(frozen=True, slots=True)
class Incoming:
    """The edges into each point: what choosing between them needs, whatever their lengths and times are.

    Attributes:
        only: `[P]` int32: the edge into each point that has one, -1 for other points.
        n_pairs: So many of the next points have two edges in; they come first.
        point: `[S]` int32: points with several edges in.
        first: `[S]` int64: where each one's edges begin in the next two.
        edge: `[N]` int32: edges into those points; of equal arrivals the later one is taken.
        source: `[N]` int32: their sources.
    """

    only: Places
    n_pairs: int
    point: Places
    first: Ints
    edge: Places
    source: Places


def incoming_edges(n_points: int, edges: Edges) -> Incoming:
    """Sort edges by the point that they lead to.

    Args:
        n_points: Number of points.
        edges: Only their ends and kinds count.
    """
    count = np.bincount(edges.dst, minlength=n_points)
    only = np.full(n_points, -1, np.int32)
    single = (count == 1)[edges.dst]
    rows = np.flatnonzero(single).astype(np.int32)
    only[edges.dst[rows]] = rows
    rows = np.flatnonzero(~single).astype(np.int32)
    target = edges.dst[rows]
    # One number orders by point, then the surer grade last, then the lower source last.
    key = (target.astype(np.int64) << _TARGET_BIT) | (_WORST - np.array(GRADE_OF_KIND, np.int64))[
        edges.kind[rows]
    ] << _GRADE_BIT
    key |= _LAST_POINT - edges.src[rows]
    key[count[target] > _PAIR] |= _MORE_THAN_TWO
    by = np.argsort(key, kind="stable")
    first = np.flatnonzero(opens(target[by]))
    return Incoming(only, int((count == _PAIR).sum()), target[by][first], first, rows[by], edges.src[rows[by]])


_PAIR: Final = 2
_MORE_THAN_TWO: Final = 1 << 62
_GRADE_BIT: Final = 31  # a point takes 31 bits, a grade 2, and the point in front has 29 of the 62
_TARGET_BIT: Final = 33
_WORST: Final = len(GRADES) - 1
_LAST_POINT: Final = (1 << 31) - 1


def last_arrivals(
    n_points: int, edges: Edges, time_ns: Ints, incoming: Incoming | None = None, dropped: Flags | None = None
) -> Places:
    """Return, for each point, the edge that arrives last: `[P]` int32, -1 where there is none.

    Ties go to the surer grade, then to the edge from the lower point.

    Args:
        n_points: Number of points.
        edges: Edges with final lengths.
        time_ns: `[P]` int64 ns: recorded or replayed times.
        incoming: The edges into each point, where that is known already.
        dropped: `[E]` bool: edges that do not count; None for none.
    """
    into = incoming_edges(n_points, edges) if incoming is None else incoming
    best = into.only.copy()
    if len(into.point):
        arrival_ns = time_ns[into.source]
        arrival_ns += edges.length_ns[into.edge]
        if dropped is not None:
            arrival_ns[dropped[into.edge]] = NEVER_NS
        n, behind = into.n_pairs, _PAIR * into.n_pairs
        second = arrival_ns[1:behind:2] >= arrival_ns[0:behind:2]
        best[into.point[:n]] = np.where(second, into.edge[1:behind:2], into.edge[0:behind:2])
        if n < len(into.point):
            best[into.point[n:]] = into.edge[behind + _last_of(arrival_ns[behind:], into.first[n:] - behind)]
    if dropped is not None:
        gone = np.flatnonzero((best >= 0) & dropped[best])
        best[gone] = -1
    return best


def _last_of(arrival_ns: Ints, first: Ints) -> Ints:
    """Return the place of the latest in each group, of equal ones the last: `[S]` int64."""
    latest_ns = np.maximum.reduceat(arrival_ns, first)
    late = arrival_ns == np.repeat(latest_ns, np.diff(np.append(first, len(arrival_ns))))
    return np.maximum.reduceat(np.where(late, np.arange(len(late)), -1), first)


def walk_back(
    n_points: int,
    edges: Edges,
    time_ns: Ints,
    ends: list[tuple[int, int, int]],
    incoming: Incoming | None = None,
    dropped: Flags | None = None,
) -> Steps:
    """Walk back from completions.

    Args:
        n_points: Number of points.
        edges: Edges with final lengths.
        time_ns: `[P]` int64 ns: recorded or replayed times.
        ends: For each walk the unit's place, the point to start from, and the time to stop at, ns.
        incoming: The edges into each point, where that is known already.
        dropped: `[E]` bool: edges that do not count; None for none.
    """
    best = last_arrivals(n_points, edges, time_ns, incoming, dropped)
    # Views give Python integers one at a time, three times as fast as arrays do.
    step, source, times = best.data, edges.src.data, time_ns.data
    walks = [_NO_STEPS]
    for place, last, until_ns in ends:
        trail: list[int] = []
        point = last
        while times[point] > until_ns:
            edge = step[point]
            trail.append(edge)
            if edge < 0:
                break
            point = source[edge]
        walks.append(_clipped(place, np.array(trail, np.int64), edges.src, time_ns, (times[last], until_ns)))
    return Steps(*(np.concatenate([getattr(walk, f.name) for walk in walks]) for f in fields(Steps)))


def _clipped(place: int, trail: Ints, src: Places, time_ns: Ints, within_ns: tuple[int, int]) -> Steps:
    """Return the steps along the edges of a walk back that take time, ascending.

    A point that is later than what followed it takes none; the last step ends where the walk does.
    """
    begin_ns = (
        np.where(trail >= 0, time_ns[src[trail]], within_ns[1]) if len(src) else np.full(len(trail), within_ns[1])
    )
    start_ns = np.maximum(np.minimum.accumulate(np.minimum(begin_ns, within_ns[0])), within_ns[1])
    end_ns = np.append(within_ns[0], start_ns)[:-1]
    takes = np.flatnonzero(start_ns < end_ns)[::-1]
    return Steps(np.full(len(takes), place, np.int32), trail[takes], start_ns[takes], end_ns[takes])


_NO_STEPS: Final = Steps(np.empty(0, np.int32), *(np.empty(0, np.int64) for _ in range(3)))
