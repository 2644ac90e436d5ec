"""Runs that are replayed rank by rank."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.whatif.in_parts import Source
from tests.build import LOADER, Script
from tests.merges import clocks_of

if TYPE_CHECKING:
    from longpole.graph.path import Pieces
    from longpole.graph.rank_graph import RankGraph
    from longpole.graph.run_graph import RunGraph
    from tests.run_graphs import Run

# One of each kind that may be answered rank by rank.
CHANGES: Final = (
    "--set collective=0.5x",
    "--set collective=+2ms",
    "--set name:kernel_7=0",
    "--set compute=0.5x",
    "--set rank:1=0.25x",
    "--remove input",
    "--prefetch input",
    "--async-copy",
    "--issue-early collective",
    "--graph-launches",
    "--off-path output",
)


def source_of(run: Run, loaded: list[int] | None = None) -> Source:
    """Return the parts of a run; `loaded` hears which rank is loaded."""
    graphs = {graph.rank: graph for graph in run.graph.ranks}

    def load(rank: int) -> RankGraph:
        if loaded is not None:
            loaded.append(rank)
        return graphs[rank]

    draft = run.draft()
    clocks = clocks_of(run.graph)
    return Source(tuple(graphs), load, clocks, run.graph.meeting, draft.instances, draft.cost, run.settings)


def same_path(found: Pieces, whole: Pieces, graph: RunGraph) -> None:
    """Compare all columns of all pieces with the joined graph's."""
    by = np.lexsort((whole.start_ns, whole.unit))
    ranks = np.array([rank.rank for rank in graph.ranks] + [-1])
    for column in fields(whole):
        expected = getattr(whole, column.name)[by]
        if column.name == "rank":
            expected = ranks[expected]
        assert getattr(found, column.name).tolist() == expected.tolist(), column.name


def team(ranks: int = 2) -> list[Script]:
    """Return ranks of three steps: loader, kernels, an all-reduce that the last rank is late for."""
    scripts = []
    for rank in range(ranks):
        script = Script(rank=rank, base_ns=0, world_size=ranks, path=f"rank{rank}.json")
        for step in range(3):
            at = 10_000.0 * step
            late = 1500 * rank // (ranks - 1)
            work = 800 + late
            script.span(LOADER, at + 10, at + 600 + 300 * rank)
            first = script.launch(at + 1000, at + 1004)
            script.kernel(at + 1010, at + 1010 + work, first, name="kernel_7")
            call = script.launch(at + 1010 + late, at + 1014 + late)
            script.collective(at + 1020 + late, at + 5000, call)
            last = script.launch(at + 1020 + late, at + 1024 + late)
            script.kernel(at + 1030 + work, at + 1200 + work, last, name="kernel_7")
            script.sync(at + 1100 + late, at + 5008, name="cudaDeviceSynchronize")
            script.step(step, at, at + 9_990)
        scripts.append(script)
    return scripts
