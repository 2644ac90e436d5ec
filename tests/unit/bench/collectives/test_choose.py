"""The best setting by size: named where it is faster beyond noise, and only there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.bench.collectives.choose import choose_best, find_crossovers
from longpole.bench.collectives.fits import fit_points, predict_ns
from longpole.settings import Settings
from tests.collective_points import SIZES, points_of

if TYPE_CHECKING:
    from longpole.records.bench_collectives import CollectivesPoint


def _noisy(seed: int, alpha_ns: float, rate: float, spread: float) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    noise = np.exp(rng.normal(0, spread, (len(SIZES), 5)))
    return [[predict_ns(alpha_ns, 0, rate, size) * noise[i, k] for k in range(5)] for i, size in enumerate(SIZES)]


def _points(setting: str, seed: int, alpha_ns: float, rate: float, spread: float = 0.02) -> list[CollectivesPoint]:
    times = _noisy(seed, alpha_ns, rate, spread)
    return points_of(setting, lambda size, number: times[SIZES.index(size)][number])


def test_a_setting_that_is_faster_for_small_ones_only_wins_there_only() -> None:
    """Half the latency and half the rate: the curves cross where 10 µs are 1/100 - 1/50 ns a byte, at 1 MB."""
    points = _points("default", 1, 20_000, 100.0) + _points("NCCL_PROTO=LL", 2, 10_000, 50.0)

    bands = choose_best(points)
    crossovers = find_crossovers(bands, fit_points(points, Settings()))

    assert [band.setting for band in bands if band.setting] == ["NCCL_PROTO=LL", "default"]
    assert bands[0].from_bytes == SIZES[0]
    assert bands[0].to_bytes < 1_000_000
    assert 1.5 < bands[0].gain_high < 2.2
    (one,) = crossovers
    assert (one.below, one.above) == ("NCCL_PROTO=LL", "default")
    assert one.between_bytes == (bands[0].to_bytes, bands[-1].from_bytes)


def test_a_crossover_lies_where_the_fitted_curves_cross() -> None:
    points = points_of("default", lambda size, n: predict_ns(20_000, 0, 100, size) * (1 + n / 1e4))
    points += points_of("NCCL_PROTO=LL", lambda size, n: predict_ns(10_000, 0, 50, size) * (1 - n / 1e4))

    bands = choose_best(points)
    (one,) = find_crossovers(bands, fit_points(points, Settings()))

    assert one.between_bytes == (1 << 18, 1 << 22)  # at 1 MiB they are within 3 % of each other
    assert one.fitted_bytes is not None
    assert abs(one.fitted_bytes - 1_000_000) < 30_000


def test_the_same_twice_names_a_winner_in_few_of_two_hundred() -> None:
    """All settings and sizes of a kind are one family at 5 %."""
    named = 0
    for seed in range(200):
        points = _points("default", seed, 20_000, 100.0, 0.1)
        for place, setting in enumerate(("A=1", "A=2", "A=3")):
            points += _points(setting, 1000 * (place + 1) + seed, 20_000, 100.0, 0.1)
        named += any(band.setting for band in choose_best(points))

    assert named <= 34  # two families of 5 % of 200, and three standard deviations more


def test_where_every_other_setting_is_slower_the_default_is_best() -> None:
    points = points_of("default", lambda size, n: 1000 + size + n / 10)
    points += points_of("A=1", lambda size, n: 1500 + 1.5 * size + n / 10)
    points += points_of("A=2", lambda size, n: 2000 + 2 * size + n / 10)

    (band,) = choose_best(points)

    assert band.setting == "default"
    assert (round(band.gain_low, 2), round(band.gain_high, 2)) == (1.5, 1.5)


def test_a_gain_of_a_per_cent_is_no_reason_for_a_setting() -> None:
    points = points_of("default", lambda size, n: 1000 + size + n / 100)
    points += points_of("NCCL_PROTO=LL", lambda size, n: (1000 + size) * 0.99 + n / 100)

    assert [band.setting for band in choose_best(points)] == [""]


def test_two_rounds_tell_nothing() -> None:
    points = points_of("default", lambda size, _: size, rounds=2) + points_of("X", lambda size, _: size / 9, rounds=2)

    (band,) = choose_best(points)

    assert band.setting == ""
    assert "3 rounds" in band.why


def test_one_setting_alone_has_nothing_to_be_compared_with() -> None:
    assert choose_best(points_of("default", lambda size, _: size)) == []
