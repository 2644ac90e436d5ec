"""A run's graph while changes are made to it: lengths, dropped edges, added points and edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.sweep import NEVER_NS, sort_edges, sweep, topological_order
from longpole.whatif.composition import Alteration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from longpole.graph.kinds import EdgeKind
    from longpole.graph.plan import SweepPlan
    from longpole.graph.rank_graph import RankGraph
    from longpole.graph.run_graph import RunGraph
    from longpole.records.instances import Instances
    from longpole.settings import Settings
    from longpole.whatif.composition import OnThread, Sections

    Ints: TypeAlias = NDArray[np.int64]
    Flags: TypeAlias = NDArray[np.bool_]
    TransferCost: TypeAlias = Callable[[int, int], int | None]


@dataclass(slots=True)
class Draft:
    """An editable copy of a run's graph.

    Attributes:
        graph: What was recorded; never altered.
        settings: Thresholds.
        instances: Rank -> its collectives, in the order of the graph's entries.
        cost: (operation, bytes) -> how long the operation would take for that many bytes, ns; None without a model.
        length_ns: `[E]` int64 ns: lengths of the graph's edges, to be altered.
        dropped: `[E]` bool: edges that no longer hold.
        added_time_ns: Times of added points, for the order of the sweep.
        added_floor_ns: Times before which added points do not happen.
        added: Added edges; their points count on from the graph's.
        touched: `[E]` bool: edges whose lengths or existence a change altered.
        overlapping_ns: Of the altered device time, what runs beside other spans.
        altered_ns: Altered device time.
        alterations: Time on threads that changes shortened, for what the changed path is made of.
        worker_object: What added waits for workers and writers are charged to.
        refusals: Why a change cannot be answered.
        idle: Of the refusals, those that hold only where a change altered no row at all.
        unsplit: For each change of selected rows: how many collectives could not be split, of how many selected.
        rows: Rows altered by the change under way.
    """

    graph: RunGraph
    settings: Settings
    instances: Mapping[int, Instances]
    cost: TransferCost
    length_ns: Ints
    dropped: Flags
    touched: Flags
    added_time_ns: list[int] = field(default_factory=list)
    added_floor_ns: list[int] = field(default_factory=list)
    added: list[Edges] = field(default_factory=list)
    overlapping_ns: int = 0
    altered_ns: int = 0
    alterations: list[Alteration] = field(default_factory=list)
    worker_object: str = "input"
    refusals: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    unsplit: list[tuple[int, int]] = field(default_factory=list)
    rows: int = 0

    @classmethod
    def of(cls, graph: RunGraph, instances: Mapping[int, Instances], cost: TransferCost, settings: Settings) -> Draft:
        """Begin with the recorded graph."""
        n = len(graph.edges)
        return cls(
            graph,
            settings,
            instances,
            cost,
            graph.edges.length_ns.copy(),
            np.zeros(n, np.bool_),
            np.zeros(n, np.bool_),
        )

    def set_length(self, edges: NDArray[np.intp], length_ns: Ints) -> None:
        """Give edges other lengths, never below 0."""
        self.length_ns[edges] = np.maximum(length_ns, 0)
        self.touched[edges] = True

    def drop(self, edges: NDArray[np.intp]) -> None:
        """Let edges hold no longer."""
        self.dropped[edges] = True
        self.touched[edges] = True

    def refuse_idle(self, why: str) -> None:
        """Refuse the change under way if it altered nothing."""
        if self.rows == 0:
            self.refusals.append(why)
            self.idle.append(why)

    def refuse_unsplit(self, unsplit: int, total: int) -> None:
        """Refuse to alter collectives whose waiting and moving cannot be told apart.

        Args:
            unsplit: How many selected ones could not be split.
            total: How many were selected.
        """
        self.unsplit.append((unsplit, total))
        if unsplit:
            self.refusals.append(unsplit_text(unsplit, total))

    def shorten(self, place: int, threads: list[OnThread], parts: Sections, factor: float) -> None:
        """Leave a share of selected time on threads.

        Args:
            place: Place of the rank.
            threads: The selected time.
            parts: The edges that hold it.
            factor: What is left of it.
        """
        less_ns = np.rint(parts.inside_ns * (1 - factor)).astype(np.int64)
        self.set_length(parts.edge, self.length_ns[parts.edge] - less_ns)
        self.alterations += [Alteration(place, track, time, factor) for track, time in threads]

    def note(self, place: int, threads: list[OnThread], parts: Sections, more_ns: Ints) -> None:
        """Remember that selected time on threads became longer or shorter, alike over all of it.

        Args:
            place: Place of the rank.
            threads: The selected time.
            parts: The edges that hold it.
            more_ns: `[N]` int64 ns: by how much each of them became longer.
        """
        lane = self.graph.ranks[place].lane[self.local(place, self.graph.edges.src[parts.edge])]
        for track, time in threads:
            mine = lane == track
            inside_ns = int(parts.inside_ns[mine].sum())
            if inside_ns > 0:
                factor = max(1 + int(more_ns[mine].sum()) / inside_ns, 0.0)
                self.alterations.append(Alteration(place, track, time, factor))

    def earlier(self, place: int, track: int) -> list[Alteration]:
        """Return what changes made so far did to the time of one thread of a rank, in order."""
        return [change for change in self.alterations if (change.place, change.track) == (place, track)]

    def add_point(self, time_ns: int, floor_ns: int = NEVER_NS) -> int:
        """Add a point; return its number.

        Args:
            time_ns: About when it would have happened on the record; only edges decide when it does.
            floor_ns: It never happens earlier.
        """
        self.added_time_ns.append(time_ns)
        self.added_floor_ns.append(floor_ns)
        return self.graph.n_points + len(self.added_time_ns) - 1

    def add_edge(self, kind: EdgeKind, src: int, dst: int, length_ns: int) -> None:
        """Add an edge."""
        self.added.append(Edges.of(kind, np.array([src]), np.array([dst]), np.array([length_ns], np.int64)))

    def edges_of(self, place: int, *kinds: EdgeKind) -> NDArray[np.intp]:
        """Return the edges of some kinds that end in a rank's points.

        Args:
            place: Place of the rank in the run's graph.
            kinds: Members of EdgeKind.
        """
        return self.graph.edges_of(place, kinds)

    def local(self, place: int, points: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return a rank's own numbers of points."""
        return points.astype(np.int64) - int(self.graph.base[place])

    def ranks(self) -> list[tuple[int, RankGraph]]:
        """Return the ranks' graphs with their places."""
        return list(enumerate(self.graph.ranks))

    def reaches_completion(self) -> bool:
        """Tell whether any altered edge leads to the end of a unit."""
        if not self.touched.any():
            return False
        return bool(self.graph.leads_to_completion[self.graph.edges.dst[self.touched]].any())

    def finish(self) -> Changed:
        """Return the changed graph, ready to be swept.

        Raises:
            InvariantError: A change closed a circle.
        """
        graph = self.graph
        if not self.added and not self.dropped.any():
            edges = Edges(graph.edges.src, graph.edges.dst, graph.edges.kind, self.length_ns)
            return Changed(edges, np.arange(len(edges)), graph.floor_ns, graph.plan)
        kept = np.flatnonzero(~self.dropped)
        if not self.added:
            floor_ns = _floors(graph, graph.edges.dst[kept], graph.floor_ns)
            edges = graph.edges.take(kept)
            return Changed(Edges(edges.src, edges.dst, edges.kind, self.length_ns[kept]), kept, floor_ns)
        own = graph.edges.take(kept)
        edges = Edges.join([Edges(own.src, own.dst, own.kind, self.length_ns[kept]), *self.added])
        origin = np.concatenate([kept, np.full(len(edges) - len(kept), -1)])
        time_ns = np.concatenate([graph.time_ns, np.array(self.added_time_ns, np.int64)])
        order = topological_order(time_ns, edges.src, edges.dst)
        by = sort_edges(order, edges.src)
        floors = np.concatenate([graph.floor_ns, np.array(self.added_floor_ns, np.int64)])
        return Changed(edges.take(by), origin[by], _floors(graph, edges.dst, floors))


def unsplit_text(unsplit: int, total: int) -> str:
    """Return why collectives that could not be split are not altered."""
    return f"{unsplit} of {total} collectives could not be split into waiting and moving; only the latter can change"


def _floors(graph: RunGraph, dst: NDArray[np.int32], floor_ns: Ints) -> Ints:
    """Let points that lost their last edge start with the replay, never at their recorded time (DESIGN 3.7)."""
    has_edge = np.zeros(len(floor_ns), np.bool_)
    has_edge[dst] = True
    lost = ~has_edge & (floor_ns == NEVER_NS)
    if not lost.any():
        return floor_ns
    return np.where(lost, graph.time_ns.min(), floor_ns)


@dataclass(frozen=True, slots=True)
class Changed:
    """A graph after changes.

    Attributes:
        edges: In sweeping order.
        origin: `[E]` int64: each edge's number in the recorded graph, -1 for added ones.
        floor_ns: `[P]` int64 ns.
        plan: How to sweep it, where no more than lengths changed; else None.
    """

    edges: Edges
    origin: Ints
    floor_ns: Ints
    plan: SweepPlan | None = None

    def replay(self) -> Ints:
        """Return when every point happens: `[P]` int64 ns."""
        edges = self.edges
        if self.plan is not None:
            return self.plan.times_ns(edges.length_ns, self.floor_ns)
        return sweep(len(self.floor_ns), edges.src, edges.dst, edges.length_ns, self.floor_ns)
