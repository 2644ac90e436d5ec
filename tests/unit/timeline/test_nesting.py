"""Call trees that real exporters write; the laws are in tests/property."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.timeline.nesting import Nesting, inherit, nest, segment

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _nest(*spans: tuple[int, int]) -> tuple[NDArray[np.int64], Nesting]:
    start = np.array([s for s, _ in spans], np.int64)
    return start, nest(start, np.array([e for _, e in spans], np.int64))


def test_a_span_belongs_to_the_innermost_one_that_is_still_open() -> None:
    """0         1         2

    ├──────── a ────────┤
      ├─── b ───┤ ├ d ┤
        ├ c ┤
    """
    _, nesting = _nest((0, 20), (2, 12), (4, 9), (14, 19))

    assert nesting.parent.tolist() == [-1, 0, 1, 0]
    assert nesting.depth.tolist() == [0, 1, 2, 1]


def test_of_equal_starts_the_longer_span_is_the_parent() -> None:
    _, nesting = _nest((0, 20), (0, 10))

    assert nesting.parent.tolist() == [-1, 0]


def test_a_span_that_outlasts_its_parent_by_rounding_is_cut_for_nesting() -> None:
    """0         1

    ├── a ───┤
        ├ b ─┼┤
    """
    _, nesting = _nest((0, 10), (5, 11))

    assert nesting.parent.tolist() == [-1, 0]
    assert nesting.end_ns.tolist() == [10, 10]


def test_what_follows_a_cut_span_is_not_lost() -> None:
    """0         1         2

    ├── a ───┤
        ├ b ─┼┤
             ├── c ────┤     starts where a ends, and is as long as it was
    """
    start, nesting = _nest((0, 10), (5, 11), (10, 20))

    assert nesting.parent.tolist() == [-1, 0, -1]
    assert nesting.end_ns.tolist() == [10, 10, 20]
    assert segment(start, nesting).span.tolist() == [0, 1, 2, -1]


def test_a_chain_of_partial_overlaps_is_cut_link_by_link() -> None:
    """0         1         2

    ├── a ───┤
         ├ b ┼───┤
                ├── c ──┤    b ended with a, so c is a root
                     ├ d ┼┤
    """
    _, nesting = _nest((0, 10), (5, 15), (13, 21), (18, 23))

    assert nesting.parent.tolist() == [-1, 0, -1, 2]
    assert nesting.end_ns.tolist() == [10, 10, 21, 21]


def test_an_empty_span_has_a_parent_but_no_time() -> None:
    start, nesting = _nest((0, 10), (5, 5), (5, 5), (10, 10))

    assert nesting.parent.tolist() == [-1, 0, 0, -1]
    assert segment(start, nesting).span.tolist() == [0, -1]


def test_a_span_inherits_from_the_nearest_enclosing_one_with_a_value() -> None:
    _, nesting = _nest((0, 20), (2, 12), (4, 9), (14, 19))

    assert inherit(nesting, np.array([7, -1, 3, -1], np.int32)).tolist() == [7, 7, 3, 7]


def test_a_thread_without_spans_has_no_segments() -> None:
    start, nesting = _nest()

    assert len(segment(start, nesting).start_ns) == 0
