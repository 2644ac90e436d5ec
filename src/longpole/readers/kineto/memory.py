"""Memory events: what the profiler writes of each allocation and release when `profile_memory` is on (formats.md B.3).

size_bytes        +4    +8    -4    +8
total allocated    4    12     8    16        each total is the one before and what changed: a total that fits neither
                                              side is a damaged one
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.timeline.columns import NONE_BYTES, NONE_ID
from longpole.timeline.tables import MemoryTable
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from longpole.readers.kineto.complaints import Complaints
    from longpole.readers.kineto.raw import RawTrace
    from longpole.timeline.tables import DeviceTable, HostTable

_BYTES_MAX: Final = 1 << 56


def memory_table(
    raw: RawTrace, pids: frozenset[Hashable] | None, placed: tuple[HostTable, DeviceTable], complaints: Complaints
) -> MemoryTable:
    """Return the memory events of one rank.

    Args:
        raw: The file.
        pids: Processes of the rank, None where the whole file is the rank's.
        placed: The rank's spans: an event that lies further from them than they reach is a stray.
        complaints: Hears of strays, and of totals that cannot be.
    """
    columns = raw.memory
    if not columns or len(columns["time_ns"]) == 0:
        return MemoryTable.empty()
    mine = np.ones(len(columns["time_ns"]), np.bool_)
    if pids is not None:
        mine = np.array([pid in pids for pid, _ in raw.tracks], np.bool_)[columns["track"]]
    stray = mine & _far(columns["time_ns"], placed)
    complaints.events("event.time.stray", "warn", columns["event"][stray])
    kept = np.flatnonzero(mine & ~stray)
    kept = kept[np.lexsort((columns["event"][kept], columns["time_ns"][kept]))]
    device = np.where(columns["device_type"] > 0, columns["device"], NONE_ID).astype(np.int32)
    wrong = np.zeros(len(kept), np.bool_)
    for one in np.unique(device[kept]).tolist():
        own = np.flatnonzero(device[kept] == one)
        wrong[own] = _contradicting(columns["allocated_bytes"][kept[own]], columns["size_bytes"][kept[own]])
    complaints.events("event.memory_contradicts", "warn", columns["event"][kept[wrong]])
    kept = kept[~wrong]
    return MemoryTable(
        time_ns=columns["time_ns"][kept],
        device=device[kept],
        size_bytes=columns["size_bytes"][kept],
        allocated_bytes=columns["allocated_bytes"][kept],
        reserved_bytes=columns["reserved_bytes"][kept],
        event=columns["event"][kept],
    )


def device_bytes(header: dict[str, Any]) -> dict[int, int]:
    """Return how much memory each device has, as far as the header says: device -> bytes."""
    found: dict[int, int] = {}
    entries = header.get("deviceProperties")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        device, size = entry.get("id"), entry.get("totalGlobalMem")
        if isinstance(device, int) and isinstance(size, int) and 1 < size < _BYTES_MAX:
            found.setdefault(device, size)
    return found


def _far(time_ns: NDArray[np.int64], placed: tuple[HostTable, DeviceTable]) -> NDArray[np.bool_]:
    starts = [int(table.start_ns.min()) for table in placed if len(table)]
    ends = [int(table.end_ns.max()) for table in placed if len(table)]
    if not starts:
        return np.zeros(len(time_ns), np.bool_)
    reach_ns = max(max(ends) - min(starts), NS_PER_S)
    return (time_ns < min(starts) - reach_ns) | (time_ns > max(ends) + reach_ns)


def _contradicting(total: NDArray[np.int64], changed: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which totals fit neither the one before nor the one behind, while those two fit each other."""
    wrong = np.zeros(len(total), np.bool_)
    if len(total) >= 3 and not (total == NONE_BYTES).any():
        fits = total[1:] - total[:-1] == changed[1:]
        across = total[2:] - total[:-2] == changed[1:-1] + changed[2:]
        wrong[1:-1] = ~fits[:-1] & ~fits[1:] & across
    return wrong
