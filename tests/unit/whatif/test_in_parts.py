"""A run replayed and changed rank by rank is the run that was joined first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.errors import InvariantError
from longpole.graph.kinds import EdgeKind
from longpole.whatif.change import parse_change
from longpole.whatif.in_parts import predict_in_parts, replay_in_parts
from longpole.whatif.replay import median_ns
from tests.graph_strategies import teams
from tests.parts import CHANGES, source_of, team
from tests.run_graphs import replayed

if TYPE_CHECKING:
    from longpole.whatif.draft import Draft
    from tests.build import Script
    from tests.run_graphs import Run


def check(run: Run, *texts: str) -> None:
    """Hold the parts to the joined graph, unchanged and with changes."""
    source = source_of(run)
    recorded = replay_in_parts(source)
    steady = list(run.replayed.window.names)
    measured_ns, replayed_ns = recorded.finished.periods_ns(steady)
    assert measured_ns.tolist() == run.replayed.measured_ns.tolist()
    assert replayed_ns.tolist() == run.replayed.replayed_ns.tolist()

    whole = run.predict(*texts)
    parts = predict_in_parts(source, recorded, [parse_change(text) for text in texts])

    assert median_ns(parts.finished.periods_ns(steady)[1]) == whole.predicted_ns
    assert parts.rows == whole.rows


@pytest.mark.parametrize("text", CHANGES)
def test_every_change_within_ranks_gives_the_periods_of_the_joined_graph(text: str) -> None:
    check(replayed(*team()), text)


def test_several_changes_are_made_in_order() -> None:
    check(replayed(*team()), "--set collective=0.5x", "--remove input", "--set collective=+1ms")


@settings(max_examples=15)
@given(teams(), st.sampled_from(CHANGES))
def test_whatever_the_ranks_do(scripts: list[Script], text: str) -> None:
    check(replayed(*scripts), text)


def test_ranks_that_a_change_leaves_alone_are_not_contracted_again() -> None:
    run = replayed(*team())
    source = source_of(run)
    recorded = replay_in_parts(source)

    found = predict_in_parts(source, recorded, [parse_change("--set collective=0.5x")])

    assert found.rows == [6]
    assert found.refusals == []
    assert found.finished.completion_ns[-1] < recorded.finished.completion_ns[-1]


def test_each_graph_is_loaded_once_a_replay() -> None:
    loaded: list[int] = []
    source = source_of(replayed(*team()), loaded)
    recorded = replay_in_parts(source)
    predict_in_parts(source, recorded, [parse_change("--set compute=0.5x")])

    assert loaded == [0, 1, 0, 1]


@pytest.mark.parametrize("text", ["--equalise work", "--fuse all_reduce=1MB"])
def test_changes_across_ranks_need_the_joined_graph(text: str) -> None:
    source = source_of(replayed(*team()))

    with pytest.raises(InvariantError, match="several ranks at once"):
        predict_in_parts(source, replay_in_parts(source), [parse_change(text)])


def test_a_function_that_ties_ranks_together_is_an_error() -> None:
    source = source_of(replayed(*team()))

    def late(draft: Draft) -> None:
        arrived = int(draft.graph.edges.dst[(draft.graph.edges.kind == EdgeKind.ARRIVAL).argmax()])
        draft.add_edge(EdgeKind.WORKER, 0, arrived, 5)

    with pytest.raises(InvariantError, match="ties it to the others"):
        predict_in_parts(source, replay_in_parts(source), [late])


def test_what_fits_nothing_is_refused_once() -> None:
    source = source_of(replayed(*team()))

    found = predict_in_parts(source, replay_in_parts(source), [parse_change("--issue-early name:nothing")])

    assert found.rows == [0]
    assert len(found.refusals) == 1
