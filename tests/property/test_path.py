"""Laws of the critical path: longest by enumeration, contiguous, made of rows that exist, as long as the periods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import assume, given

from longpole.graph.kinds import GRADE_OF_KIND
from longpole.graph.path import UNEXPLAINED
from longpole.graph.sweep import sweep, topological_order
from longpole.graph.walk import last_arrivals, walk_back
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from tests.examples import examples
from tests.graph_strategies import Dag, all_paths, dags, jobs, teams
from tests.path_laws import check_path
from tests.run_graphs import attempted, replayed
from tests.strategies import Shape, scripts

if TYPE_CHECKING:
    from tests.build import Script


def _swept(dag: Dag) -> np.ndarray:
    order = topological_order(dag.time_ns, dag.edges.src, dag.edges.dst)
    return sweep(dag.n, dag.edges.src, dag.edges.dst, dag.edges.length_ns, dag.floor_ns, order)


@given(dags(max_points=8, min_weight=0))
def test_the_walk_is_a_longest_of_all_paths(dag: Dag) -> None:
    time_ns = _swept(dag)
    last = int(time_ns.argmax())
    paths = all_paths(dag, last)

    steps = walk_back(dag.n, dag.edges, time_ns, [(0, last, int(time_ns.min()) - 1)])

    length = dag.edges.length_ns
    total = [int(dag.floor_ns[_root(dag, last, path)] + length[path].sum()) for path in paths]
    longest = [[e for e in path if length[e]] for path, at in zip(paths, total, strict=True) if at == max(total)]
    assert max(total) == time_ns[last]
    assert steps.edge[steps.edge >= 0].tolist() in longest
    walked = steps.edge >= 0
    assert (steps.end_ns - steps.start_ns)[walked].tolist() == length[steps.edge[walked]].tolist()


def _root(dag: Dag, last: int, path: list[int]) -> int:
    return int(dag.edges.src[path[0]]) if path else last


@given(dags())
def test_the_last_arrival_is_the_latest_then_the_surest_then_the_lowest(dag: Dag) -> None:
    edges, best = dag.edges, last_arrivals(dag.n, dag.edges, dag.time_ns)

    for point in range(dag.n):
        into = np.flatnonzero(edges.dst == point).tolist()
        keys = {
            e: (-int(dag.time_ns[edges.src[e]] + edges.length_ns[e]), GRADE_OF_KIND[edges.kind[e]], int(edges.src[e]))
            for e in into
        }
        if into:
            assert keys[int(best[point])] == min(keys.values())
        else:
            assert best[point] == -1


@given(dags())
def test_a_walk_fills_its_period_whatever_clocks_say(dag: Dag) -> None:
    last = int(dag.time_ns.argmax())
    until_ns = int(dag.time_ns.min()) - 3
    assume(dag.time_ns[last] > until_ns)

    steps = walk_back(dag.n, dag.edges, dag.time_ns, [(5, last, until_ns)])

    assert (steps.unit == 5).all()
    assert steps.start_ns[0] == until_ns
    assert steps.end_ns[-1] == dag.time_ns[last]
    assert (steps.end_ns[:-1] == steps.start_ns[1:]).all()
    assert (steps.end_ns > steps.start_ns).all()


@examples(20)
@given(jobs())
def test_pieces_of_a_rank_fill_its_periods(script: Script) -> None:
    run = replayed(script)

    check_path(run.graph, run.replayed)


@examples(20)
@given(teams())
def test_pieces_of_a_team_fill_its_periods(team: list[Script]) -> None:
    run = replayed(*team)

    check_path(run.graph, run.replayed)


SMALL = Settings(silence_min_ns=5, implied_wait_min_ns=10, allocation_min_ns=3, resumes_within_ns=2, clean_margin_ns=2)


@examples(30)
@given(scripts(Shape(horizon_ns=80)))
def test_pieces_of_any_record_fill_its_periods(script: Script) -> None:
    """Odd ones: without launches, with empty calls and spans, clocks that are off, steps that overlap."""
    found = attempted(script, settings=SMALL)

    if not isinstance(found, Unknown):
        check_path(found.graph, found.replayed)
        assert found.replayed.judgement.orphans == 0


@examples(20)
@given(jobs())
def test_what_a_machine_could_have_written_is_explained(script: Script) -> None:
    run = replayed(script)
    pieces = run.path

    assert pieces.dur_ns[pieces.kind == UNEXPLAINED].sum() == 0
    assert run.replayed.judgement.orphans == 0
