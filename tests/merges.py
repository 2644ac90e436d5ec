"""Hold the merged contractions of a run to the sweep over its joined graph."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.contract import Contracted, contract
from longpole.graph.merge import finish, members_of, merge, of
from longpole.graph.sweep import sweep

if TYPE_CHECKING:
    from longpole.graph.run_graph import RunGraph


def clocks_of(graph: RunGraph) -> dict[int, tuple[int, float, int]]:
    """Return the clocks that a run was joined with; they have no drift."""
    moved = [graph.time_ns[int(low)] - rank.time_ns[0] for low, rank in zip(graph.base, graph.ranks, strict=False)]
    return {rank.rank: (int(ns), 0.0, 0) for rank, ns in zip(graph.ranks, moved, strict=True)}


def check_run(graph: RunGraph) -> list[Contracted]:
    """Compare all times that both know; return the contracted ranks."""
    members = members_of(graph.meeting)
    clocks = clocks_of(graph)
    contracted = [contract(rank) for rank in graph.ranks]
    merged = reduce(merge, [of(c, clocks[c.rank], members.met(c.rank, len(c.entry))) for c in reversed(contracted)])
    time_ns = sweep(graph.n_points, graph.edges.src, graph.edges.dst, graph.edges.length_ns, graph.floor_ns)
    lows = graph.base[:-1].tolist()
    for wide in (True, False):
        run = finish(merged, members, wide=wide)
        assert run.units == graph.units
        assert run.completion_ns.tolist() == time_ns[graph.completion].tolist()
        assert run.recorded_ns.tolist() == graph.time_ns[graph.completion].tolist()
        for points, found in (("entry", run.entry_ns), ("exit", run.exit_ns)):
            at = [time_ns[getattr(rank, points) + low] for rank, low in zip(graph.ranks, lows, strict=True)]
            assert found.tolist() == np.concatenate(at).tolist()
    return contracted


def bytes_per_edge(contracted: Contracted) -> float:
    """Return how much memory all columns take, divided by the number of edges."""
    columns = [getattr(contracted, name) for name in contracted.__slots__]
    held = sum(column.nbytes for column in columns if isinstance(column, np.ndarray))
    return held / max(len(contracted.src), 1)
