"""A guess: a span that nothing explains starts just as a span on another stream ends.

stream 13   ├───── A ─────┤
stream 7      launch K      ├─ K ─┤     from 6 µs before to 10 µs after A's end

Grade: *guess*. Evidence: times only. K is late: neither its launch nor its own stream explains its start, and no
recorded or inferred wait does. It is joined to the span on another stream of its device whose end is nearest, among
those that were launched before K was; at equal distance the one that ends last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.graph.rules.event_recorded import device_edges
from longpole.graph.rules.stream_queues import late_spans
from longpole.timeline.intervals import expand

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.edges import Edges
    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]
    Flags: TypeAlias = NDArray[np.bool_]


def find(ground: Ground, taken: Flags) -> Edges:
    """Return the edges that are guessed.

    Args:
        ground: The rank.
        taken: `[D]` bool: spans that already have an event wait.
    """
    source, target = find_rows(ground, taken)
    return device_edges(ground, EdgeKind.COINCIDENT, source, target)


def find_rows(ground: Ground, taken: Flags) -> tuple[Ints, Ints]:
    """Return device rows `[E]` int64 of the spans that end and of those that start."""
    spans, settings = ground.spans, ground.settings
    device = ground.timeline.device.device
    late = np.flatnonzero(late_spans(ground) & ~taken)
    by_end = np.argsort(spans.end_ns, kind="stable")
    ends_ns = spans.end_ns[by_end]
    start_ns = spans.start_ns[late]
    low = np.searchsorted(ends_ns, start_ns - settings.coincident_after_ns, side="left")
    high = np.searchsorted(ends_ns, start_ns + settings.coincident_before_ns, side="right")
    which, place = expand(low, high)
    source, target = by_end[place], late[which]
    fits = (spans.lane[source] != spans.lane[target]) & (device[source] == device[target])
    fits &= spans.start_ns[source] < spans.start_ns[target]
    source, target = source[fits], target[fits]
    distance_ns = np.abs(spans.start_ns[target] - spans.end_ns[source])
    launched_later = spans.launch_ns[source] >= spans.launch_ns[target]
    order = np.lexsort((source, -spans.end_ns[source], distance_ns, launched_later, target))
    source, target = source[order], target[order]
    nearest = np.flatnonzero(np.diff(target, prepend=-1))
    return source[nearest].astype(np.int64), target[nearest].astype(np.int64)
