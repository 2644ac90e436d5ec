"""Interval algebra on half-open spans of integer nanoseconds, vectorised.

A *set* here is a pair of arrays `(start_ns, end_ns)`, ascending, disjoint and not touching, without empty spans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]


class Intervals(NamedTuple):
    """A set of disjoint spans: `[N]` int64 ns each, ascending, not touching, none empty."""

    start_ns: Ints
    end_ns: Ints

    def total_ns(self) -> int:
        """Return the length of the set."""
        return int((self.end_ns - self.start_ns).sum())

    @classmethod
    def none(cls) -> Intervals:
        """Return the empty set."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def single(cls, start_ns: int, end_ns: int) -> Intervals:
        """Return the set of one span, empty where it has no length."""
        if end_ns <= start_ns:
            return cls.none()
        return cls(np.array([start_ns], np.int64), np.array([end_ns], np.int64))


def union(start_ns: Ints, end_ns: Ints) -> Intervals:
    """Unite spans in any order, overlapping or not; empty and negative ones count nothing.

    a  ├────────┤            ├──┤
    b       ├───────┤  ├┤
    ∪  ├────────────┤  ├┤    ├──┤
    """
    keep = end_ns > start_ns
    if not keep.all():
        start_ns, end_ns = start_ns[keep], end_ns[keep]
    if len(start_ns) == 0:
        return Intervals.none()
    if len(start_ns) > 1 and (start_ns[1:] < start_ns[:-1]).any():
        order = np.argsort(start_ns, kind="stable")
        start_ns, end_ns = start_ns[order], end_ns[order]
    reach_ns = np.maximum.accumulate(end_ns)
    opens = np.empty(len(start_ns), np.bool_)
    opens[0] = True
    np.greater(start_ns[1:], reach_ns[:-1], out=opens[1:])
    first = np.flatnonzero(opens)
    last = np.append(first[1:], len(start_ns)) - 1
    return Intervals(start_ns[first], reach_ns[last])


def unite(*sets: Intervals) -> Intervals:
    """Unite sets."""
    return union(np.concatenate([s.start_ns for s in sets]), np.concatenate([s.end_ns for s in sets]))


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """Return what both sets cover."""
    if len(a.start_ns) == 0 or len(b.start_ns) == 0:
        return Intervals.none()
    first = np.searchsorted(b.end_ns, a.start_ns, side="right")
    last = np.searchsorted(b.start_ns, a.end_ns, side="left")
    a_row, b_row = expand(first, last)
    return Intervals(np.maximum(a.start_ns[a_row], b.start_ns[b_row]), np.minimum(a.end_ns[a_row], b.end_ns[b_row]))


def complement(a: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """Return what `a` does not cover of the span `[start_ns, end_ns)`."""
    inside = intersect(a, Intervals.single(start_ns, end_ns))
    start = np.concatenate([np.array([start_ns], np.int64), inside.end_ns])
    end = np.concatenate([inside.start_ns, np.array([end_ns], np.int64)])
    keep = end > start
    return Intervals(start[keep], end[keep])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """Return what `a` covers and `b` does not."""
    if len(a.start_ns) == 0 or len(b.start_ns) == 0:
        return a
    low_ns = min(int(a.start_ns[0]), int(b.start_ns[0]))
    high_ns = max(int(a.end_ns[-1]), int(b.end_ns[-1]))
    return intersect(a, complement(b, low_ns, high_ns))


def covered_before(a: Intervals, time_ns: Ints) -> Ints:
    """Return, for each time, how much of the set lies before it: `[M]` int64 ns.

    The length of the set inside `[s, e)` is `covered_before(a, e) - covered_before(a, s)`.
    """
    if len(a.start_ns) == 0:
        return np.zeros(len(time_ns), np.int64)
    length_ns = a.end_ns - a.start_ns
    before_ns = np.concatenate([np.zeros(1, np.int64), np.cumsum(length_ns)])
    row = np.searchsorted(a.start_ns, time_ns, side="right")
    last = np.maximum(row - 1, 0)
    part_ns = np.clip(time_ns - a.start_ns[last], 0, length_ns[last])
    return np.where(row == 0, 0, before_ns[last] + part_ns)


def expand(first: NDArray[np.intp], last: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """List the pairs `(i, j)` with `first[i] <= j < last[i]`, ordered by i, then j."""
    count = np.maximum(last - first, 0)
    row = np.repeat(np.arange(len(count)), count)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return row, np.repeat(first, count) + offset


def union_by_group(group: NDArray[np.int32], start_ns: Ints, end_ns: Ints) -> tuple[NDArray[np.int32], Ints, Ints]:
    """Unite spans within each group.

    Returns:
        `(group, start_ns, end_ns)` of the disjoint pieces, ordered by group, then start.
    """
    order = np.lexsort((start_ns, group))
    group, start_ns, end_ns = group[order], start_ns[order], end_ns[order]
    keep = end_ns > start_ns
    group, start_ns, end_ns = group[keep], start_ns[keep], end_ns[keep]
    if len(group) == 0:
        return group, start_ns, end_ns
    reach_ns = reach_in_groups(group, end_ns)
    opens = np.ones(len(group), np.bool_)
    opens[1:] = (group[1:] != group[:-1]) | (start_ns[1:] > reach_ns[:-1])
    first = np.flatnonzero(opens)
    last = np.append(first[1:], len(group)) - 1
    return group[first], start_ns[first], reach_ns[last]


def reach_in_groups(group: NDArray[np.int32], end_ns: Ints) -> Ints:
    """Return, for rows sorted by group, the latest end of the row and those before it in its group.

    Args:
        group: `[N]`, ascending, not negative.
        end_ns: `[N]` int64 ns.
    """
    if len(group) == 0:
        return end_ns
    # The running maximum must not leak from one group into the next, so each group is lifted above the last.
    low_ns = int(end_ns.min())
    width_ns = int(end_ns.max()) - low_ns + 1
    if width_ns < _LARGEST // (int(group[-1]) + 1):
        lift_ns = group.astype(np.int64) * width_ns
        return np.maximum.accumulate(end_ns - low_ns + lift_ns) - lift_ns + low_ns
    # Ranks in place of times, where those would leave 64 bits.
    order = np.argsort(end_ns, kind="stable")
    rank = np.empty(len(end_ns), np.int64)
    rank[order] = np.arange(len(end_ns))
    lift = np.cumsum(np.diff(group, prepend=group[:1]) != 0) * len(end_ns)
    return end_ns[order][np.maximum.accumulate(rank + lift) - lift]


_LARGEST: Final = 1 << 62
