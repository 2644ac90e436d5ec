"""The order of points and the sweep, on graphs drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.errors import InvariantError
from longpole.graph.sweep import NEVER_NS, circle_edges, sweep, topological_order


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_a_point_happens_when_the_last_of_what_it_waits_for_has_happened() -> None:
    """0 → 2 (5), 1 → 2 (1), 2 → 3 (4); 0 starts at 10, 1 at 15."""
    src, dst = _ints(0, 1, 2), _ints(2, 2, 3)
    floor_ns = np.array([10, 15, NEVER_NS, NEVER_NS])

    times = sweep(4, src, dst, np.array([5, 1, 4]), floor_ns, _ints(0, 1, 2, 3))

    assert times.tolist() == [10, 15, 16, 20]


def test_a_floor_holds_what_edges_would_let_happen_earlier() -> None:
    times = sweep(2, _ints(0), _ints(1), np.array([5]), np.array([10, 30]), _ints(0, 1))

    assert times.tolist() == [10, 30]


def test_the_recorded_order_stands_where_times_differ() -> None:
    assert topological_order(np.array([30, 10, 20]), _ints(), _ints()).tolist() == [1, 2, 0]


def test_points_of_one_instant_are_ordered_by_their_edges() -> None:
    order = topological_order(np.array([7, 7, 7]), _ints(2, 1), _ints(1, 0))

    assert order.tolist() == [2, 1, 0]


def test_an_edge_that_clocks_contradict_moves_its_target_and_what_follows() -> None:
    """Point 0 is recorded at 5 but waits for point 1 at 9; point 2 at 6 waits for point 0."""
    order = topological_order(np.array([5, 9, 6, 7]), _ints(1, 0), _ints(0, 2)).tolist()

    assert order.index(1) < order.index(0) < order.index(2)
    assert order.index(3) < order.index(1)


@pytest.mark.parametrize("times", [np.zeros(300, np.int64), np.arange(300)[::-1].copy()])
def test_long_chains_of_one_instant_or_backwards_in_time_are_no_circles(times: np.ndarray) -> None:
    order = topological_order(times, np.arange(299, dtype=np.int32), np.arange(1, 300, dtype=np.int32))

    assert order.tolist() == list(range(300))


@pytest.mark.parametrize("times", [[0, 0, 0], [0, 5, 9], [9, 5, 0]])
def test_a_circle_is_an_error_whatever_the_times(times: list[int]) -> None:
    with pytest.raises(InvariantError, match="circle"):
        topological_order(np.array(times), _ints(0, 1, 2), _ints(1, 2, 0))


def test_a_point_cannot_wait_for_itself() -> None:
    with pytest.raises(InvariantError, match="circle"):
        topological_order(np.array([0]), _ints(0), _ints(0))


def test_edges_that_lead_into_a_circle_are_not_in_it() -> None:
    """0 → 1 → 2 → 1, 2 → 3: the middle two only."""
    assert circle_edges(4, _ints(0, 1, 2, 2), _ints(1, 2, 1, 3)).tolist() == [1, 2]


def test_every_point_needs_its_floor() -> None:
    with pytest.raises(InvariantError, match="2 points need as many floors, found 1"):
        sweep(2, _ints(0), _ints(1), np.array([5]), np.array([10]))


def test_nothing_to_sweep() -> None:
    assert topological_order(np.array([], np.int64), _ints(), _ints()).tolist() == []
    assert sweep(0, _ints(), _ints(), np.array([], np.int64), np.array([], np.int64)).tolist() == []
