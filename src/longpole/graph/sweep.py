"""The order of a graph's points, and the one sequential sweep over it.

    t[v] = max(floor[v], max over edges u -> v of t[u] + weight)

A graph of a rank is about one and a half points wide, so a plain loop in topological order is the fastest sweep that
needs no compiler (reference: replay prototype, 0.25 µs a point; NumPy by levels is ten times slower). Points with one
edge in, most of a large graph, need no loop: they follow from the first point before them that has several.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.errors import InvariantError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]

NEVER_NS: Final = -(1 << 62)  # a point that nothing holds down starts here


def topological_order(time_ns: Ints, src: Places, dst: Places) -> Places:
    """Return the points in an order in which every edge points forward.

    Recorded times already are such an order, but for edges that clocks contradict a little and for points at one
    instant; only those are looked at again, so no point is visited one by one.

    Args:
        time_ns: `[P]` int64 ns: recorded times.
        src: `[E]` int32: source points.
        dst: `[E]` int32: target points.

    Raises:
        InvariantError: The edges form a circle.
    """
    key = time_ns.copy()
    back = _raise_keys(key, src, dst)
    depth = np.zeros(len(key), np.int32)
    level = np.flatnonzero(key[src] == key[dst])
    _raise_depths(depth, src[level], dst[level], back)
    return np.lexsort((depth, key)).astype(np.int32)


def _raise_keys(key: Ints, src: Places, dst: Places) -> int:
    """Lift every target to its source's key, in place, until no edge points backward; return the rounds needed."""
    for rounds in range(len(key) + 1):
        behind = key[src] > key[dst]
        if not behind.any():
            return rounds
        if rounds > _MANY_ROUNDS and _has_circle(len(key), src, dst):
            break
        np.maximum.at(key, dst[behind], key[src[behind]])
    raise InvariantError(_CIRCLE)


def _raise_depths(depth: Places, src: Places, dst: Places, rounds_before: int) -> None:
    """Give points of one instant depths so that edges between them ascend, in place."""
    for rounds in range(rounds_before, len(depth) + rounds_before + 2):
        behind = depth[src] >= depth[dst]
        if not behind.any():
            return
        if rounds > _MANY_ROUNDS and _has_circle(len(depth), src, dst):
            break
        np.maximum.at(depth, dst[behind], depth[src[behind]] + 1)
    raise InvariantError(_CIRCLE)


_MANY_ROUNDS: Final = 64
_CIRCLE: Final = "the edges of a graph form a circle"


def _has_circle(n: int, src: Places, dst: Places) -> bool:
    return bool(len(circle_edges(n, src, dst)))


def circle_edges(n: int, src: Places, dst: Places) -> NDArray[np.intp]:
    """Return the edges that lie inside a circle: both ends in one strongly connected component.

    Args:
        n: Number of points.
        src: `[E]` int32.
        dst: `[E]` int32.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(len(src), np.int8), (src, dst)), shape=(n, n)).tocsr()
    _, label = connected_components(matrix, directed=True, connection="strong")
    size = np.bincount(label)
    inside = (label[src] == label[dst]) & ((size[label[src]] > 1) | (src == dst))
    return np.flatnonzero(inside)


def sort_edges(order: Places, src: Places) -> NDArray[np.intp]:
    """Return the edges ordered by where their source stands, as `sweep` needs them.

    Args:
        order: `[P]` int32: what `topological_order` returned.
        src: `[E]` int32.
    """
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return np.argsort(place[src], kind="stable")


def sweep(n: int, src: Places, dst: Places, weight_ns: Ints, floor_ns: Ints, order: Places | None = None) -> Ints:
    """Return when every point happens: `[P]` int64 ns.

    Args:
        n: Number of points.
        src: `[E]` int32.
        dst: `[E]` int32.
        weight_ns: `[E]` int64 ns; may be negative where a clock contradicts an edge.
        floor_ns: `[P]` int64 ns: no point happens earlier; NEVER_NS for none.
        order: `[P]` int32: a topological order; None where the edges are already ordered by `sort_edges`.
    """
    if order is not None:
        by = sort_edges(order, src)
        src, dst, weight_ns = src[by], dst[by], weight_ns[by]
    if len(floor_ns) != n:
        msg = f"{n} points need as many floors, found {len(floor_ns)}"
        raise InvariantError(msg)
    if n <= _PLAIN_MAX_POINTS:
        return one_by_one(src, dst, weight_ns, floor_ns)
    single = (np.bincount(dst, minlength=n) == 1) & (floor_ns == NEVER_NS)
    root, way_ns = roots_of(n, dst, src, weight_ns, single)
    rest = np.flatnonzero(~single[dst])
    times_ns = one_by_one(root[src[rest]], dst[rest], weight_ns[rest] + way_ns[src[rest]], floor_ns)
    behind = np.flatnonzero(single)
    times_ns[behind] = times_ns[root[behind]] + way_ns[behind]
    return times_ns


def one_by_one(src: Places, dst: Places, weight_ns: Ints, floor_ns: Ints) -> Ints:
    """Sweep edges in the order given, with a plain loop; arguments as for `sweep`."""
    times = array("q", floor_ns.astype(np.int64).tobytes())  # 8 bytes a point; a list takes 40, and is no faster
    for low in range(0, len(src), _CHUNK_EDGES):
        some = slice(low, low + _CHUNK_EDGES)
        for u, v, weight in zip(src[some].tolist(), dst[some].tolist(), weight_ns[some].tolist(), strict=True):
            at = times[u] + weight
            if at > times[v]:  # noqa: PLR1730 (a call of max costs three times as much)
                times[v] = at
    return np.array(times, np.int64)


def roots_of(
    n: int, far: Places, near: Places, length_ns: Ints, single: NDArray[np.bool_], *, ahead: bool = False
) -> tuple[Places, Ints]:
    """Follow chains of points that have one edge on their far side, to the first point that is none of them.

    Runs of points whose numbers are neighbours are summed at once; then chains are followed by doubling the stride, so
    one of n runs takes log2 n rounds.

    Args:
        n: Number of points.
        far: `[E]` int32: the side of each edge that has the single point.
        near: `[E]` int32: the other side, towards the root.
        length_ns: `[E]` int64 ns.
        single: `[P]` bool: points with exactly one edge whose far end they are, and that may be passed over.
        ahead: Roots have higher numbers than the points that lead to them, mostly.

    Returns:
        The root of each point, `[P]` int32, and how far it is from there, `[P]` int64 ns; others are their own roots.
    """
    root, way_ns = np.arange(n, dtype=np.int32), np.zeros(n, np.int64)
    only = np.flatnonzero(single[far])
    points = far[only]
    root[points] = near[only]
    way_ns[points] = length_ns[only]
    along = slice(None, None, -1 if ahead else 1)
    _follow_runs(root[along], way_ns[along], np.arange(n, dtype=np.int32)[along])
    points = points[root[root[points]] != root[points]]
    while len(points):
        passed = root[points]
        way_ns[points] += way_ns[passed]
        root[points] = root[passed]
        points = points[root[points] != passed]
    return root, way_ns


def _follow_runs(root: Places, way_ns: Ints, number: Places) -> None:
    """Lead points to where the run of neighbours begins that they belong to, in place: most chains are such runs."""
    follows = np.zeros(len(root), np.bool_)
    follows[1:] = root[1:] == number[:-1]
    head = np.maximum.accumulate(np.where(follows, 0, np.arange(len(root), dtype=np.int32)))
    so_far_ns = np.cumsum(np.where(follows, way_ns, 0))
    run = np.flatnonzero(follows)
    way_ns[run] = so_far_ns[run] - so_far_ns[head[run]]
    root[run] = number[head[run]]


_PLAIN_MAX_POINTS: Final = 1 << 14  # below, finding chains takes longer than it saves
_CHUNK_EDGES: Final = 1 << 16  # so that Python integers of few edges exist at once
