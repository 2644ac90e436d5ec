"""Drift against a pinned baseline, and steps in a series: rare alarms, and those that are due."""

from __future__ import annotations

import random
from math import exp, log
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.stats.drift import find_change_points, find_drift

THRESHOLD = 0.03


def _series(
    seed: int, sigma: float, *, creep: float = 0.0, step: float = 0.0, at: int = 60, n: int = 120
) -> list[float]:
    """Return logarithms of run times: noise, and from one run on a step or a creep."""
    rng = random.Random(seed)
    return [rng.gauss(0, sigma) + max(i - at, 0) * creep + (step if i >= at else 0.0) for i in range(n)]


@pytest.mark.parametrize(("sigma", "most"), [(0.01, 0.01), (0.02, 0.03), (0.04, 0.12)])
def test_alarms_are_rare_where_nothing_changed(sigma: float, most: float) -> None:
    """100 runs behind a baseline of 20: the reference tables have 0, 1 and 10 % for these noises."""
    alarms = [find_drift(_series(seed, sigma), 20, THRESHOLD) is not None for seed in range(300)]

    assert sum(alarms) / 300 <= most


@pytest.mark.parametrize(
    ("change", "found_at_least", "delay_at_most"),
    [({"creep": 0.005}, 0.97, 12), ({"creep": 0.002}, 0.95, 21), ({"step": 0.03}, 0.9, 14), ({"step": 0.05}, 0.97, 6)],
)
def test_slow_creep_and_small_steps_are_found(
    change: dict[str, Any], found_at_least: float, delay_at_most: int
) -> None:
    found = [find_drift(_series(seed, 0.02, **change), 20, THRESHOLD) for seed in range(200)]

    due = [drift.alarm_at - 60 for drift in found if drift is not None and drift.alarm_at >= 60]
    assert len(due) / 200 >= found_at_least
    assert median(due) <= delay_at_most


def test_a_series_that_got_faster_says_so() -> None:
    drift = find_drift(_series(1, 0.01, step=-0.1), 20, THRESHOLD)

    assert drift is not None
    assert drift.direction == "faster"
    assert drift.began_at in range(58, 63)
    assert drift.share == pytest.approx(exp(-0.1) - 1, abs=0.02)


def test_one_spike_is_no_drift() -> None:
    series = _series(2, 0.01)
    series[70] += 1.0

    assert find_drift(series, 20, THRESHOLD) is None


def test_a_baseline_that_repeats_itself_to_the_digit_does_not_alarm_at_a_change_below_the_threshold() -> None:
    assert find_drift([0.0] * 20 + [0.005] * 50, 20, THRESHOLD) is None
    assert find_drift([0.0] * 20 + [0.05] * 50, 20, THRESHOLD) is not None


@given(shift=st.floats(-3, 3), seed=st.integers(0, 50))
def test_the_unit_of_measurement_changes_nothing(shift: float, seed: int) -> None:
    series = _series(seed, 0.02, step=0.08)
    here, there = (find_drift(values, 20, THRESHOLD) for values in (series, [v + shift for v in series]))

    assert here is not None
    assert there is not None
    assert (here.alarm_at, here.direction) == (there.alarm_at, there.direction)
    assert [point.at for point in find_change_points(series)] == [
        point.at for point in find_change_points([v + shift for v in series])
    ]


def test_steps_are_dated_and_sized() -> None:
    series = _series(3, 0.01, step=0.06, at=40) + [value + 0.06 - 0.1 for value in _series(4, 0.01, n=40)]

    up, down = find_change_points(series)

    assert up.at in range(38, 43)
    assert up.share == pytest.approx(exp(0.06) - 1, abs=0.01)
    assert down.at in range(118, 123)
    assert down.share == pytest.approx(exp(-0.1) - 1, abs=0.01)


def test_series_without_a_step_have_none() -> None:
    found = [bool(find_change_points(_series(seed, 0.02))) for seed in range(200)]

    assert sum(found) <= 4


@pytest.mark.parametrize("series", [[], [0.0], [0.0, 1.0], [0.0] * 5, [0.0, 0.0, 0.0, log(2), log(2)]])
def test_a_series_too_short_for_two_parts_has_no_step(series: list[float]) -> None:
    assert find_change_points(series) == []


def test_a_spike_of_two_runs_is_no_step() -> None:
    series = _series(5, 0.01)
    series[50] = series[51] = 0.5

    assert all(point.at not in (50, 52) for point in find_change_points(series))
