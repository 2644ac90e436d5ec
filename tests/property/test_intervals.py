"""Interval algebra against sets of integer instants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longpole.timeline.intervals import (
    Intervals,
    complement,
    covered_before,
    expand,
    intersect,
    subtract,
    union,
    union_by_group,
    unite,
)
from tests.oracle import as_spans, instants
from tests.strategies import spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHIFTS = st.sampled_from((0, -25, 1_700_000_000_000_000_000, -(1 << 61)))


def _arrays(pairs: list[tuple[int, int]], by: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array([s + by for s, _ in pairs], np.int64), np.array([e + by for _, e in pairs], np.int64)


def _set(pairs: list[tuple[int, int]]) -> Intervals:
    return union(*_arrays(pairs))


def _pairs(intervals: Intervals, by: int = 0) -> list[tuple[int, int]]:
    return [(s - by, e - by) for s, e in zip(intervals.start_ns.tolist(), intervals.end_ns.tolist(), strict=True)]


@given(spans(), SHIFTS)
def test_a_union_covers_just_what_its_spans_cover(pairs: list[tuple[int, int]], shift: int) -> None:
    """The result is ascending and disjoint, does not touch, holds nothing empty, wherever in time it lies."""
    united = union(*_arrays(pairs, shift))

    assert _pairs(united, shift) == as_spans(instants(pairs))
    assert united.total_ns() == len(instants(pairs))


@given(spans(), st.lists(st.tuples(st.integers(0, 30), st.integers(-5, 0)), max_size=4))
def test_spans_that_end_before_they_start_count_nothing(
    pairs: list[tuple[int, int]], negative: list[tuple[int, int]]
) -> None:
    mixed = [*pairs, *((start, start + length) for start, length in negative)]

    assert _pairs(_set(mixed)) == as_spans(instants(pairs))


@given(spans(), spans())
def test_sets_unite_intersect_and_subtract_as_sets_of_instants(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    assert _pairs(unite(_set(a), _set(b))) == as_spans(instants(a) | instants(b))
    assert _pairs(intersect(_set(a), _set(b))) == as_spans(instants(a) & instants(b))
    assert _pairs(subtract(_set(a), _set(b))) == as_spans(instants(a) - instants(b))


@given(spans(), st.integers(-5, 35), st.integers(-5, 35))
def test_a_complement_is_what_is_left_of_a_span(pairs: list[tuple[int, int]], low: int, high: int) -> None:
    """An empty or negative span leaves nothing."""
    rest = complement(_set(pairs), low, high)

    assert _pairs(rest) == as_spans(instants([(low, high)]) - instants(pairs))


@given(spans(), st.lists(st.integers(-5, 35), max_size=10))
def test_covered_before_counts_the_instants_before_a_time(pairs: list[tuple[int, int]], times: list[int]) -> None:
    before = covered_before(_set(pairs), np.array(times, np.int64))

    assert before.tolist() == [len({t for t in instants(pairs) if t < time}) for time in times]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30), st.integers(0, 30)), max_size=15), SHIFTS)
def test_groups_are_united_apart_from_each_other(rows: list[tuple[int, int, int]], shift: int) -> None:
    group = np.array([row[0] for row in rows], np.int32)
    pairs = [(min(row[1:]), max(row[1:])) for row in rows]

    groups, start, end = union_by_group(group, *_arrays(pairs, shift))

    found = list(zip(groups.tolist(), (start - shift).tolist(), (end - shift).tolist(), strict=True))
    expected = [
        (number, *span)
        for number in sorted({row[0] for row in rows})
        for span in as_spans(instants(pair for row, pair in zip(rows, pairs, strict=True) if row[0] == number))
    ]
    assert found == expected


@given(
    st.lists(st.tuples(st.sampled_from((0, 7, 1 << 20)), st.sampled_from((-(1 << 60), 0, 1 << 60)), spans(max_size=3))),
)
def test_groups_are_united_although_they_lie_far_apart(rows: list[tuple[int, int, list[tuple[int, int]]]]) -> None:
    """Many groups and centuries between their spans: a sum of both would not fit into 64 bits."""
    flat = [(number, start + base, end + base) for number, base, pairs in rows for start, end in pairs]

    groups, start, end = union_by_group(
        np.array([row[0] for row in flat], np.int32), *_arrays([row[1:] for row in flat])
    )

    expected = []
    for number in sorted({row[0] for row in flat}):
        united = union(*_arrays([row[1:] for row in flat if row[0] == number]))
        expected += [(number, *pair) for pair in _pairs(united)]
    assert list(zip(groups.tolist(), start.tolist(), end.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
def test_expand_lists_every_pair_in_order(ranges: list[tuple[int, int]]) -> None:
    first = np.array([low for low, _ in ranges], np.intp)
    last = np.array([high for _, high in ranges], np.intp)

    rows, items = expand(first, last)

    expected = [(i, j) for i, (low, high) in enumerate(ranges) for j in range(low, high)]
    assert list(zip(rows.tolist(), items.tolist(), strict=True)) == expected
