"""Intervals against worked values and simple truths."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.stats.intervals import (
    _mann_whitney_count,
    paired_interval,
    runs_to_settle,
    smallest_seen,
    t_quantile,
    unpaired_interval,
)
from longpole.stats.resampling import Resampled, block_length, resampled_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray


def median_of(samples: NDArray[np.float64]) -> Resampled:
    """The median of a side's units."""
    return Resampled(len(samples), lambda draw: np.median(samples[draw], axis=1))


def test_a_t_interval_over_pairs_by_hand() -> None:
    """Differences 1, 2, 3: mean 2, deviation 1, t(2) = 2.920, so 2 ± 2.920 / √3."""
    found = paired_interval([10, 10, 10], [11, 12, 13])
    assert found.estimate == 2
    assert found.high - found.estimate == pytest.approx(2.91999 / 3**0.5, rel=1e-4)
    assert found.pair_spread == 1


def test_welch_agrees_with_scipy() -> None:
    from scipy.stats import ttest_ind

    before, after = [1.0, 1.2, 0.9, 1.1], [1.4, 1.6, 1.3]
    found = unpaired_interval(before, after)
    expected = ttest_ind(after, before, equal_var=False).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_the_count_of_orders_is_that_of_all_permutations() -> None:
    """The ends that are cut off hold at most 5 % of the orders, and one more would exceed that."""
    n, m = 4, 4
    labels = set(permutations([0] * n + [1] * m)) if n + m <= 8 else set()
    wrong = sorted(sum(a > b for i, a in enumerate(order) for b in order[i + 1 :]) for order in labels)
    count = _mann_whitney_count(n, m)
    assert sum(u < count for u in wrong) / len(wrong) <= 0.05 < sum(u <= count for u in wrong) / len(wrong)


def test_hodges_lehmann_covers_the_truth_and_shrugs_at_one_wild_run() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        before, after = rng.normal(0, 1, 6).tolist(), rng.normal(1, 1, 6).tolist()
        found = unpaired_interval(before, after)
        covered += found.low <= 1 <= found.high
    assert 0.85 <= covered / 300 <= 0.96
    tame = unpaired_interval([0.0, 1, 2, 3, 4, 5], [10.0, 11, 12, 13, 14, 15])
    wild = unpaired_interval([0.0, 1, 2, 3, 4, 5], [10.0, 11, 12, 13, 14, 1500])
    assert wild.estimate == pytest.approx(tame.estimate, abs=1)


def test_many_runs_do_not_take_long() -> None:
    found = unpaired_interval(np.linspace(0, 1, 200).tolist(), np.linspace(0, 1, 200).tolist())
    assert found.low < 0 < found.high


def test_one_run_against_several_uses_their_spread() -> None:
    found = unpaired_interval([1.0, 1.1, 0.9], [2.0])
    assert found.single_run
    assert found.high - found.estimate == pytest.approx(t_quantile(2) * 0.1 * (4 / 3) ** 0.5)


def test_more_runs_are_wanted_for_a_smaller_gap() -> None:
    few, many = runs_to_settle(0.03, 0.03, paired=True, most=100), runs_to_settle(0.03, 0.01, paired=True, most=100)
    assert few is not None
    assert many is not None
    assert few < many
    assert t_quantile(few - 1) * 0.03 / few**0.5 <= 0.03 < t_quantile(few - 2) * 0.03 / (few - 1) ** 0.5
    assert runs_to_settle(0.03, 1e-6, paired=True, most=100) is None


def test_the_smallest_effect_that_could_be_seen_is_seen_four_times_in_five() -> None:
    """Simulated: effects of that size leave the threshold behind in 70 to 90 % of tries."""
    rng = np.random.default_rng(2)
    seen = 0
    size = None
    for _ in range(400):
        noise = rng.normal(0, 1, 30)
        if size is None:
            size = smallest_seen(paired_interval([0.0] * 30, noise.tolist()), 3.0)
        seen += paired_interval([0.0] * 30, (noise - size).tolist()).high < -3.0
    assert 0.6 <= seen / 400 <= 0.95


def test_blocks_follow_the_number_of_units() -> None:
    assert [block_length(count) for count in (2, 8, 19, 20, 100)] == [2, 2, 3, 5, 10]


def test_resampling_covers_the_truth_of_units_that_depend_on_one_another() -> None:
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(150):
        sides = []
        for _side in range(2):
            noise = rng.normal(0, 1, 24)
            for place in range(1, 24):
                noise[place] = 0.5 * noise[place - 1] + 0.75**0.5 * noise[place]
            sides.append(median_of(noise))
        found = resampled_interval(*sides)
        covered += found.low <= 0 <= found.high
    assert covered / 150 >= 0.75
