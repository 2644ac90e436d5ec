"""The call tree of one thread, from the times of its spans alone.

depth 0   ├──────────── a ────────────┤
depth 1      ├─── b ───┤   ├── c ──┤
depth 2        ├ d ┤

innermost  a  b  d   b   a    c     a
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]


class Nesting(NamedTuple):
    """The call tree of N spans that are ordered by start, the longer one first.

    Attributes:
        end_ns: `[N]` int64: ends, cut where a span reached beyond the span that it started in.
        parent: `[N]` int64: row of the enclosing span, -1 for a root.
        depth: `[N]` int64: 0 for a root.
    """

    end_ns: Ints
    parent: Ints
    depth: Ints


def nest(start_ns: Ints, end_ns: Ints) -> Nesting:
    """Find every span's parent.

    A span belongs to the innermost span that is still open where it starts. Where it ends after that span (rounding
    to whole microseconds makes such pairs), it is cut at the parent's end, for nesting only.

    Args:
        start_ns: `[N]` int64, ascending; of equal starts the longer span first.
        end_ns: `[N]` int64, at least the start.
    """
    depth = _depths(start_ns, end_ns)
    parent = _parents(depth)
    if (end_ns > np.where(parent >= 0, end_ns[parent], end_ns)).any():
        end_ns = _cut_ends(start_ns, end_ns)
        depth = _depths(start_ns, end_ns)
        parent = _parents(depth)
    return Nesting(end_ns, parent, depth)


def _cut_ends(start_ns: Ints, end_ns: Ints) -> Ints:
    """Cut every span that outlasts the span that it started in, one after the other: a cut one holds fewer later ones.

    a  ├──────┤
    b      ├──┼┤      cut at the end of a, so that
    c         ├───┤   belongs to neither
    """
    ends = end_ns.tolist()
    still_open: list[int] = []
    for row, start in enumerate(start_ns.tolist()):
        while still_open and still_open[-1] <= start:
            still_open.pop()
        if still_open and still_open[-1] < ends[row]:
            ends[row] = still_open[-1]
        still_open.append(ends[row])
    return np.array(ends, np.int64)


def _depths(start_ns: Ints, end_ns: Ints) -> Ints:
    """Count the earlier spans that are still open at each start."""
    closed = np.searchsorted(np.sort(end_ns), start_ns, side="right")
    # An empty span closes where it opens: it is closed for what follows, but must not close before itself.
    empty = (end_ns == start_ns).astype(np.int64)
    first_equal = np.searchsorted(start_ns, start_ns, side="left")
    empty_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(empty)])
    not_yet = empty_before[np.searchsorted(start_ns, start_ns, side="right")] - empty_before[first_equal]
    seen = empty_before[np.arange(len(start_ns))] - empty_before[first_equal]
    return np.arange(len(start_ns)) - (closed - not_yet + seen)


def _parents(depth: Ints) -> Ints:
    """Return the last earlier row of the depth above, level by level."""
    parent = np.full(len(depth), -1, np.int64)
    if len(depth) == 0:
        return parent
    order = np.argsort(depth, kind="stable")
    level_start = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2))
    for level in range(1, len(level_start) - 1):
        above = order[level_start[level - 1] : level_start[level]]
        here = order[level_start[level] : level_start[level + 1]]
        parent[here] = above[np.searchsorted(above, here) - 1]
    return parent


def inherit(nesting: Nesting, own: NDArray[np.int32]) -> NDArray[np.int32]:
    """Give each span its own value, else that of the nearest enclosing span that has one.

    Args:
        nesting: The call tree.
        own: `[N]` int32, -1 where the span has no value of its own.
    """
    value = own.copy()
    order = np.argsort(nesting.depth, kind="stable")
    levels = np.searchsorted(nesting.depth[order], np.arange(int(nesting.depth.max(initial=0)) + 2))
    for level in range(1, len(levels) - 1):
        here = order[levels[level] : levels[level + 1]]
        missing = here[value[here] < 0]
        value[missing] = value[nesting.parent[missing]]
    return value


class Segments(NamedTuple):
    """A thread's time cut into pieces in which the innermost span does not change.

    Attributes:
        start_ns: `[M]` int64, ascending; piece i ends where piece i + 1 starts, the last one never.
        span: `[M]` int64: row of the innermost span, -1 where the thread has none.
    """

    start_ns: Ints
    span: Ints


def segment(start_ns: Ints, nesting: Nesting) -> Segments:
    """Cut a thread's time at every start and end, naming the innermost span of each piece.

    Args:
        start_ns: `[N]` int64, as given to `nest`.
        nesting: What `nest` returned.
    """
    rows = np.flatnonzero(nesting.end_ns > start_ns)
    time_ns = np.concatenate([nesting.end_ns[rows], start_ns[rows]])
    span = np.concatenate([nesting.parent[rows], rows])
    # At one instant ends come before starts, inner ends before outer ones and outer starts before inner ones:
    # the last entry is then the span that goes on.
    rank = np.concatenate([-nesting.depth[rows], nesting.depth[rows] + (1 << 32)])
    order = np.lexsort((rank, time_ns))
    time_ns, span = time_ns[order], span[order]
    last = np.ones(len(time_ns), np.bool_)
    last[:-1] = time_ns[1:] != time_ns[:-1]
    return Segments(time_ns[last], span[last])


def apart_lanes(start_ns: Ints, end_ns: Ints) -> Ints:
    """Return a lane for each span, on which no two of them overlap: as few lanes as run at once.

    Args:
        start_ns: `[N]` int64.
        end_ns: `[N]` int64, at least the start.

    Returns:
        `[N]` int64, from 0 without holes.
    """
    lane = np.zeros(len(start_ns), np.int64)
    order = np.lexsort((end_ns, start_ns))
    if len(order) < 2 or (start_ns[order][1:] >= np.maximum.accumulate(end_ns[order])[:-1]).all():
        return lane
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    lanes = []
    for start, end in zip(start_ns[order].tolist(), end_ns[order].tolist(), strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        chosen = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, chosen))
        lanes.append(chosen)
    lane[order] = lanes
    return lane
