"""What placing must not do to any record: lose a row that is not a copy, cut a span that stands in order."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longpole.settings import Settings
from longpole.timeline.columns import Kind
from longpole.timeline.placing import duplicates, overlong_on_stream, overrunning, untimed

SMALL = st.integers(-3, 3)
LARGE = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=40))
def test_a_row_is_a_duplicate_where_an_earlier_one_agrees_in_every_key(rows: list[tuple[int, int, int]]) -> None:
    keys = tuple(np.array([row[place] for row in rows], np.int64) for place in range(3))

    found = duplicates(keys)

    assert found.tolist() == [row in rows[:place] for place, row in enumerate(rows)]


@given(st.lists(st.tuples(LARGE, LARGE), min_size=1, max_size=30), st.data())
def test_duplicates_are_exact_for_numbers_of_any_size(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    """However they hash: as many rows are left as there are distinct ones."""
    rows += data.draw(st.lists(st.sampled_from(rows), max_size=10))

    found = duplicates(tuple(np.array([row[place] for row in rows], np.int64) for place in range(2)))

    assert Counter(row for row, twice in zip(rows, found.tolist(), strict=True) if not twice) == Counter(set(rows))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10**6), st.integers(0, 2)), min_size=1, max_size=30))
def test_spans_that_run_one_after_the_other_are_never_too_long(rows: list[tuple[int, int, int]]) -> None:
    """A stream runs its spans in order, so whatever they last, none of them is impossible."""
    reach: dict[int, int] = {}
    start, end = [], []
    for gap, length, lane in rows:
        start.append(reach.get(lane, 0) + gap)
        reach[lane] = start[-1] + length
        end.append(reach[lane])
    lanes = np.array([lane for _, _, lane in rows], np.int32)

    found = overlong_on_stream(
        lanes, np.array(start, np.int64), np.array(end, np.int64), np.arange(len(rows)), Settings()
    )

    assert len(found.row) == 0


@given(st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**9)), min_size=1, max_size=30))
def test_spans_of_a_second_in_a_record_of_ten_are_never_overrunning(rows: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in rows], np.int64)
    end = start + np.array([length for _, length in rows], np.int64)

    found = overrunning(start, end, np.full(len(rows), Settings().overrun_min_ns, np.int64), Settings())

    assert not found.any()


@given(st.lists(st.tuples(st.sampled_from([0, 0, 5]), st.sampled_from([0, 0, 9]), st.sampled_from(list(Kind)))))
def test_only_device_rows_at_time_zero_are_untimed(rows: list[tuple[int, int, Kind]]) -> None:
    found = untimed(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([int(row[2]) for row in rows], np.uint8),
    )

    on_device = (Kind.KERNEL, Kind.COPY, Kind.MEMSET)
    assert found.tolist() == [kind in on_device and start == end == 0 for start, end, kind in rows]
