"""How much the device that holds most needs at its peak, in a phrase for the top of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.records.ledger import Unknown
from longpole.units import format_bytes

if TYPE_CHECKING:
    from longpole.report.document import Report


def peak_memory(report: Report) -> str:
    """Say the peak of the run; empty where it is not known, which NOT KNOWN says."""
    memory = report.memory
    if isinstance(memory, Unknown):
        return ""
    text = f"peak memory {format_bytes(memory.peak_allocated_bytes)} allocated"
    if isinstance(memory.peak_reserved_bytes, int):
        text += f" of {format_bytes(memory.peak_reserved_bytes)} reserved"
    if isinstance(memory.peak_share, float):
        text += f", {memory.peak_share:.0%} of the device's"
    return text + (f" (rank {memory.rank})" if len(report.ranks) > 1 else "")
