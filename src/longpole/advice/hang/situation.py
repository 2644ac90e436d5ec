"""What every rank was in when it was dumped, group by group.

sequence      7    8    9    10
rank 0        ✓    ✓    in
rank 1        ✓    ✓    in   in        in 10 too: it was only queued
rank 2        ✓    ✓                   has not come
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.records.flight import FlightDump, FlightEntry, GroupKey


@dataclass(frozen=True, slots=True)
class Member:
    """What one rank did in one group.

    Attributes:
        rank: The rank.
        by_sequence: Its collectives there by their numbers.
        active: Numbers of those that had not come to their end, ascending.
    """

    rank: int
    by_sequence: dict[int, FlightEntry]
    active: tuple[int, ...]

    @property
    def first_active(self) -> int | None:
        """Return the number that it has to finish first, None where it waits for nothing here."""
        return self.active[0] if self.active else None

    @property
    def last(self) -> int | None:
        """Return the highest number that it issued, None for none that is still recorded."""
        return max(self.by_sequence, default=None)

    def has_entered(self, sequence: int) -> bool:
        """Tell whether it issued an operation; what was overwritten was issued."""
        last = self.last
        return last is not None and last >= sequence

    def has_finished(self, sequence: int) -> bool:
        """Tell whether it is done with an operation: as recorded, else because it is in a later one only."""
        entry = self.by_sequence.get(sequence)
        if entry is not None:
            return not entry.is_active
        return self.has_entered(sequence)


class Group(NamedTuple):
    """A group in use.

    Attributes:
        key: Name, description and members.
        is_inferred: No dump lists the members: they are the ranks that used it.
        members: What each member with a dump did, by rank.
        no_dump: Members without a dump; of a group that all dumped ranks used and nobody lists, the ranks in between.
    """

    key: GroupKey
    is_inferred: bool
    members: dict[int, Member]
    no_dump: list[int]

    def stuck_at(self) -> int | None:
        """Return the first number that some member has not finished, None where all is done."""
        firsts = [member.first_active for member in self.members.values()]
        return min((first for first in firsts if first is not None), default=None)

    def compare_from(self) -> int | None:
        """Return the first number that the recorders of all members still hold.

        Dumps of what was active alone hold nothing to compare, and do not count.
        """
        firsts = [
            min(member.by_sequence)
            for member in self.members.values()
            if any(not entry.is_active for entry in member.by_sequence.values())
        ]
        return max(firsts, default=None)


@dataclass(frozen=True, slots=True)
class Situation:
    """All dumps of a job, brought together.

    Attributes:
        dumps: By rank.
        groups: That were used, in order of their names.
        transfers: Sends and receives that had not come to their end, by rank.
    """

    dumps: dict[int, FlightDump]
    groups: list[Group]
    transfers: dict[int, list[FlightEntry]]

    def is_waiting(self, rank: int) -> bool:
        """Tell whether a rank was in any operation."""
        if self.transfers.get(rank):
            return True
        return any(group.members[rank].active for group in self.groups if rank in group.members)

    def last_of(self, rank: int) -> FlightEntry | None:
        """Return the last operation that a rank issued, in whatever group."""
        entries = self.dumps[rank].entries
        return max(entries, key=lambda entry: (entry.created_ns or 0, entry.number), default=None)

    def known_ranks(self) -> set[int]:
        """Return all ranks that any dump names, and those between the ranks with a dump: ranks are counted from 0."""
        listed = {rank for dump in self.dumps.values() for key in dump.groups for rank in key.members}
        used = {rank for group in self.groups for rank in group.key.members}
        between = set(range(max(self.dumps))) if self._are_counted() else set()
        return listed | used | between | set(self.dumps)

    def _are_counted(self) -> bool:
        """Tell whether most ranks up to the highest one left a dump, so that a gap is a rank and not another node."""
        return 2 * len(self.dumps) > max(self.dumps)


def bring_together(dumps: Sequence[FlightDump]) -> Situation:
    """Bring the dumps of a job together.

    Args:
        dumps: One a rank.
    """
    by_rank = {dump.rank: _with_members(dump, dumps) for dump in sorted(dumps, key=lambda dump: dump.rank)}
    keys = sorted({entry.group for dump in by_rank.values() for entry in dump.entries})
    users: dict[GroupKey, set[int]] = {key: set() for key in keys}
    for rank, dump in by_rank.items():
        for entry in dump.entries:
            users[entry.group].add(rank)
    groups = []
    for key in keys:
        inferred = not key.members
        members = key.members or tuple(sorted(users[key]))
        told = {rank: _member(rank, key, by_rank[rank].entries) for rank in members if rank in by_rank}
        no_dump = [rank for rank in members if rank not in by_rank]
        if inferred and set(told) == set(by_rank):
            no_dump = [rank for rank in range(max(by_rank)) if rank not in by_rank]
        groups.append(Group(key._replace(members=members), inferred, told, no_dump))
    transfers = {
        rank: [entry for entry in dump.entries if entry.is_p2p and entry.is_active] for rank, dump in by_rank.items()
    }
    return Situation(by_rank, groups, transfers)


def _with_members(dump: FlightDump, dumps: Sequence[FlightDump]) -> FlightDump:
    """Give groups that a dump names without members those that another dump lists for its rank."""
    listed = {(key.name, key.description): key for other in dumps for key in other.groups if dump.rank in key.members}
    entries = tuple(
        entry
        if entry.group.members
        else replace(entry, group=listed.get((entry.group.name, entry.group.description), entry.group))
        for entry in dump.entries
    )
    return replace(dump, entries=entries)


def _member(rank: int, key: GroupKey, entries: Iterable[FlightEntry]) -> Member:
    mine = {entry.sequence: entry for entry in entries if entry.group == key and not entry.is_p2p}
    return Member(rank, mine, tuple(sorted(number for number, entry in mine.items() if entry.is_active)))
