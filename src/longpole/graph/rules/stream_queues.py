"""In which order spans were put on their streams, and which of them started late.

launches   ├A┤├B┤   ├C┤├D┤          A and C on stream 7, B and D on stream 13
queue of 7   A C                     ordered by launch, then start
late            C starts more than `late_start_ns` after its launch and after A's end
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.timeline.columns import NONE_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground, Spans

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]
    Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StreamQueues:
    """All spans, ordered by lane, launch and start.

    Attributes:
        row: `[D]` int64: device rows in that order.
        launch_ns: `[D]` int64 ns: their launches, ascending within a lane.
        first: `[L + 1]` int64: where each lane begins.
    """

    row: Ints
    launch_ns: Ints
    first: Ints

    def launched_before(self, lane: Places, time_ns: Ints) -> Ints:
        """Return `[M]` int64: the place behind the last span of a lane that was launched before a time.

        It is the lane's own first place where none was, and the place of the first span launched at that time or
        later, as long as the lane has one.
        """
        return search_in_groups(self.first, self.launch_ns, lane, time_ns)


def stream_queues(spans: Spans, n_lanes: int) -> StreamQueues:
    """Order the spans by lane, launch and start."""
    order = np.lexsort((spans.start_ns, spans.launch_ns, spans.lane)).astype(np.int64)
    first = np.searchsorted(spans.lane[order], np.arange(n_lanes + 1)).astype(np.int64)
    return StreamQueues(order, spans.launch_ns[order], first)


def search_in_groups(first: Ints, sorted_ns: Ints, group: NDArray[np.integer], time_ns: Ints) -> Ints:
    """Return `[M]` int64: the first place of a group at which a time is not before the one asked for.

    Args:
        first: `[G + 1]` int64: where each group begins.
        sorted_ns: `[N]` int64 ns, ascending within each group.
        group: `[M]` int: which group is searched.
        time_ns: `[M]` int64 ns: what is searched for.
    """
    place = np.empty(len(group), np.int64)
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(len(first)))
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        mine = order[bounds[number] : bounds[number + 1]]
        low, high = int(first[number]), int(first[number + 1])
        place[mine] = low + np.searchsorted(sorted_ns[low:high], time_ns[mine], side="left")
    return place


def late_spans(ground: Ground) -> Flags:
    """Return `[D]` bool: spans that start later than their launch and their stream explain."""
    return lateness(ground) > ground.settings.late_start_ns


def lateness(ground: Ground) -> Ints:
    """Return `[D]` int64 ns: how long after its launch's return and its stream's last end each span starts.

    Nodes of a captured graph other than its first have no launch of their own, and are never late.
    """
    spans, host = ground.spans, ground.timeline.host
    order = np.lexsort((spans.start_ns, spans.lane))
    free_ns = np.full(len(order), np.iinfo(np.int64).min)
    bounds = np.searchsorted(spans.lane[order], np.arange(len(ground.lanes) + 1)).tolist()
    for low, high in pairwise(bounds):
        free_ns[order[low + 1 : high]] = np.maximum.accumulate(spans.end_ns[order[low : high - 1]])
    launched_ns = spans.launch_ns.copy()
    linked = spans.launch != NONE_ID
    launched_ns[linked] = host.end_ns[spans.launch[linked]]
    return np.where(later_nodes(spans), 0, spans.start_ns - np.maximum(free_ns, launched_ns))


def later_nodes(spans: Spans) -> Flags:
    """Return `[D]` bool: nodes of captured graphs other than the first of their graph launch."""
    node = np.flatnonzero(spans.in_graph & (spans.launch != NONE_ID))
    order = node[np.lexsort((spans.start_ns[node], spans.launch[node]))]
    later = np.zeros(len(spans.launch), np.bool_)
    later[order[1:]] = spans.launch[order[1:]] == spans.launch[order[:-1]]
    return later


def last_nodes(spans: Spans) -> Ints:
    """Return `[D]` int64: for a node of a captured graph the last-ending one of its launch, for other spans themselves.

    Whatever follows a graph launch in its stream waits for all of the graph.
    """
    last = np.arange(len(spans.launch), dtype=np.int64)
    node = np.flatnonzero(spans.in_graph & (spans.launch != NONE_ID))
    order = node[np.lexsort((spans.end_ns[node], spans.launch[node]))]
    ends = np.flatnonzero(np.append(spans.launch[order[1:]] != spans.launch[order[:-1]], True)) if len(order) else order
    last[order] = np.repeat(order[ends], np.diff(ends, prepend=-1))
    return last
