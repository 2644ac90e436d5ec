"""The cost of a collective: fitted, or shipped."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.ranks.cost_model import bus_factor, fit_model, shipped_model
from longpole.settings import Settings

SIZES = np.array([1 << e for e in range(8, 29, 2)], np.int64)


def _times(alpha_ns: float, gamma: float, rate: float) -> np.ndarray:
    return np.rint(alpha_ns + gamma * np.sqrt(SIZES) + SIZES / rate).astype(np.int64)


@pytest.mark.parametrize(("alpha", "gamma", "rate"), [(15_420, 9.043, 277.0), (200_000, 0.0, 1.2), (5_000, 3.0, 40.0)])
def test_a_fit_finds_what_made_the_times(alpha: float, gamma: float, rate: float) -> None:
    model = fit_model(SIZES, _times(alpha, gamma, rate), Settings())

    assert model is not None
    assert model.source == "fit"
    assert model.alpha_ns == pytest.approx(alpha, rel=0.02)
    assert model.rate == pytest.approx(rate, rel=0.02)
    assert model.gamma == pytest.approx(gamma, rel=0.05, abs=0.2)


def test_one_disturbed_size_does_not_bend_the_curve() -> None:
    times = _times(20_000, 2.0, 100.0)
    times[3] *= 20

    model = fit_model(SIZES, times, Settings())

    assert model is not None
    assert model.alpha_ns == pytest.approx(20_000, rel=0.1)
    assert model.rate == pytest.approx(100.0, rel=0.1)


def test_repeated_sizes_count_by_their_median() -> None:
    times = _times(20_000, 2.0, 100.0)
    sizes, repeated = np.tile(SIZES, 3), np.concatenate([times, times, times * 50])

    model = fit_model(sizes, repeated, Settings())

    assert model is not None
    assert model.alpha_ns == pytest.approx(20_000, rel=0.05)


@pytest.mark.parametrize("some", [slice(0, 3), slice(0, 0), slice(4, 7)])
def test_few_or_close_sizes_give_no_model(some: slice) -> None:
    assert fit_model(SIZES[some], _times(20_000, 2.0, 100.0)[some], Settings()) is None


def test_sizes_and_times_of_nothing_are_left_out() -> None:
    sizes, times = np.append(SIZES, [0, 64]), np.append(_times(20_000, 2.0, 100.0), [500, 0])

    model = fit_model(sizes, times, Settings())

    assert model is not None
    assert model.alpha_ns == pytest.approx(20_000, rel=0.02)


def test_the_parts_of_a_model_add_up_over_operations() -> None:
    model = fit_model(SIZES, _times(20_000, 0.0, 100.0), Settings())

    assert model is not None
    latency_ns, moving_ns = model.parts_ns(np.array([1_000_000, 3_000_000]))
    assert latency_ns == pytest.approx(40_000, rel=0.02)
    assert moving_ns == pytest.approx(40_000, rel=0.02)


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("NVIDIA H100 80GB HBM3", 277.0),
        ("NVIDIA A100-SXM4-40GB", 131.2),
        ("NVIDIA B200", 431.0),
        ("NVIDIA H200", 291.6),
        ("NVIDIA L40S", 0.9),
    ],
)
def test_a_shipped_fit_is_found_by_the_devices_name(name: str, rate: float) -> None:
    model = shipped_model(name, "all_reduce", 8)

    assert model is not None
    assert (model.rate, model.source) == (rate, "shipped")
    assert "8 ranks" in model.says


@pytest.mark.parametrize(
    ("name", "kind", "n"),
    [
        ("NVIDIA H100 PCIe", "all_reduce", 8),
        ("Tesla V100-SXM2-16GB", "all_reduce", 8),
        ("NVIDIA GB200", "all_reduce", 8),
        ("NVIDIA B200", "broadcast", 8),
        ("NVIDIA B200", "all_reduce", 3),
        ("", "all_reduce", 8),
    ],
)
def test_what_was_not_measured_has_no_shipped_fit(name: str, kind: str, n: int) -> None:
    assert shipped_model(name, kind, n) is None


def test_bus_factors_without_a_size_are_not_known() -> None:
    assert bus_factor("all_reduce", None) is None
    assert bus_factor("", 8) is None
    assert bus_factor("reduce_scatter", 8) == 0.875
