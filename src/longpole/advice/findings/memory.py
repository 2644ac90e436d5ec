"""Memory that grows from unit to unit, and memory that is free in pieces. Neither costs time by itself.

allocated at the ends of units    100  400  400  400  400    warm-up, then a plateau: nothing
                                  100  400  410  420  430    a slope: a leak
                                  100  180  230  255  265    a rise that fades: a cache that fills
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.suspect import Suspect
from longpole.advice.words import on_ranks
from longpole.digest.steady import real_units
from longpole.records.findings import Evidence, Place
from longpole.records.memory import NOT_KNOWN, peak_of
from longpole.stats import median_ns
from longpole.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.scene import Scene
    from longpole.digest.rank_digest import RankDigest
    from longpole.records.memory import MemoryUse, RankMemory

_JUMP: Final = 2  # our choice: a first step of the rise this many times the usual one belongs to the warm-up
_EVEN: Final = 1.1  # our choice: steps that differ by less than this factor are the same
_FADES: Final = 2  # our choice: a rise whose later half is this many times flatter comes to an end
_RECURS: Final = 2  # our choice: once may be an accident
_GIVES_BACK: Final = re.compile(r"^(?!.*(?:Host|Async)).*(?:Free|Unmap|Release)")


def find(scene: Scene) -> list[Suspect]:
    """Suspect memory that leaks, and memory that is fragmented and does harm."""
    return [*_leaks(scene), *_fragmentations(scene)]


# ------------------------------------------------------------------------------------------------- leak


@dataclass(frozen=True, slots=True)
class _Growth:
    """One memory that grows: `ends` of the units in which it does, and the rank whose it is."""

    rank: int
    memory: RankMemory
    units: list[str]
    ends: list[int]

    @property
    def per_unit(self) -> int:
        """Bytes that each unit adds."""
        return (self.ends[-1] - self.ends[0]) // (len(self.ends) - 1)

    @property
    def units_left(self) -> int | None:
        """Units until the device is full at its peak, None where that is not known."""
        if self.memory.capacity_bytes == NOT_KNOWN or self.memory.from_start:
            return None
        room = self.memory.capacity_bytes - self.memory.units[self.units[-1]].peak_allocated_bytes
        return max(room, 0) // self.per_unit


def _leaks(scene: Scene) -> list[Suspect]:
    grown = [
        growth
        for digest in scene.digests
        for memory in digest.memory
        if (growth := _growth(scene, digest, memory)) is not None
    ]
    if not grown:
        return []
    worst = [max(of, key=lambda one: one.per_unit) for of in _by_kind(grown)]
    serves = any(digest.kind != "training" for digest in scene.digests)
    unless = "; in inference that may be a cache that grows with the sequence" if serves else ""
    ranks = sorted({growth.rank for growth in grown})
    return [
        Suspect(
            cause="leak",
            ranks=ranks,
            says=" and ".join(map(_says_growth, worst)) + on_ranks(scene, ranks) + unless,
            evidence=[row for growth in worst for row in _evidence_of_growth(growth)],
            units=max((growth.units for growth in worst), key=len),
            grade="inferred" if serves else "recorded",
            always=True,
        )
    ]


def _by_kind(grown: list[_Growth]) -> list[list[_Growth]]:
    """Group by device memory and host memory, those that there are."""
    kinds = [[growth for growth in grown if growth.memory.is_host == is_host] for is_host in (False, True)]
    return [kind for kind in kinds if kind]


def _growth(scene: Scene, digest: RankDigest, memory: RankMemory) -> _Growth | None:
    """Return how a memory grows up to the last unit; None where it does not, or not for long enough."""
    names = [unit.name for unit in real_units(digest.rows[0].units) if unit.name not in scene.steady.moved]
    names = [name for name in names if name in memory.units]
    ends = [memory.units[name].end_allocated_bytes for name in names]
    n_least = scene.settings.leak_min_units
    first = len(ends) - 1
    while first > 0 and ends[first - 1] < ends[first]:
        first -= 1
    steps = [after - before for before, after in zip(ends[first:], ends[first + 1 :], strict=False)]
    while len(steps) >= n_least and steps[0] > _JUMP * median_ns(steps[1:]):
        steps = steps[1:]
    if len(steps) + 1 < n_least or not _is_slope(scene, steps, ends[-1], is_host=memory.is_host):
        return None
    n_ends = len(steps) + 1
    return _Growth(digest.rank, memory, names[-n_ends:], ends[-n_ends:])


def _is_slope(scene: Scene, steps: Sequence[int], held: int, *, is_host: bool) -> bool:
    """Tell a leak from noise and from a cache that fills."""
    half = len(steps) // 2
    if _FADES * sum(steps[-half:]) < sum(steps[:half]):
        return False
    settings = scene.settings
    per_unit = sum(steps) / len(steps)
    if is_host and max(steps) <= _EVEN * min(steps) and per_unit >= settings.leak_host_min_bytes:
        return True
    return per_unit > max(settings.leak_min_bytes, settings.leak_min_share * held)


def _says_growth(growth: _Growth) -> str:
    what = "host memory" if growth.memory.is_host else f"memory of {growth.memory.memory}"
    text = f"{what} grows by {format_bytes(growth.per_unit)} per unit over the last {len(growth.ends)} units"
    left = growth.units_left
    return text if left is None else f"{text}, and is full after {left:,} more"


def _evidence_of_growth(growth: _Growth) -> list[Evidence]:
    name = growth.memory.memory
    rows = [
        Evidence("bytes_per_unit", growth.per_unit, Place(growth.rank, name, unit=growth.units[-1])),
        *(
            Evidence("allocated_at_end_bytes", growth.ends[at], Place(growth.rank, name, unit=growth.units[at]))
            for at in (0, -1)
        ),
    ]
    left = growth.units_left
    if left is not None:
        rows.append(Evidence("units_until_full", left, Place(growth.rank, name)))
    return rows


# ---------------------------------------------------------------------------------------- fragmentation


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A device's memory that is free in pieces: when most was allocated, and the harm it does.

    Attributes:
        returns: In how many steady units memory went back to the driver.
        full: What share of the device was reserved at most; 0 where the device's memory is not known.
    """

    rank: int
    memory: RankMemory
    peak: MemoryUse
    returns: int
    full: float

    @property
    def spare_bytes(self) -> int:
        """What was reserved beyond what was allocated, at the peak."""
        return self.peak.reserved_at_peak_bytes - self.peak.peak_allocated_bytes

    @property
    def share(self) -> float:
        """The same as a share of what was reserved."""
        return self.spare_bytes / self.peak.reserved_at_peak_bytes


def _fragmentations(scene: Scene) -> list[Suspect]:
    found = [
        pieces
        for digest in scene.digests
        for memory in digest.memory
        if (pieces := _pieces(scene, digest, memory)) is not None
    ]
    if not found:
        return []
    worst = max(found, key=lambda pieces: pieces.share)
    ranks = sorted({pieces.rank for pieces in found})
    name = worst.memory.memory
    says = (
        f"when most is allocated, {worst.share:.0%} of what {name} has reserved"
        f" ({format_bytes(worst.spare_bytes)} of {format_bytes(worst.peak.reserved_at_peak_bytes)}) is free in pieces,"
        f" and {_harm(worst)}{on_ranks(scene, ranks)}"
    )
    evidence = [
        Evidence("allocated_peak_bytes", worst.peak.peak_allocated_bytes, Place(worst.rank, name)),
        Evidence("reserved_at_peak_bytes", worst.peak.reserved_at_peak_bytes, Place(worst.rank, name)),
        Evidence("largest_spare_bytes", worst.peak.largest_spare_bytes, Place(worst.rank, name)),
        Evidence("units in which memory goes back to the driver", worst.returns, Place(worst.rank, name)),
    ]
    if worst.full:
        evidence.append(Evidence("reserved, share of the device", worst.full, Place(worst.rank, name)))
    return [
        Suspect(
            cause="fragmentation",
            ranks=ranks,
            says=says,
            evidence=evidence,
            grade="recorded" if worst.returns >= _RECURS else "inferred",
            always=True,
        )
    ]


def _pieces(scene: Scene, digest: RankDigest, memory: RankMemory) -> _Pieces | None:
    """Return what lies in pieces, None where that is little or does no harm."""
    if memory.is_host or memory.from_start or not memory.units:
        return None
    peak = peak_of(memory)
    if peak.reserved_at_peak_bytes <= 0:
        return None
    full = peak.peak_reserved_bytes / memory.capacity_bytes if memory.capacity_bytes > 0 else 0.0
    pieces = _Pieces(digest.rank, memory, peak, _returns(scene, digest, memory), full)
    harms = pieces.returns >= _RECURS or full >= scene.settings.memory_full_share
    return pieces if harms and pieces.share >= scene.settings.fragmentation_min_share else None


def _returns(scene: Scene, digest: RankDigest, memory: RankMemory) -> int:
    """Count the steady units in which the allocator gave memory back, which it does when it finds no piece.

    A release that a new segment follows at once does not show in the totals; the call does. Where the program empties
    the cache by itself, none of it says anything.
    """
    fell = {
        unit.name
        for unit in scene.counted(digest.rows[0])
        if unit.name in memory.units and memory.units[unit.name].reserved_falls
    }
    for view in scene.views:
        if view.rank != digest.rank:
            continue
        names = view.graph.names
        gives_back = view.call == "free"
        if any("empty" in name.lower() for name in view.names_where(gives_back)):
            return 0
        gives_back &= np.array([_GIVES_BACK.search(name) is not None for name in names], np.bool_)
        places = view.unit_of(view.graph.host.start_ns[view.rows(gives_back, -1)])
        fell |= {view.graph.units[place] for place in np.intersect1d(places, view.steady_places).tolist()}
    return len(fell)


def _harm(pieces: _Pieces) -> str:
    if pieces.returns >= _RECURS:
        return f"the allocator gives memory back to ask for it again in {pieces.returns} units"
    return f"{pieces.full:.0%} of the device is reserved"
