"""Which operations of different ranks are one and the same collective (DESIGN 3.8).

The first of these that all ranks of a group recorded: the id that all members write; group and sequence number; the
order within the unit and kind. Sizes are checked, never used to match (but for backends on the host, which tell
nothing else). A pure function of the ranks' tables, so that any order of them gives the same result.

rank 0   ├─ all_reduce 1 ─┤   ├─ all_reduce 2 ─┤
rank 1      ├─ all_reduce 1 ─┤    ├─ all_reduce 2 ─┤
matched  └──────── 0 ────────┘    └────── 1 ───────┘
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.ranks.group_names import GroupNumbers
from longpole.ranks.keys import Rows, collect, key_rows
from longpole.timeline.integrity import Example, Finding
from longpole.units import format_bytes, format_count
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.records.instances import Group, Instances

    Ints: TypeAlias = NDArray[np.int64]


class Why(IntEnum):
    """Why the members of an operation are not complete."""

    COMPLETE = 0
    NO_TRACE = 1  # a member's file is missing
    NOT_HELD = 2  # a member that has a file does not hold it
    SIZES = 3
    KINDS = 4
    GROUP_UNKNOWN = 5
    TWICE = 6


WHY_TEXT: Final = {
    Why.COMPLETE: "",
    Why.NO_TRACE: "not every member of the group has a trace",
    Why.NOT_HELD: "not every member recorded it",
    Why.SIZES: "its members give different sizes",
    Why.KINDS: "its members name different kinds",
    Why.GROUP_UNKNOWN: "which ranks take part is not recorded",
    Why.TWICE: "a rank holds it twice",
}

# All members move as much, so that other sizes mean other operations; all-to-all may be split unevenly.
_EQUAL_SIZES: Final = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "send_recv")


@dataclass(frozen=True)
class Matched:
    """Operations that at least one rank holds, ordered by earliest start on the clocks given; M of them, K members.

    Attributes:
        first: `[M + 1]` int64: members of operation m are places `first[m]:first[m + 1]` of the next two.
        rank: `[K]` int32: global rank, ascending within an operation.
        instance: `[K]` int32: place in that rank's Instances.
        kind: `[M]` int8: code into COLLECTIVE_KINDS.
        group: The groups of the run.
        group_of: `[M]` int32: index into `group`, -1 where not known.
        expected: `[M]` int32: how many members should be there, -1 where not known.
        complete: `[M]` bool: every member is there exactly once, and sizes and kinds agree.
        bytes: `[M]` int64: the full buffer; the largest where members differ, -1 where not known.
        why: `[M]` uint8: a member of Why.
    """

    first: Ints
    rank: NDArray[np.int32]
    instance: NDArray[np.int32]
    kind: NDArray[np.int8]
    group: tuple[Group, ...]
    group_of: NDArray[np.int32]
    expected: NDArray[np.int32]
    complete: NDArray[np.bool_]
    bytes: Ints
    why: NDArray[np.uint8]

    def __len__(self) -> int:
        """Return the number of operations."""
        return len(self.kind)

    def operation_of_member(self) -> NDArray[np.int64]:
        """Return the operation of each member: `[K]` int64."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def column(self, instances: Mapping[int, Instances], name: str) -> NDArray[np.int64]:
        """Return a column of the ranks' tables for each member: `[K]` int64."""
        out = np.empty(len(self.rank), np.int64)
        for rank, members in self.by_rank().items():
            out[members] = instances[rank].column(name)[self.instance[members]]
        return out

    def by_rank(self) -> dict[int, NDArray[np.int64]]:
        """Return the member places of each rank, in order of operations."""
        order = np.argsort(self.rank, kind="stable")
        ranks, starts = np.unique(self.rank[order], return_index=True)
        return {int(r): part for r, part in zip(ranks, np.split(order, starts[1:]), strict=True)} if len(ranks) else {}


def match(
    instances: Mapping[int, Instances],
    *,
    unit_names: Mapping[int, Sequence[str]] | None = None,
    world_size: int | None = None,
    offset_ns: Mapping[int, int] | None = None,
) -> tuple[Matched, list[Finding]]:
    """Match operations across ranks.

    Args:
        instances: Rank -> its operations.
        unit_names: Rank -> the names of its units by place, which ranks share.
        world_size: Ranks of the job, None where not known.
        offset_ns: Rank -> what to add to its times to compare them, for the order of the result and to line up ranks
            that recorded different numbers of operations; None where the ranks' clocks have no common base.

    Returns:
        The operations, and findings about sizes and kinds that disagree and ranks that lack operations.
    """
    numbers = GroupNumbers(instances)
    rows = collect(instances, numbers, unit_names or {}, offset_ns)
    if len(rows.rank) == 0:
        return _empty(tuple(numbers.groups)), []
    operation = key_rows(rows, based=offset_ns is not None)
    order = np.lexsort((rows.instance, rows.rank, operation))
    rows = rows.take(order)
    operation = operation[order]
    first = np.append(np.flatnonzero(np.append(True, operation[1:] != operation[:-1])), len(operation))
    why, expected, group_of = _judge(rows, first, numbers, set(instances), world_size)
    kind = np.maximum.reduceat(np.where(rows.kind == _NO_KIND, -1, rows.kind), first[:-1])
    kind = np.where(kind < 0, _NO_KIND, kind)
    matched = _ordered(rows, first, kind, (group_of, expected, why), tuple(numbers.groups))
    return matched, _findings(matched)


_NO_KIND: Final = COLLECTIVE_KINDS.index("")


def _empty(groups: tuple[Group, ...]) -> Matched:
    none = np.empty(0, np.int32)
    return Matched(
        np.zeros(1, np.int64),
        none,
        none,
        np.empty(0, np.int8),
        groups,
        none,
        none,
        np.empty(0, np.bool_),
        np.empty(0, np.int64),
        np.empty(0, np.uint8),
    )


def _judge(
    rows: Rows, first: Ints, numbers: GroupNumbers, present: set[int], world_size: int | None
) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
    """Return, for each operation, why it is incomplete, how many members it should have, and its group."""
    low = first[:-1]
    n_ops = len(low)
    held = np.diff(first)
    group_of = np.maximum.reduceat(rows.group, low).astype(np.int32)
    expected = np.full(n_ops, -1, np.int32)
    why = np.full(n_ops, int(Why.GROUP_UNKNOWN), np.uint8)
    for number in np.unique(group_of[group_of >= 0]).tolist():
        mine = np.flatnonzero(group_of == number)
        group = numbers.groups[number]
        size = len(group.members) or group.size
        if size is None:
            continue
        expected[mine] = size
        lacking = bool(group.members) and not set(group.members) <= present
        short = Why.NO_TRACE if lacking or size > len(present) else Why.NOT_HELD
        why[mine] = np.where(held[mine] == size, int(Why.COMPLETE), int(short))
        why[mine[held[mine] > size]] = int(Why.GROUP_UNKNOWN)
    pairs = rows.is_pair[low]
    expected[pairs] = 2
    partner_absent = pairs & (held == 1) & ~np.isin(rows.peer[low], list(present))
    why[pairs] = np.where(held == 2, int(Why.COMPLETE), int(Why.NOT_HELD))[pairs]
    why[partner_absent] = int(Why.NO_TRACE)
    _guess_groups(rows, first, numbers, (group_of, expected, why, pairs), world_size, present)
    twice = (rows.rank[1:] == rows.rank[:-1]) & (np.diff(np.repeat(np.arange(n_ops), held)) == 0)
    why[np.unique(np.repeat(np.arange(n_ops), held)[1:][twice])] = int(Why.TWICE)
    _check_members(rows, low, why)
    return why, expected, group_of


def _guess_groups(
    rows: Rows,
    first: Ints,
    numbers: GroupNumbers,
    judged: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], NDArray[np.bool_]],
    world_size: int | None,
    present: set[int],
) -> None:
    """Say which operations without a recorded group are complete: those of all ranks, or of just a known group.

    That all ranks were meant is an assumption; where it is wrong the members' ends do not agree, and nothing is split.
    """
    group_of, expected, why, pairs = judged
    unknown = np.flatnonzero((group_of < 0) & ~pairs)
    if world_size is None and unknown.size and len(present) > 1 and not numbers.member_sets:
        return
    seen: dict[tuple[int, ...], tuple[int, Why]] = {}
    for m in unknown.tolist():
        holders = tuple(rows.rank[first[m] : first[m + 1]].tolist())
        if holders not in seen:
            is_group = len(holders) > 1 and holders in numbers.member_sets
            if is_group or len(holders) == world_size:
                seen[holders] = len(holders), Why.COMPLETE
            elif world_size is not None:
                seen[holders] = world_size, Why.NO_TRACE if len(present) < world_size else Why.NOT_HELD
            else:
                seen[holders] = -1, Why.GROUP_UNKNOWN
        expected[m], why[m] = seen[holders]


def _check_members(rows: Rows, low: Ints, why: NDArray[np.uint8]) -> None:
    """Mark operations whose members disagree in kind or size."""
    kinds = rows.kind.astype(np.int64)
    named = kinds != _NO_KIND
    least = np.minimum.reduceat(np.where(named, kinds, 127), low)
    most = np.maximum.reduceat(np.where(named, kinds, -1), low)
    why[(most >= 0) & (least != most)] = int(Why.KINDS)
    known = rows.bytes >= 0
    least_bytes = np.minimum.reduceat(np.where(known, rows.bytes, np.iinfo(np.int64).max), low)
    most_bytes = np.maximum.reduceat(rows.bytes, low)
    comparable = np.isin(most, [COLLECTIVE_KINDS.index(name) for name in _EQUAL_SIZES])
    why[comparable & (most_bytes >= 0) & (least_bytes != most_bytes) & (why != int(Why.KINDS))] = int(Why.SIZES)


def _ordered(
    rows: Rows,
    first: Ints,
    kind: NDArray[np.int64],
    judged: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]],
    groups: tuple[Group, ...],
) -> Matched:
    """Order operations by their earliest start; ties by lowest rank and its own order."""
    group_of, expected, why = judged
    low = first[:-1]
    earliest_ns = np.minimum.reduceat(rows.time_ns, low)
    order = np.lexsort((rows.instance[low], rows.rank[low], earliest_ns))
    lengths = np.diff(first)[order]
    starts = np.cumsum(np.append(0, lengths))
    members = np.repeat(low[order] - starts[:-1], lengths) + np.arange(starts[-1])
    most_bytes = np.maximum.reduceat(rows.bytes, low)
    return Matched(
        first=starts.astype(np.int64),
        rank=rows.rank[members].astype(np.int32),
        instance=rows.instance[members].astype(np.int32),
        kind=kind[order].astype(np.int8),
        group=groups,
        group_of=group_of[order],
        expected=expected[order],
        complete=why[order] == int(Why.COMPLETE),
        bytes=most_bytes[order],
        why=why[order],
    )


def _findings(matched: Matched) -> list[Finding]:
    """Complain of operations whose members disagree, and of those that a rank with a trace does not hold."""
    findings = []
    codes = {
        Why.SIZES: ("collective.sizes_differ", "warn"),
        Why.KINDS: ("collective.kinds_differ", "warn"),
        Why.NOT_HELD: ("collective.not_on_all_ranks", "note"),
    }
    for why, (code, severity) in codes.items():
        bad = np.flatnonzero(matched.why == int(why))
        if len(bad) == 0:
            continue
        m = int(bad[0])
        members = range(int(matched.first[m]), int(matched.first[m + 1]))
        ranks = sorted({int(matched.rank[k]) for k in members})
        name = COLLECTIVE_KINDS[int(matched.kind[m])] or "collective"
        size = f" of {format_bytes(int(matched.bytes[m]))}" if matched.bytes[m] >= 0 else ""
        shown = ", ".join(map(str, ranks[:8]))
        message = f"{format_count(len(bad), 'collective')}: {WHY_TEXT[why]}, the first an {name}{size} on rank {shown}"
        message += "; waiting and moving are not told apart in these"
        findings.append(Finding(code, severity, None, len(bad), Example(""), message, []))  # type: ignore[arg-type]
    return findings
