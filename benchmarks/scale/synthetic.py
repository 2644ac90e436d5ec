"""Graphs of ranks of a sharded training job, made without a trace: only what a contraction looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.graph.rank_graph import Cover, DeviceSpans, HostSpans, RankGraph
from longpole.graph.run_graph import Meeting
from longpole.graph.sweep import NEVER_NS, sort_edges, sweep, topological_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

KERNELS = 4  # between two collectives
LAUNCH_NS, STREAM_NS, EVENT_NS, RETURN_NS = 6_000, 1_000, 3_000, 8_000
STEP_HOST_NS = 2_000_000  # what the host does between two steps


def rank_graph(rank: int, steps: int, collectives: int, seed: int) -> RankGraph:
    """Return a rank whose collectives run beside its compute.

    Before each collective, KERNELS kernels run on the compute stream; it waits for the last of them, and for the
    collective before it. Every other one (a gathered weight) is waited for by the kernels after the next ones. The
    host launches everything ahead, then waits for the step's end.

    Args:
        rank: The rank.
        steps: Units of work.
        collectives: In each of them.
        seed: Of the lengths; ranks of one seed are alike.
    """
    random = np.random.default_rng(seed)
    n = steps * collectives
    calls = KERNELS + 1  # launches per collective
    in_step = np.arange(n) % collectives
    host = np.arange(n * calls + 2 * steps).reshape(steps, collectives * calls + 2)
    launch = host[:, 1:-1].reshape(n, calls)  # of each step the first host point is its start, the last its end
    at = host.size
    start = at + 2 * np.arange(n * calls).reshape(n, calls)  # the last one of each row is the collective
    done = at + 2 * n * calls + np.arange(steps)
    kernel, entry = start[:, :-1], start[:, -1]
    flat = kernel.ravel()
    sync = host[:, -1]
    awaited = np.flatnonzero((in_step % 2 == 0) & (in_step + 2 < collectives))
    host_ns = random.integers(4_000, 9_000, host.size - 1)
    host_ns[(host[1:, 0] - 1)] = STEP_HOST_NS
    duration_ns = random.integers(20_000, 90_000, start.size)
    duration_ns[calls - 1 :: calls] = random.integers(60_000, 200_000, n)
    last = entry.reshape(steps, collectives)[:, -1] + 1
    parts: list[tuple[EdgeKind, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | int]] = [
        (EdgeKind.SECTION, host.ravel()[:-1], host.ravel()[1:], host_ns),
        (EdgeKind.LAUNCH, launch.ravel(), start.ravel(), LAUNCH_NS),
        (EdgeKind.DURATION, start.ravel(), start.ravel() + 1, duration_ns),
        (EdgeKind.STREAM, flat[:-1] + 1, flat[1:], STREAM_NS),
        (EdgeKind.STREAM, entry[:-1] + 1, entry[1:], STREAM_NS),
        (EdgeKind.EVENT_RECORDED, kernel[:, -1] + 1, entry, EVENT_NS),
        (EdgeKind.EVENT_RECORDED, entry[awaited] + 1, kernel[awaited + 2, 0], EVENT_NS),
        (EdgeKind.RETURN, last, sync, RETURN_NS),
        (EdgeKind.COMPLETION, sync, done, 0),
        (EdgeKind.COMPLETION, done[:-1], done[1:], 0),
    ]
    edges = Edges.join([_edges(kind, src, dst, length_ns) for kind, src, dst, length_ns in parts])
    # In the order of when things are launched every edge points forward.
    when = np.concatenate([host.ravel() * 4, np.repeat(launch.ravel() * 4 + 1, 2), sync * 4 + 2]).astype(np.int64)
    when[start.ravel() + 1] += 1
    order = topological_order(when, edges.src, edges.dst)
    edges = edges.take(sort_edges(order, edges.src))
    floor_ns = np.full(len(when), NEVER_NS, np.int64)
    floor_ns[0] = 0
    time_ns = sweep(len(when), edges.src, edges.dst, edges.length_ns, floor_ns)
    return _bare(rank, time_ns, edges, done, time_ns[host[:, 0]], entry)


def _edges(kind: EdgeKind, src: NDArray[np.int64], dst: NDArray[np.int64], length_ns: NDArray[np.int64] | int) -> Edges:
    return Edges.of(kind, src, dst, np.broadcast_to(np.asarray(length_ns, np.int64), src.shape))


def _bare(
    rank: int,
    time_ns: NDArray[np.int64],
    edges: Edges,
    done: NDArray[np.int64],
    begin_ns: NDArray[np.int64],
    entry: NDArray[np.int64],
) -> RankGraph:
    """Return a graph without anything that only changes and pictures need."""
    none, places = np.empty(0, np.int64), np.empty(0, np.int32)
    codes, flags = np.empty(0, np.int8), np.empty(0, np.bool_)
    return RankGraph(
        rank=rank,
        time_ns=time_ns,
        point_kind=np.zeros(len(time_ns), np.uint8),
        lane=np.zeros(len(time_ns), np.int32),
        row=np.full(len(time_ns), -1, np.int64),
        edges=edges,
        constants={},
        completion=done.astype(np.int32),
        units=tuple(str(step) for step in range(len(done))),
        unit_start_ns=begin_ns,
        names=(),
        lane_names=("main",),
        streams=(),
        n_tracks=1,
        main_track=0,
        spans=DeviceSpans(places, none, places, places, places, codes, codes, flags, flags, flags, flags),
        cover=Cover(np.zeros(2, np.int64), none, codes, codes, places, flags),
        host=HostSpans(none, none, places, places, np.zeros(2, np.int64)),
        entry=entry.astype(np.int32),
        exit=(entry + 1).astype(np.int32),
        call_start=places,
        call_end=places,
        blocked=none,
        orphans=0,
        late_spans=0,
        shift_ns={},
        conflict_ns={},
    )


def meeting_of_all(ranks: int, operations: int) -> Meeting:
    """Return operations that all ranks take part in, one after the other."""
    first = np.arange(operations + 1, dtype=np.int64) * ranks
    return Meeting(
        first,
        np.tile(np.arange(ranks, dtype=np.int32), operations),
        np.repeat(np.arange(operations, dtype=np.int32), ranks),
        np.full(operations, 1, np.uint8),
    )
