"""The observed path of a run whose graphs are too large to be joined: a rank's graph is loaded when the path visits it.

At the exit of a collective the path goes on with whoever arrived last; only there it changes ranks. So it needs the
full graphs of few ranks, and of all others the times of their entries, which the merge has.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from longpole.graph.path import Pieces, path_pieces
from longpole.graph.sweep import NEVER_NS
from longpole.graph.walk import Steps, last_arrivals
from longpole.whatif.in_parts import alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.graph.run_graph import RunGraph
    from longpole.whatif.in_parts import Recorded, Source

    Ints: TypeAlias = NDArray[np.int64]

RANKS_HELD: Final = 8
"""So many full graphs are kept at once; a path goes back and forth between few ranks."""


class _Held(NamedTuple):
    """A rank that the path visits: its own run, the edge that arrives last at each point, its instances' operations."""

    run: RunGraph
    best: list[int]
    operation: Ints


class _Last(NamedTuple):
    """Who arrived last at each operation: when, on which rank, and with which of its instances."""

    came_ns: Ints
    rank: Ints
    instance: Ints


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
    walker = _Walker(source, recorded, ranks_held)
    units, done_ns = recorded.finished.units, recorded.finished.recorded_ns
    for place, unit in reversed([(units.index(name), name) for name in steady if name in units]):
        until_ns = int(done_ns[place - 1]) if place > 0 else recorded.finished.begin_ns
        walker.walk(place, unit, until_ns)
    return walker.pieces()


class _Walker:
    """Walks from unit to unit, holding the graphs of the ranks visited last."""

    def __init__(self, source: Source, recorded: Recorded, ranks_held: int) -> None:
        self._source, self._recorded, self._ranks_held = source, recorded, max(ranks_held, 1)
        self._last = _last_members(recorded)
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._walked: dict[int, _Walked] = {}
        self._pieces: list[Pieces] = []

    def walk(self, place: int, unit: str, until_ns: int) -> None:
        """Walk back from the completion of a unit on the rank that completes last (ties: the lowest)."""
        parts = self._recorded.merged.parts
        done_ns = [int(part.time_ns[part.completion[part.units.index(unit)]]) for part in parts]
        at_ns = max(done_ns)
        rank = parts[done_ns.index(at_ns)].rank
        graph = self._visit(rank).run.ranks[0]
        point = int(graph.completion[graph.units.index(unit)])
        while at_ns > until_ns:
            held = self._visit(rank)
            run, n_points = held.run, len(held.run.ranks[0].time_ns)
            step = held.best[point]
            from_ns = until_ns
            if step >= 0:
                point = int(run.edges.src[step])
                from_ns = max(min(int(run.time_ns[point]), at_ns), until_ns)
            if from_ns < at_ns:
                self._note(rank, place, step, from_ns, at_ns)
            at_ns = from_ns
            if point >= n_points:  # an arrival
                operation = int(held.operation[point - n_points])
                rank = int(self._last.rank[operation])
                point = int(self._visit(rank).run.ranks[0].entry[self._last.instance[operation]])

    def _visit(self, rank: int) -> _Held:
        if rank in self._held:
            self._held.move_to_end(rank)
            return self._held[rank]
        while len(self._held) >= self._ranks_held:
            gone, held = self._held.popitem(last=False)
            self._describe(gone, held)
        self._held[rank] = self._load(rank)
        return self._held[rank]

    def _load(self, rank: int) -> _Held:
        graph, members = self._source.load(rank), self._recorded.members
        met = members.met(rank, len(graph.entry))
        begin, end = members.first.get(rank, (0, 0))
        transfer_ns, operation = np.zeros(len(met), np.int64), np.full(len(met), -1, np.int64)
        transfer_ns[members.instance[begin:end]] = self._recorded.transfer_ns[begin:end]
        operation[members.instance[begin:end]] = members.operation[begin:end]
        run = alone(graph, self._source.clocks[rank], met, transfer_ns)
        time_ns, own = run.time_ns.copy(), len(graph.time_ns)
        time_ns[own : own + int(met.sum())] = self._last.came_ns[operation[met]]
        run = replace(run, time_ns=time_ns)
        best = last_arrivals(run.n_points, run.edges, run.time_ns)
        return _Held(run, best.tolist(), operation[met])

    def _note(self, rank: int, unit: int, edge: int, start_ns: int, end_ns: int) -> None:
        steps = self._walked.setdefault(rank, _Walked([], [], [], []))
        for column, value in zip(steps, (unit, edge, start_ns, end_ns), strict=True):
            column.append(value)

    def _describe(self, rank: int, held: _Held) -> None:
        """Turn the steps on a rank into pieces, while its graph is at hand."""
        walked = self._walked.pop(rank, None)
        if walked is None:
            return
        unit = np.array(walked.unit[::-1], np.int32)
        edge, start_ns, end_ns = (np.array(column[::-1], np.int64) for column in walked[1:])
        steps = Steps(unit, edge, start_ns, end_ns)
        found = path_pieces(held.run, steps, held.run.edges.length_ns, self._source.settings)
        numbers = np.where(found.rank >= 0, rank, -1).astype(np.int32)
        self._pieces.append(replace(found, rank=numbers))

    def pieces(self) -> Pieces:
        """Return all pieces, by unit, ascending in time."""
        for rank, held in self._held.items():
            self._describe(rank, held)
        columns = {f.name: np.concatenate([getattr(p, f.name) for p in self._pieces]) for f in fields(Pieces)}
        found = Pieces(**columns)
        return found.take(np.lexsort((found.start_ns, found.unit)))


def _last_members(recorded: Recorded) -> _Last:
    """Find who arrived last at each operation; of several, the lowest rank."""
    members = recorded.members
    entry_ns, rank = np.empty(len(members.member), np.int64), np.empty(len(members.member), np.int64)
    for part in recorded.merged.parts:
        begin, end = members.first.get(part.rank, (0, 0))
        entry_ns[begin:end] = part.time_ns[part.entry[members.instance[begin:end]]]
        rank[begin:end] = part.rank
    came_ns = np.full(members.n_operations, NEVER_NS, np.int64)
    np.maximum.at(came_ns, members.operation, entry_ns)
    late = np.flatnonzero(entry_ns == came_ns[members.operation])[::-1]
    last = np.zeros(members.n_operations, np.int64)
    last[members.operation[late]] = late  # of repeated places the last assignment stays: the lowest rank
    return _Last(came_ns, rank[last], members.instance[last].astype(np.int64))
