"""Laws of a verdict: what scale, order and exchange of the sides change, and how often noise is taken for an effect."""

from __future__ import annotations

from dataclasses import replace
from math import log

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.records.run_record import RecordTime, RunRecord
from longpole.records.verdict import Effect
from longpole.stats.intervals import paired_interval, unpaired_interval
from longpole.stats.resampling import Resampled, resampled_interval
from tests.examples import examples
from tests.verify_runs import HEALTHY, Job, ask

NOISY = Job(within=0.04, between=0.012, units=12)
values = st.lists(st.floats(-3, 3), min_size=2, max_size=8)


def scaled(run: RunRecord, factor: int) -> RunRecord:
    """The run with every time longer by a factor."""
    units = []
    for unit in run.units:
        assert isinstance(unit.period_ns, int)
        assert isinstance(unit.wall_ns, int)
        objects = {name: RecordTime(time.exposed_ns * factor) for name, time in unit.objects.items()}
        longer = {"period_ns": unit.period_ns * factor, "wall_ns": unit.wall_ns * factor}
        units.append(msgspec.structs.replace(unit, objects=objects, **longer))
    return msgspec.structs.replace(run, units=units)


@examples(20)
@given(st.integers(2, 50), st.integers(1, 4), st.integers(0, 10**6), st.floats(0.6, 1.4))
def test_longer_times_on_both_sides_change_no_share(factor: int, runs: int, seed: int, pace: float) -> None:
    before = NOISY.runs(runs, seed)
    after = replace(NOISY, parts={**HEALTHY, "input": 37 * pace}).runs(runs, seed + 1)
    one = ask(before, after, part="input")
    other = ask([scaled(run, factor) for run in before], [scaled(run, factor) for run in after], part="input")
    assert (one.verdict, one.reason) == (other.verdict, other.reason)
    assert isinstance(one.effect, Effect)
    assert isinstance(other.effect, Effect)
    assert other.effect.estimate == pytest.approx(one.effect.estimate)
    assert other.effect.interval == pytest.approx(one.effect.interval)


@examples(20)
@given(st.integers(1, 6), st.integers(0, 10**6), st.booleans())
def test_exchanging_the_sides_mirrors_the_effect(runs: int, seed: int, paired: bool) -> None:
    before = NOISY.runs(runs, seed)
    after = replace(NOISY, parts={**HEALTHY, "input": 30}).runs(runs, seed + 1)
    there, back = ask(before, after, paired=paired).effect, ask(after, before, paired=paired).effect
    assert isinstance(there, Effect)
    assert isinstance(back, Effect)
    assert isinstance(there.interval, list)
    assert isinstance(back.interval, list)
    assert log(1 + there.estimate) == pytest.approx(-log(1 + back.estimate))  # type: ignore[operator]  # a number
    mirrored = [-log(1 + end) for end in reversed(back.interval)]
    assert [log(1 + end) for end in there.interval] == pytest.approx(mirrored, abs=1e-9)


@examples(20)
@given(st.integers(2, 6), st.integers(0, 10**6), st.randoms())
def test_the_order_of_unpaired_runs_changes_nothing(runs: int, seed: int, random: object) -> None:
    before, after = NOISY.runs(runs, seed), NOISY.runs(runs, seed + 1)
    shuffled = list(before)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert ask(before, after).effect == ask(shuffled, after).effect


@given(values, values, st.floats(-10, 10))
def test_a_constant_added_to_both_sides_changes_no_interval(one: list[float], other: list[float], by: float) -> None:
    there = unpaired_interval(one, other)
    moved = unpaired_interval([value + by for value in one], [value + by for value in other])
    assert (moved.low, moved.estimate, moved.high) == pytest.approx((there.low, there.estimate, there.high), abs=1e-6)


@given(values, st.floats(-2, 2))
def test_equal_differences_leave_no_room(one: list[float], by: float) -> None:
    found = paired_interval(one, [value + by for value in one])
    assert found.estimate == pytest.approx(by)
    assert found.high - found.low == pytest.approx(0, abs=1e-9)


@given(values, values)
def test_the_estimate_lies_within_its_interval(one: list[float], other: list[float]) -> None:
    found = unpaired_interval(one, other)
    assert found.low <= found.estimate <= found.high


@examples(20)
@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=40), st.lists(st.floats(0.5, 2), min_size=2, max_size=40))
def test_the_same_samples_give_the_same_interval(one: list[float], other: list[float]) -> None:
    """Drawing has a fixed seed: a verdict can be repeated."""
    import numpy as np

    def side(samples: list[float]) -> Resampled:
        array = np.array(samples)
        return Resampled(len(array), lambda draw: np.median(array[draw], axis=1))

    assert resampled_interval(side(one), side(other)) == resampled_interval(side(one), side(other))


@pytest.mark.parametrize(
    ("runs", "paired", "units"),
    [
        (1, False, 10),
        pytest.param(1, False, 30, marks=pytest.mark.slow),
        (3, False, 12),
        pytest.param(6, False, 12, marks=pytest.mark.slow),
        (5, True, 12),
    ],
)
def test_noise_is_seldom_taken_for_an_effect(runs: int, paired: bool, units: int) -> None:
    """In 100 comparisons of a job with itself at most 5 say that something changed."""
    job = replace(NOISY, units=units)
    flagged = 0
    for seed in range(100):
        found = ask(job.runs(runs, seed), job.runs(runs, 10_000 + seed), paired=paired)
        flagged += found.reason not in ("no_effect", "spread")
    assert flagged <= 5


@pytest.mark.parametrize(("runs", "paired"), [(3, False), (5, False), (5, True)])
def test_a_real_effect_is_found(runs: int, paired: bool) -> None:
    """Ten per cent less, with runs that differ by 1.2 %, are accepted in at least 16 of 20 tries."""
    after = replace(NOISY, parts={**HEALTHY, "input": 25})
    accepted = sum(
        ask(NOISY.runs(runs, seed), after.runs(runs, 5000 + seed), paired=paired, part="input").verdict == "accepted"
        for seed in range(20)
    )
    assert accepted >= 16


def test_one_run_a_side_finds_an_effect_well_beyond_the_assumed_spread() -> None:
    job = replace(NOISY, units=30)
    after = replace(job, parts={**HEALTHY, "input": 15})
    accepted = sum(
        ask(job.runs(1, seed), after.runs(1, 5000 + seed), part="input").verdict == "accepted" for seed in range(20)
    )
    assert accepted >= 16
