"""The critical path as the timeline draws it: pieces with texts by number, no more than can be walked along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.records.critical_path import PathPiece
    from longpole.report.drawing import DrawnUnit

PIECES_MAX: Final = 10_000
"""Beyond it, short pieces of one row are told together: nobody walks along so many, and a page has a size."""
_FINEST: Final = 16_384  # of the unit's length: where drawing pieces together begins


class Group(NamedTuple):
    """Pieces that are drawn as one: lane, start and length in ns, how many, and the longest of them."""

    lane: int
    start_ns: int
    length_ns: int
    pieces: int
    longest: PathPiece


def draw_path(
    unit: DrawnUnit, lanes: Mapping[tuple[int, str], int], shown: Callable[[str], str]
) -> tuple[list[str], list[list[int]]]:
    """Return the path through a unit.

    Args:
        unit: The unit.
        lanes: (Rank, track) -> number of the lane.
        shown: Makes a name from a trace into a text of bounded length.

    Returns:
        Texts, and pieces as [lane or -1, start, length, object, text, how many it stands for].
    """
    numbers: dict[str, int] = {}
    by_parts: dict[tuple[str, str, str], int] = {}
    found = []
    for group in grouped(unit.pieces, lanes, max(unit.end_ns - unit.start_ns, 1)):
        one = group.longest
        parts = (one.name or one.object, one.grade, one.reason)
        if parts not in by_parts:
            by_parts[parts] = numbers.setdefault(shown(" · ".join(parts)), len(numbers))
        charged = OBJECTS.index(one.object if one.object in OBJECTS else "unknown")
        start_ns = group.start_ns - unit.start_ns
        found.append([group.lane, start_ns, group.length_ns, charged, by_parts[parts], group.pieces])
    return list(numbers), found


def grouped(
    pieces: Sequence[PathPiece], lanes: Mapping[tuple[int, str], int], length_ns: int, most: int = PIECES_MAX
) -> list[Group]:
    """Return the pieces, short neighbours on one row together where there are too many.

    Args:
        pieces: In order of time, each beginning where the last one ends.
        lanes: (Rank, track) -> number of the lane.
        length_ns: Of the unit.
        most: How many may be left; more are where they are not short or on other rows.
    """
    placed = [
        Group(lanes.get((one.rank, one.track), -1) if one.rank is not None else -1, one.start_ns, one.dur_ns, 1, one)
        for one in pieces
    ]
    finest_ns = max(length_ns // _FINEST, 1)
    while len(placed) > most and finest_ns < length_ns:
        placed = _together(placed, finest_ns)
        finest_ns *= 2
    return placed


def _together(placed: Sequence[Group], finest_ns: int) -> list[Group]:
    found: list[Group] = []
    for one in placed:
        last = found[-1] if found else None
        if last is None or last.lane != one.lane or last.length_ns + one.length_ns > finest_ns:
            found.append(one)
            continue
        longest = max(last.longest, one.longest, key=lambda piece: piece.dur_ns)
        end_ns = one.start_ns + one.length_ns
        found[-1] = Group(last.lane, last.start_ns, end_ns - last.start_ns, last.pieces + one.pieces, longest)
    return found
