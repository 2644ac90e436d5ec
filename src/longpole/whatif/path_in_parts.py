"""Paths of a run whose graphs are too large to be joined: a rank's graph is loaded when a path visits it.

At the exit of a collective a path goes on with whoever arrived last; only there it changes ranks. So it needs the
full graphs of few ranks, and of all others the times of their entries, which the merge has.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from longpole.graph.path import Pieces, path_pieces
from longpole.graph.sweep import NEVER_NS
from longpole.graph.walk import Steps, last_arrivals
from longpole.whatif.composition import Composition
from longpole.whatif.in_parts import alone, changed_rank
from longpole.whatif.predict import compose_changed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from longpole.graph.edges import Edges
    from longpole.graph.merge import Finished
    from longpole.graph.run_graph import RunGraph
    from longpole.whatif.change import Change
    from longpole.whatif.draft import Draft
    from longpole.whatif.in_parts import Recorded, Source

    Ints: TypeAlias = NDArray[np.int64]

RANKS_HELD: Final = 8
"""So many full graphs are kept at once; a path goes back and forth between few ranks."""


class Visited(NamedTuple):
    """A rank that a path comes by.

    Attributes:
        run: The rank on its own, at the times of the record.
        edges: Its edges, changed or not.
        time_ns: When its points happen, where the path is walked.
        describe: Says what steps over those edges are made of.
    """

    run: RunGraph
    edges: Edges
    time_ns: Ints
    describe: Callable[[Steps], Any]


class End(NamedTuple):
    """Where the walk of a unit begins: its place, the rank that completes it last, and when; and where it ends, ns."""

    place: int
    unit: str
    rank: int
    at_ns: int
    until_ns: int


class LastMembers(NamedTuple):
    """Who arrived last at each operation: when, on which rank, and with which of its instances."""

    came_ns: Ints
    rank: Ints
    instance: Ints


class _Held(NamedTuple):
    """A visited rank, the edge that arrives last at each of its points, and the operations of its arrivals."""

    visited: Visited
    best: memoryview
    operation: Ints


class _Walked(NamedTuple):
    """The steps found on one rank, the latest first."""

    unit: list[int]
    edge: list[int]
    start_ns: list[int]
    end_ns: list[int]


def observed_in_parts(
    source: Source, recorded: Recorded, steady: Sequence[str], ranks_held: int = RANKS_HELD
) -> Pieces:
    """Walk the recorded path of the units named, and say what it was made of.

    Args:
        source: The run.
        recorded: Of `replay_in_parts`.
        steady: Units that have a period; all ranks have at least one of them.
        ranks_held: How many full graphs may be in memory at once.

    Returns:
        Pieces as `path_pieces` gives them for the joined graph, with the number of the rank in place of its place.
    """
    last = _last_recorded(recorded)

    def visit(rank: int) -> Visited:
        run = rank_at(source, recorded, rank, last)

        def describe(steps: Steps) -> Pieces:
            found = path_pieces(run, steps, run.edges.length_ns, source.settings)
            return replace(found, rank=np.where(found.rank >= 0, rank, -1).astype(np.int32))

        return Visited(run, run.edges, run.time_ns, describe)

    parts = walk_ranks(visit, recorded, last, _recorded_ends(recorded, steady), ranks_held)
    found = Pieces(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Pieces)})
    return found.take(np.lexsort((found.start_ns, found.unit)))


def replayed_in_parts(
    source: Source,
    recorded: Recorded,
    finished: Finished,
    changes: Sequence[Change | Callable[[Draft], None]],
    steady: Sequence[str],
) -> Composition:
    """Walk the path of a replay, with changes or without any, and say what it is made of.

    Args:
        source: The run.
        recorded: Of `replay_in_parts`.
        finished: The replay.
        changes: Made in order.
        steady: Units that have a period.

    Returns:
        Parts as `compose` gives them for the joined graph, with the number of the rank in place of its place.
    """
    last, came = last_replayed(recorded, finished), _last_recorded(recorded)
    earliest_ns = min(part.earliest_ns for part in recorded.merged.parts)

    def visit(rank: int) -> Visited:
        run = rank_at(source, recorded, rank, came)
        draft, changed = changed_rank(source, run, changes)
        floor_ns = changed.floor_ns.copy()
        lost = np.zeros(len(floor_ns), np.bool_)
        lost[: run.n_points] = (run.floor_ns == NEVER_NS) & (floor_ns[: run.n_points] != NEVER_NS)
        floor_ns[lost] = earliest_ns  # they start with the replay of the run, not of the rank
        low = len(run.ranks[0].time_ns)
        operation = _operations(recorded, run)
        floor_ns[low : low + len(operation)] = last.came_ns[operation]

        def describe(steps: Steps) -> Composition:
            found = compose_changed(draft, changed, steps)
            return replace(found, rank=np.where(found.rank >= 0, rank, -1).astype(np.int32))

        return Visited(run, changed.edges, replace(changed, floor_ns=floor_ns, plan=None).replay(), describe)

    parts = walk_ranks(visit, recorded, last, _replayed_ends(recorded, finished, steady))
    columns = [field.name for field in fields(Composition)]
    return Composition(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns})


def walk_ranks(
    visit: Callable[[int], Visited],
    recorded: Recorded,
    last: LastMembers,
    ends: Sequence[End],
    ranks_held: int = RANKS_HELD,
) -> list[Any]:
    """Walk back from the ends of units, and return what is said of the steps on each rank visited.

    Args:
        visit: Returns a rank at the times at which to walk; called again for ranks that were let go.
        recorded: Of `replay_in_parts`.
        last: Who arrives last at those times.
        ends: Where to begin and end; the latest unit first, so that few ranks are visited twice.
        ranks_held: How many full graphs may be in memory at once.
    """
    walker = _Walker(visit, recorded, last, ranks_held)
    for end in ends:
        walker.walk(end)
    return walker.described()


class _Walker:
    """Walks from unit to unit, holding the graphs of the ranks visited last."""

    def __init__(self, visit: Callable[[int], Visited], recorded: Recorded, last: LastMembers, ranks_held: int) -> None:
        self._load, self._recorded, self._last = visit, recorded, last
        self._ranks_held = max(ranks_held, 1)
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._walked: dict[int, _Walked] = {}
        self._found: list[Any] = []

    def walk(self, end: End) -> None:
        """Walk back from the completion of a unit on the rank that completes last."""
        at_ns, rank = end.at_ns, end.rank
        if at_ns <= end.until_ns:
            return
        graph = self._visit(rank).visited.run.ranks[0]
        point = int(graph.completion[graph.units.index(end.unit)])
        while at_ns > end.until_ns:
            held = self._visit(rank)
            point, at_ns = self._walk_rank(held, rank, end, point, at_ns)
            arrival = point - len(held.visited.run.ranks[0].time_ns)
            if 0 <= arrival < len(held.operation):
                operation = int(held.operation[arrival])
                rank = int(self._last.rank[operation])
                point = int(self._visit(rank).visited.run.ranks[0].entry[self._last.instance[operation]])

    def _walk_rank(self, held: _Held, rank: int, end: End, point: int, at_ns: int) -> tuple[int, int]:
        """Walk back on one rank, to an arrival or to where the unit's walk ends; return the point and its time."""
        visited, until_ns = held.visited, end.until_ns
        low = len(visited.run.ranks[0].time_ns)
        behind = low + len(held.operation)
        source, times, best = visited.edges.src.data, visited.time_ns.data, held.best
        units, edges, starts_ns, ends_ns = self._walked.setdefault(rank, _Walked([], [], [], []))
        while at_ns > until_ns:
            step = best[point]
            from_ns = until_ns
            if step >= 0:
                point = source[step]
                from_ns = max(min(times[point], at_ns), until_ns)
            if from_ns < at_ns:
                units.append(end.place)
                edges.append(step)
                starts_ns.append(from_ns)
                ends_ns.append(at_ns)
            at_ns = from_ns
            if low <= point < behind:
                break
        return point, at_ns

    def _visit(self, rank: int) -> _Held:
        if rank in self._held:
            self._held.move_to_end(rank)
            return self._held[rank]
        while len(self._held) >= self._ranks_held:
            self._let_go(*self._held.popitem(last=False))
        visited = self._load(rank)
        best = last_arrivals(len(visited.time_ns), visited.edges, visited.time_ns)
        self._held[rank] = _Held(visited, best.data, _operations(self._recorded, visited.run))
        return self._held[rank]

    def _let_go(self, rank: int, held: _Held) -> None:
        """Describe the steps on a rank, while its graph is at hand."""
        walked = self._walked.pop(rank, None)
        if walked is None or not walked.unit:
            return
        unit = np.array(walked.unit[::-1], np.int32)
        edge, start_ns, end_ns = (np.array(column[::-1], np.int64) for column in walked[1:])
        self._found.append(held.visited.describe(Steps(unit, edge, start_ns, end_ns)))

    def described(self) -> list[Any]:
        """Return what became of all steps."""
        for rank, held in self._held.items():
            self._let_go(rank, held)
        return self._found


def rank_at(source: Source, recorded: Recorded, rank: int, last: LastMembers) -> RunGraph:
    """Return the run of one rank, whose operations begin when the last member of all ranks came.

    Args:
        source: The run.
        recorded: Of `replay_in_parts`.
        rank: The rank.
        last: Who arrived last.
    """
    graph, members = source.load(rank), recorded.members
    met = members.met(rank, len(graph.entry))
    begin, end = members.first.get(rank, (0, 0))
    own_ns = np.zeros(len(met), np.int64)
    own_ns[members.instance[begin:end]] = recorded.transfer_ns[begin:end]
    run = alone(graph, source.clocks[rank], met, own_ns)
    operation = _operations(recorded, run)
    time_ns, low = run.time_ns.copy(), len(graph.time_ns)
    time_ns[low : low + len(operation)] = last.came_ns[operation]
    return replace(run, time_ns=time_ns)


def _operations(recorded: Recorded, run: RunGraph) -> Ints:
    """Return the operation of each arrival of a rank on its own: `[its instances that were split]` int64."""
    graph, members = run.ranks[0], recorded.members
    begin, end = members.first.get(graph.rank, (0, 0))
    operation = np.full(len(graph.entry), -1, np.int64)
    operation[members.instance[begin:end]] = members.operation[begin:end]
    return operation[operation >= 0]


def _recorded_ends(recorded: Recorded, steady: Sequence[str]) -> list[End]:
    units, finished = recorded.finished.units, recorded.finished
    ends = []
    for place, unit in reversed([(units.index(name), name) for name in steady if name in units]):
        done_ns = [int(part.time_ns[part.completion[part.units.index(unit)]]) for part in recorded.merged.parts]
        until_ns = int(finished.recorded_ns[place - 1]) if place > 0 else finished.begin_ns
        at = int(np.argmax(done_ns))  # ties: the lowest rank
        ends.append(End(place, unit, recorded.merged.parts[at].rank, done_ns[at], until_ns))
    return ends


def _replayed_ends(recorded: Recorded, finished: Finished, steady: Sequence[str]) -> list[End]:
    units = finished.units
    ends = []
    for place, unit in reversed([(units.index(name), name) for name in steady if name in units]):
        done_ns = finished.rank_completion_ns[:, place]
        until_ns = int(finished.completion_ns[place - 1]) if place > 0 else recorded.finished.begin_ns
        at = int(np.argmax(done_ns))
        ends.append(End(place, unit, finished.ranks[at], int(done_ns[at]), until_ns))
    return ends


def _last_recorded(recorded: Recorded) -> LastMembers:
    """Find who arrived last at each operation on the record; of several, the lowest rank."""
    members = recorded.members
    entry_ns, rank = np.empty(len(members.member), np.int64), np.empty(len(members.member), np.int64)
    for part in recorded.merged.parts:
        begin, end = members.first.get(part.rank, (0, 0))
        entry_ns[begin:end] = part.time_ns[part.entry[members.instance[begin:end]]]
        rank[begin:end] = part.rank
    return _last_of(recorded, entry_ns, rank)


def last_replayed(recorded: Recorded, finished: Finished) -> LastMembers:
    """Find who arrives last at each operation in a replay; of several, the lowest rank."""
    members = recorded.members
    entry_ns, rank = np.empty(len(members.member), np.int64), np.empty(len(members.member), np.int64)
    for number, low in zip(finished.ranks, finished.first.tolist(), strict=False):
        begin, end = members.first.get(number, (0, 0))
        entry_ns[begin:end] = finished.entry_ns[low + members.instance[begin:end]]
        rank[begin:end] = number
    return _last_of(recorded, entry_ns, rank)


def _last_of(recorded: Recorded, entry_ns: Ints, rank: Ints) -> LastMembers:
    members = recorded.members
    came_ns = np.full(members.n_operations, NEVER_NS, np.int64)
    np.maximum.at(came_ns, members.operation, entry_ns)
    late = np.flatnonzero(entry_ns == came_ns[members.operation])[::-1]
    last = np.zeros(members.n_operations, np.int64)
    last[members.operation[late]] = late  # of repeated places the last assignment stays: the lowest rank
    if len(rank) == 0:
        none = np.empty(0, np.int64)
        return LastMembers(came_ns, none, none)
    return LastMembers(came_ns, rank[last], members.instance[last].astype(np.int64))
