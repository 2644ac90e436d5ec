"""Merge and finish the contracted graphs of many synthetic ranks in this process, and print what it took as JSON.

    python -m benchmarks.scale.ranks --ranks 1024 --steps 20 --collectives 500

Ranks are made from a few different graphs, each contracted once; every rank then gets lengths of its own. So the
contraction's time is that of one rank, which is what it costs where each rank's worker does it.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.scale.synthetic import meeting_of_all, rank_graph
from longpole.graph.contract import contract
from longpole.graph.merge import Merged, finish, members_of, merge, of

TEMPLATES = 8
SPREAD = 0.05  # how far lengths of one rank differ from those of the graph it was made from


def tree_merge(merges: list[Merged]) -> Merged:
    """Merge in pairs, as workers would."""
    while len(merges) > 1:
        pairs = [merge(a, b) for a, b in zip(merges[::2], merges[1::2], strict=False)]
        merges = pairs + merges[2 * len(pairs) :]
    return merges[0]


def measure(ranks: int, steps: int, collectives: int, *, wide: bool | None = None) -> dict[str, Any]:
    """Merge and finish; return figures.

    Args:
        ranks: How many.
        steps: Units of work.
        collectives: In each of them.
        wide: Passed on to `finish`.
    """
    started = time.perf_counter()
    graphs = [rank_graph(0, steps, collectives, seed) for seed in range(min(TEMPLATES, ranks))]
    made = time.perf_counter()
    templates = [contract(graph) for graph in graphs]
    contracted = time.perf_counter()
    points, full_edges = len(graphs[0].time_ns), len(graphs[0].edges)
    del graphs
    meeting = meeting_of_all(ranks, steps * collectives)
    members = members_of(meeting)
    del meeting
    prepared = time.perf_counter()
    parts = []
    for rank in range(ranks):
        template = templates[rank % len(templates)]
        random = np.random.default_rng(rank)
        scale = 1 + SPREAD * (2 * random.random(len(template.src)) - 1)
        own = replace(template, rank=rank, length_ns=np.rint(template.length_ns * scale).astype(np.int64))
        parts.append(of(own, (17 * rank, 0.0, 0), members.met(rank, len(own.entry))))
    began = time.perf_counter()
    merged = tree_merge(parts)
    del parts
    merged_at = time.perf_counter()
    run = finish(merged, members, wide=wide)
    finished = time.perf_counter()
    held = sum(part.n_bytes for part in merged.parts)
    edges = sum(len(part.src) for part in merged.parts)
    instances = ranks * steps * collectives
    columns = sum(
        getattr(templates[0], name).nbytes for name in templates[0].__slots__ if _is_column(templates[0], name)
    )
    return {
        "ranks": ranks,
        "instances_per_rank": steps * collectives,
        "points_per_rank_full": points,
        "edges_per_rank_full": full_edges,
        "edges_per_instance": round(edges / instances, 3),
        "contract_s_per_rank": round((contracted - made) / len(templates), 3),
        "build_synthetic_s": round(made - started, 1),
        "order_meeting_s": round(prepared - contracted, 2),
        "of_s": round(began - prepared, 2),
        "merge_s": round(merged_at - began, 4),
        "finish_s": round(finished - merged_at, 2),
        "merged_bytes_per_rank_and_instance": round(held / instances, 1),
        "contracted_bytes_per_edge": round(columns / len(templates[0].src), 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "last_completion_ns": int(run.completion_ns[-1]),
    }


def _is_column(value: object, name: str) -> bool:
    return isinstance(getattr(value, name), np.ndarray)


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--collectives", type=int, default=500)
    parser.add_argument("--sweep", choices=("waves", "points"), help="instead of what the number of ranks decides")
    given = parser.parse_args()
    wide = None if given.sweep is None else given.sweep == "waves"
    print(json.dumps(measure(given.ranks, given.steps, given.collectives, wide=wide)))


if __name__ == "__main__":
    main()
