"""What was allocated in each unit, from the memory events of a record.

allocated       ┌──┐peak   ┌──┐
          ┌─────┘  └──┐ ┌──┘  └─┐
          ┘           └─┘       └─       carried into a unit from the event before it
units     ├───────────┼─────────┤
                      end       end      at the end of the marker, so that all units are looked at in one place
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from longpole.records.memory import NOT_KNOWN, MemoryUse, RankMemory
from longpole.timeline.columns import NONE_BYTES, NONE_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.timeline.boundaries import Unit
    from longpole.timeline.timeline import Timeline

HOST_MEMORY: Final = "cpu"


def rank_memory(timeline: Timeline, units: list[Unit], bounds_ns: NDArray[np.int64]) -> list[RankMemory]:
    """Measure every memory that a rank uses: its devices' by number, then the host's.

    Args:
        timeline: The rank's record.
        units: Its units.
        bounds_ns: `[U + 3]` int64 ns: where head, units and tail begin and end.

    Returns:
        Empty where no memory event was recorded.
    """
    table = timeline.memory
    devices = np.unique(table.device).tolist()
    found = []
    for device in sorted(devices, key=lambda device: (device == NONE_ID, device)):
        is_host = device == NONE_ID
        own = table.take(np.flatnonzero(table.device == device))
        series, from_start = _series(own.time_ns, own.size_bytes, own.allocated_bytes, own.reserved_bytes)
        found.append(
            RankMemory(
                memory=HOST_MEMORY if is_host else f"{timeline.device_type}:{device}",
                is_host=is_host,
                from_start=from_start or is_host,
                n_events=len(own),
                capacity_bytes=NOT_KNOWN if is_host else timeline.device_bytes.get(device, NOT_KNOWN),
                units=_by_unit(series, units, bounds_ns, is_host=is_host),
            )
        )
    return found


class _Series(NamedTuple):
    """One memory over time: `[N]` int64 each, `[N + 1]` for what is held, which begins before the first event."""

    time_ns: NDArray[np.int64]
    allocated: NDArray[np.int64]
    reserved: NDArray[np.int64] | None


def _series(
    time_ns: NDArray[np.int64],
    size_bytes: NDArray[np.int64],
    allocated: NDArray[np.int64],
    reserved: NDArray[np.int64],
) -> tuple[_Series, bool]:
    """Return what is held before and behind every event, and whether that counts from the record's start only.

    Exporters of 2021 write what changed and no total. The host's totals count from the profiler's start
    (`ProfiledCPUMemoryReporter` knows the blocks that it saw allocated).
    """
    known = allocated != NONE_BYTES
    if not known.any():
        held = np.concatenate([np.zeros(1, np.int64), np.cumsum(size_bytes)])
        return _Series(time_ns, held - min(int(held.min()), 0), None), True
    time_ns, size_bytes, allocated, reserved = (a[known] for a in (time_ns, size_bytes, allocated, reserved))
    before = max(int(allocated[0] - size_bytes[0]), 0)
    held = np.concatenate([np.array([before], np.int64), allocated])
    if (reserved == NONE_BYTES).any():
        return _Series(time_ns, held, None), False
    return _Series(time_ns, held, np.concatenate([reserved[:1], reserved])), False


def _by_unit(
    series: _Series, units: list[Unit], bounds_ns: NDArray[np.int64], *, is_host: bool
) -> dict[str, MemoryUse]:
    """Return what was held in head, units and tail; head and tail only where they have time."""
    names = ["head", *(unit.name for unit in units), "tail"]
    ends_ns = bounds_ns[1:].copy()
    ends_ns[1:-1] -= np.array([unit.between_ns for unit in units], np.int64)
    # Places among what is held: an event at the very border belongs to the unit behind it.
    first = np.searchsorted(series.time_ns, bounds_ns[:-1], side="left")
    last = np.searchsorted(series.time_ns, bounds_ns[1:], side="left")
    last[-1] = len(series.time_ns)
    at_end = np.searchsorted(series.time_ns, ends_ns, side="left")
    at_end[-1] = len(series.time_ns)
    reserved = None if is_host else series.reserved
    found = {}
    for place, name in enumerate(names):
        if name in ("head", "tail") and place in (0, len(names) - 1) and bounds_ns[place] == bounds_ns[place + 1]:
            continue
        low, high = int(first[place]), int(last[place]) + 1
        found[name] = _use(series.allocated[low:high], reserved[low:high] if reserved is not None else None)
        found[name].end_allocated_bytes = int(series.allocated[at_end[place]])
    return found


def _use(allocated: NDArray[np.int64], reserved: NDArray[np.int64] | None) -> MemoryUse:
    peak = int(allocated.argmax())
    use = MemoryUse(int(allocated[peak]), int(allocated[-1]))
    if reserved is not None:
        use.peak_reserved_bytes = int(reserved.max())
        use.reserved_at_peak_bytes = int(reserved[peak])
        use.largest_spare_bytes = max(int((reserved - allocated).max()), 0)
        use.reserved_falls = int(np.count_nonzero(np.diff(reserved) < 0))
    return use
