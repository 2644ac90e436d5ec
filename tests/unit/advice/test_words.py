"""Ranks and names in sentences: all ranks are not listed, and neither is the only one."""

from __future__ import annotations

import pytest

from longpole.advice.words import listed, of_ranks, on_ranks, some_names
from tests.scenes import loading_job, scene_of

THREE = scene_of(*(loading_job(100, 100, 100, rank=rank, world=3) for rank in range(3)))
ALONE = scene_of(loading_job(100, 100, 100))


@pytest.mark.parametrize(
    ("ranks", "on", "of"),
    [
        ([2], " on rank 2", "rank 2's "),
        ([2, 0], " on ranks 0, 2", "ranks 0, 2's "),
        ([0, 1, 2], "", ""),
    ],
)
def test_some_ranks_are_named(ranks: list[int], on: str, of: str) -> None:
    assert on_ranks(THREE, ranks) == on
    assert of_ranks(THREE, [THREE.view_of[rank] for rank in ranks]) == of


def test_a_rank_that_is_alone_is_not_named() -> None:
    assert on_ranks(ALONE, [0]) == ""
    assert of_ranks(ALONE, ALONE.views) == ""


def test_more_than_eight_are_cut_short() -> None:
    assert listed(range(8)) == "ranks 0, 1, 2, 3, 4, 5, 6, 7"
    assert listed([8, *range(8)]) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 …"


def test_names_are_quoted_cut_and_counted() -> None:
    assert some_names(["a"]) == "“a”"
    assert some_names(["a", "b", "c", "d"]) == "“a”, “b” and 2 more"
    assert some_names(["x" * 99]) == f"“{'x' * 60}”"
