"""Replay and change a run whose graphs are too large to be joined: one rank's full graph in memory at a time.

A change that acts within ranks, or on what collectives move, is made to each rank on its own:

full graph of a rank ─► draft ─► change ─► contract ─► of ─┐
                              └► its transfers' lengths ───┴ merge ─► finish ─► periods

The periods are those of `predict` on the joined graph, to the nanosecond. What a path is made of is not known here:
a contracted edge no longer says what it runs over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.errors import InvariantError
from longpole.graph.contract import Added, contract
from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.graph.merge import finish, members_of, merge, of, transfers_ns
from longpole.graph.run_graph import Meeting, join_ranks
from longpole.whatif.apply import apply
from longpole.whatif.change import Equalise, Fuse, Split
from longpole.whatif.draft import Draft

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.graph.contract import Contracted
    from longpole.graph.merge import Finished, Members, Merged
    from longpole.graph.rank_graph import RankGraph
    from longpole.graph.run_graph import RunGraph
    from longpole.records.instances import Instances
    from longpole.settings import Settings
    from longpole.whatif.change import Change
    from longpole.whatif.draft import Changed, TransferCost

    Ints: TypeAlias = NDArray[np.int64]

ACROSS_RANKS: Final = (Equalise, Fuse, Split)
"""Changes that look at several ranks at once; they need the joined graph."""

_OWN_CLOCK: Final = (0, 0.0, 0)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the ranks of a run come from.

    Attributes:
        ranks: The ranks.
        load: Returns a rank's full graph; called once per rank and replay.
        clocks: Rank -> (offset, drift, reference), as in `join_ranks`.
        meeting: The operations that were matched and split.
        instances: Rank -> its collectives.
        cost: What collectives of other sizes would take.
        settings: Thresholds.
    """

    ranks: tuple[int, ...]
    load: Callable[[int], RankGraph]
    clocks: Mapping[int, tuple[int, float, int]]
    meeting: Meeting
    instances: Mapping[int, Instances]
    cost: TransferCost
    settings: Settings


@dataclass(frozen=True, slots=True)
class Recorded:
    """The unchanged run, contracted: what every what-if begins with.

    Attributes:
        members: What the ranks meet in.
        merged: Their contracted graphs.
        transfer_ns: `[K]` int64 ns: how long each member moves bytes.
        finished: The unchanged replay.
    """

    members: Members
    merged: Merged
    transfer_ns: Ints
    finished: Finished


@dataclass(frozen=True, slots=True)
class PartsPrediction:
    """The run, changed and replayed.

    Attributes:
        finished: The replay.
        rows: Rows that each change altered, over all ranks.
        refusals: Why the changes cannot be answered; empty where they can.
    """

    finished: Finished
    rows: list[int]
    refusals: list[str]


def replay_in_parts(source: Source) -> Recorded:
    """Contract every rank, merge, and replay the run unchanged.

    Args:
        source: The run.
    """
    members = members_of(source.meeting)
    merged = reduce(merge, (_begin(source, members, rank, contract(source.load(rank))) for rank in source.ranks))
    transfer_ns = transfers_ns(merged, members)
    return Recorded(members, merged, transfer_ns, finish(merged, members, transfer_ns))


def predict_in_parts(
    source: Source, recorded: Recorded, changes: Sequence[Change | Callable[[Draft], None]]
) -> PartsPrediction:
    """Make changes rank by rank, and replay the run.

    Ranks that no change touches keep their contracted graph. A refusal of a rank counts unless that rank altered
    nothing while others did, and holds no operation that could not be split.

    Args:
        source: The run.
        recorded: Of `replay_in_parts`.
        changes: Made in order and replayed together; functions must alter each rank's points and edges alone.

    Raises:
        InvariantError: A change needs several ranks at once (ACROSS_RANKS), or ties a rank to the others.
    """
    if any(isinstance(change, ACROSS_RANKS) for change in changes):
        msg = "a change that looks at several ranks at once needs the joined graph"
        raise InvariantError(msg)
    transfer_ns = recorded.transfer_ns.copy()
    parts, rows = [], np.zeros(len(changes), np.int64)
    refusals: list[tuple[bool, list[str]]] = []
    for rank, kept in zip(recorded.finished.ranks, recorded.merged.parts, strict=True):
        begin, end = recorded.members.first.get(rank, (0, 0))
        own = _change_rank(source, recorded.members, rank, transfer_ns[begin:end], changes)
        rows += own.rows
        refusals.append((own.firm, own.refusals))
        transfer_ns[begin:end] = own.transfer_ns
        changed = (
            _begin(source, recorded.members, rank, own.contracted) if own.contracted else type(recorded.merged)((kept,))
        )
        parts.append(changed)
    finished = finish(reduce(merge, parts), recorded.members, transfer_ns)
    heard = [text for firm, texts in refusals if firm or not rows.any() for text in texts]
    return PartsPrediction(finished, rows.tolist(), list(dict.fromkeys(heard)))


def _begin(source: Source, members: Members, rank: int, contracted: Contracted) -> Merged:
    return of(contracted, source.clocks[rank], members.met(rank, len(contracted.entry)))


@dataclass(frozen=True, slots=True)
class _Own:
    """One rank after changes; `contracted` is None where only transfers changed."""

    contracted: Contracted | None
    transfer_ns: Ints
    rows: list[int]
    refusals: list[str]
    firm: bool


def _change_rank(
    source: Source, members: Members, rank: int, transfer_ns: Ints, changes: Sequence[Change | Callable[[Draft], None]]
) -> _Own:
    """Make the changes to one rank, whose collectives stand there as operations of a single member."""
    graph = source.load(rank)
    met = members.met(rank, len(graph.entry))
    begin, end = members.first.get(rank, (0, 0))
    instance = members.instance[begin:end]
    of_instance = np.zeros(len(met), np.int64)
    of_instance[instance] = transfer_ns
    run = alone(graph, _OWN_CLOCK, met, of_instance)
    draft = Draft.of(run, source.instances, source.cost, source.settings)
    rows = [apply(draft, change) for change in changes]
    tied = np.isin(run.edges.kind, (EdgeKind.ARRIVAL, EdgeKind.TRANSFER)) & draft.dropped
    if tied.any() or (draft.touched & (run.edges.kind == EdgeKind.ARRIVAL)).any():
        msg = "a change of one rank alters how it meets the others"
        raise InvariantError(msg)
    changed = draft.finish()
    moved = (changed.edges.kind == EdgeKind.TRANSFER) & (changed.origin >= 0)
    of_instance[run.member_of_edge[changed.origin[moved]]] = changed.edges.length_ns[moved]
    touched = draft.touched & (run.edges.kind != EdgeKind.TRANSFER)
    contracted = None
    if touched.any() or draft.added:
        edges = _within(run, changed, len(graph.time_ns))
        added = Added(np.array(draft.added_time_ns, np.int64), np.array(draft.added_floor_ns, np.int64))
        contracted = contract(graph, edges, added)
    return _Own(contracted, of_instance[instance], rows, draft.refusals, any(rows) or not met.all())


def alone(graph: RankGraph, clock: tuple[int, float, int], met: NDArray[np.bool_], transfer_ns: Ints) -> RunGraph:
    """Return the run of one rank, whose collectives are operations of a single member.

    Args:
        graph: The rank.
        clock: (offset, drift, reference), as in `join_ranks`.
        met: `[I]` bool: its instances whose operation could be split.
        transfer_ns: `[I]` int64 ns: how long each moves bytes, as the whole run found.
    """
    n = len(met)
    meeting = Meeting(
        np.arange(n + 1, dtype=np.int64),
        np.full(n, graph.rank, np.int32),
        np.arange(n, dtype=np.int32),
        met.astype(np.uint8),
    )
    run = join_ranks([graph], {graph.rank: clock}, meeting)
    length_ns = run.edges.length_ns.copy()
    moves = run.member_of_edge >= 0
    length_ns[moves] = transfer_ns[run.member_of_edge[moves]]
    return replace(run, edges=replace(run.edges, length_ns=length_ns))


def _within(run: RunGraph, changed: Changed, n_points: int) -> Edges:
    """Return the changed edges between the rank's own points; added points count on from the rank's."""
    src, dst = changed.edges.src.astype(np.int64), changed.edges.dst.astype(np.int64)
    joins = np.zeros(len(src), np.bool_)
    for ends in (src, dst):
        joins |= (ends >= n_points) & (ends < run.n_points)
    if (joins & (changed.origin < 0)).any():
        msg = "a change of one rank ties it to the others"
        raise InvariantError(msg)
    between = run.n_points - n_points
    own = changed.edges.take(~joins)
    src, dst = src[~joins], dst[~joins]
    src[src >= n_points] -= between
    dst[dst >= n_points] -= between
    return Edges(src.astype(np.int32), dst.astype(np.int32), own.kind, own.length_ns)
