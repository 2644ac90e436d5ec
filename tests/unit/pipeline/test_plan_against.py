"""A plan beside a run: both sides of the table add up, and what makes them two different jobs is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from longpole.errors import InputError
from longpole.pipeline.plan_against import PlannedStep, compare, put_beside
from longpole.records.ledger import Unknown
from tests.plans import PLAN, plan_of, planned
from tests.report_builder import make_ledger, make_report, make_row, ms, typical

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report
    from longpole.report.plan_asked import PlanAgainst

DEVICE = "NVIDIA H100 80GB HBM3"


@pytest.fixture
def ours(tmp_path: Path) -> PlannedStep:
    plan = plan_of(tmp_path)
    assert plan.step is not None
    assert plan.memory is not None
    return PlannedStep(step=plan.step, memory=plan.memory, messages=plan.messages)


def run(compute_ms: float, collective_ms: float, host_ms: float = 0, **options: Any) -> Report:
    ledger = make_ledger({"compute": ms(compute_ms), "collective": ms(collective_ms)}, {"host.python": ms(host_ms)})
    rows = [make_row(rank, [ledger] * 4, device_name=options.get("device_name", DEVICE)) for rank in range(2)]
    return make_report(rows, world_size=options.get("world_size", 16))


def beside(ours: PlannedStep, report: Report) -> PlanAgainst:
    return compare(planned(), ours, report, ["traces/"], 4)


def test_both_columns_add_up(ours: PlannedStep) -> None:
    report = typical()

    found = beside(ours, report)

    assert sum(row.planned_ns for row in found.objects) == ours.step.period_ns
    assert sum(row.measured_ns for row in found.objects) == report.ledger.wall_ns
    assert all(row.difference_ns == row.measured_ns - row.planned_ns for row in found.objects)


def test_communication_and_bubble_stand_beside_the_collective_and_the_rest_beside_compute(ours: PlannedStep) -> None:
    parts = {part.name: part.exposed_ns for part in ours.step.parts}
    waiting = sum(parts[name] for name in ("tp", "pp", "dp", "bubble"))

    by_object = {row.object: row.planned_ns for row in beside(ours, run(100, 20)).objects}

    assert by_object["collective"] == waiting
    assert by_object["compute"] == ours.step.period_ns - waiting


def test_a_run_as_planned_is_said_to_be_close(ours: PlannedStep) -> None:
    period_ms = ours.step.period_ns / 1e6

    found = beside(ours, run(period_ms * 0.8, period_ms * 0.25))

    assert "5% more, as close as such plans come" in found.says
    assert found.error_share == pytest.approx(1 / 1.05 - 1, abs=1e-6)
    assert found.notes == []


def test_use_of_the_peak_is_compared_under_the_plans_convention(ours: PlannedStep) -> None:
    period_ms = ours.step.period_ns / 1e6

    found = beside(ours, run(period_ms * 2, 0))

    assert found.measured_mfu == pytest.approx(found.planned_mfu / 2, rel=1e-6)
    assert found.measured_tokens_per_s == pytest.approx(ours.step.tokens_per_s / 2, rel=1e-6)


def test_the_largest_difference_is_named(ours: PlannedStep) -> None:
    period_ms = ours.step.period_ns / 1e6

    found = beside(ours, run(period_ms, 0, host_ms=period_ms))

    assert "2.00 times the plan; the largest difference is host" in found.says


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"world_size": 8}, "the run has 8 ranks, the plan 16 devices: not the same job"),
        ({"device_name": "NVIDIA A100-SXM4-80GB"}, "the run is on NVIDIA A100-SXM4-80GB, the plan on H100-SXM5-80GB"),
    ],
)
def test_another_job_is_told(ours: PlannedStep, options: dict[str, Any], says: str) -> None:
    assert beside(ours, run(100, 10, **options)).notes == [says]


def test_memory_that_the_profiler_did_not_record_is_not_known(ours: PlannedStep) -> None:
    found = beside(ours, run(100, 10))

    assert isinstance(found.measured_peak_bytes, Unknown)
    assert found.planned_peak_bytes < ours.memory.peak_bytes


def test_collectives_of_a_real_trace_are_counted_by_device_and_step(ours: PlannedStep, cases: Path) -> None:
    """Case B069: two ranks, three steps of three all-reduces each."""
    found = put_beside(planned(), ours, [str(cases / "B069" / "input")], None)

    (all_reduce,) = [row for row in found.collectives if row.kind == "all_reduce"]
    assert (found.ranks, found.units) == (2, 3)
    assert all_reduce.measured_count == 3
    assert all_reduce.measured_ns == pytest.approx(32.5e6, rel=1e-3)
    assert {row.kind for row in found.collectives} >= {"all_gather", "reduce_scatter", "all_reduce", "send_recv"}


def test_a_trace_without_steps_is_refused_with_what_to_do(ours: PlannedStep, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        put_beside(planned(), ours, [str(tmp_path)], None)


def test_a_plan_asked_beside_a_run_holds_both(tmp_path: Path, cases: Path) -> None:
    plan = plan_of(tmp_path, PLAN, against=[str(cases / "B069" / "input")])

    assert plan.against is not None
    assert plan.step is not None
    assert plan.against.planned_period_ns == plan.step.period_ns
