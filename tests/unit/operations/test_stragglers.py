"""What straggling costs: figures computed by hand, verdicts, and laws."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.graph.operations.build import build_operation_graph
from longpole.readers.operations.check import read_operations
from longpole.records.ledger import Unknown
from longpole.report.operations import Culprit, Operations, Share
from longpole.settings import Settings
from longpole.units import NS_PER_MS
from longpole.whatif.operations import equalised_ns, measure_stragglers
from tests.operation_tables import Job, write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from longpole.graph.operations.build import OperationGraph
    from longpole.whatif.operations import Stragglers
    from tests.operation_tables import Row

    Build = Callable[[Iterable[Row]], OperationGraph]
    Report = Callable[[Iterable[Row]], Operations]

SLOW = Job(slow={(1, 0): 2.0})  # rank 1 computes twice as long: a step takes 199 ms instead of 129


def measure(graph: OperationGraph) -> Stragglers:
    return measure_stragglers(graph, Settings())


def verdict(document: Operations) -> Culprit:
    assert isinstance(document.culprit, Culprit)
    return document.culprit


def test_a_job_whose_workers_are_alike_has_no_stragglers(build: Build) -> None:
    found = measure(build(Job(steps=(1, 2)).rows()))

    assert found.slowdown == 1.0
    assert {part.slowdown for part in [*found.by_type, *found.by_stage, *found.by_dp_rank]} == {1.0}
    assert found.one_worker is None
    assert found.persistent is None


def test_the_ideal_takes_the_mean_of_computation_and_the_median_of_transfers(build: Build) -> None:
    """Three workers at 10 ms and one at 20: each pass takes 12.5 (25 backward), and a step 159 ms."""
    graph = build(SLOW.rows())
    found = measure(graph)

    assert found.replayed_ns.tolist() == [199 * NS_PER_MS]
    assert found.ideal_ns.tolist() == [159 * NS_PER_MS]
    assert found.slowdown == pytest.approx(199 / 159)
    forward = graph.table.optype == [t.name for t in graph.table.types].index("forward-compute")
    assert set(equalised_ns(graph.table, graph.work_ns)[forward].tolist()) == {12_500_000}


def test_the_slow_worker_explains_all_of_it(build: Build) -> None:
    """With rank 1 at 12.5 and 25 ms, and the others as they were, a step takes 144 ms: 55 of the 40 ms lost."""
    found = measure(build(SLOW.rows()))

    assert found.one_worker is not None
    assert found.one_worker.numbers == (1,)
    assert found.one_worker.removed == pytest.approx((199 - 144) / (199 - 159))


def test_the_part_that_is_slow_slows_the_ideal_and_the_others_do_not(build: Build) -> None:
    found = measure(build(SLOW.rows()))

    by_stage = {part.number: part.slowdown for part in found.by_stage}
    by_dp = {part.number: part.slowdown for part in found.by_dp_rank}
    by_type = {part.label: part.slowdown for part in found.by_type}

    assert by_stage[0] > 1.1
    assert by_stage[1] < 1.0  # it is faster than the mean, which the slow one raised
    assert by_dp[1] > 1.1
    assert by_dp[0] <= 1.0
    assert by_type["backward-compute"] > by_type["forward-compute"] > 1.0
    assert by_type["grads-reduce-scatter"] == by_type["forward-send/recv"] == 1.0


def test_one_slow_worker_is_named(report: Report) -> None:
    document = report(SLOW.rows())

    assert verdict(document).kind == "worker"
    assert verdict(document).ranks == [1]
    assert verdict(document).says == (
        "rank 1 (stage 0, data-parallel rank 1) holds the job up: a step takes 199.0 ms, and 159.0 ms if nobody"
        " straggled (1.25 times); 100 % of the difference goes if it alone kept pace; its backward-compute takes 2.00"
        " times as long as that of the others"
    )


def test_a_long_stage_is_named_and_no_worker(report: Report) -> None:
    document = report(Job(slow={(0, 1): 2.0, (1, 1): 2.0}).rows())

    assert verdict(document).kind == "stage"
    assert verdict(document).stage == 1
    assert verdict(document).ranks == [2, 3]
    assert "stage 1, the last one, holds the job up, on all of its 2 ranks" in verdict(document).says
    assert isinstance(document.explained_by_last_stage, Share)
    assert document.explained_by_last_stage.removed > 0.9


def test_a_rank_that_is_slow_by_turns_is_not_named(report: Report) -> None:
    """In each of four steps another worker is slow: none is persistently."""
    slow_in = {(1, 0, 0): 3.0, (2, 1, 0): 3.0, (3, 0, 1): 3.0, (4, 1, 1): 3.0}

    document = report(Job(steps=(1, 2, 3, 4), slow_in=slow_in).rows())

    assert verdict(document).kind == "moving"
    assert verdict(document).ranks == []
    assert verdict(document).says.startswith("no rank is persistently slow")
    assert [step.worst_dp_rank for step in document.steps.each] == [0, 1, 0, 1]
    assert [step.worst_rank for step in document.steps.each] == [0, 1, 2, 3]
    assert document.worst_changes == 2


def test_slowness_of_several_workers_is_theirs_together(tmp_path: Path) -> None:
    """Ranks 0 and 3 are slow, on different stages: with half of the workers counted as a few, both are named."""
    from longpole.pipeline.operations import build_operations_report

    path = write_table(tmp_path / "job.parquet", Job(slow={(0, 0): 3.0, (1, 1): 2.7}).rows())
    settings = tmp_path / "settings.toml"
    settings.write_text("[settings]\noperation_worker_share = 0.5\n", encoding="utf-8")

    few, one = build_operations_report([path], settings), build_operations_report([path])

    assert (verdict(few).kind, verdict(few).ranks) == ("workers", [0, 3])
    assert verdict(few).says.startswith("ranks 0, 3 hold the job up")
    assert verdict(one).kind == "spread"
    assert verdict(one).says.startswith("no single worker and no single stage holds the job up")


def test_a_job_in_balance_has_no_culprit(report: Report) -> None:
    assert verdict(report(Job().rows())).kind == "none"


def test_a_verdict_needs_all_ranks(report: Report) -> None:
    """Without rank 1, its peer seems to wait for nobody: figures are limited, the verdict is withdrawn."""
    document = report([row for row in SLOW.rows() if row["rank"] != 1])

    assert isinstance(document.culprit, Unknown)
    assert document.culprit.missing == ["the operations of all ranks"]
    assert document.layout.missing == ["dp 1, stage 0"]
    assert {"operation.rank_missing", "operation.unmatched", "operation.collective_incomplete"} <= {
        finding.code for finding in document.integrity
    }
    assert {"/slowdown", "/culprit"} <= {entry.at for entry in document.unknown}


def test_a_replay_that_is_off_gives_no_verdict(report: Report) -> None:
    """A gap of 50 ms before the optimizer, in which nothing was timed."""
    document = report([r | {"start_ts": r["start_ts"] + 0.05 * (r["optype"] == "optimizer")} for r in SLOW.rows()])

    assert document.steps.error == pytest.approx(199 / 249 - 1)
    assert isinstance(document.culprit, Unknown)
    assert [finding.code for finding in document.integrity] == ["operation.replay_off"]
    assert {"/slowdown", "/culprit"} <= {entry.at for entry in document.unknown}


def test_waiting_is_charged_to_the_wait_and_not_to_the_rank_that_waits(report: Report) -> None:
    document = report(SLOW.rows())
    waits = {entry.rank: entry.waiting_ns for entry in document.by_rank}

    assert document.by_rank[0].rank == 1
    assert waits[1] == min(waits.values())


@given(seed=st.integers(0, 2**32 - 1))
def test_shortening_an_operation_never_lengthens_the_replay(slow_graph: OperationGraph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shorter = slow_graph.work_ns.copy()
    rows = rng.integers(0, len(shorter), 5)
    shorter[rows] = (shorter[rows] * rng.random(5)).astype(np.int64)

    assert (slow_graph.replay_ends_ns(shorter) <= slow_graph.replay_ends_ns(slow_graph.work_ns)).all()


@given(factor=st.integers(2, 50))
def test_all_work_times_a_number_takes_that_many_times_as_long(slow_graph: OperationGraph, factor: int) -> None:
    one = slow_graph.replay_steps_ns(slow_graph.work_ns)

    assert (slow_graph.replay_steps_ns(slow_graph.work_ns * factor) == one * factor).all()


@pytest.fixture(scope="module")
def slow_graph(tmp_path_factory: pytest.TempPathFactory) -> OperationGraph:
    path = write_table(tmp_path_factory.mktemp("slow") / "job.parquet", Job(slow={(1, 0): 2.0, (0, 1): 1.3}).rows())
    return build_operation_graph(read_operations([path], ["job"], Settings()).table, Settings())


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_changes_nothing(report: Report, seed: int) -> None:
    rows = Job(slow={(1, 0): 2.0}, steps=(4, 5)).rows()
    shuffled = random.Random(seed).sample(rows, len(rows))

    one, other = report(rows), report(shuffled)
    for document in (one, other):
        document.sources = []

    assert one == other


@pytest.mark.parametrize("work", [{"forward-compute": 5.0}, {"forward-compute": 50.0, "backward-compute": 1.0}])
def test_without_differences_there_is_nothing_to_gain(build: Build, work: dict[str, float]) -> None:
    from tests.operation_tables import WORK_MS

    assert measure(build(Job(work_ms={**WORK_MS, **work}).rows())).slowdown == 1.0


def test_many_ranks_are_replayed_as_far_as_the_settings_say(tmp_path: Path) -> None:
    path = write_table(tmp_path / "job.parquet", SLOW.rows())
    settings = Settings(operation_ranks_swept=1, operation_workers_swept=2)

    graph = build_operation_graph(read_operations([path], ["job"], settings).table, settings)
    found = measure_stragglers(graph, settings)

    assert [part.number for part in found.by_dp_rank] == [1]
    assert [part.slowdown is None for part in found.workers] == [False, False, True, True]
    assert found.one_worker is not None
    assert found.one_worker.numbers == (1,)
