"""Which call launched each device span: by correlation, else by order where the exporter wrote none."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.analyses.name_book import CALL_CODE
from longpole.timeline.columns import NONE_ID, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.analyses.rungs import DeviceRow
    from longpole.timeline.timeline import Timeline

    Ints: TypeAlias = NDArray[np.int64]


def launching_calls(timeline: Timeline, book: NameBook, row: DeviceRow) -> Ints:
    """Return the launching call of each span: by correlation, else first in, first out between linked neighbours."""
    launch = row.spans.launch.copy()
    unlinked = np.flatnonzero(launch == NONE_ID)
    if len(unlinked) == 0 or len(unlinked) == len(launch):
        return launch
    order = np.lexsort((row.spans.start_ns, row.spans.stream))
    stream, linked = row.spans.stream[order], launch[order]
    known = np.flatnonzero(linked != NONE_ID)
    free = _free_calls(timeline, book)
    for place in np.flatnonzero(linked == NONE_ID).tolist():
        after = int(np.searchsorted(known, place))
        if after == 0 or after == len(known):
            continue
        low, high = int(known[after - 1]), int(known[after])
        if stream[low] != stream[place] or stream[high] != stream[place]:
            continue
        launch[order[place]] = _between(timeline, free, linked, (low, place, high))
    return launch


def _free_calls(timeline: Timeline, book: NameBook) -> Ints:
    """Return the calls that launch something, but to which no span of any device is linked; ascending."""
    host, launch = timeline.host, timeline.device.launch
    launching = np.isin(book.call, [CALL_CODE[call] for call in ("launch", "graph_launch", "copy", "memset")])
    is_free = (host.kind == Kind.RUNTIME) & launching[host.name]
    is_free[launch[launch != NONE_ID]] = False
    return np.flatnonzero(is_free).astype(np.int64)


def _between(timeline: Timeline, free: Ints, linked: Ints, places: tuple[int, int, int]) -> int:
    """Return the call of a span between two linked ones: their common call, or the launch at the same place."""
    low, place, high = places
    if linked[low] == linked[high]:
        return int(linked[low])
    host = timeline.host
    if host.track[linked[low]] != host.track[linked[high]] or linked[high] <= linked[low]:
        return NONE_ID
    between = free[np.searchsorted(free, linked[low]) : np.searchsorted(free, linked[high])]
    if len(between) != high - low - 1:
        return NONE_ID
    return int(between[place - low - 1])
