"""The search over layouts, against trying everything."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.layout import Layout, Work, complaints
from longpole.costs.step import estimate_step_time, step_time
from longpole.errors import UsageError
from longpole.pipeline.plan_search import Candidate, pareto_front, search_layouts, timed, weigh
from tests.plans import planned

if TYPE_CHECKING:
    from longpole.costs.layout import Recompute
    from longpole.pipeline.plan_config import Planned
    from longpole.report.plan_asked import PlanSearch

WORK = Work(sequence=1024, micro_batch=1, global_batch=8)
SMALL: dict[str, Any] = {"tp": [2, 4], "pp": [1, 2], "micro_batch": [1, 2], "zero": [1], "vp": [1, 2]}


def search(**changes: Any) -> tuple[Planned, PlanSearch]:
    plan = planned(**{"search": {**SMALL, "recompute": ["none", "full"]}, **changes})
    return plan, search_layouts(plan, CollectiveCosts(plan.cluster))


def test_the_front_is_that_of_trying_everything() -> None:
    plan, found = search(hardware={"memory_limit_gb": 30})
    costs = CollectiveCosts(plan.cluster)

    candidates = []
    policies: list[Recompute] = ["none", "full"]
    for tp, pp, vp, micro_batch, policy in product([2, 4], [1, 2], [1, 2], [1, 2], policies):
        dp = 16 // (tp * pp)
        schedule = "interleaved" if vp > 1 else "1f1b"
        layout = replace(plan.layout, tp=tp, pp=pp, dp=dp, vp=vp, schedule=schedule)
        work = replace(plan.work, micro_batch=micro_batch, recompute=policy)
        if (pp > 1 or vp == 1) and not complaints(plan.model, layout, work):
            one = weigh(plan, layout, work)
            if one.needed_bytes <= plan.limit_bytes:
                candidates.append(timed(plan, one, costs))
    expected = {(round(one.period_s * 1e9), round(one.needed_bytes)) for one in pareto_front(candidates)}

    assert {(choice.period_ns, choice.peak_bytes) for choice in found.front} == expected
    assert found.fit == len(candidates)


def test_nothing_on_the_front_exceeds_the_limit_or_misses_the_devices() -> None:
    plan, found = search()

    assert found.best == found.front[0]
    assert all(choice.peak_bytes <= plan.limit_bytes for choice in found.front)
    assert all(choice.devices == 16 for choice in found.front)


def test_every_choice_can_be_planned_again_and_gives_the_same_step() -> None:
    plan, found = search()
    assert found.best is not None

    again = planned(
        layout=found.best.layout,
        batch={"micro_batch": found.best.micro_batch},
        training={"recompute": found.best.recompute},
    )
    step = step_time(again.model, again.cluster, again.layout, again.work, again.calibration, again.software)

    assert round(step.total_s * 1e9) == found.best.period_ns
    assert again.layout.world == plan.devices


def test_where_nothing_fits_the_closest_is_told() -> None:
    _, found = search(hardware={"memory_limit_gb": 2})

    assert found.best is None
    assert found.front == []
    assert found.near is not None
    assert found.near.peak_bytes > 2e9


def test_numbers_of_devices_are_weighed_against_time() -> None:
    _, found = search(search={**SMALL, "recompute": "none", "devices": [8, 16]})

    assert {choice.devices for choice in found.front} == {8, 16}


def test_the_least_recomputation_is_tried_where_nothing_else_is_as_fast() -> None:
    plan = planned(
        hardware={"memory_limit_gb": 20}, search={**SMALL, "tp": [4], "pp": [2], "recompute": ["none", "full", "fit"]}
    )

    found = search_layouts(plan, CollectiveCosts(plan.cluster))

    assert found.best is not None
    assert "/32" in found.best.recompute
    slowest = max(choice.period_ns for choice in found.front)
    assert found.best.period_ns < slowest


def test_more_layouts_than_can_be_tried_are_refused() -> None:
    every = list(range(1, 600))
    plan = planned(search={"micro_batch": every, "zero": [0, 1, 2, 3], "cp": [1, 2, 4, 8]})

    with pytest.raises(UsageError, match=r"\[search\]: .* layouts, more than 200,000 can be tried; name fewer"):
        search_layouts(plan, CollectiveCosts(plan.cluster))


def test_progress_is_told_in_layouts() -> None:
    heard: list[tuple[str, int, int]] = []
    plan = planned(search={**SMALL, "recompute": "none"})

    found = search_layouts(plan, CollectiveCosts(plan.cluster), lambda *told: heard.append(told))

    assert heard[0] == ("layouts", 0, found.considered)


@pytest.mark.parametrize("vp", [1, 2, 4])
@pytest.mark.parametrize("micro_batch", [1, 2])
def test_an_estimate_is_close_enough_to_leave_nothing_of_the_front_out(vp: int, micro_batch: int) -> None:
    """The search lets an estimate be 3 % too long."""
    plan = planned(batch={"micro_batch": micro_batch})
    schedule = "interleaved" if vp > 1 else "1f1b"
    layout = replace(plan.layout, tp=2, pp=4, dp=2, vp=vp, schedule=schedule)

    exact = step_time(plan.model, plan.cluster, layout, plan.work).total_s
    about = estimate_step_time(plan.model, plan.cluster, layout, plan.work).total_s

    assert about * 0.97 <= exact


FIGURES = st.integers(1, 6).map(float)


@given(st.lists(st.tuples(FIGURES, FIGURES, st.integers(1, 4)), max_size=12))
def test_a_front_holds_exactly_what_nothing_else_beats(points: list[tuple[float, float, int]]) -> None:
    candidates = [Candidate(Layout(dp=devices), WORK, needed, period) for period, needed, devices in points]

    front = {one.key() for one in pareto_front(candidates)}

    def is_beaten(one: Candidate) -> bool:
        return any(
            other.key() != one.key() and all(a <= b for a, b in zip(other.key(), one.key(), strict=True))
            for other in candidates
        )

    assert front == {one.key() for one in candidates if not is_beaten(one)}
