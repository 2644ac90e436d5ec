"""What saved memory would buy: the largest micro-batch that fits, against trying every one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.memory import device_memory
from longpole.pipeline.plan_free_memory import find_savings
from longpole.records.ledger import Unknown
from tests.plans import planned

if TYPE_CHECKING:
    from longpole.report.plan_asked import PlanSaving


def savings(**changes: Any) -> dict[str, PlanSaving]:
    plan = planned(**changes)
    return {saving.how or saving.saved: saving for saving in find_savings(plan, CollectiveCosts(plan.cluster))}


def test_the_largest_micro_batch_is_that_of_trying_every_one() -> None:
    plan = planned()
    row = savings()["nothing: what is free already"]

    def fits(micro_batch: int) -> bool:
        work = replace(plan.work, micro_batch=micro_batch, global_batch=2 * 16 * micro_batch)
        return device_memory(plan.model, plan.layout, work).needed_bytes <= plan.limit_bytes

    assert row.fits_at_most == max(size for size in range(1, 40) if fits(size))


def test_a_bound_never_buys_less_than_a_change_to_the_same_part() -> None:
    found = savings(hardware={"memory_limit_gb": 26})

    assert found["activations"].fits_at_most >= found['recompute = "full"'].fits_at_most
    assert found["optimizer states"].fits_at_most >= found['optimizer = "adam-8bit"'].fits_at_most


def test_computing_again_saves_memory_and_costs_time() -> None:
    again = savings()['recompute = "full"']

    assert again.saves_bytes > 0
    assert isinstance(again.change_share, float)
    assert again.change_share > 0


def test_the_micro_batch_that_is_used_divides_the_global_batch() -> None:
    for saving in savings().values():
        assert isinstance(saving.micro_batch, int)
        assert 16 % saving.micro_batch == 0


def test_where_nothing_fits_the_figure_is_not_known_and_says_why() -> None:
    found = savings(hardware={"memory_limit_gb": 3})
    row = found["nothing: what is free already"]

    assert row.fits_at_most == 0
    assert isinstance(row.micro_batch, Unknown)
    assert row.micro_batch.unknown == "not even one sequence fits"


def test_what_the_plan_has_already_is_not_proposed() -> None:
    stated = {"recompute": "full", "gradient_bytes": 2, "optimizer": "adam-8bit"}

    found = savings(training=stated, layout={"zero": 3})

    assert not {how for how in found if how.startswith(("recompute", "gradient_", "optimizer =", "zero"))}


@pytest.mark.parametrize("part", ["weights", "gradients", "optimizer states", "activations", "buffers and context"])
def test_every_part_of_memory_has_its_bound(part: str) -> None:
    assert savings()[part].bound


def test_a_plan_that_computes_again_what_would_fit_is_told() -> None:
    row = savings(training={"recompute": "full"})["nothing: what is free already"]

    assert row.recompute == "none"
    assert isinstance(row.change_share, float)
    assert row.change_share < -0.1


def test_without_anything_to_gain_the_plan_is_compared_with_itself() -> None:
    row = savings(batch={"global_batch": 2})["nothing: what is free already"]

    assert row.change_share == 0
