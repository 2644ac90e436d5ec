"""Operations that members of a group issued under one number, and that do not fit together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from longpole.advice.hang.situation import Group
    from longpole.records.flight import FlightEntry

# Members may pass other sizes to these, by what they are.
_UNEVEN: Final = ("all_to_all", "alltoall", "scatter", "gather", "coalesced", "allgatherv", "_v")


class Mismatch(NamedTuple):
    """One number under which members issued what does not fit.

    Attributes:
        entry: What most of them issued.
        what: `operation`, `sizes` or `dtype`.
        odd: Those that differ from the most, ascending; all where no side has more.
        forms: What each rank issued, as text.
    """

    entry: FlightEntry
    what: str
    odd: list[int]
    forms: dict[int, str]


def find_mismatch(group: Group) -> Mismatch | None:
    """Return the first operation of a group that does not fit, from where somebody waits on; None where all fit."""
    stuck_at = group.stuck_at()
    if stuck_at is None:
        return None
    numbers = {number for member in group.members.values() for number in member.by_sequence if number >= stuck_at}
    for number in sorted(numbers):
        entries = {
            rank: member.by_sequence[number] for rank, member in group.members.items() if number in member.by_sequence
        }
        for what, form in _ASPECTS:
            if what != "operation" and any(_is_uneven(entry) for entry in entries.values()):
                continue
            if found := _differ(entries, what, form):
                return found
    return None


def _is_uneven(entry: FlightEntry) -> bool:
    return any(part in entry.operation for part in _UNEVEN)


def _differ(entries: dict[int, FlightEntry], what: str, form: Callable[[FlightEntry], Hashable]) -> Mismatch | None:
    sides = Counter(form(entry) for entry in entries.values())
    if len(sides) < 2:
        return None
    (most, count), (_, second) = sides.most_common(2)
    odd = sorted(rank for rank, entry in entries.items() if count == second or form(entry) != most)
    usual = next(entry for entry in entries.values() if form(entry) == most)
    return Mismatch(usual, what, odd, {rank: _shown(entry, what) for rank, entry in sorted(entries.items())})


def _shown(entry: FlightEntry, what: str) -> str:
    if what == "operation":
        return entry.operation
    if what == "dtype":
        return ", ".join(entry.input_types) or "no element type"
    return sizes_of(entry)


def sizes_of(entry: FlightEntry) -> str:
    """Return the shapes of what was passed in, as text."""
    return " ".join(f"[{', '.join(map(str, shape))}]" for shape in entry.input_sizes)


_ASPECTS: Final[tuple[tuple[str, Callable[[FlightEntry], Hashable]], ...]] = (
    ("operation", lambda entry: entry.operation),
    ("sizes", lambda entry: entry.input_sizes),
    ("dtype", lambda entry: entry.input_types),
)
