"""What is said of a run rank by rank is what is said of it joined."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.records.ledger import Unknown
from longpole.whatif.answer import path_answer
from longpole.whatif.change import parse_change
from longpole.whatif.parts_replay import PartsReplay, answer_parts, predict_parts, replay_parts
from longpole.whatif.predict import Ground
from tests.graph_strategies import teams
from tests.parts import CHANGES, source_of, team
from tests.run_graphs import replayed

if TYPE_CHECKING:
    from tests.build import Script
    from tests.run_graphs import Run

APART = 2  # ns: sums of shares of nanoseconds come in another order


def same(found: msgspec.Struct, whole: msgspec.Struct) -> None:
    """Compare all fields; shares are sums of floats in another order."""
    _same(msgspec.to_builtins(found), msgspec.to_builtins(whole))


def _same(found: object, whole: object) -> None:
    if isinstance(found, dict) and isinstance(whole, dict):
        assert found.keys() == whole.keys()
        for key in whole:
            _same(found[key], whole[key])
    elif isinstance(found, list) and isinstance(whole, list):
        assert len(found) == len(whole)
        for one, other in zip(found, whole, strict=True):
            _same(one, other)
    else:
        assert found == (pytest.approx(whole, abs=1e-9) if isinstance(whole, float) else whole)


def check(run: Run, *texts: str) -> None:
    """Hold what is said rank by rank to what is said of the joined graph."""
    found = replay_parts(source_of(run), run.replayed.window.names)
    if run.replayed.window.before.min() < 0:
        assert isinstance(found, Unknown)
        return
    assert isinstance(found, PartsReplay)
    whole = run.replayed
    assert found.measured_ns.tolist() == whole.measured_ns.tolist()
    assert found.replayed_ns.tolist() == whole.replayed_ns.tolist()
    same(found.judgement, whole.judgement)
    assert found.why_refused == whole.why_refused

    few = replace(run.settings, slack_max_edges=0)
    found = replace(found, source=replace(found.source, settings=few))
    ground = Ground(run.graph, whole, run.instances, found.source.cost, few)
    same(answer_parts(found, None), path_answer(ground, None))
    _check_changes(found, run, texts)


def _check_changes(found: PartsReplay, run: Run, texts: tuple[str, ...]) -> None:
    parts = predict_parts(found, [parse_change(text) for text in texts])
    whole = run.predict(*texts)
    for name, value in asdict(whole).items():
        told = getattr(parts, name)
        if name in ("before_ns", "after_ns"):
            assert {key: told.get(key, 0) for key in told | value} == pytest.approx(
                {key: value.get(key, 0) for key in told | value}, abs=APART
            )
        else:
            assert told == pytest.approx(value, abs=1e-9) if isinstance(value, float) else told == value, name


@pytest.mark.parametrize("text", CHANGES)
def test_every_change_within_ranks_is_told_as_of_the_joined_graph(text: str) -> None:
    check(replayed(*team()), text)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.one_of(teams(), teams(ranks=3)), st.lists(st.sampled_from(CHANGES), min_size=1, max_size=2))
def test_whatever_the_ranks_do(scripts: list[Script], texts: list[str]) -> None:
    check(replayed(*scripts), *texts)


def test_that_a_change_fits_nothing_on_one_rank_is_no_refusal() -> None:
    """Each change is asked about on its own: rank 0 has rows of the first only, rank 1 of both."""
    check(replayed(*team()), "--set collective=0.5x", "--off-path output", "--set rank:1=0.25x")


@pytest.mark.parametrize("text", ["--equalise work", "--fuse all_reduce=1MB"])
def test_changes_across_ranks_are_refused(text: str) -> None:
    run = replayed(*team())
    found = replay_parts(source_of(run), run.replayed.window.names)
    assert isinstance(found, PartsReplay)

    told = predict_parts(found, [parse_change(text)])

    assert "join_max_bytes" in told.refused
    assert told.rows == []
