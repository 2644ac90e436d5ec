"""A report is right where cause, rank and cost are; where nothing is worth a finding, any finding is wrong."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.jobs.draw import Job, Truth
from tests.jobs.plan import draw_plan
from tests.jobs.score import by_cause, confusion, judge, summary

PLAN = draw_plan(random.Random(1), "train", 1, 4)
MS = 1_000_000


def job(cause: str, **truth: Any) -> Job:
    return Job(seed=1, kind="single", plan=PLAN, causes=(), truth=Truth(cause=cause, **truth))


def report(*findings: dict[str, Any], long_pole: int | None = 0) -> dict[str, Any]:
    rows = [{"id": f"f{place}", "ranks": [0], "cost_ns_per_unit": 0, **one} for place, one in enumerate(findings)]
    return {"findings": rows, "long_pole": None if long_pole is None else f"f{long_pole}"}


LOADER = job("data_loader", culprits=frozenset({2}), statistic="median", low_ns=10 * MS, high_ns=12 * MS, graded=True)


@pytest.mark.parametrize(
    ("finding", "right"),
    [
        ({"cause": "data_loader", "ranks": [2], "cost_ns_per_unit": 11 * MS}, True),
        ({"cause": "data_loader", "ranks": [2], "cost_ns_per_unit": int(12.5 * MS)}, True),
        ({"cause": "data_loader", "ranks": [2], "cost_ns_per_unit": 13 * MS}, False),
        ({"cause": "data_loader", "ranks": [2], "cost_ns_per_unit": int(9.4 * MS)}, False),
        ({"cause": "data_loader", "ranks": [1], "cost_ns_per_unit": 11 * MS}, False),
        ({"cause": "gc", "ranks": [2], "cost_ns_per_unit": 11 * MS}, False),
        ({"cause": "data_loader", "ranks": [2], "cost_ns_per_unit": {"unknown": "why"}}, False),
    ],
)
def test_cause_rank_and_cost_have_to_be_right(finding: dict[str, Any], right: bool) -> None:
    assert judge(LOADER, report(finding)).right is right


def test_the_true_cause_in_second_place_is_wrong() -> None:
    second = {"cause": "data_loader", "ranks": [2], "cost_ns_per_unit": 11 * MS}

    assert not judge(LOADER, report({"cause": "gc"}, second)).right
    assert judge(LOADER, report({"cause": "gc"}, second)).found == "gc"


def test_a_one_off_is_judged_by_what_it_cost_once() -> None:
    setup = job("communicator_setup", statistic="one_off", low_ns=200 * MS, high_ns=200 * MS, graded=True)

    assert judge(setup, report({"cause": "communicator_setup", "cost_once_ns": 205 * MS})).right
    assert not judge(setup, report({"cause": "communicator_setup", "cost_once_ns": 20 * MS})).right


def test_small_costs_have_a_tolerance_of_their_own() -> None:
    small = job("gc", statistic="median", low_ns=MS / 5, high_ns=MS / 5, graded=True)

    assert judge(small, report({"cause": "gc", "cost_ns_per_unit": MS / 5 + 49_000})).right
    assert not judge(small, report({"cause": "gc", "cost_ns_per_unit": MS / 5 + 51_000})).right


def test_any_finding_on_a_healthy_job_is_a_false_alarm() -> None:
    healthy = job("gpu_work")
    calm, alarm = (
        judge(healthy, report({"cause": "gpu_work"})),
        judge(healthy, report({"cause": "gpu_work"}, {"cause": "gc"})),
    )

    assert calm.right
    assert not alarm.right
    assert summary([calm, alarm])["false alarms"] == 0.5
    assert "**1** | 1 |" in confusion([calm, alarm])


def test_what_costs_no_time_has_to_be_found_and_not_to_be_the_long_pole() -> None:
    leak = job("leak")

    assert judge(leak, report({"cause": "gpu_work"}, {"cause": "leak"})).right
    assert not judge(leak, report({"cause": "gpu_work"})).right
    assert not judge(leak, report({"cause": "gc"}, {"cause": "leak"})).right


def test_an_incomplete_trace_has_to_be_called_so_and_carries_no_other_verdict() -> None:
    lost = job("unknown_incomplete_trace")

    assert judge(lost, report({"cause": "unknown_incomplete_trace"}, long_pole=None)).right
    assert judge(lost, report({"cause": "unknown_incomplete_trace"})).right
    assert not judge(lost, report({"cause": "gpu_work"})).right
    assert not judge(lost, report(long_pole=None)).right


def test_tables_count_every_job_once() -> None:
    verdicts = [
        judge(LOADER, report({"cause": "data_loader", "ranks": [2], "cost_ns_per_unit": 11 * MS})),
        judge(LOADER, report({"cause": "gc"})),
        judge(LOADER, report(long_pole=None)),
    ]

    assert "| `data_loader` | 3 | 1 | 1 | 1 | 1 |" in by_cause(verdicts)
    assert "| 1 `data_loader` | **1** | 1 | 1 |" in confusion(verdicts)
    assert summary(verdicts)["right"] == pytest.approx(1 / 3)
