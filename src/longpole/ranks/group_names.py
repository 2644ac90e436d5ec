"""One numbering of process groups for all ranks: a name alone is not enough, and some names differ per rank.

Tensor-parallel groups [0, 1] and [2, 3] may both be called "1"; and a group made by a split may be called "7" on one
rank and "9" on another. So a group is its members and its name; where no two ranks share a name for the same members,
its members and its place among the groups of just those members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.records.instances import Group, Instances

Key: TypeAlias = tuple[object, ...]


class GroupNumbers:
    """Groups of a run, numbered.

    Attributes:
        groups: The groups by number.
        of_rank: Rank -> number of each of the rank's own groups, in its own order.
        member_sets: Members -> a group of just them, whether it was used or not.
    """

    def __init__(self, instances: Mapping[int, Instances]) -> None:
        shared = _shared_names(instances)
        self.groups: list[Group] = []
        self.of_rank: dict[int, list[int]] = {}
        self.member_sets: dict[tuple[int, ...], Group] = {}
        numbers: dict[Key, int] = {}
        for rank, mine in sorted(instances.items()):
            places: dict[tuple[int, ...], int] = {}
            own = []
            for group in mine.groups:
                members = tuple(group.members)
                place = places.get(members, 0)
                places[members] = place + 1
                if not members:
                    key: Key = (group.name, group.size)
                elif members in shared:
                    key = (members, group.name)
                else:
                    key = (members, place)
                if key not in numbers:
                    numbers[key] = len(self.groups)
                    self.groups.append(group)
                number = numbers[key]
                if group.description and not self.groups[number].description:
                    self.groups[number] = group
                if members:
                    self.member_sets.setdefault(tuple(sorted(members)), group)
                own.append(number)
            self.of_rank[rank] = own


def _shared_names(instances: Mapping[int, Instances]) -> set[tuple[int, ...]]:
    """Return the member lists for which two ranks use one name, or that only one rank knows."""
    names: dict[tuple[int, ...], list[set[str]]] = {}
    for mine in instances.values():
        own: dict[tuple[int, ...], set[str]] = {}
        for group in mine.groups:
            own.setdefault(tuple(group.members), set()).add(group.name)
        for members, some in own.items():
            names.setdefault(members, []).append(some)
    return {
        members
        for members, by_rank in names.items()
        if len(by_rank) == 1 or sum(map(len, by_rank)) > len(set().union(*by_rank))
    }
