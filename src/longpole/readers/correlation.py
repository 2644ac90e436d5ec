"""Link device spans to the calls that launched them, by the id that both bear."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.timeline.columns import NONE_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.timeline.tables import DeviceTable, HostTable

    Ints: TypeAlias = NDArray[np.int64]


def launches_by_correlation(host: HostTable, calls: NDArray[np.intp], device: DeviceTable) -> Ints:
    """Return `[N]` int64: the host row of the call that shares each device span's correlation id, NONE_ID for none.

    Where several calls bear one id, for ids are used again, a span belongs to the last one that began before it, else
    to the first.
    """
    wanted = device.correlation
    calls = calls[host.correlation[calls] > 0]
    if len(calls) == 0 or len(wanted) == 0:
        return np.full(len(wanted), NONE_ID, np.int64)
    order = np.lexsort((calls, host.start_ns[calls], host.correlation[calls]))
    calls = calls[order]
    keys = host.correlation[calls]
    first = np.searchsorted(keys, wanted, side="left")
    place = np.minimum(first, len(keys) - 1)
    hit = (wanted > 0) & (keys[place] == wanted)
    again = np.flatnonzero(hit)[keys[np.minimum(first[hit] + 1, len(keys) - 1)] == wanted[hit]]
    for row in again[first[again] + 1 < len(keys)].tolist():
        low, high = np.searchsorted(keys, [wanted[row], wanted[row] + 1])
        some = calls[low:high]
        last = max(int(np.searchsorted(host.start_ns[some], device.start_ns[row], side="right")) - 1, 0)
        while last > 0 and host.end_ns[some[last - 1]] >= host.end_ns[some[last]]:
            last -= 1  # a call within a call
        place[row] = low + last
    return np.where(hit, calls[place], NONE_ID)
