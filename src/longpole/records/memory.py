"""Memory as records store it: what a device, or the host, held in each unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

NOT_KNOWN: Final = -1
"""Stands for an amount of bytes that is not recorded."""


class MemoryUse(msgspec.Struct):
    """What one memory held during one unit; `NOT_KNOWN` for what allocators of this kind do not say.

    Attributes:
        peak_allocated_bytes: The most that was allocated.
        end_allocated_bytes: What was allocated when the unit's marker ended.
        peak_reserved_bytes: The most that the allocator had taken from the driver.
        reserved_at_peak_bytes: What it had taken when most was allocated.
        largest_spare_bytes: The most that was reserved beyond what was allocated.
        reserved_falls: How often it gave memory back to the driver.
    """

    peak_allocated_bytes: int
    end_allocated_bytes: int
    peak_reserved_bytes: int = NOT_KNOWN
    reserved_at_peak_bytes: int = NOT_KNOWN
    largest_spare_bytes: int = NOT_KNOWN
    reserved_falls: int = 0


class RankMemory(msgspec.Struct):
    """One memory that a rank uses.

    Attributes:
        memory: Name of the device as rows have it, `cpu` for the host's.
        is_host: It is the host's.
        from_start: What was allocated before the record is not counted: figures may be compared with each other only.
        n_events: Allocations and releases that were recorded.
        capacity_bytes: What the device has, `NOT_KNOWN` where the header does not say.
        units: Unit's name (`head` and `tail` too) -> what it held.
    """

    memory: str
    is_host: bool
    from_start: bool
    n_events: int
    capacity_bytes: int = NOT_KNOWN
    units: dict[str, MemoryUse] = {}


def peak_of(memory: RankMemory) -> MemoryUse:
    """Return what was held when most was allocated, with the extremes of the whole record in the other figures."""
    uses = list(memory.units.values())
    most = max(uses, key=lambda use: use.peak_allocated_bytes)
    return MemoryUse(
        peak_allocated_bytes=most.peak_allocated_bytes,
        end_allocated_bytes=uses[-1].end_allocated_bytes,
        peak_reserved_bytes=max(use.peak_reserved_bytes for use in uses),
        reserved_at_peak_bytes=most.reserved_at_peak_bytes,
        largest_spare_bytes=max(use.largest_spare_bytes for use in uses),
        reserved_falls=sum(use.reserved_falls for use in uses),
    )


def fullest(memories: Iterable[tuple[int, RankMemory]]) -> tuple[int, RankMemory] | None:
    """Return the device that holds most at its peak; None where no device's totals are known.

    Args:
        memories: Rank and memory.
    """
    known = [(rank, memory) for rank, memory in memories if not memory.from_start and memory.units]
    return max(known, key=lambda pair: peak_of(pair[1]).peak_allocated_bytes, default=None)
