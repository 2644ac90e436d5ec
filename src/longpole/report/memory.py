"""Memory in the report: of each unit and row, and the device of the run that holds most at its peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from longpole.records.ledger import Unknown
from longpole.records.memory import NOT_KNOWN, fullest, peak_of
from longpole.report.document import NO_MEMORY, RowMemory, RunMemory, UnitMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.digest.rank_digest import RankDigest, RowDigest
    from longpole.records.memory import RankMemory

_HOST_ONLY: Final = Unknown("only the host's memory was recorded, from the start of the record")
_NO_TOTALS: Final = Unknown(
    "the exporter writes what was allocated and given back, and no totals", ["a later version of the profiler"]
)
_NO_RESERVED: Final = Unknown("the exporter does not write what is reserved", ["a later version of the profiler"])
_NO_CAPACITY: Final = Unknown("the trace does not say how much memory the device has", ["deviceProperties"])


_NOT_BY_RECORDER: Final = Unknown("the recorder keeps no memory figures", ["a profiler trace with profile_memory=True"])


def run_memory(digests: Sequence[RankDigest]) -> RunMemory | Unknown:
    """Return the device of the run that holds most at its peak, or why that is not known."""
    found = fullest([(digest.rank, memory) for digest in digests for memory in digest.memory])
    if found is None:
        devices = [memory for digest in digests for memory in digest.memory if not memory.is_host]
        if devices:
            return _NO_TOTALS
        if digests and all(digest.program is not None for digest in digests):
            return _NOT_BY_RECORDER
        return _HOST_ONLY if any(digest.memory for digest in digests) else NO_MEMORY
    rank, memory = found
    peak = peak_of(memory)
    capacity = memory.capacity_bytes
    is_known = capacity != NOT_KNOWN
    return RunMemory(
        rank=rank,
        memory=memory.memory,
        peak_allocated_bytes=peak.peak_allocated_bytes,
        peak_reserved_bytes=_NO_RESERVED if peak.peak_reserved_bytes == NOT_KNOWN else peak.peak_reserved_bytes,
        capacity_bytes=capacity if is_known else _NO_CAPACITY,
        peak_share=peak.peak_allocated_bytes / capacity if is_known else _NO_CAPACITY,
    )


def memories_of(digest: RankDigest, row: RowDigest) -> list[RankMemory]:
    """Return the memories that a row shows: its device's; the first row also those that have no row of their own."""
    named = {other.device for other in digest.rows if other is not row and other.device != "cpu"}
    is_first = row is digest.rows[0]
    return [
        memory for memory in digest.memory if memory.memory == row.device or (is_first and memory.memory not in named)
    ]


def row_memory(memories: Sequence[RankMemory]) -> list[RowMemory]:
    """Return what a row says of its memories over the whole record."""
    return [_row_memory(memory) for memory in memories]


def _row_memory(memory: RankMemory) -> RowMemory:
    peak = peak_of(memory)
    return RowMemory(
        memory=memory.memory,
        from_start=memory.from_start,
        events=memory.n_events,
        peak_allocated_bytes=peak.peak_allocated_bytes,
        peak_reserved_bytes=_or_unset(peak.peak_reserved_bytes),
        reserved_at_peak_bytes=_or_unset(peak.reserved_at_peak_bytes),
        capacity_bytes=_or_unset(memory.capacity_bytes),
    )


def unit_memory(memories: Sequence[RankMemory], unit: str) -> list[UnitMemory]:
    """Return what a unit says of its row's memories."""
    return [
        UnitMemory(
            memory=memory.memory,
            peak_allocated_bytes=use.peak_allocated_bytes,
            end_allocated_bytes=use.end_allocated_bytes,
            peak_reserved_bytes=_or_unset(use.peak_reserved_bytes),
            largest_spare_bytes=_or_unset(use.largest_spare_bytes),
        )
        for memory in memories
        if (use := memory.units.get(unit)) is not None
    ]


def _or_unset(amount: int) -> int | UnsetType:
    return UNSET if amount == NOT_KNOWN else amount
