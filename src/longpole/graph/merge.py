"""The contracted graphs of any number of ranks: merged in any order, then joined and swept.

Two passes (DESIGN §4). The first folds the ranks' collectives, from which clocks and meetings follow; the second brings
each rank's contracted graph to the run's clock (`of`), lets what could be split give way, and folds again (`merge`).

rank 0 ─ of ─┐
rank 1 ─ of ─┴ merge ─┐
rank 2 ─ of ──────────┴ merge ─ finish ─► completions, entries and exits of the run

A merge copies no column: it orders the ranks' parts. So any bracketing and any order give the same bytes, and the last
merge needs no more memory than its result.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from longpole.errors import InvariantError
from longpole.graph.contract import WITH_REPLAY_NS
from longpole.graph.run_graph import on_run_clock
from longpole.graph.sweep import NEVER_NS, sweep, topological_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.graph.contract import Contracted
    from longpole.graph.run_graph import Meeting

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]
    Flags: TypeAlias = NDArray[np.bool_]

WIDE_RANKS: Final = 48
"""From so many ranks on, points are swept in waves by NumPy; below, one by one (measured: benchmarks/README.md)."""


@dataclass(frozen=True, slots=True)
class Part:
    """One rank's contracted graph on the run's clock, without the edges that gave way.

    Attributes:
        rank: The rank.
        units: Names of its units.
        begin_ns: When its first unit began.
        earliest_ns: The earliest time of any point of its full graph.
        time_ns: `[Q]` int64 ns: recorded times.
        source: `[S]` int32: places with a floor.
        floor_ns: `[S]` int64 ns: their floors; WITH_REPLAY_NS for those that start with the replay.
        src, dst: `[E]` int32: places of the edges' ends, ascending.
        length_ns: `[E]` int64 ns.
        entry, exit: `[I]` int32: places of the instances' entries and exits.
        completion: `[U]` int32: places of the units' completions.
    """

    rank: int
    units: tuple[str, ...]
    begin_ns: int
    earliest_ns: int
    time_ns: Ints
    source: Places
    floor_ns: Ints
    src: Places
    dst: Places
    length_ns: Ints
    entry: Places
    exit: Places
    completion: Places

    @property
    def n_bytes(self) -> int:
        """Return the bytes that its columns take."""
        return sum(getattr(self, name).nbytes for name in _COLUMNS)


_COLUMNS: Final = ("time_ns", "source", "floor_ns", "src", "dst", "length_ns", "entry", "exit", "completion")


@dataclass(frozen=True, slots=True)
class Merged:
    """The parts of ranks, ascending by rank; each rank once."""

    parts: tuple[Part, ...]

    def to_bytes(self) -> bytes:
        """Return the stored form: the same bytes for the same ranks, however they were merged."""
        return msgspec.msgpack.encode([_stored(part) for part in self.parts])

    @classmethod
    def from_bytes(cls, data: bytes) -> Merged:
        """Read the stored form.

        Raises:
            msgspec.DecodeError: It is damaged.
        """
        return cls(tuple(_loaded(stored) for stored in msgspec.msgpack.decode(data, type=list[dict[str, Any]])))


def _stored(part: Part) -> dict[str, Any]:
    row = {field.name: getattr(part, field.name) for field in fields(part)}
    return {name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in row.items()}


def _loaded(stored: dict[str, Any]) -> Part:
    arrays = {name: np.frombuffer(stored[name], np.int64 if name.endswith("_ns") else np.int32) for name in _COLUMNS}
    return Part(**{**stored, "units": tuple(stored["units"])} | arrays)


def of(contracted: Contracted, clock: tuple[int, float, int], met: Flags) -> Merged:
    """Begin a merge with one rank.

    Args:
        contracted: Its graph, recorded or changed.
        clock: (offset, drift, reference), as in `join_ranks`.
        met: `[I]` bool: its instances whose operation could be split, of `members_of`.
    """
    src, dst, length_ns = contracted.given_way(met)
    held = np.isin(contracted.source, contracted.exit[met], invert=True)  # what a transfer leads to is no source
    floor_ns = contracted.floor_ns[held]
    first_ns, earliest_ns = on_run_clock(np.array([contracted.first_ns, contracted.earliest_ns]), clock).tolist()
    part = Part(
        rank=contracted.rank,
        units=contracted.units,
        begin_ns=first_ns + contracted.begin_ns - contracted.first_ns,
        earliest_ns=earliest_ns,
        time_ns=on_run_clock(contracted.time_ns, clock),
        source=contracted.source[held],
        floor_ns=np.where(floor_ns == WITH_REPLAY_NS, floor_ns, on_run_clock(floor_ns, clock)),
        src=src,
        dst=dst,
        length_ns=length_ns,
        entry=contracted.entry,
        exit=contracted.exit,
        completion=contracted.completion,
    )
    return Merged((part,))


def merge(a: Merged, b: Merged) -> Merged:
    """Put two merges together.

    Raises:
        InvariantError: A rank is in both.
    """
    parts = sorted((*a.parts, *b.parts), key=lambda part: part.rank)
    for one, other in pairwise(parts):
        if one.rank == other.rank:
            msg = f"rank {one.rank} is merged twice"
            raise InvariantError(msg)
    return Merged(tuple(parts))


class Members(NamedTuple):
    """The members of the operations that were split, ordered by rank; K of them.

    Attributes:
        first: Rank -> (begin, end) of its members among the next three.
        instance: `[K]` int32: place among the rank's instances.
        operation: `[K]` int32: operation, counted among those that were split.
        member: `[K]` int32: place in the meeting.
        by_ends: `[operations that were split]` bool: clocks say when the last member arrived.
    """

    first: dict[int, tuple[int, int]]
    instance: Places
    operation: Places
    member: Places
    by_ends: Flags

    @property
    def n_operations(self) -> int:
        """Return how many operations were split."""
        return len(self.by_ends)

    def met(self, rank: int, n_instances: int) -> Flags:
        """Return which instances of a rank belong to an operation that was split: `[I]` bool."""
        begin, end = self.first.get(rank, (0, 0))
        mask = np.zeros(n_instances, np.bool_)
        mask[self.instance[begin:end]] = True
        return mask


def members_of(meeting: Meeting) -> Members:
    """Order the members of the operations that were split by rank."""
    counts = np.diff(meeting.first)
    split = (meeting.how > 0) & (counts > 0)
    number = np.cumsum(split, dtype=np.int32) - np.int32(1)
    chosen = np.flatnonzero(np.repeat(split, counts))
    by = chosen[np.argsort(meeting.rank[chosen], kind="stable")].astype(np.int32)
    ranks, begins, sizes = np.unique(meeting.rank[by], return_index=True, return_counts=True)
    first = {
        rank: (begin, begin + size)
        for rank, begin, size in zip(ranks.tolist(), begins.tolist(), sizes.tolist(), strict=True)
    }
    return Members(first, meeting.instance[by], np.repeat(number, counts)[by], by, meeting.how[split] == _BY_ENDS)


_BY_ENDS: Final = 1  # of Meeting.how


def transfers_ns(merged: Merged, members: Members) -> Ints:
    """Return how long each member moves bytes, on the record: `[K]` int64 ns, ordered like `members`.

    What it took after the last arrival where clocks say so, else the shortest duration of all members; never below 0.

    Args:
        merged: All ranks.
        members: What they meet in.
    """
    entry_ns, exit_ns = np.empty(len(members.member), np.int64), np.empty(len(members.member), np.int64)
    for part in merged.parts:
        begin, end = members.first.get(part.rank, (0, 0))
        instance = members.instance[begin:end]
        entry_ns[begin:end] = part.time_ns[part.entry[instance]]
        exit_ns[begin:end] = part.time_ns[part.exit[instance]]
    came_ns = np.full(members.n_operations, NEVER_NS, np.int64)
    np.maximum.at(came_ns, members.operation, entry_ns)
    shortest_ns = np.full(members.n_operations, -NEVER_NS, np.int64)
    np.minimum.at(shortest_ns, members.operation, exit_ns - entry_ns)
    after_ns = exit_ns - came_ns[members.operation]
    return np.maximum(np.where(members.by_ends[members.operation], after_ns, shortest_ns[members.operation]), 0)


@dataclass(frozen=True, slots=True)
class Finished:
    """A run, replayed.

    Attributes:
        ranks: The ranks, ascending.
        units: Names of the units that all ranks have, in order.
        begin_ns: When the first unit began on the record.
        recorded_ns: `[U]` int64 ns: when each was complete on the record.
        completion_ns: `[U]` int64 ns: when it is in the replay.
        rank_completion_ns: `[R, U]` int64 ns: when it is there on each rank.
        first: `[R + 1]` int64: instances of rank r are `first[r]:first[r + 1]` of the next two.
        entry_ns, exit_ns: `[sum of I]` int64 ns: replayed times of entries and exits.
    """

    ranks: tuple[int, ...]
    units: tuple[str, ...]
    begin_ns: int
    recorded_ns: Ints
    completion_ns: Ints
    rank_completion_ns: Ints
    first: Ints
    entry_ns: Ints
    exit_ns: Ints

    def periods_ns(self, steady: Sequence[str]) -> tuple[Ints, Ints]:
        """Return recorded and replayed periods of the units named: `[N]` int64 ns each.

        Args:
            steady: Units that have a period; those that some rank lacks are left out.
        """
        place = np.array([self.units.index(name) for name in steady if name in self.units], np.int64)
        measured, replayed = (
            done_ns[place] - np.concatenate([[self.begin_ns], done_ns])[place]
            for done_ns in (self.recorded_ns, self.completion_ns)
        )
        return measured, replayed


def finish(
    merged: Merged,
    members: Members,
    transfer_ns: Ints | None = None,
    *,
    wide: bool | None = None,
    waited_for: bool = True,
) -> Finished:
    """Join the ranks where their operations meet, and replay the run.

    Args:
        merged: All ranks.
        members: What they meet in, of `members_of`.
        transfer_ns: `[K]` int64 ns: other lengths of transfers, ordered like `members`; None for the recorded ones.
        wide: Sweep in waves of NumPy, or point by point; None to choose by the number of ranks.
        waited_for: Operations wait for their members; else all begin with the replay (the control law, DESIGN 3.7).

    Raises:
        InvariantError: The edges form a circle.
    """
    if transfer_ns is None:
        transfer_ns = transfers_ns(merged, members)
    joined = _join(merged, members, transfer_ns, waited_for=waited_for)
    if wide is None:
        wide = len(merged.parts) >= WIDE_RANKS
    time_ns = _by_waves(joined) if wide else _one_by_one(joined, merged)
    base = joined.base
    units = _common_units(merged)
    recorded_ns = np.full(len(units), NEVER_NS, np.int64)
    by_rank_ns = np.empty((len(merged.parts), len(units)), np.int64)
    for place, (part, low) in enumerate(zip(merged.parts, base.tolist(), strict=False)):
        at = dict(zip(part.units, part.completion.tolist(), strict=True))
        mine = np.array([at[name] for name in units], np.int64)
        np.maximum(recorded_ns, part.time_ns[mine], out=recorded_ns)
        by_rank_ns[place] = time_ns[low + mine]
    sizes = [len(part.entry) for part in merged.parts]
    return Finished(
        ranks=tuple(part.rank for part in merged.parts),
        units=units,
        begin_ns=min(part.begin_ns for part in merged.parts),
        recorded_ns=recorded_ns,
        completion_ns=np.maximum.accumulate(by_rank_ns.max(axis=0)) if len(units) else recorded_ns,
        rank_completion_ns=by_rank_ns,
        first=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        entry_ns=np.concatenate([time_ns[low + p.entry] for p, low in zip(merged.parts, base.tolist(), strict=False)]),
        exit_ns=np.concatenate([time_ns[low + p.exit] for p, low in zip(merged.parts, base.tolist(), strict=False)]),
    )


def _common_units(merged: Merged) -> tuple[str, ...]:
    common = set.intersection(*(set(part.units) for part in merged.parts))
    return tuple(name for name in merged.parts[0].units if name in common)


class _Joined(NamedTuple):
    """The run's graph: points of the ranks, then arrivals; edges by source.

    base: `[R + 1]` int64 · first: `[P + 1]` int64 edges of each point · dst: `[E]` int32 · length_ns: `[E]` int64 ·
    floor_ns: `[P]` int64.
    """

    base: Ints
    first: Ints
    dst: Places
    length_ns: Ints
    floor_ns: Ints


def _join(merged: Merged, members: Members, transfer_ns: Ints, *, waited_for: bool) -> _Joined:
    """Join the ranks: entry -> arrival with length 0, arrival -> exit with the transfer's.

    Each rank's edges are put in their place one rank at a time, so that nothing of the size of the run is sorted but
    the transfers.
    """
    parts = merged.parts
    base = np.concatenate([[0], np.cumsum([len(part.time_ns) for part in parts])]).astype(np.int64)
    n_edges = sum(len(part.src) for part in parts) + (1 + waited_for) * len(members.member)
    n_points = int(base[-1]) + members.n_operations
    first = np.zeros(n_points + 1, np.int64)
    dst, length_ns = np.empty(n_edges, np.int32), np.empty(n_edges, np.int64)
    floor_ns = np.full(n_points, NEVER_NS, np.int64)
    earliest_ns = min(part.earliest_ns for part in parts)
    if not waited_for:
        floor_ns[int(base[-1]) :] = earliest_ns
    exits = np.empty(len(members.member), np.int32)
    done = 0
    for part, low in zip(parts, base.tolist(), strict=False):
        begin, end = members.first.get(part.rank, (0, 0))
        instance = members.instance[begin:end]
        exits[begin:end] = part.exit[instance] + low
        arriving = instance if waited_for else instance[:0]
        src = np.concatenate([part.src, part.entry[arriving]])
        by = np.argsort(src, kind="stable")
        to = np.concatenate([part.dst + low, members.operation[begin : begin + len(arriving)] + base[-1]])
        last = done + len(src)
        dst[done:last] = to[by]
        length_ns[done:last] = np.concatenate([part.length_ns, np.zeros(len(arriving), np.int64)])[by]
        first[low + 1 : low + len(part.time_ns) + 1] = done + np.cumsum(np.bincount(src, minlength=len(part.time_ns)))
        floor_ns[low + part.source] = np.where(part.floor_ns == WITH_REPLAY_NS, earliest_ns, part.floor_ns)
        done = last
    by = np.argsort(members.operation, kind="stable")
    dst[done:], length_ns[done:] = exits[by], transfer_ns[by]
    counts = np.bincount(members.operation, minlength=members.n_operations)
    first[int(base[-1]) + 1 :] = done + np.cumsum(counts)
    return _Joined(base, first, dst, length_ns, floor_ns)


def _one_by_one(joined: _Joined, merged: Merged) -> Ints:
    """Sweep point by point, in an order that recorded times almost give."""
    n = len(joined.floor_ns)
    src = np.repeat(np.arange(n, dtype=np.int32), np.diff(joined.first))
    recorded_ns = np.full(n, NEVER_NS, np.int64)
    recorded_ns[: joined.base[-1]] = np.concatenate([part.time_ns for part in merged.parts])
    arrived = joined.dst >= joined.base[-1]
    np.maximum.at(recorded_ns, joined.dst[arrived], recorded_ns[src[arrived]])
    order = topological_order(recorded_ns, src, joined.dst)
    return sweep(n, src, joined.dst, joined.length_ns, joined.floor_ns, order)


_CHUNK_EDGES: Final = 1 << 22


def _by_waves(joined: _Joined) -> Ints:
    """Sweep in waves: all points whose last source was in the wave before, at once.

    With many ranks a wave is about as wide as there are ranks, which is what NumPy needs.
    """
    first, dst, length_ns = joined.first, joined.dst, joined.length_ns
    time_ns = joined.floor_ns
    waits_for = np.zeros(len(time_ns), np.int32)
    for low in range(0, len(dst), _CHUNK_EDGES):  # a bincount would copy all edges as int64
        np.add.at(waits_for, dst[low : low + _CHUNK_EDGES], 1)
    wave = np.flatnonzero(waits_for == 0)
    seen = 0
    while len(wave):
        seen += len(wave)
        begin = first[wave]
        counts = first[wave + 1] - begin
        ends = np.cumsum(counts)
        edge = np.arange(ends[-1]) + np.repeat(begin - ends + counts, counts)
        target = dst[edge]
        np.maximum.at(time_ns, target, np.repeat(time_ns[wave], counts) + length_ns[edge])
        np.subtract.at(waits_for, target, 1)
        wave = np.unique(target[waits_for[target] == 0])
    if seen != len(time_ns):
        msg = "the edges of a graph form a circle"
        raise InvariantError(msg)
    return time_ns
