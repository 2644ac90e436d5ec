"""Walk a graph backwards from a completion: always to the edge that arrives last (DESIGN 3.6).

The same choice serves the observed path, on recorded times, and the replayed one, on replayed times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.kinds import GRADE_OF_KIND
from longpole.timeline.groups import opens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.edges import Edges

    Ints: TypeAlias = NDArray[np.int64]


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


def last_arrivals(n_points: int, edges: Edges, time_ns: Ints) -> Ints:
    """Return, for each point, the edge that arrives last: `[P]` int64, -1 where there is none.

    Ties go to the surer grade, then to the edge from the lower point.

    Args:
        n_points: Number of points.
        edges: Edges with final lengths.
        time_ns: `[P]` int64 ns: recorded or replayed times.
    """
    best = np.full(n_points, -1, np.int64)
    if len(edges) == 0:
        return best
    by = np.argsort(edges.dst, kind="stable")
    target = edges.dst[by]
    begins = opens(target)
    arrival_ns = (time_ns[edges.src] + edges.length_ns)[by]
    latest_ns = np.maximum.reduceat(arrival_ns, np.flatnonzero(begins))
    group = np.cumsum(begins) - 1
    winners = np.flatnonzero(arrival_ns == latest_ns[group])
    chosen = by[winners]
    grade = np.array(GRADE_OF_KIND, np.int64)[edges.kind[chosen]]
    order = np.lexsort((-edges.src[chosen].astype(np.int64), -grade, group[winners]))
    best[edges.dst[chosen[order]]] = chosen[order]  # of repeated places the last assignment stays
    return best


@dataclass(frozen=True, slots=True)
class Incoming:
    """The edges into each point.

    Attributes:
        first: `[P + 1]` int64: edges into point p are `edge[first[p]:first[p + 1]]`.
        edge: `[E]` int64: edge numbers.
    """

    first: Ints
    edge: Ints


def incoming_edges(n_points: int, dst: NDArray[np.int32]) -> Incoming:
    """Sort edges by the point that they lead to.

    Args:
        n_points: Number of points.
        dst: `[E]` int32.
    """
    edge = np.argsort(dst, kind="stable")
    return Incoming(np.searchsorted(dst[edge], np.arange(n_points + 1)).astype(np.int64), edge.astype(np.int64))


def walk_back(
    n_points: int,
    edges: Edges,
    time_ns: Ints,
    ends: list[tuple[int, int, int]],
    incoming: Incoming | None = None,
    dropped: NDArray[np.bool_] | None = None,
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
    into = incoming_edges(n_points, edges.dst) if incoming is None else incoming
    last_edge = _Chooser(into, edges, time_ns, dropped)
    # Views give Python integers one at a time, three times as fast as arrays do.
    source, times = edges.src.data, time_ns.data
    unit: list[int] = []
    edge: list[int] = []
    start: list[int] = []
    end: list[int] = []
    for place, last, until_ns in reversed(ends):
        point, at_ns = last, times[last]
        while at_ns > until_ns:
            step = last_edge.into(point)
            if step >= 0:
                point = source[step]
                from_ns = max(min(times[point], at_ns), until_ns)
            else:
                from_ns = until_ns
            if from_ns < at_ns:
                unit.append(place)
                edge.append(step)
                start.append(from_ns)
                end.append(at_ns)
            at_ns = from_ns
    return Steps(
        np.array(unit[::-1], np.int32),
        np.array(edge[::-1], np.int64),
        np.array(start[::-1], np.int64),
        np.array(end[::-1], np.int64),
    )


class _Chooser:
    """Finds the edge that arrives last at a point, by the same rule as `last_arrivals`; only where a walk comes by."""

    def __init__(self, into: Incoming, edges: Edges, time_ns: Ints, dropped: NDArray[np.bool_] | None) -> None:
        self._first, self._edge = into.first.data, into.edge.data
        self._src, self._kind, self._length = edges.src.data, edges.kind.data, edges.length_ns.data
        self._times = time_ns.data
        self._dropped = dropped

    def into(self, point: int) -> int:
        """Return the edge that arrives last at a point, -1 where there is none."""
        best, best_key = -1, (0, 0, 0)
        for place in range(self._first[point], self._first[point + 1]):
            edge = self._edge[place]
            if self._dropped is not None and self._dropped[edge]:
                continue
            source = self._src[edge]
            key = (self._times[source] + self._length[edge], -GRADE_OF_KIND[self._kind[edge]], -source)
            if best < 0 or key >= best_key:  # of equal edges the last one, as `last_arrivals` has it
                best, best_key = edge, key
        return best
