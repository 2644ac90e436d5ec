"""Cases of the interval algebra that a reader may wonder about; the laws are in tests/property."""

from __future__ import annotations

import numpy as np

from longpole.timeline.intervals import (
    Intervals,
    complement,
    covered_before,
    intersect,
    subtract,
    union,
    union_by_group,
)


def _set(*spans: tuple[int, int]) -> Intervals:
    return union(np.array([s for s, _ in spans], np.int64), np.array([e for _, e in spans], np.int64))


def _spans(intervals: Intervals) -> list[tuple[int, int]]:
    return list(zip(intervals.start_ns.tolist(), intervals.end_ns.tolist(), strict=True))


def test_touching_spans_become_one() -> None:
    """0123456789

    ├──┤├──┤        two kernels back to back leave no gap
    """
    assert _spans(_set((0, 4), (4, 8))) == [(0, 8)]


def test_a_span_inside_another_does_not_shorten_it() -> None:
    """0123456789

    ├────────┤
      ├──┤   ├┤
    """
    assert _spans(_set((0, 9), (2, 5), (9, 11))) == [(0, 11)]


def test_spans_that_only_touch_have_nothing_in_common() -> None:
    assert _spans(intersect(_set((0, 5)), _set((5, 9)))) == []


def test_nothing_is_left_of_a_span_that_is_covered() -> None:
    assert _spans(complement(_set((0, 10)), 2, 8)) == []


def test_all_is_left_of_a_span_beside_the_set() -> None:
    assert _spans(complement(_set((0, 10)), 20, 30)) == [(20, 30)]


def test_taking_away_the_middle_leaves_two_parts() -> None:
    assert _spans(subtract(_set((0, 10)), _set((3, 6)))) == [(0, 3), (6, 10)]


def test_nothing_is_covered_of_the_empty_set() -> None:
    assert covered_before(Intervals.none(), np.array([-5, 0, 7], np.int64)).tolist() == [0, 0, 0]


def test_a_single_span_without_length_is_the_empty_set() -> None:
    assert _spans(Intervals.single(4, 4)) == []
    assert _spans(Intervals.single(4, 3)) == []


def test_a_long_span_of_one_group_does_not_reach_into_the_next_group() -> None:
    """Group 0  ├─────────────────┤

    group 1     ├──┤        ├──┤
    """
    group, start, end = union_by_group(
        np.array([1, 0, 1], np.int32), np.array([0, 0, 50], np.int64), np.array([9, 100, 60], np.int64)
    )

    assert group.tolist() == [0, 1, 1]
    assert start.tolist() == [0, 0, 50]
    assert end.tolist() == [100, 9, 60]
