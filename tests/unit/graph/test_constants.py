"""Constants are medians of clean samples; of too few, or too long, the default stands."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.graph.constants import fit_constants, with_constants, with_defaults
from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.settings import Settings

K = EdgeKind


def _fit(
    *samples: tuple[EdgeKind, float, float], lane: int = 4, other_us: float | None = None
) -> tuple[int, int, bool]:
    """Fit samples (kind, source µs, target µs), each alone at its target or beside another edge from `other_us`."""
    time, src, dst, kind = [], [], [], []
    for k, begin, end in samples:
        time += [begin, end]
        src.append(len(time) - 2)
        dst.append(len(time) - 1)
        kind.append(k)
        if other_us is not None:
            time.append(end - other_us)
            src.append(len(time) - 1)
            dst.append(len(time) - 2)
            kind.append(K.SECTION)
    edges = Edges(
        np.array(src, np.int32), np.array(dst, np.int32), np.array(kind, np.uint8), np.zeros(len(src), np.int64)
    )
    time_ns = (np.array(time) * 1000).astype(np.int64)
    constants = fit_constants(time_ns, np.full(len(time), lane, np.int32), edges, Settings())
    found = constants.get((int(samples[0][0]), lane), constants[int(samples[0][0]), -1])
    return found.length_ns, found.samples, found.fitted


def _launches(n: int, lag: float) -> list[tuple[EdgeKind, float, float]]:
    return [(K.LAUNCH, 1000.0 * k, 1000.0 * k + lag) for k in range(n)]


def test_the_median_of_five_clean_samples() -> None:
    assert _fit(*_launches(4, 9), (K.LAUNCH, 9000, 9050)) == (9000, 5, True)


def test_four_are_too_few() -> None:
    assert _fit(*_launches(4, 9)) == (6000, 4, False)


def test_a_median_above_a_tenth_of_a_millisecond_is_refused() -> None:
    assert _fit(*_launches(9, 100)) == (100_000, 9, True)
    assert _fit(*_launches(9, 101)) == (6000, 9, False)


@pytest.mark.parametrize(("other_us", "samples"), [(17.0, 6), (16.9, 0), (1.0, 0)])
def test_a_sample_is_clean_where_nothing_else_arrives_within_twenty_microseconds(other_us: float, samples: int) -> None:
    """Source + 6 µs must be 20 µs later than the other edge's arrival; here the launch takes 3 µs."""
    assert _fit(*_launches(6, 3), other_us=other_us)[1] == samples


def test_samples_that_clocks_contradict_are_left_out() -> None:
    assert _fit(*_launches(5, 9), (K.LAUNCH, 9000, 8990)) == (9000, 5, True)


def test_kinds_of_one_mechanism_share_their_samples() -> None:
    three, two = _launches(3, 9), [(K.LAUNCH_IN_ORDER, 5000.0, 5009.0), (K.LAUNCH_IN_ORDER, 6000.0, 6009.0)]

    assert _fit(*three, *two) == (9000, 5, True)


def test_each_stream_has_its_own_launch_where_it_has_samples_enough() -> None:
    n, lags, lanes = 12, [10] * 6 + [75] * 6, [3] * 6 + [5] * 6
    time_ns = np.array([t for k, lag in enumerate(lags) for t in (1000 * k, 1000 * k + lag)]) * 1000
    lane = np.repeat(np.array(lanes, np.int32), 2)
    edges = Edges.of(K.LAUNCH, np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2))

    constants = fit_constants(time_ns, lane, edges, Settings())
    length_ns = with_constants(edges, lane, constants)

    assert length_ns.tolist() == [10_000] * 6 + [75_000] * 6
    assert constants[int(K.LAUNCH), -1].samples == 12


def test_kept_lengths_are_no_constants() -> None:
    edges = Edges.join(
        [
            Edges.of(K.SECTION, np.array([0]), np.array([1]), np.array([7])),
            Edges.of(K.STREAM, np.array([0]), np.array([1]), np.array([7])),
        ]
    )

    assert with_defaults(edges).tolist() == [7, 1000]
