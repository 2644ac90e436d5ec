"""A sweep over one graph again and again, with other lengths: what depends on the edges alone is worked out once.

    t[v] = max(floor[v], max over edges u -> v of t[u] + weight)

Two kinds of points need no loop, whatever the lengths are (docs/decisions/0051-planned-sweeps.md):

one edge in    a ─► b ─► c          b and c follow from a: sums along chains
one edge out   x ─► p ─► q ─► r     what reaches p or q reaches r as much later as the way from there is long:
               y ──────►            sums along chains, and then the latest of what joins them

Of a large graph these are all but a few points in a hundred. Only the others are swept one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.errors import InvariantError
from longpole.graph.sweep import NEVER_NS, one_by_one
from longpole.timeline.groups import opens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]
    Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Forest:
    """Points that each have one link towards a root; most links lead to the point listed just before.

    Attributes:
        point: `[M]` int32: the points; a path is a run of them in which each links to the one before.
        root: `[M]` int32: the point outside that the links lead to at last, -1 for none.
        head: `[H]` int64: places where paths begin.
        size: `[H]` int64: how many points each path has.
        above: `[H]` int32: place that the head links to, -1 where it links to no point of the forest.
        jumps: Pairs of paths, by rounds: in round k each path with the one 2^k paths nearer to the root.
    """

    point: Places
    root: Places
    head: Ints
    size: Ints
    above: Places
    jumps: tuple[tuple[Places, Places], ...]

    @classmethod
    def of(cls, point: Places, link: Places, n: int) -> _Forest:
        """Lay out a forest.

        Args:
            point: `[M]` int32: its points, those that follow one another side by side as far as possible.
            link: `[M]` int32: what each links to: another point of it, one outside, or -1.
            n: Number of points of the graph.
        """
        place = np.full(n + 1, -1, np.int32)  # the last one stands for no point
        place[point] = np.arange(len(point), dtype=np.int32)
        above = place[link]
        begins = above != np.arange(-1, len(point) - 1)
        begins[:1] = True
        head = np.flatnonzero(begins)
        path = np.cumsum(begins, dtype=np.int32) - np.int32(1)
        size = np.diff(np.append(head, len(point)))
        up = np.where(above[head] >= 0, path[above[head]], -1).astype(np.int32)
        jumps = []
        top = np.arange(len(head), dtype=np.int32)
        while (up >= 0).any():
            some = np.flatnonzero(up >= 0).astype(np.int32)
            jumps.append((some, up[some]))
            top[some] = top[up[some]]
            up[some] = up[up[some]]
        outside = np.where(above[head] >= 0, -1, link[head]).astype(np.int32)
        return cls(point, np.repeat(outside[top], size), head, size, above[head], tuple(jumps))

    def ways_ns(self, own_ns: Ints) -> Ints:
        """Return how far each point is from its root: `[M]` int64 ns.

        Args:
            own_ns: `[M]` int64 ns: length of each point's own link.
        """
        so_far_ns = np.cumsum(own_ns)
        more_ns = own_ns[self.head] - so_far_ns[self.head]
        linked = self.above >= 0
        more_ns[linked] += so_far_ns[self.above[linked]]
        for path, up in self.jumps:
            more_ns[path] += more_ns[up]
        so_far_ns += np.repeat(more_ns, self.size)
        return so_far_ns

    def latest(self, value: Ints) -> Ints:
        """Return for each point the highest value of all points that lead to its root by way of it: `[M]` int64.

        Args:
            value: `[M]` int64; NEVER_NS for none. Points that no other leads to have one.
        """
        if len(value) == 0:
            return value
        highest = np.maximum.reduceat(value, self.head)
        for path, up in self.jumps:
            np.maximum.at(highest, up, highest[path])
        joined = value.copy()
        linked = np.flatnonzero(self.above >= 0)
        np.maximum.at(joined, self.above[linked], highest[linked])
        lowest = int(joined[joined > NEVER_NS].min())
        span = int(joined.max()) - lowest + 2
        np.maximum(joined, lowest - 1, out=joined)
        # The highest from the end of each path on: paths are lifted above one another, as many as 63 bits hold.
        at_once = max(_LIFTED_MAX // span, 1)
        for low in range(0, len(self.head), at_once):
            size = self.size[low : low + at_once]
            begin = int(self.head[low])
            some = joined[begin : begin + int(size.sum())]
            lift = np.repeat(np.arange(len(size) - 1, -1, -1) * span - lowest, size)
            some += lift
            some[::-1] = np.maximum.accumulate(some[::-1])
            some -= lift
        return joined


_LIFTED_MAX: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What sweeps over the same edges have in common; made by `plan_sweep`.

    Attributes:
        n_points: Number of points.
        n_edges: Number of edges.
        held: `[P]` bool: points that may have a floor.
        chains: Points with one edge in; each links to where that comes from.
        chain_edge: Those edges.
        rest: `[N]` int32: the other edges.
        rest_chain: The place in the chains where each of the others starts, -1 for none.
        trees: Points with one edge out, or none; each links to where that leads.
        tree_edge: Those edges, places in `rest`, -1 for none.
        into: Edges that do not start in the trees, places in `rest`, ordered by the two ends that are left of them.
        into_tree: The place in the trees where each of those ends, -1 for none.
        groups: Where edges between the same two ends begin.
        left: `[L]` int32: points that are left.
        src, dst: Places in `left` of the ends of each group, in sweeping order.
        tree_into: Edges into points of trees from others, places in `rest`, by the place in the trees where they end.
        tree_source: The place in `left` of each one's source.
        tree_groups: Where edges into the same point begin.
        tree_place: The place in the trees of each such point.
    """

    n_points: int
    n_edges: int
    held: Flags
    chains: _Forest
    chain_edge: Places
    rest: Places
    rest_chain: Places
    trees: _Forest
    tree_edge: Places
    into: Places
    into_tree: Places
    groups: Ints
    left: Places
    src: Places
    dst: Places
    tree_into: Places
    tree_source: Places
    tree_groups: Ints
    tree_place: Places

    def times_ns(self, length_ns: Ints, floor_ns: Ints) -> Ints:
        """Return when every point happens: `[P]` int64 ns, as `sweep` does.

        Args:
            length_ns: `[E]` int64 ns.
            floor_ns: `[P]` int64 ns; NEVER_NS but for points that are held.
        """
        if len(length_ns) != self.n_edges or len(floor_ns) != self.n_points:
            msg = f"planned for {self.n_edges} edges of {self.n_points} points"
            raise InvariantError(msg)
        way_ns = self.chains.ways_ns(length_ns[self.chain_edge])
        rest_ns = np.append(length_ns[self.rest], 0)  # the last one stands for no edge
        rest_ns[:-1] += np.append(way_ns, 0)[self.rest_chain]
        ahead_ns = np.append(self.trees.ways_ns(rest_ns[self.tree_edge]), 0)
        between_ns = rest_ns[self.into] + ahead_ns[self.into_tree]
        if len(between_ns):
            between_ns = np.maximum.reduceat(between_ns, self.groups)
        left_ns = one_by_one(self.src, self.dst, between_ns, floor_ns[self.left])
        time_ns = np.empty(self.n_points, np.int64)
        time_ns[self.left] = left_ns
        if len(self.trees.point):
            arrival_ns = np.full(len(self.trees.point), NEVER_NS, np.int64)
            reached_ns = left_ns[self.tree_source] + rest_ns[self.tree_into]
            reached_ns = np.maximum.reduceat(reached_ns, self.tree_groups)
            arrival_ns[self.tree_place] = reached_ns + ahead_ns[self.tree_place]
            time_ns[self.trees.point] = self.trees.latest(arrival_ns) - ahead_ns[:-1]
        way_ns += time_ns[self.chains.root]
        time_ns[self.chains.point] = way_ns
        return time_ns


def plan_sweep(n: int, src: Places, dst: Places, held: Flags) -> SweepPlan:
    """Work out what all sweeps over some edges have in common.

    Args:
        n: Number of points.
        src: `[E]` int32, ordered as `sort_edges` orders edges.
        dst: `[E]` int32.
        held: `[P]` bool: points that may have a floor; those without an edge into them count as such.
    """
    edges_in = np.bincount(dst, minlength=n)
    held = held | (edges_in == 0)
    chained = (edges_in == 1) & ~held
    chain_edge, chains = _chains(n, src, dst, chained)
    rest = np.flatnonzero(~chained[dst]).astype(np.int32)
    start, rest_chain = _starts(n, src[rest], chains)
    end = dst[rest]
    edges_out = np.bincount(start, minlength=n)
    in_tree = (edges_out <= 1) & ~held & ~chained
    tree_edge, trees, place = _trees(n, start, end, in_tree)
    plain = np.flatnonzero(~in_tree[start]).astype(np.int32)
    tree_into = plain[in_tree[end[plain]]]
    tree_into = tree_into[np.argsort(place[end[tree_into]], kind="stable")]
    target = end.copy()
    inside = place[end] >= 0
    target[inside] = trees.root[place[end[inside]]]
    plain = plain[target[plain] >= 0]
    left = np.flatnonzero(~chained & ~in_tree).astype(np.int32)
    number = np.full(n, -1, np.int32)
    number[left] = np.arange(len(left), dtype=np.int32)
    first = np.full(n, len(src), np.int64)  # a source's first edge says where it stands in the order
    first[src[::-1]] = np.arange(len(src) - 1, -1, -1)
    into = plain[np.lexsort((target[plain], first[start[plain]]))]
    groups = np.flatnonzero(opens(start[into], target[into]))
    tree_groups = np.flatnonzero(opens(end[tree_into]))
    return SweepPlan(
        n_points=n,
        n_edges=len(src),
        held=held,
        chains=chains,
        chain_edge=chain_edge,
        rest=rest,
        rest_chain=rest_chain,
        trees=trees,
        tree_edge=tree_edge,
        into=into,
        into_tree=place[end[into]],
        groups=groups,
        left=left,
        src=number[start[into[groups]]],
        dst=number[target[into[groups]]],
        tree_into=tree_into,
        tree_source=number[start[tree_into]],
        tree_groups=tree_groups,
        tree_place=place[end[tree_into[tree_groups]]],
    )


def _chains(n: int, src: Places, dst: Places, chained: Flags) -> tuple[Places, _Forest]:
    """Return the edges into points with one edge in, and those points, ascending: most follow the one before."""
    edge = np.full(n, -1, np.int32)
    into = np.flatnonzero(chained[dst]).astype(np.int32)
    edge[dst[into]] = into
    point = np.flatnonzero(chained).astype(np.int32)
    edge = edge[point]
    return edge, _Forest.of(point, src[edge], n)


def _starts(n: int, src: Places, chains: _Forest) -> tuple[Places, Places]:
    """Return where edges start once chains are passed over, and at which place of the chains they did, -1 for none."""
    place = np.full(n, -1, np.int32)
    place[chains.point] = np.arange(len(chains.point), dtype=np.int32)
    at = place[src]
    start = src.copy()
    start[at >= 0] = chains.root[at[at >= 0]]
    return start, at


def _trees(n: int, start: Places, end: Places, in_tree: Flags) -> tuple[Places, _Forest, Places]:
    """Return the edges out of points with one, those points, descending, and the place of every point among them."""
    edge = np.full(n, -1, np.int32)
    out = np.flatnonzero(in_tree[start]).astype(np.int32)
    edge[start[out]] = out
    point = np.flatnonzero(in_tree)[::-1].astype(np.int32)
    edge = edge[point]
    link = np.where(edge >= 0, end[edge], -1).astype(np.int32) if len(end) else edge
    place = np.full(n, -1, np.int32)
    place[point] = np.arange(len(point), dtype=np.int32)
    return edge, _Forest.of(point, link, n), place
