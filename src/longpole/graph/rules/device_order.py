"""Launches, the order of a stream, and the nodes of captured graphs (DESIGN 3.6).

host      ├ launch a ┤├ launch b ┤├─ graph launch ─┤
stream        └►├─ a ─┤──►├── b ──┤──►├ n1 ┤·├ n2 ┤        ──► stream order   · gap inside the graph, kept

A launch is *recorded* where a correlation links it, *ordered* where order alone does. Between nodes of one graph launch
there is no stream order: the exporter numbers their streams as it likes, and their gaps are part of the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.timeline.columns import NONE_ID
from longpole.timeline.groups import opens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground
    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]


def find(ground: Ground) -> Edges:
    """Return the edges of device spans that every record has."""
    first, follower = _graph_nodes(ground)
    return Edges.join(
        [
            _durations(ground),
            *_launches(ground, follower),
            *_stream_order(ground, follower),
            *_inside_graphs(ground, first),
        ]
    )


def _durations(ground: Ground) -> Edges:
    start = ground.placed().device_start
    return Edges.of(EdgeKind.DURATION, start, start + 1, ground.spans.end_ns - ground.spans.start_ns)


def _graph_nodes(ground: Ground) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the first span of each span's graph launch, -1 outside of graphs, and which spans follow in a graph."""
    spans = ground.spans
    first = np.full(len(spans.start_ns), -1, np.int64)
    nodes = np.flatnonzero(spans.in_graph)
    nodes = nodes[np.lexsort((nodes, spans.start_ns[nodes], spans.launch[nodes]))]
    if len(nodes):
        begins = opens(spans.launch[nodes])
        first[nodes] = nodes[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
    return first, (first >= 0) & (first != np.arange(len(first)))


def _launches(ground: Ground, follower: NDArray[np.bool_]) -> list[Edges]:
    spans, points = ground.spans, ground.placed()
    result = []
    for kind, by_order in ((EdgeKind.LAUNCH, False), (EdgeKind.LAUNCH_IN_ORDER, True)):
        rows = np.flatnonzero((spans.launch != NONE_ID) & (spans.by_order == by_order) & ~follower)
        early = spans.start_ns[rows] + ground.tolerance_ns < spans.launch_ns[rows]
        rows = rows[~early]
        result.append(Edges.of(kind, points.call_start[spans.launch[rows]], points.device_start[rows]))
    return result


def _stream_order(ground: Ground, follower: NDArray[np.bool_]) -> list[Edges]:
    """Join each span to the last one of its stream that had ended when it started."""
    spans, points = ground.spans, ground.placed()
    before = np.full(len(spans.start_ns), -1, np.int64)
    for lane in np.unique(spans.lane).tolist():
        rows = np.flatnonzero(spans.lane == lane)
        before[rows] = _last_ended(spans.start_ns[rows], spans.end_ns[rows], rows, ground.settings)
    some = np.flatnonzero((before >= 0) & ~follower)
    some = some[~(spans.in_graph[some] & (spans.launch[some] == spans.launch[before[some]]))]
    return [Edges.of(EdgeKind.STREAM, points.device_start[before[some]] + 1, points.device_start[some])]


def _last_ended(start_ns: Ints, end_ns: Ints, rows: NDArray[np.intp], settings: Settings) -> Ints:
    """Return, for each span of a stream, the one that ends last of those that began before and ended by its start."""
    by_end = np.lexsort((rows, start_ns, end_ns))
    place = np.searchsorted(end_ns[by_end], start_ns + settings.stream_overlap_max_ns, side="right") - 1
    found = np.full(len(rows), -1, np.int64)
    open_ = np.arange(len(rows))
    while len(open_):
        open_ = open_[place[open_] >= 0]
        other = by_end[place[open_]]
        # Short spans end within the tolerance of their own start, and so do some that begin later.
        earlier = (start_ns[other] < start_ns[open_]) | ((start_ns[other] == start_ns[open_]) & (other < open_))
        found[open_[earlier]] = rows[other[earlier]]
        open_ = open_[~earlier]
        place[open_] -= 1
    return found


def _inside_graphs(ground: Ground, first: Ints) -> list[Edges]:
    """Join the nodes of each graph launch, and what comes next on its first node's stream to its last end."""
    spans, points = ground.spans, ground.placed()
    nodes = np.flatnonzero(first >= 0)
    if len(nodes) == 0:
        return []
    inner: list[tuple[int, int, int]] = []  # source point, target point, kept ns
    ends: list[tuple[int, int]] = []
    lane_rows: dict[int, Ints] = {}
    nodes = nodes[np.argsort(first[nodes], kind="stable")]
    cuts = np.flatnonzero(np.diff(first[nodes])) + 1
    for group in np.split(nodes, cuts):
        head = int(first[group[0]])
        by_start = group[np.lexsort((group, spans.start_ns[group]))]
        by_end = group[np.lexsort((group, spans.end_ns[group]))]
        place = np.searchsorted(spans.end_ns[by_end], spans.start_ns[by_start[1:]], side="right") - 1
        for row, at in zip(by_start[1:].tolist(), place.tolist(), strict=True):
            source = int(by_end[at]) if at >= 0 else head
            if at >= 0 and source != row:
                kept_ns = int(spans.start_ns[row] - spans.end_ns[source])
                inner.append((int(points.device_start[source]) + 1, int(points.device_start[row]), kept_ns))
            else:
                kept_ns = int(spans.start_ns[row] - spans.start_ns[head])
                inner.append((int(points.device_start[head]), int(points.device_start[row]), kept_ns))
        follows = _next_on_stream(ground, lane_rows, int(spans.lane[head]), int(by_end[-1]))
        if follows >= 0 and follows not in group:
            ends.append((int(points.device_start[by_end[-1]]) + 1, int(points.device_start[follows])))
    src, dst, kept = (np.array(column, np.int64) for column in zip(*inner, strict=True)) if inner else (_NONE,) * 3
    result = [Edges.of(EdgeKind.GRAPH_NODE, src, dst, kept)]
    if ends:
        source, target = np.array(ends, np.int64).T
        result.append(Edges.of(EdgeKind.GRAPH_END, source, target))
    return result


_NONE: Final = np.empty(0, np.int64)


def _next_on_stream(ground: Ground, lane_rows: dict[int, Ints], lane: int, last: int) -> int:
    """Return the first span of a stream that starts after a span's end, -1 for none."""
    spans = ground.spans
    if lane not in lane_rows:
        rows = np.flatnonzero(spans.lane == lane)
        lane_rows[lane] = rows[np.argsort(spans.start_ns[rows], kind="stable")].astype(np.int64)
    rows = lane_rows[lane]
    place = int(np.searchsorted(spans.start_ns[rows], spans.end_ns[last], side="left"))
    return int(rows[place]) if place < len(rows) else -1
