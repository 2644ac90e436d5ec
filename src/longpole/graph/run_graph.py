"""The graphs of all ranks joined where their collectives meet, on one clock.

rank 0   ──● entry                        ┌──► ● exit
rank 1   ─────────● entry ──► ● arrived ──┤             arrived: the latest entry
rank 2   ──────● entry                    └──► ● exit   transfer: what the bytes need from then on

Where a collective could not be split into waiting and moving, each rank keeps its own duration and no edge crosses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind, PointKind
from longpole.graph.plan import SweepPlan, plan_sweep
from longpole.graph.sweep import NEVER_NS, sort_edges, topological_order
from longpole.graph.walk import Incoming, incoming_edges

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from longpole.graph.rank_graph import RankGraph

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]


class Meeting(NamedTuple):
    """Operations that hold ranks together; M of them, K members.

    Attributes:
        first: `[M + 1]` int64: members of operation m are places `first[m]:first[m + 1]`.
        rank: `[K]` int32.
        instance: `[K]` int32: place among the rank's instances.
        how: `[M]` uint8: 0 cannot be split; 1 by ends on aligned clocks; 2 by the shortest duration.
    """

    first: Ints
    rank: Places
    instance: Places
    how: NDArray[np.uint8]


@dataclass(frozen=True)
class RunGraph:
    """The graph of a run.

    What replays have in common, whatever the lengths of its edges are, is worked out when it is first asked for, and
    kept.

    Attributes:
        ranks: The ranks' graphs, ascending.
        base: `[R + 1]` int64: points of rank r are `base[r]:base[r + 1]`; behind them arrivals, then completions.
        edge_base: `[R + 1]` int64: the same for edges, before they were put in sweeping order.
        time_ns: `[P]` int64 ns on the run's clock.
        edges: In sweeping order, with final lengths.
        source_edge: `[E]` int64: each edge's number before ordering: a rank's own edge, or one that joins ranks.
        meeting: What joins ranks.
        member_of_edge: `[E]` int64: member place of a transfer edge, -1 for every other edge.
        floor_ns: `[P]` int64 ns.
        units: Names of the units that all ranks have, in order.
        completion: `[U]` int32: the run's completion points.
        completion_of_rank: `[R, U]` int32: the ranks' own completion points.
    """

    ranks: tuple[RankGraph, ...]
    base: Ints
    edge_base: Ints
    time_ns: Ints
    edges: Edges
    source_edge: Ints
    meeting: Meeting
    member_of_edge: Ints
    floor_ns: Ints
    units: tuple[str, ...]
    completion: Places
    completion_of_rank: NDArray[np.int32]

    @property
    def n_points(self) -> int:
        """Return the number of points."""
        return len(self.time_ns)

    @cached_property
    def plan(self) -> SweepPlan:
        """How to sweep its edges; points at which the first unit begins may be given floors."""
        held = self.floor_ns != NEVER_NS
        held[self.beginnings] = True
        return plan_sweep(self.n_points, self.edges.src, self.edges.dst, held)

    @cached_property
    def incoming(self) -> Incoming:
        """The edges into each point."""
        return incoming_edges(self.n_points, self.edges)

    @cached_property
    def beginnings(self) -> Places:
        """Points at which the first unit begins on the ranks: `[N]` int32."""
        found = [np.empty(0, np.int64)]
        for place, rank in enumerate(self.ranks if self.units else ()):
            begin_ns = int(rank.unit_start_ns[rank.units.index(self.units[0])])
            marks = (rank.point_kind == PointKind.MARK) & (rank.lane == rank.main_track) & (rank.time_ns == begin_ns)
            found.append(np.flatnonzero(marks) + int(self.base[place]))
        return np.concatenate(found).astype(np.int32)

    @cached_property
    def _by_rank(self) -> tuple[Places, Ints]:
        """Edges ordered by the rank that they end in and by kind, and where each rank's of a kind begin."""
        n_ranks, n_kinds = len(self.ranks), len(EdgeKind)
        rank_of = np.full(self.n_points, n_ranks, np.int32)  # arrivals and completions stand behind all ranks
        rank_of[: int(self.base[-1])] = np.repeat(np.arange(n_ranks, dtype=np.int32), np.diff(self.base))
        key = rank_of[self.edges.dst] * np.int32(n_kinds) + self.edges.kind
        if (n_ranks + 1) * n_kinds < 1 << 15:
            key = key.astype(np.int16)  # sorted by its digits, several times faster
        order = np.argsort(key, kind="stable").astype(np.int32)
        return order, np.searchsorted(key[order], np.arange((n_ranks + 1) * n_kinds + 1)).astype(np.int64)

    def edges_of(self, place: int, kinds: Collection[EdgeKind]) -> NDArray[np.intp]:
        """Return the edges of some kinds that end in a rank's points, ascending.

        Args:
            place: Place of the rank.
            kinds: Members of EdgeKind.
        """
        order, first = self._by_rank
        at = [place * len(EdgeKind) + kind for kind in kinds]
        parts = [order[first[k] : first[k + 1]] for k in at]
        found = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts), kind="stable")  # merges what is sorted
        return found.astype(np.intp)

    @cached_property
    def leads_to_completion(self) -> NDArray[np.bool_]:
        """Points from which a way leads to the end of a unit: `[P]` bool."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import breadth_first_order

        n = self.n_points
        # Walked backwards, from one point behind all completions.
        src = np.concatenate([self.edges.dst, np.full(len(self.completion), n, np.int32)])
        dst = np.concatenate([self.edges.src, self.completion])
        backward = coo_array((np.ones(len(src), np.int8), (src, dst)), shape=(n + 1, n + 1)).tocsr()
        leads = np.zeros(n + 1, np.bool_)
        leads[breadth_first_order(backward, n, return_predecessors=False)] = True
        return leads[:-1]

    def rank_place(self, point: int) -> int:
        """Return the place of the rank that a point belongs to, -1 for arrivals and completions of the run."""
        if point >= int(self.base[-1]):
            return -1
        return int(np.searchsorted(self.base, point, side="right")) - 1


def join_ranks(graphs: list[RankGraph], to_run_ns: Mapping[int, tuple[int, float, int]], meeting: Meeting) -> RunGraph:
    """Join the graphs of ranks.

    Args:
        graphs: One per rank.
        to_run_ns: Rank -> (offset, drift, reference): a time t of the rank is t + offset + drift * (t - reference).
        meeting: The operations that were matched and split.
    """
    graphs = sorted(graphs, key=lambda graph: graph.rank)
    place_of = {graph.rank: place for place, graph in enumerate(graphs)}
    counts = [len(graph.time_ns) for graph in graphs]
    base = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    times = [on_run_clock(graph.time_ns, to_run_ns[graph.rank]) for graph in graphs]
    met = np.flatnonzero((meeting.how > 0) & (np.diff(meeting.first) > 0))
    entry, exit_ = _member_points(graphs, base, place_of, meeting)
    units, done = _common_units(graphs, base)
    own = [_own_edges(graph, int(base[place])) for place, graph in enumerate(graphs)]
    edge_base = np.concatenate([[0], np.cumsum([len(edges) for edges in own])]).astype(np.int64)
    all_own = Edges.join(own)
    time_ns = np.concatenate([*times, np.zeros(len(met), np.int64), np.zeros(len(units), np.int64)])
    n_points = int(base[-1])
    arrived = n_points + np.arange(len(met))
    joined, members = _meet(meeting, met, entry, exit_, arrived, time_ns)
    all_own, replaced = _give_way(all_own, entry[members], exit_[members], len(time_ns))
    completion = (n_points + len(met) + np.arange(len(units))).astype(np.int32)
    for u in range(len(units)):
        time_ns[completion[u]] = time_ns[done[:, u]].max()
    finish = [Edges.of(EdgeKind.COMPLETION, row, completion) for row in done]
    finish.append(Edges.of(EdgeKind.COMPLETION, completion[:-1], completion[1:]))
    everything = Edges.join([all_own, joined, *finish])
    numbers = np.arange(len(everything), dtype=np.int64)
    member_of_edge = np.full(len(everything), -1, np.int64)
    transfers = np.flatnonzero(joined.kind == EdgeKind.TRANSFER)
    member_of_edge[len(all_own) + transfers] = members
    keep = np.ones(len(everything), np.bool_)
    keep[: len(all_own)] = ~replaced
    edges, numbers, member_of_edge = everything.take(keep), numbers[keep], member_of_edge[keep]
    order = topological_order(time_ns, edges.src, edges.dst)
    by = sort_edges(order, edges.src)
    edges = edges.take(by)
    floor_ns = np.where(_has_edge_into(len(time_ns), edges), NEVER_NS, time_ns)
    return RunGraph(
        ranks=tuple(graphs),
        base=base,
        edge_base=edge_base,
        time_ns=time_ns,
        edges=edges,
        source_edge=numbers[by],
        meeting=meeting,
        member_of_edge=member_of_edge[by],
        floor_ns=floor_ns,
        units=units,
        completion=completion,
        completion_of_rank=done,
    )


def on_run_clock(time_ns: Ints, clock: tuple[int, float, int]) -> Ints:
    """Return a rank's times on the run's clock.

    Args:
        time_ns: int64 ns since the file's base.
        clock: (offset, drift, reference), as in `join_ranks`.
    """
    offset_ns, drift, reference_ns = clock
    if drift == 0.0:
        return time_ns + offset_ns
    return time_ns + offset_ns + np.rint(drift * (time_ns - reference_ns).astype(np.float64)).astype(np.int64)


def _own_edges(graph: RankGraph, base: int) -> Edges:
    """Return a rank's edges with the run's point numbers."""
    edges = graph.edges
    return Edges((edges.src + base).astype(np.int32), (edges.dst + base).astype(np.int32), edges.kind, edges.length_ns)


def _give_way(edges: Edges, entry: Places, exit_: Places, n_points: int) -> tuple[Edges, NDArray[np.bool_]]:
    """Let the kept durations of operations that could be split give way to arrival and transfer.

    A device span's duration goes; along a thread only the order of what lies in between stays.

    Returns:
        The edges, and which of them go.
    """
    steps = np.zeros(n_points + 1, np.int64)
    np.add.at(steps, entry, 1)
    np.add.at(steps, exit_, -1)
    inside = np.cumsum(steps)[edges.src] > 0
    emptied = inside & (edges.kind == EdgeKind.MEMBER)
    kind = np.where(emptied, EdgeKind.SILENT, edges.kind).astype(np.uint8)
    gone = inside & (edges.kind == EdgeKind.DURATION)
    return Edges(edges.src, edges.dst, kind, np.where(emptied, 0, edges.length_ns)), gone


def _member_points(
    graphs: list[RankGraph], base: Ints, place_of: dict[int, int], meeting: Meeting
) -> tuple[Places, Places]:
    """Return the points at which each member enters and leaves its operation: `[K]` int32 each."""
    entry, exit_ = np.empty(len(meeting.rank), np.int32), np.empty(len(meeting.rank), np.int32)
    for rank in np.unique(meeting.rank).tolist():
        mine = meeting.rank == rank
        graph = graphs[place_of[rank]]
        entry[mine] = graph.entry[meeting.instance[mine]] + base[place_of[rank]]
        exit_[mine] = graph.exit[meeting.instance[mine]] + base[place_of[rank]]
    return entry, exit_


def _common_units(graphs: list[RankGraph], base: Ints) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    common = set.intersection(*(set(graph.units) for graph in graphs))
    units = tuple(name for name in graphs[0].units if name in common)
    done = np.empty((len(graphs), len(units)), np.int32)
    for place, graph in enumerate(graphs):
        at = {name: int(point) for name, point in zip(graph.units, graph.completion.tolist(), strict=True)}
        done[place] = [at[name] + int(base[place]) for name in units]
    return units, done


def _meet(
    meeting: Meeting, met: NDArray[np.intp], entry: Places, exit_: Places, arrived: Ints, time_ns: Ints
) -> tuple[Edges, Ints]:
    """Return the edges through the arrivals of operations that were split, and the members they belong to.

    Sets the arrivals' times. The transfer of a member is what it took after the last arrival where clocks say so, else
    the shortest duration of all members.
    """
    counts = np.diff(meeting.first)[met]
    members = np.concatenate([np.arange(meeting.first[m], meeting.first[m + 1]) for m in met.tolist()] or [_NONE])
    operation = np.repeat(np.arange(len(met)), counts)
    came = np.full(len(met), NEVER_NS, np.int64)
    np.maximum.at(came, operation, time_ns[entry[members]])
    shortest = np.full(len(met), 1 << 62, np.int64)
    np.minimum.at(shortest, operation, time_ns[exit_[members]] - time_ns[entry[members]])
    by_ends = meeting.how[met][operation] == 1
    transfer_ns = np.where(by_ends, time_ns[exit_[members]] - came[operation], shortest[operation])
    transfer_ns = np.maximum(transfer_ns, 0)
    time_ns[arrived] = came
    edges = Edges.join(
        [
            Edges.of(EdgeKind.ARRIVAL, entry[members], arrived[operation]),
            Edges.of(EdgeKind.TRANSFER, arrived[operation], exit_[members], transfer_ns),
        ]
    )
    return edges, members


_NONE = np.empty(0, np.int64)


def _has_edge_into(n: int, edges: Edges) -> NDArray[np.bool_]:
    has = np.zeros(n, np.bool_)
    has[edges.dst] = True
    return has
