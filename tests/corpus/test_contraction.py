"""Recorded runs of several ranks: contracted and merged they replay as their joined graphs do, and take little."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import pytest

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.replays import ground_of, replay_run
from longpole.records.ledger import Unknown
from longpole.whatif.change import parse_change
from longpole.whatif.in_parts import Source, predict_in_parts, replay_in_parts
from longpole.whatif.path_in_parts import observed_in_parts
from longpole.whatif.predict import predict
from longpole.whatif.replay import median_ns
from tests.merges import bytes_per_edge, check_run, clocks_of
from tests.parts import same_path

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.graph.run_graph import RunGraph
    from longpole.pipeline.replays import RunReplay

SETS: Final = (
    "pytorch-torchrec/resnet18",
    "pytorch-torchrec/sst_long_a2a_optimizer_2",
    "pytorch-torchrec/sst_long_a2a_optimizer_qcomm_trace",
    "pytorch-torchrec/sst_sleep_pl_dense_after_backward_2",
    "own-torch-cpu/kineto/collectives_3rank",
    "own-torch-cpu/kineto/ddp2_balanced",
    "own-torch-cpu/kineto/ddp2_fsdp",
    "own-torch-cpu/kineto/ddp2_slow_rank",
    "own-torch-cpu/kineto/ddp2_sweep",
    "own-torch-2.13-cpu-gloo/ddp_cpu_4ranks",
    "facebookresearch-param/dlrm_kineto_8ranks",
    "facebookresearch-HolisticTraceAnalysis/trace_diff/control",
    "facebookresearch-HolisticTraceAnalysis/trace_diff/test",
)
LARGE: Final = (*SETS[-3:], "pytorch-torchrec/sst_long_a2a_optimizer_2")
NAMES: Final = [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in SETS]
CASES: Final = ("B013", "B069", "B070", "B073", "B074", "B078")
EDGE_MAX_BYTES: Final = 64
EDGES_PER_INSTANCE_MAX: Final = 7


@functools.cache
def _run(path: Path) -> RunReplay:
    return replay_run([str(path)], ReportOptions(use_cache=False, processes=1))


def _graph(path: Path) -> RunGraph:
    graph = _run(path).graph
    assert not isinstance(graph, Unknown), graph
    return graph


@pytest.mark.parametrize("name", NAMES)
def test_recordings_replay_the_same_contracted_and_merged(corpus: Path, name: str) -> None:
    for contracted in check_run(_graph(corpus / name)):
        assert bytes_per_edge(contracted) <= EDGE_MAX_BYTES
        assert len(contracted.src) <= EDGES_PER_INSTANCE_MAX * len(contracted.entry)


@pytest.mark.parametrize("name", CASES)
def test_cases_replay_the_same_contracted_and_merged(cases: Path, name: str) -> None:
    for contracted in check_run(_graph(cases / name / "input")):
        assert bytes_per_edge(contracted) <= EDGE_MAX_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_recordings_have_the_same_path_and_predictions_rank_by_rank(corpus: Path, name: str) -> None:
    run = _run(corpus / name)
    if isinstance(run.replayed, Unknown):
        pytest.skip(run.replayed.unknown)
    assert not isinstance(run.graph, Unknown)
    ground = ground_of(run.run, run.across, run.graph, run.replayed, run.settings)
    graphs = {graph.rank: graph for graph in run.graph.ranks}
    clocks, meeting = clocks_of(run.graph), run.graph.meeting
    source = Source(tuple(graphs), graphs.__getitem__, clocks, meeting, ground.instances, ground.cost, run.settings)
    recorded = replay_in_parts(source)
    steady = run.replayed.window.names

    same_path(observed_in_parts(source, recorded, steady, 2), run.replayed.observed, run.graph)
    for text in ("--set collective=0.5x", "--remove input", "--issue-early collective"):
        change = parse_change(text)
        found = predict_in_parts(source, recorded, [change])
        whole = predict(ground, [change])
        assert found.rows == whole.rows
        assert median_ns(found.finished.periods_ns(steady)[1]) == whole.predicted_ns
