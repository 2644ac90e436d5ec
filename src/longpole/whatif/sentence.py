"""A path in a sentence: "rank 2: 58 ms data loader, 12 ms computation; then rank 0: 4 ms all_reduce"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from longpole.units import format_ns
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.graph.path import Pieces

_SHOWN_SHARE: Final = 0.03  # a shorter stretch is not worth a word
_SHOWN_MAX: Final = 7
_NAME_MAX: Final = 48


class Labelled(Protocol):
    """A rank with what its codes stand for."""

    @property
    def rank(self) -> int:
        """Its number."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of spans and activities."""

    @property
    def lane_names(self) -> tuple[str, ...]:
        """Names of threads and streams."""


@dataclass(slots=True)
class _Stretch:
    rank: int
    object: str
    dur_ns: int
    names: dict[str, int]


def path_sentence(ranks: Sequence[Labelled], pieces: Pieces, unit: str) -> str:
    """Return what the path of one unit runs over, in order, in a few words.

    Args:
        ranks: The ranks, by the places that the pieces name.
        pieces: The path of the unit, ascending in time.
        unit: Its name.
    """
    stretches = _stretches(ranks, pieces)
    total_ns = sum(stretch.dur_ns for stretch in stretches)
    shown = _worth_a_word(stretches, total_ns)
    several = len(ranks) > 1
    parts: list[str] = []
    rank = None
    for stretch in shown:
        words = f"{format_ns(stretch.dur_ns)} {_subject(stretch)}"
        if several and stretch.rank != rank and stretch.rank >= 0:
            where = f"on rank {ranks[stretch.rank].rank}"
            parts.append(f"{where} {words}" if rank is None else f"then {where} {words}")
            rank = stretch.rank
        else:
            parts.append(words)
    left_ns = total_ns - sum(stretch.dur_ns for stretch in shown)
    rest = f", and {format_ns(left_ns)} in shorter pieces" if left_ns > 0 else ""
    return f"{unit}: {', '.join(parts)}{rest}" if parts else f"{unit}: {format_ns(total_ns)} in short pieces"


def _subject(stretch: _Stretch) -> str:
    name = max(stretch.names, key=lambda text: stretch.names[text], default="")
    words = {"unknown": "unexplained", "compute": "computation"}.get(stretch.object, stretch.object)
    # A kernel's or operator's name says little of a long stretch that many of them share.
    if name and stretch.names[name] >= stretch.dur_ns / 2:
        return f"{words} ({name if len(name) <= _NAME_MAX else name[: _NAME_MAX - 1] + '…'})"
    return words


def _stretches(ranks: Sequence[Labelled], pieces: Pieces) -> list[_Stretch]:
    """Join neighbouring pieces of one rank and object; short host pieces between kernels go with the kernels."""
    stretches: list[_Stretch] = []
    for row in range(len(pieces)):
        place, dur_ns = int(pieces.rank[row]), int(pieces.end_ns[row] - pieces.start_ns[row])
        name_code = int(pieces.name[row])
        name = ranks[place].names[name_code] if place >= 0 and name_code >= 0 else ""
        what = OBJECTS[int(pieces.object[row])]
        if stretches and stretches[-1].rank == place and stretches[-1].object == what:
            last = stretches[-1]
            last.dur_ns += dur_ns
        else:
            last = _Stretch(place, what, dur_ns, {})
            stretches.append(last)
        if name:
            last.names[name] = last.names.get(name, 0) + dur_ns
    return stretches


def _worth_a_word(stretches: list[_Stretch], total_ns: int) -> list[_Stretch]:
    """Leave out what is short, join what then stands side by side, and keep the longest few in order."""
    long = [s for s in stretches if s.dur_ns >= _SHOWN_SHARE * total_ns / 4]
    joined: list[_Stretch] = []
    for stretch in long:
        last = joined[-1] if joined else None
        if last is not None and (last.rank, last.object) == (stretch.rank, stretch.object):
            names = {name: last.names.get(name, 0) + stretch.names.get(name, 0) for name in last.names | stretch.names}
            joined[-1] = _Stretch(last.rank, last.object, last.dur_ns + stretch.dur_ns, names)
        else:
            joined.append(stretch)
    kept = [s for s in joined if s.dur_ns >= _SHOWN_SHARE * total_ns]
    if len(kept) > _SHOWN_MAX:
        least = sorted((s.dur_ns for s in kept), reverse=True)[_SHOWN_MAX - 1]
        kept = [s for s in kept if s.dur_ns >= least][:_SHOWN_MAX]
    return kept
