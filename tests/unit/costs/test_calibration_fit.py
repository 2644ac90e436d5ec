"""Constants are found again from steps that were made with them, and the error that is promised is honest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from longpole.costs.calibration import BOUNDS, Calibration
from longpole.costs.calibration_fit import FREE, LEAST_STEPS, MeasuredStep, fit_calibration
from longpole.costs.cluster import cluster_of
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.layout import Layout, Work
from longpole.costs.presets import preset
from longpole.costs.step import step_time
from longpole.errors import Unanswered, UsageError
from longpole.hardware.devices import find_device

COSTS = CollectiveCosts(cluster_of(find_device("A100-SXM4-80GB"), 25e9, 8))
MODEL = replace(preset("llama-3-8b"), layers=4)
REAL = Calibration(matmul_of_ceiling=0.6, memory_share=0.5, scale_up=2.0).on(COSTS.cluster.device)
SHAPES = [
    (Layout(tp=tp, dp=dp, sp=tp > 1), Work(sequence=sequence, micro_batch=batch, global_batch=batch * dp * 2))
    for tp, dp in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 8), (2, 2))
    for sequence, batch in ((1024, 1), (4096, 2))
]


def made_with(calibration: Calibration) -> list[MeasuredStep]:
    """Return steps of several layouts and batches that take what the model says with these constants."""
    return [
        MeasuredStep(
            model=MODEL,
            layout=layout,
            work=work,
            step_s=step_time(MODEL, COSTS, layout, work, calibration).total_s,
            name=layout.label(),
        )
        for layout, work in SHAPES
    ]


def test_constants_are_found_again() -> None:
    found = fit_calibration(made_with(REAL), COSTS, free=("matmul_of_ceiling", "memory_share", "scale_up"))

    for name in ("matmul_of_ceiling", "memory_share", "scale_up"):
        assert getattr(found.calibration, name) == pytest.approx(getattr(REAL, name), rel=0.05), name
    assert isinstance(found.held_out_error_share, float)
    assert found.held_out_error_share < 0.01 < found.shipped_error_share
    assert found.at_bounds == ()
    assert found.calibration.source == "fitted to 12 steps"


def test_a_constant_that_no_step_depends_on_stays_where_it_was() -> None:
    """These steps never leave a node."""
    found = fit_calibration(made_with(REAL), COSTS, free=("matmul_of_ceiling", "network"))

    assert found.calibration.network == pytest.approx(1.0, abs=1e-6)


def test_every_constant_stays_within_its_bounds_whatever_is_measured() -> None:
    """Steps twice as fast as any device: the ends of the ranges are told."""
    wild = [replace(one, step_s=one.step_s / 4) for one in made_with(REAL)]

    found = fit_calibration(wild, COSTS, free=("matmul_of_ceiling", "memory_share"))

    assert found.calibration.matmul_of_ceiling == pytest.approx(BOUNDS["matmul_of_ceiling"][1], abs=0.01)
    assert "matmul_of_ceiling" in found.at_bounds
    assert found.fitted_error_share > 0.2


def test_one_disturbed_step_does_not_bend_the_others() -> None:
    steps = made_with(REAL)
    steps[5] = replace(steps[5], step_s=steps[5].step_s * 3)

    found = fit_calibration(steps, COSTS, free=("matmul_of_ceiling", "memory_share"), start=REAL)

    assert found.calibration.matmul_of_ceiling == pytest.approx(0.6, rel=0.1)


def test_too_few_steps_to_hold_some_out_promise_nothing() -> None:
    found = fit_calibration(made_with(REAL)[:4], COSTS, free=("matmul_of_ceiling",))

    assert isinstance(found.held_out_error_share, Unanswered)


def test_what_cannot_be_fitted_to_is_refused() -> None:
    steps = made_with(REAL)
    with pytest.raises(UsageError, match=f"at least {LEAST_STEPS}"):
        fit_calibration(steps[:2], COSTS)
    with pytest.raises(UsageError, match="seconds above 0"):
        fit_calibration([replace(steps[0], step_s=0.0), *steps], COSTS)
    with pytest.raises(UsageError, match=f"among {FREE[0]}"):
        fit_calibration(steps, COSTS, free=("eta",))
