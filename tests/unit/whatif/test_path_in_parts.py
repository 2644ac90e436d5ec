"""The path that is walked rank by rank is the path of the joined graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from longpole.whatif.in_parts import replay_in_parts
from longpole.whatif.path_in_parts import observed_in_parts
from tests.graph_strategies import teams
from tests.parts import same_path, source_of, team
from tests.run_graphs import replayed

if TYPE_CHECKING:
    from tests.build import Script
    from tests.run_graphs import Run


def check(run: Run, ranks_held: int) -> list[int]:
    """Compare the paths; return the ranks that were loaded for the walk."""
    loaded: list[int] = []
    source = source_of(run, loaded)
    recorded = replay_in_parts(source)
    loaded.clear()
    same_path(observed_in_parts(source, recorded, run.replayed.window.names, ranks_held), run.path, run.graph)
    return loaded


@pytest.mark.parametrize("ranks_held", [1, 8])
def test_the_path_visits_the_late_rank(ranks_held: int) -> None:
    assert 1 in check(replayed(*team()), ranks_held)


def test_ranks_that_the_path_does_not_visit_are_not_loaded() -> None:
    """Rank 0 of three is never last."""
    loaded = check(replayed(*team(3)), 8)

    assert 1 not in loaded
    assert len(loaded) == len(set(loaded))


@settings(max_examples=20)
@given(teams(ranks=3))
def test_whatever_the_ranks_do(scripts: list[Script]) -> None:
    check(replayed(*scripts), 1)
