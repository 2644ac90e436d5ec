"""Graphs of one rank that hold nothing but points, edges, collectives and completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.graph.rank_graph import Cover, DeviceSpans, HostSpans, RankGraph
from longpole.graph.sweep import NEVER_NS, sort_edges, sweep, topological_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

Arrow = tuple[int, int, int] | tuple[int, int, int, EdgeKind]


def arrows(*rows: Arrow) -> Edges:
    """Return edges written as (source, target, length ns) or (source, target, length ns, kind)."""
    kinds = [row[3] if len(row) == 4 else EdgeKind.LAUNCH for row in rows]
    return Edges(
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.int32),
        np.array(kinds, np.uint8),
        np.array([row[2] for row in rows], np.int64),
    )


def bare_graph(
    time_ns: Sequence[int],
    edges: Edges,
    completion: Sequence[int],
    meets: Sequence[tuple[int, int]] = (),
    *,
    rank: int = 0,
) -> RankGraph:
    """Return a graph.

    Args:
        time_ns: Recorded times of the points.
        edges: In any order.
        completion: Completion points of the units, which are called "0", "1" and so on.
        meets: Entry and exit of each collective.
        rank: The rank.
    """
    times = np.array(time_ns, np.int64)
    order = topological_order(times, edges.src, edges.dst)
    none, places = np.empty(0, np.int64), np.empty(0, np.int32)
    codes, flags = np.empty(0, np.int8), np.empty(0, np.bool_)
    return RankGraph(
        rank=rank,
        time_ns=times,
        point_kind=np.zeros(len(times), np.uint8),
        lane=np.zeros(len(times), np.int32),
        row=np.full(len(times), -1, np.int64),
        edges=edges.take(sort_edges(order, edges.src)),
        constants={},
        completion=np.array(completion, np.int32),
        units=tuple(str(number) for number in range(len(completion))),
        unit_start_ns=np.full(len(completion), times.min(), np.int64),
        names=(),
        lane_names=("main",),
        streams=(),
        n_tracks=1,
        main_track=0,
        spans=DeviceSpans(places, none, places, places, places, codes, codes, flags, flags, flags, flags),
        cover=Cover(np.zeros(2, np.int64), none, codes, codes, places, flags),
        host=HostSpans(none, none, places, places, np.zeros(2, np.int64)),
        entry=np.array([entry for entry, _ in meets], np.int32),
        exit=np.array([left for _, left in meets], np.int32),
        call_start=places,
        call_end=places,
        blocked=none,
        orphans=0,
        late_spans=0,
        shift_ns={},
        conflict_ns={},
    )


def swept(time_ns: Ints, edges: Edges, floor_ns: Ints) -> Ints:
    """Return when every point happens, by the plain sweep."""
    order = topological_order(time_ns, edges.src, edges.dst)
    return sweep(len(time_ns), edges.src, edges.dst, edges.length_ns, floor_ns, order)


def give_way(graph: RankGraph, edges: Edges, met: Flags) -> Edges:
    """Return the edges that are left once collectives are split, edge by edge."""
    spans = list(zip(graph.entry[met].tolist(), graph.exit[met].tolist(), strict=True))
    rows = []
    for src, dst, kind, length in zip(
        edges.src.tolist(), edges.dst.tolist(), edges.kind.tolist(), edges.length_ns.tolist(), strict=True
    ):
        depth = sum(entry <= src for entry, _ in spans) - sum(left <= src for _, left in spans)
        if depth > 0 and kind == EdgeKind.DURATION:
            continue
        rows.append((src, dst, 0 if depth > 0 and kind == EdgeKind.MEMBER else length, EdgeKind(kind)))
    return arrows(*rows)


def with_exits(floor_ns: Ints, exits: Sequence[int], at_ns: Sequence[int]) -> Ints:
    """Return floors that hold exits of collectives down, as the other ranks would."""
    out = floor_ns.copy()
    for point, ns in zip(exits, at_ns, strict=True):
        out[point] = max(int(out[point]), ns)
    return out


def floors(n: int, source: NDArray[np.int32], floor_ns: Ints) -> Ints:
    """Return the floors of all points."""
    out = np.full(n, NEVER_NS, np.int64)
    out[source] = floor_ns
    return out
