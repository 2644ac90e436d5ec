"""Build, join, replay and change the graphs of generated ranks in this process, and print what each part took as JSON.

    python -m benchmarks.scale.spans --device-spans 250000 --ranks 8

Traces are generated once into `.data/scale-…`, one rank at a time is read, digested, and left on disk as its graph;
then the graphs are joined and replayed. Reading and the digest's own figures are timed apart from the graph.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

import longpole.graph.build as build_module
import longpole.graph.ground as ground_module
from longpole.digest.across import bring_together
from longpole.digest.digest import Selection, digest_with_graph
from longpole.digest.steady import find_steady
from longpole.digest.transfer_costs import transfer_costs
from longpole.graph.contract import contract
from longpole.graph.store import write_graph
from longpole.graph.sweep import sweep
from longpole.pipeline.discover import find_traces
from longpole.pipeline.replays import join_run
from longpole.pipeline.work import WorkContext, read_timelines
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from longpole.vocabulary.matcher import Vocabulary
from longpole.whatif.change import parse_change
from longpole.whatif.predict import Ground, predict
from longpole.whatif.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.digest.rank_digest import RankDigest
    from longpole.graph.run_graph import RunGraph

SCALE = Path(__file__).resolve().parent
GENERATOR = SCALE.parent / "generate_trace.py"
DATA = SCALE.parent / ".data"
SPAN_SHARE = 0.08  # of generated rows
CHANGE = "--set collective=0.5x"


class Clock:
    """Adds up seconds of CPU by name: this process has one thread, so on a quiet machine they are wall time."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.spent_s: dict[str, float] = {}

    @contextmanager
    def over(self, name: str) -> Iterator[None]:
        """Time what is done inside."""
        began = time.process_time()
        yield
        self.spent_s[name] = self.spent_s.get(name, 0.0) + time.process_time() - began

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that is timed."""

        def timed(*args: object) -> object:
            with self.over(name):
                return function(*args)

        return timed


def generated(device_spans: int, ranks: int) -> list[Path]:
    """Return traces with about so many device spans each; they are made once."""
    folder = DATA / f"scale-{ranks}x{device_spans}"
    if not folder.is_dir():
        part = folder.with_name(folder.name + ".part")
        part.mkdir(parents=True, exist_ok=True)
        out = part if ranks > 1 else part / "rank0.json"
        events = str(round(device_spans / SPAN_SHARE))
        command = [sys.executable, str(GENERATOR), "--events", events, "--ranks", str(ranks), "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        part.rename(folder)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def measure(device_spans: int, ranks: int) -> dict[str, Any]:
    """Measure; return figures."""
    settings, clock = Settings(), Clock()
    build_module.build_graph = clock.around("build_s", build_module.build_graph)
    ground_module.lay_ground = clock.around("lay_ground_s", ground_module.lay_ground)
    with tempfile.TemporaryDirectory(prefix="longpole-") as name:
        folder = Path(name)
        digests, edges = digest_all(generated(device_spans, ranks), folder, settings, clock)
        with clock.over("across_s"):
            across = bring_together(digests, settings)
            steady = find_steady(digests, settings, across.clocks if across is not None else None)
        with clock.over("join_s"):
            run = join_run(digests, steady, across, folder)
    if isinstance(run, Unknown):
        sys.exit(run.unknown)
    with clock.over("replay_and_path_s"):
        replayed = replay(run, list(steady.periods), settings)
    if isinstance(replayed, Unknown):
        sys.exit(replayed.unknown)
    with clock.over("sweep_s"):
        sweep(run.n_points, run.edges.src, run.edges.dst, run.edges.length_ns, run.floor_ns)
    instances = dict(across.instances) if across is not None else {d.rank: d.instances for d in digests}
    cost = transfer_costs(across, {d.rank: d.rows[0].device_name for d in digests}, settings)
    with clock.over("what_if_s"):
        predicted = predict(Ground(run, replayed, instances, cost, settings), [parse_change(CHANGE)])
    error = replayed.judgement.error_of_median
    figures = {
        "replay_error": round(error, 4) if isinstance(error, float) else error.unknown,
        "predicted_ns": predicted.predicted_ns,
        "contracted_edges_per_instance": round(float(np.mean(edges)), 2),
    }
    return {"ranks": ranks} | summary(run, clock.spent_s) | figures


def digest_all(
    paths: list[Path], folder: Path, settings: Settings, clock: Clock
) -> tuple[list[RankDigest], list[float]]:
    """Digest rank after rank, leaving their graphs in a folder; return digests and contracted edges per instance."""
    vocabulary, context = Vocabulary.load(), WorkContext(None, settings, None, None, None)
    digests, edges = [], []
    for file in find_traces([str(path) for path in paths], settings):
        with clock.over("read_s"):
            (timeline,) = read_timelines(file, context)
        with clock.over("digest_and_graph_s"):
            measured, graph = digest_with_graph(timeline, vocabulary, settings, Selection())
        with clock.over("store_s"):
            write_graph(folder / f"{measured.rank}.graph", graph)
        with clock.over("contract_s"):
            contracted = contract(graph)
        digests.append(msgspec.structs.replace(measured, graph=f"{measured.rank}.graph"))
        edges.append(len(contracted.src) / max(len(contracted.entry), 1))
    return digests, edges


def summary(run: RunGraph, spent_s: dict[str, float]) -> dict[str, Any]:
    """Return the figures that have a goal, then what they are made of."""
    spans = sum(len(rank.spans.point) for rank in run.ranks)
    parts = ("build_s", "lay_ground_s", "store_s", "across_s", "join_s", "replay_and_path_s")
    return {
        "device_spans": spans,
        "points": run.n_points,
        "edges": len(run.edges),
        "build_s_per_100k_spans": round((spent_s["build_s"] + spent_s["lay_ground_s"]) / spans * 1e5, 2),
        "sweep_us_per_point": round(spent_s["sweep_s"] / run.n_points * 1e6, 3),
        "graph_path_replay_s": round(sum(spent_s[part] for part in parts), 1),
        "what_if_s": round(spent_s["what_if_s"], 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "load": round(os.getloadavg()[0], 1),
        "seconds": {part: round(seconds, 2) for part, seconds in spent_s.items()},
    }


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device-spans", type=int, default=250_000, help="of each rank, about")
    parser.add_argument("--ranks", type=int, default=8)
    given = parser.parse_args()
    print(json.dumps(measure(given.device_spans, given.ranks)))


if __name__ == "__main__":
    main()
