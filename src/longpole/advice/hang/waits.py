"""Who waits for whom, and who for nobody.

A rank waits for the members that have not entered its operation, and for those that are still in an earlier one of the
same group: what runs on their streams holds up what was queued behind. Whoever is waited for and waits for nobody is
a root; where there is none, a circle is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from longpole.advice.hang.situation import Group, Situation
    from longpole.records.flight import FlightEntry


class Wait(NamedTuple):
    """What a rank is in, and whom it waits for there.

    Attributes:
        entry: The operation.
        for_ranks: Members that are not there yet or behind, ascending.
        unknown: Members without a dump.
        is_behind: Others of the group have finished it already.
    """

    entry: FlightEntry
    for_ranks: list[int]
    unknown: list[int]
    is_behind: bool


def waits_of(situation: Situation, rank: int) -> list[Wait]:
    """Return the first unfinished operation of a rank in each of its groups, and its unfinished transfers."""
    waits = [
        _in_group(group, rank)
        for group in situation.groups
        if rank in group.members and group.members[rank].first_active is not None
    ]
    return waits + [_transfer(situation, rank, entry) for entry in situation.transfers.get(rank, ())]


def _in_group(group: Group, rank: int) -> Wait:
    member = group.members[rank]
    number = member.active[0]
    others = [other for other in group.members.values() if other.rank != rank]
    absent = [other.rank for other in others if not other.has_entered(number)]
    behind = [other.rank for other in others if other.first_active is not None and other.first_active < number]
    finished = any(other.has_finished(number) for other in others)
    if group.is_inferred and group.no_dump:  # on gloo what failed for want of a member looks done
        finished = False
    return Wait(member.by_sequence[number], sorted({*absent, *behind}), group.no_dump, is_behind=finished)


def _transfer(situation: Situation, rank: int, entry: FlightEntry) -> Wait:
    """Say whom an unfinished send or receive waits for: the other end, unless that is in it too."""
    members = entry.group.members
    if entry.peers is None or not all(0 <= place < len(members) for place in entry.peers):
        return Wait(entry, [], [], is_behind=False)
    ends = [members[place] for place in entry.peers]
    peer = next((end for end in ends if end != rank), None)
    if peer is None:
        return Wait(entry, [], [], is_behind=False)
    if peer not in situation.dumps:
        return Wait(entry, [], [peer], is_behind=False)
    both = any(other.peers == entry.peers and other.group == entry.group for other in situation.transfers[peer])
    return Wait(entry, [] if both else [peer], [], is_behind=False)


class Roots(NamedTuple):
    """The ranks that hold the others up.

    Attributes:
        host: Their programs never came.
        device: They came, and do not finish what others did.
        order: They wait for one another.
        transfer: Everybody is there, and nothing moves.
    """

    host: list[int]
    device: list[int]
    order: list[int]
    transfer: list[int]


def find_roots(situation: Situation, waits: dict[int, list[Wait]]) -> Roots:
    """Find the roots.

    Args:
        situation: All dumps.
        waits: Of every rank with a dump.
    """
    waited_for = {other for some in waits.values() for wait in some for other in wait.for_ranks}
    host = sorted(rank for rank in waited_for if not situation.is_waiting(rank))
    # An end that is only not yet written down holds nobody up.
    behind = (rank for rank, some in waits.items() if any(wait.is_behind for wait in some))
    device = sorted(rank for rank in behind if rank in waited_for)
    if host or device:
        return Roots(host, device, [], [])
    unknown = any(wait.unknown for some in waits.values() for wait in some)
    order = sorted(_in_a_circle(waits))
    if order or unknown:
        return Roots([], [], order, [])
    there = sorted(rank for rank, some in waits.items() if any(not wait.is_behind for wait in some))
    return Roots([], [], [], there)


def reached_from(waits: dict[int, list[Wait]], root: int) -> list[int]:
    """Return the ranks that wait for a rank, through others too, ascending."""
    waiting = {rank: {other for wait in some for other in wait.for_ranks} for rank, some in waits.items()}
    found: set[int] = set()
    fresh = {root}
    while fresh:
        fresh = {rank for rank, others in waiting.items() if others & fresh and rank not in found and rank != root}
        found |= fresh
    return sorted(found)


def _in_a_circle(waits: dict[int, list[Wait]]) -> set[int]:
    """Return the ranks that wait for themselves through others."""
    return {rank for rank in waits if rank in _ahead(waits, rank)}


def _ahead(waits: dict[int, list[Wait]], rank: int) -> set[int]:
    seen: set[int] = set()
    fresh = {other for wait in waits[rank] for other in wait.for_ranks}
    while fresh:
        seen |= fresh
        fresh = {other for one in fresh for wait in waits.get(one, ()) for other in wait.for_ranks} - seen
    return seen
