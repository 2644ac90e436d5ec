"""Lanes: what a viewer would drop or close too early lies on a lane of its own."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given

from longpole.report.perfetto.lanes import call_lanes, event_places
from longpole.timeline.nesting import apart_lanes
from tests.strategies import call_trees, spans


def columns(found: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(found, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def crossing(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Tell whether one begins inside the other and ends outside."""
    first, second = sorted((one, other), key=lambda span: (span[0], -span[1]))
    return first[0] < second[0] < first[1] < second[1]


@given(spans(max_size=25))
def test_no_two_spans_of_a_lane_of_calls_cross(found: list[tuple[int, int]]) -> None:
    lanes = call_lanes(*columns(found))

    pairs = combinations(zip(found, lanes.tolist(), strict=True), 2)
    assert not any(crossing(one, other) for (one, a), (other, b) in pairs if a == b)
    assert set(lanes.tolist()) == set(range(len(set(lanes.tolist()))))


@given(call_trees(max_size=25))
def test_a_second_lane_is_for_spans_that_cross_and_for_no_others(found: list[tuple[int, int]]) -> None:
    crosses = any(crossing(one, other) for one, other in combinations(found, 2))

    assert call_lanes(*columns(found)).any() == crosses


@given(spans(max_size=25))
def test_no_two_spans_of_a_lane_overlap_and_lanes_are_as_few_as_run_at_once(found: list[tuple[int, int]]) -> None:
    lanes = apart_lanes(*columns(found)).tolist()

    for (one, a), (other, b) in combinations(zip(found, lanes, strict=True), 2):
        assert a != b or min(one[1], other[1]) <= max(one[0], other[0])
    at_once = [sum(start <= at < max(end, start + 1) for start, end in found) for at, _ in found]
    assert max(lanes, default=-1) + 1 <= max(at_once, default=0)


def test_many_spans_that_all_cross_get_lanes_all_the_same() -> None:
    """A staircase of which no two lie on one lane, with more steps than rounds."""
    found = [(place, place + 100) for place in range(30)]

    assert sorted(call_lanes(*columns(found)).tolist()) == list(range(30))


@given(spans(max_size=25))
def test_events_in_their_places_open_and_close_each_span(found: list[tuple[int, int]]) -> None:
    start_ns, end_ns = columns(found)
    lane = call_lanes(start_ns, end_ns)
    mine = np.flatnonzero(lane == 0)
    begins, ends = event_places(start_ns[mine], end_ns[mine])
    events: list[tuple[int, int]] = [(0, 0)] * (2 * len(mine))
    for row, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        events[begin], events[end] = (int(start_ns[mine[row]]), 1), (int(end_ns[mine[row]]), -1)

    opened: list[int] = []
    closed = []
    for time_ns, kind in events:
        if kind == 1:
            opened.append(time_ns)
        else:
            closed.append((opened.pop(), time_ns))

    assert [time_ns for time_ns, _ in events] == sorted(time_ns for time_ns, _ in events)
    assert sorted(closed) == sorted(found[row] for row in mine.tolist())
