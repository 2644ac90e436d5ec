"""Service times as latency + bytes / bandwidth: never negative, small errors everywhere, refused where it is no law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from longpole.stats.service_fit import ServiceFit, decades_left_out, fit_service

SIZES = [4096 * 4**power for power in range(9)]


def fitted(samples: dict[int, list[float]], **options: int) -> ServiceFit:
    law = fit_service(samples, **options)
    assert isinstance(law, ServiceFit), law
    return law


def noisy(times: dict[int, float], spread: float, n: int = 9, seed: int = 1) -> dict[int, list[float]]:
    rng = np.random.default_rng(seed)
    return {size: list(time * rng.lognormal(0, spread, n)) for size, time in times.items()}


def test_a_law_without_noise_comes_back() -> None:
    law = fitted({size: [10_000 + size / 2.5] for size in SIZES})

    assert law.pieces[0].latency_ns == pytest.approx(10_000)
    assert 1 / law.pieces[0].ns_per_byte == pytest.approx(2.5)
    assert law.break_bytes is None
    assert law.worst_error < 1e-9
    assert law.crossover_bytes() == pytest.approx(25_000)
    assert law.half_performance_bytes() == pytest.approx(25_000)


@given(
    st.lists(st.floats(3.0, 20.0), min_size=6, max_size=12, unique=True),
    st.data(),
)
def test_both_terms_are_those_of_scipys_solver(exponents: list[float], data: st.DataObject) -> None:
    sizes = sorted({round(np.exp(value)) for value in exponents})
    times = [data.draw(st.floats(1.0, 1e9)) for _ in sizes]
    samples = {size: [time] for size, time in zip(sizes, times, strict=True)}

    law = fit_service(samples, draws=0)

    if isinstance(law, str) or law.break_bytes is not None:
        return
    matrix = np.column_stack([1 / np.array(times), np.array(sizes) / np.array(times)])
    expected, _ = nnls(matrix, np.ones(len(sizes)))
    found = [law.pieces[0].latency_ns, law.pieces[0].ns_per_byte]
    assert found == pytest.approx(list(expected), rel=1e-4, abs=1e-9)


@given(st.lists(st.floats(1.0, 1e10), min_size=9, max_size=9))
def test_no_term_is_ever_negative(times: list[float]) -> None:
    law = fitted({size: [time] for size, time in zip(SIZES, times, strict=True)}, draws=20)

    for piece in law.pieces:
        assert piece.latency_ns >= 0
        assert piece.ns_per_byte >= 0
        assert 0 <= piece.latency_interval_ns[0] <= piece.latency_interval_ns[1]


def test_large_sizes_do_not_decide_alone_as_they_do_with_least_squares() -> None:
    """Least squares through these five regimes gives a negative latency; relative errors keep the small sizes right."""
    times = {size: 900_000 + size / (0.9 if size < 1 << 26 else 1.0) for size in SIZES}
    times[SIZES[-1]] *= 1.4

    law = fitted({size: [time] for size, time in times.items()})

    _, intercept = np.polyfit(SIZES, list(times.values()), 1)
    assert intercept < 0
    assert abs(law.errors[4096]) < 0.15


def test_a_break_is_found_where_bytes_flow_at_two_rates() -> None:
    times = {size: 10_000 + size / (10.4 if size < 1 << 24 else 4.9) for size in SIZES}

    law = fitted(noisy(times, 0.03))

    assert law.break_bytes == 1 << 24
    assert [round(1 / piece.ns_per_byte) for piece in law.pieces] == [10, 5]
    assert law.worst_error < 0.1


def test_noise_alone_makes_no_break() -> None:
    found = [fitted(noisy({s: 20_000 + s / 2 for s in SIZES}, 0.05, seed=seed), draws=0) for seed in range(40)]

    assert sum(law.break_bytes is not None for law in found) <= 6


def test_what_is_no_such_law_has_a_large_error() -> None:
    times = {size: 10_000 + size / 2 for size in SIZES}
    times[1 << 20] *= 3

    assert fitted({size: [time] for size, time in times.items()}).worst_error > 0.25


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        (SIZES[:5], "6 sizes, there are 5"),
        ([4096, 8192, 16384, 32768, 65536, 131072], "these span 1.5"),
    ],
)
def test_too_few_sizes_or_decades_are_refused(sizes: list[int], says: str) -> None:
    answer = fit_service({size: [1000.0 + size] for size in sizes})

    assert isinstance(answer, str)
    assert says in answer


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """90 % intervals of the bandwidth of 100 noisy laws cover the truth in 75 to 100 of them."""
    covered = 0
    for seed in range(100):
        piece = fitted(noisy({s: 50_000 + s / 2 for s in SIZES}, 0.1, n=15, seed=seed), draws=200).pieces[0]
        covered += piece.ns_per_byte_interval[0] <= 0.5 <= piece.ns_per_byte_interval[1]

    assert 75 <= covered <= 100


def test_twice_the_time_is_twice_both_terms() -> None:
    times = noisy({size: 10_000 + size / 3 for size in SIZES}, 0.05)
    one = fitted(times)
    other = fitted({size: [2 * time for time in values] for size, values in times.items()})

    assert other.pieces[0].latency_ns == pytest.approx(2 * one.pieces[0].latency_ns)
    assert other.pieces[0].ns_per_byte == pytest.approx(2 * one.pieces[0].ns_per_byte)


def test_whole_decades_are_predicted_from_the_others() -> None:
    errors = decades_left_out(noisy({size: 100_000 + size / 1.2 for size in SIZES}, 0.05))

    assert set(errors) == set(SIZES)
    assert max(map(abs, errors.values())) < 0.15


def test_a_left_out_decade_is_not_in_its_own_prediction() -> None:
    """A decade that follows another law is missed, which it would not be if it had been fitted."""
    times = {size: 10_000 + size / 2 for size in SIZES}
    times[SIZES[-1]] *= 4

    assert decades_left_out({size: [time] for size, time in times.items()})[SIZES[-1]] == pytest.approx(-0.75, abs=0.01)


def test_without_latency_every_size_reaches_half_the_bandwidth() -> None:
    law = fitted({size: [size / 2.0] for size in SIZES})

    assert law.crossover_bytes() == pytest.approx(0, abs=1e-6)
    assert law.half_performance_bytes() == pytest.approx(0, abs=1e-6)
