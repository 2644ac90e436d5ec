"""Cost models of points: found where there is one, refused with the reason where there is none."""

from __future__ import annotations

import dataclasses

import pytest

from longpole.bench.collectives.fits import fit_points, predict_ns
from longpole.bench.collectives.points import measured_point
from longpole.records.bench_collectives import CollectivesRound
from longpole.settings import Settings
from tests.collective_points import SIZES, points_of, where


def test_a_fit_finds_what_made_the_times() -> None:
    (fit,) = fit_points(points_of("default", lambda size, _: predict_ns(20_000, 9.0, 100.0, size)), Settings())

    assert fit.why_none == ""
    assert fit.alpha_ns == pytest.approx(20_000, rel=0.02)
    assert fit.gamma == pytest.approx(9.0, rel=0.05)
    assert fit.gb_per_s == pytest.approx(100.0, rel=0.02)
    assert fit.half_bytes == pytest.approx(2_000_000, rel=0.05)
    assert fit.error_max == pytest.approx(0.0, abs=0.01)


def test_times_that_no_curve_follows_are_no_model() -> None:
    (fit,) = fit_points(points_of("default", lambda size, _: 1000 * (size % 7 + 1) ** 3), Settings())

    assert fit.alpha_ns is None
    assert fit.why_none


def test_three_sizes_are_no_model() -> None:
    (fit,) = fit_points(points_of("default", lambda size, _: 1000 + size, sizes=SIZES[:3]), Settings())

    assert "4 sizes" in fit.why_none


def test_sizes_that_show_no_rate_are_no_model() -> None:
    """A curve through latency alone would promise any rate beyond the largest size."""
    (fit,) = fit_points(points_of("default", lambda size, _: 56_000 + size / 1e5), Settings())

    assert "measure larger ones" in fit.why_none or "a time that grows" in fit.why_none


def test_wrong_results_are_left_out() -> None:
    points = points_of("default", lambda size, _: predict_ns(20_000, 0.0, 100.0, size))
    points.append(measured_point(where(1 << 27), [CollectivesRound(0, [1])], 5))

    (fit,) = fit_points(points, Settings())

    assert fit.sizes == len(SIZES)
    assert fit.gb_per_s == pytest.approx(100.0, rel=0.02)


def test_out_of_place_is_fitted_where_a_log_has_both() -> None:
    inside = points_of("default", lambda size, _: predict_ns(20_000, 0.0, 50.0, size))
    outside = [
        measured_point(
            dataclasses.replace(where(size), placement="out_of_place"),
            [CollectivesRound(0, [round(predict_ns(20_000, 0.0, 100.0, size))])],
            0,
        )
        for size in SIZES
    ]

    (fit,) = fit_points([*inside, *outside], Settings())

    assert fit.placement == "out_of_place"
    assert fit.gb_per_s == pytest.approx(100.0, rel=0.02)
