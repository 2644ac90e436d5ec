"""Three production jobs with known causes, and the answers of the study that published them (ByteDance, Apache-2.0).

Its own simulator keeps a step's gaps out as ours does: measured over replayed 1.0067 (AR), 1.0192 (ST), 1.0051 (SE).
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from longpole.graph.operations.build import build_operation_graph
from longpole.pipeline.operations import build_operations_report, whatif_operations
from longpole.readers.operations.check import read_operations
from longpole.report.operations import Culprit, Operations, Share
from longpole.settings import Settings
from longpole.units import NS_PER_MS, NS_PER_S
from longpole.whatif.operation_changes import parse_operation_change
from longpole.whatif.operations import equalised_ns

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Report = Callable[[str], Operations]

FOLDER = "ByteDance-Seed-StragglerAnalysis"


@cache
def _report(path: Path) -> Operations:
    return build_operations_report([path])


@pytest.fixture
def folder(corpus: Path) -> Path:
    if not (corpus / FOLDER).is_dir():
        pytest.skip(f"needs {FOLDER} in the corpus")
    return corpus / FOLDER


@pytest.fixture
def report(folder: Path) -> Report:
    return lambda job: _report(folder / f"trace-{job}.parquet")


@pytest.fixture
def answers(folder: Path) -> Callable[[str], dict[str, Any]]:
    """A job's expected answers, from three files; SE's are not published with the data."""

    def read(job: str) -> dict[str, Any]:
        files = [folder / f"{name}-{job}.json" for name in ("result", "mw", "ms")]
        result, by_worker, by_stage = (json.loads(file.read_text(encoding="utf-8")) for file in files)
        return {**result, "by_worker": by_worker["Mw"], "by_last_stage": by_stage["Ms"]}

    return read


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "published_s", "operations"), [("AR", 46.649, 117_216), ("ST", 2.2144, 6_784), ("SE", 9.1130, 107_328)]
)
def test_the_unchanged_replay_is_within_two_percent(
    report: Report, job: str, published_s: float, operations: int
) -> None:
    document = report(job)
    steps = document.steps

    assert document.layout.operations == operations
    assert document.integrity == []
    assert steps.measured_ns / NS_PER_S == pytest.approx(published_s, rel=1e-4)
    assert abs(steps.error) < 0.02
    assert abs(steps.error_largest) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("job", ["AR", "ST"])
def test_every_step_is_replayed_as_the_study_replays_it(
    report: Report, answers: Callable[[str], dict[str, Any]], job: str
) -> None:
    expected = answers(job)

    for step in report(job).steps.each:
        assert step.measured_ns / NS_PER_S == pytest.approx(expected["step_t_base"][str(step.step)], rel=1e-5)
        assert step.replayed_ns / NS_PER_S == pytest.approx(expected["step_t_nodelay"][str(step.step)], rel=0.01)
        assert step.slowdown == pytest.approx(expected["blocking_step_slowdown"][str(step.step)], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("job", "slowdown"), [("AR", 1.973), ("ST", 1.179), ("SE", 1.537)])
def test_the_slowdown_is_the_published_one(report: Report, job: str, slowdown: float) -> None:
    assert report(job).slowdown == pytest.approx(slowdown, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["AR", "ST"])
def test_types_stages_and_ranks_slow_the_ideal_as_published(
    report: Report, answers: Callable[[str], dict[str, Any]], job: str
) -> None:
    document, expected = report(job), answers(job)
    by_type = {name: value for name, value in expected["blocking_decompose_by_optype"].items() if "pp-comm" not in name}
    found = {entry.name: entry.slowdown for entry in document.by_optype}

    assert {name: found[name] for name in by_type} == pytest.approx(by_type, rel=0.005)
    by_stage = {int(name): value for name, value in expected["blocking_decompose_by_stage"].items()}
    assert {entry.stage: entry.slowdown for entry in document.by_stage} == pytest.approx(by_stage, rel=0.005)
    by_dp = {int(name): value for name, value in expected["blocking_decompose_by_dp_rank"].items()}
    assert {entry.dp_rank: entry.slowdown for entry in document.by_dp_rank} == pytest.approx(by_dp, rel=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["AR", "ST"])
def test_workers_and_the_last_stage_explain_as_much_as_published(
    report: Report, answers: Callable[[str], dict[str, Any]], job: str
) -> None:
    document, expected = report(job), answers(job)

    assert isinstance(document.explained_by_workers, Share)
    assert isinstance(document.explained_by_last_stage, Share)
    assert document.explained_by_workers.removed == pytest.approx(expected["by_worker"], abs=0.01)
    assert document.explained_by_last_stage.removed == pytest.approx(expected["by_last_stage"], abs=0.01)


def test_the_ideal_timeline_is_the_published_one(folder: Path) -> None:
    """Every pass of ST's first step ends within 4 ms of a step of 1,843: a send that is waited for takes 0.6 ms."""
    events = json.loads(gzip.decompress((folder / "ideal-timeline-ST.json.gz").read_bytes()))
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    published = {
        (event["pid"], int(threads[event["tid"]].split()[2].rstrip(",")), event["name"], event["args"]["seq_id"]): (
            event["ts"] + event["dur"]
        )
        / 1000
        for event in events
        if event["name"].endswith("-compute") and event["args"]["step"] == 23
    }
    graph = build_operation_graph(read_operations([folder / "trace-ST.parquet"], ["ST"], Settings()).table, Settings())
    table, ends_ns = graph.table, graph.replay_ends_ns(equalised_ns(graph.table, graph.work_ns))
    ours = {
        (worker.dp_rank, worker.stage, name, int(table.sequence[row])): ends_ns[row] / NS_PER_MS
        for row in np.flatnonzero(table.step == 23)
        if (name := table.types[table.optype[row]].name).endswith("-compute")
        and (worker := table.workers[table.worker[row]])
    }

    assert len(published) == 2 * 4 * 4 * 2
    assert ours == pytest.approx(published, abs=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "kind", "ranks", "stage"),
    [("AR", "worker", [0], None), ("ST", "stage", [6, 7], 3), ("SE", "moving", [], None)],
)
def test_the_known_cause_is_named(report: Report, job: str, kind: str, ranks: list[int], stage: int | None) -> None:
    culprit = report(job).culprit

    assert isinstance(culprit, Culprit)
    assert (culprit.kind, culprit.ranks, culprit.stage) == (kind, ranks, stage)


@pytest.mark.slow
def test_the_worst_rank_of_the_job_with_uneven_sequences_changes(report: Report) -> None:
    document = report("SE")

    assert document.worst_changes > 20
    assert max(entry.steps_worst for entry in document.by_dp_rank) <= 5


@pytest.mark.slow
def test_the_slow_worker_never_waits_and_all_others_do(report: Report) -> None:
    waits = {entry.rank: entry.waiting_ns for entry in report("AR").by_rank}

    assert waits.pop(0) < NS_PER_S
    assert min(waits.values()) > NS_PER_S


@pytest.mark.slow
def test_without_the_slow_worker_a_step_takes_a_little_less_than_the_ideal(report: Report, folder: Path) -> None:
    """The ideal's means hold the slow worker's computation too: a sixteenth of it all, at twice the time and more."""
    change = parse_operation_change("--equalise", "speed")

    document = whatif_operations([str(folder / "trace-AR.parquet")], [change])

    assert document.refused == ""
    assert isinstance(document.predicted_period_ns, int)
    assert 0.95 < document.predicted_period_ns / report("AR").steps.ideal_ns < 1.0
