"""A path of very many pieces is drawn as fewer, and covers the same time on the same rows."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from longpole.records.critical_path import PathPiece
from longpole.report.page.drawn_path import Group, grouped

LANES = {(0, "main"): 0, (0, "stream 7"): 1}


def path(*lengths: tuple[int, str]) -> list[PathPiece]:
    """Return a path of pieces, one after the other, on tracks of rank 0."""
    found, at = [], 100
    for length, track in lengths:
        found.append(PathPiece(0, track, f"{track} {length}", "host", at, length, "recorded", "it went on"))
        at += length
    return found


def told(groups: list[Group]) -> list[tuple[int, int, int, int, str]]:
    return [(one.lane, one.start_ns, one.length_ns, one.pieces, one.longest.name) for one in groups]


def test_few_pieces_stay_as_they_are_and_a_row_that_is_not_drawn_is_none() -> None:
    pieces = path((1, "main"), (2, "main"), (3, "elsewhere"))

    assert told(grouped(pieces, LANES, 1000)) == [
        (0, 100, 1, 1, "main 1"),
        (0, 101, 2, 1, "main 2"),
        (-1, 103, 3, 1, "elsewhere 3"),
    ]


def test_too_many_short_pieces_of_one_row_are_told_together_by_the_longest() -> None:
    pieces = path((1, "main"), (3, "main"), (2, "main"), (500, "main"), (1, "stream 7"), (1, "stream 7"))

    assert told(grouped(pieces, LANES, 16_384 * 6, most=3)) == [
        (0, 100, 6, 3, "main 3"),
        (0, 106, 500, 1, "main 500"),
        (1, 606, 2, 2, "stream 7 1"),
    ]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.sampled_from(["main", "stream 7"])), max_size=60),
    st.integers(1, 60),
)
def test_nothing_of_a_path_is_lost(lengths: list[tuple[int, str]], most: int) -> None:
    pieces = path(*lengths)
    groups = grouped(pieces, LANES, sum(length for length, _ in lengths) + 1, most)

    assert sum(one.pieces for one in groups) == len(pieces)
    assert sum(one.length_ns for one in groups) == sum(length for length, _ in lengths)
    for before, after in pairwise(groups):
        assert before.start_ns + before.length_ns == after.start_ns
    by_row = {"main": 0, "stream 7": 0}
    for one in groups:
        by_row[one.longest.track] += one.length_ns
    assert by_row == {row: sum(length for length, track in lengths if track == row) for row in by_row}
