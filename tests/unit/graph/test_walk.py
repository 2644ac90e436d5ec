"""The walk back: to the latest arrival; ties to the surer edge, then to the lower point."""

from __future__ import annotations

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.graph.walk import last_arrivals, walk_back

K = EdgeKind


def _graph(*edges: tuple[int, int, EdgeKind, int]) -> Edges:
    return Edges(
        np.array([u for u, _, _, _ in edges], np.int32),
        np.array([v for _, v, _, _ in edges], np.int32),
        np.array([k for _, _, k, _ in edges], np.uint8),
        np.array([w for _, _, _, w in edges], np.int64),
    )


def test_time_plus_constant_decides_not_time_alone() -> None:
    edges = _graph((0, 2, K.STREAM, 1), (1, 2, K.LAUNCH, 6))

    assert last_arrivals(3, edges, np.array([10, 4, 20])).tolist() == [-1, -1, 0]
    assert last_arrivals(3, edges, np.array([10, 6, 20])).tolist() == [-1, -1, 1]


def test_at_a_tie_the_surer_edge_wins() -> None:
    edges = _graph((0, 2, K.COINCIDENT, 5), (1, 2, K.EVENT_UNTESTED, 5))

    assert last_arrivals(3, edges, np.array([0, 0, 9])).tolist()[2] == 1


def test_at_a_tie_of_one_grade_the_lower_point_wins() -> None:
    edges = _graph((1, 2, K.LAUNCH, 5), (0, 2, K.DURATION, 5))

    assert last_arrivals(3, edges, np.array([0, 0, 9])).tolist()[2] == 1


def test_several_units_are_walked_each_down_to_the_one_before() -> None:
    """0 →10→ 1 →20→ 2 →30→ 3: completions are points 1 and 3."""
    edges = _graph((0, 1, K.SECTION, 10), (1, 2, K.SECTION, 20), (2, 3, K.SECTION, 30))
    time_ns = np.array([0, 10, 30, 60])

    steps = walk_back(4, edges, time_ns, [(0, 1, 0), (1, 3, 10)])

    assert steps.unit.tolist() == [0, 1, 1]
    assert steps.edge.tolist() == [0, 1, 2]
    assert list(zip(steps.start_ns.tolist(), steps.end_ns.tolist(), strict=True)) == [(0, 10), (10, 30), (30, 60)]


def test_a_step_is_clipped_to_the_period() -> None:
    edges = _graph((0, 1, K.SECTION, 50))

    steps = walk_back(2, edges, np.array([0, 50]), [(0, 1, 30)])

    assert (steps.start_ns.tolist(), steps.end_ns.tolist()) == ([30], [50])


def test_where_nothing_was_waited_for_the_rest_has_no_edge() -> None:
    edges = _graph((0, 1, K.SECTION, 10))

    steps = walk_back(2, edges, np.array([40, 50]), [(0, 1, 0)])

    assert steps.edge.tolist() == [-1, 0]
    assert steps.start_ns.tolist() == [0, 40]


def test_a_source_later_than_its_target_takes_no_time_of_the_path() -> None:
    """A clock is off by 3: the walk goes through the point, but not back in time."""
    edges = _graph((0, 1, K.SECTION, 10), (1, 2, K.LAUNCH, 6))

    steps = walk_back(3, edges, np.array([0, 23, 20]), [(0, 2, 0)])

    assert steps.edge.tolist() == [0]
    assert (steps.start_ns.tolist(), steps.end_ns.tolist()) == ([0], [20])


def test_an_empty_period_has_no_steps() -> None:
    assert len(walk_back(1, _graph(), np.array([5]), [(0, 0, 5)]).edge) == 0
