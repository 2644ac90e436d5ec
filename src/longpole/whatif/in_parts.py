"""Replay and change a run whose graphs are too large to be joined: one rank's full graph in memory at a time.

A change that acts within ranks, or on what collectives move, is made to each rank on its own:

full graph of a rank ─► draft ─► change ─► contract ─► of ─┐
                              └► its transfers' lengths ───┴ merge ─► finish ─► periods

The periods are those of `predict` on the joined graph, to the nanosecond. What a path is made of is not known here, for
a contracted edge no longer says what it runs over: `path_in_parts` looks it up in the full graphs of the ranks visited.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from longpole.errors import InvariantError
from longpole.graph.contract import Added, contract
from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.graph.merge import finish, members_of, merge, of, transfers_ns
from longpole.graph.run_graph import Meeting, join_ranks
from longpole.whatif.apply import apply
from longpole.whatif.change import Equalise, Fuse, Split
from longpole.whatif.draft import Draft, unsplit_text

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
        transfer_ns: `[K]` int64 ns: how long each member moves bytes in it.
        rows: Rows that each change altered, over all ranks.
        refusals: Why the changes cannot be answered; empty where they can.
        overlapping_ns: Of the altered device time, what runs beside other spans.
        altered_ns: Altered device time.
    """

    finished: Finished
    transfer_ns: Ints
    rows: list[int]
    refusals: list[str]
    overlapping_ns: int
    altered_ns: int


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

    Ranks that no change touches keep their contracted graph. That a change altered nothing on a rank is no refusal
    where it did on another one.

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
    owns: list[_Own] = []
    for rank, kept in zip(recorded.finished.ranks, recorded.merged.parts, strict=True):
        begin, end = recorded.members.first.get(rank, (0, 0))
        own = _change_rank(source, recorded.members, rank, transfer_ns[begin:end], changes)
        rows += own.rows
        owns.append(own)
        transfer_ns[begin:end] = own.transfer_ns
        changed = (
            _begin(source, recorded.members, rank, own.contracted) if own.contracted else type(recorded.merged)((kept,))
        )
        parts.append(changed)
    finished = finish(reduce(merge, parts), recorded.members, transfer_ns)
    return PartsPrediction(
        finished=finished,
        transfer_ns=transfer_ns,
        rows=rows.tolist(),
        refusals=_heard([own.refusals for own in owns], rows),
        overlapping_ns=sum(own.overlapping_ns for own in owns),
        altered_ns=sum(own.altered_ns for own in owns),
    )


def _begin(source: Source, members: Members, rank: int, contracted: Contracted) -> Merged:
    return of(contracted, source.clocks[rank], members.met(rank, len(contracted.entry)))


class _Refusals(NamedTuple):
    """What one change says on one rank: in any case, only if it altered nothing on all ranks, and in counts."""

    firm: list[str]
    idle: list[str]
    unsplit: int
    total: int


def _refusals(draft: Draft, change: Change | Callable[[Draft], None]) -> tuple[int, _Refusals]:
    """Make one change; return the rows that it altered, and what it says."""
    said, idle, counts = len(draft.refusals), len(draft.idle), len(draft.unsplit)
    rows = apply(draft, change)
    none = draft.idle[idle:]
    unsplit, total = (sum(pair[side] for pair in draft.unsplit[counts:]) for side in (0, 1))
    own = unsplit_text(unsplit, total)
    firm = [text for text in draft.refusals[said:] if text not in none and text != own]
    return rows, _Refusals(firm, none, unsplit, total)


def _heard(by_rank: list[list[_Refusals]], rows: Ints) -> list[str]:
    """Return what all ranks together say against the changes, in the changes' order."""
    heard: list[str] = []
    for number, said in enumerate(zip(*by_rank, strict=True)):
        heard += [text for one in said for text in one.firm]
        unsplit, total = sum(one.unsplit for one in said), sum(one.total for one in said)
        if unsplit:
            heard.append(unsplit_text(unsplit, total))
        if rows[number] == 0:
            heard += [text for one in said for text in one.idle]
    return list(dict.fromkeys(heard))


@dataclass(frozen=True, slots=True)
class _Own:
    """One rank after changes; `contracted` is None where only transfers changed."""

    contracted: Contracted | None
    transfer_ns: Ints
    rows: list[int]
    refusals: list[_Refusals]
    overlapping_ns: int
    altered_ns: int


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
    made = [_refusals(draft, change) for change in changes]
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
    return _Own(
        contracted=contracted,
        transfer_ns=of_instance[instance],
        rows=[rows for rows, _ in made],
        refusals=[said for _, said in made],
        overlapping_ns=draft.overlapping_ns,
        altered_ns=draft.altered_ns,
    )


def reaches_in_parts(source: Source, recorded: Recorded, changes: Sequence[Change | Callable[[Draft], None]]) -> bool:
    """Tell whether any row that changes alter leads to the end of a unit, on its own rank.

    Args:
        source: The run.
        recorded: Of `replay_in_parts`.
        changes: Made in order.
    """
    for rank in source.ranks:
        graph = source.load(rank)
        met = recorded.members.met(rank, len(graph.entry))
        run = alone(graph, source.clocks[rank], met, np.zeros(len(met), np.int64))
        if changed_rank(source, run, changes)[0].reaches_completion():
            return True
    return False


def changed_rank(
    source: Source, run: RunGraph, changes: Sequence[Change | Callable[[Draft], None]]
) -> tuple[Draft, Changed]:
    """Make changes to a rank on its own.

    Args:
        source: The run.
        run: Of `alone`.
        changes: Made in order.
    """
    draft = Draft.of(run, source.instances, source.cost, source.settings)
    for change in changes:
        apply(draft, change)
    return draft, draft.finish()


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
