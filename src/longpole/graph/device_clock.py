"""How the clock of a device stands to that of its host (DESIGN 3.2, host and device clock).

launch call     ├──┤                       sync call  ├──────────┤
device span       ├── not before its launch ──┤       … and not after the return of a call that waited for it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DeviceClock:
    """What to add to a device's times, and how far the record contradicts it.

    Attributes:
        shift_ns: To add to starts and ends of the device's spans.
        conflict_ns: By how much no constant fits both bounds; 0 where one does.
    """

    shift_ns: int
    conflict_ns: int


def fit_device_clock(
    launch_ns: Ints, start_ns: Ints, end_ns: Ints, call_start_ns: Ints, call_end_ns: Ints
) -> DeviceClock:
    """Find the smallest constant for which no span starts before its launch or ends after a call that waited for all.

    Args:
        launch_ns: `[N]` int64 ns: starts of the launching calls.
        start_ns: `[N]` int64 ns: starts of the spans that they launched.
        end_ns: `[N]` int64 ns: ends of those spans.
        call_start_ns: `[C]` int64 ns: starts of calls that wait for everything launched before them.
        call_end_ns: `[C]` int64 ns: their returns.
    """
    if len(launch_ns) == 0:
        return DeviceClock(0, 0)
    at_least_ns = int((launch_ns - start_ns).max())
    at_most_ns = _latest_shift(launch_ns, end_ns, call_start_ns, call_end_ns)
    if at_most_ns is None:
        return DeviceClock(max(at_least_ns, 0), 0)
    if at_least_ns <= at_most_ns:
        return DeviceClock(min(max(at_least_ns, 0), at_most_ns), 0)
    return DeviceClock((at_least_ns + at_most_ns) // 2, at_least_ns - at_most_ns)


def _latest_shift(launch_ns: Ints, end_ns: Ints, call_start_ns: Ints, call_end_ns: Ints) -> int | None:
    order = np.argsort(launch_ns, kind="stable")
    reach_ns = np.maximum.accumulate(end_ns[order])
    before = np.searchsorted(launch_ns[order], call_start_ns, side="left") - 1
    waited = before >= 0
    if not waited.any():
        return None
    return int((call_end_ns[waited] - reach_ns[before[waited]]).min())
