"""A planned sweep gives the times of the plain one, whatever the lengths are that come after."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.errors import InvariantError
from longpole.graph.edges import Edges
from longpole.graph.plan import plan_sweep
from longpole.graph.sweep import NEVER_NS, sort_edges, sweep, topological_order
from tests.examples import examples
from tests.graph_strategies import Dag, dags, longest_times


@st.composite
def lanes(draw: st.DrawFn) -> Dag:
    """Draw threads and streams: long chains, numbered one behind the other, that wait for one another here and there.

    Numbers of some lanes run backwards, and some points of chains have numbers far away.
    """
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_lanes, long = draw(st.integers(1, 4)), draw(st.integers(1, 30))
    n = n_lanes * long
    moment = np.concatenate([np.sort(random.permutation(n)[:long]) for _ in range(n_lanes)])
    number = np.arange(n)
    for lane in range(n_lanes):
        if draw(st.booleans()):
            number[lane * long : (lane + 1) * long] = number[lane * long : (lane + 1) * long][::-1]
    if n > 1:
        a, b = random.integers(0, n, (2, draw(st.integers(0, 4))))
        number[a], number[b] = number[b], number[a].copy()
        number = np.argsort(np.argsort(number, kind="stable"), kind="stable")
    order = np.lexsort((np.arange(n), moment))
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    along = np.flatnonzero(np.arange(n) % long != long - 1)
    pairs = [(int(u), int(u) + 1) for u in along if place[u] < place[u + 1]]
    across = random.integers(0, n, (draw(st.integers(0, 2 * n)), 2)).tolist()
    pairs += [(u, v) for u, v in across if place[u] < place[v]]
    src, dst = (np.array([number[pair[side]] for pair in pairs], np.int32) for side in (0, 1))
    edges = Edges(src, dst, np.zeros(len(src), np.uint8), random.integers(-3, 100, len(src)))
    time_ns = np.empty(n, np.int64)
    time_ns[number] = place
    floor_ns = np.where(np.isin(np.arange(n), dst) & (random.random(n) < 0.9), NEVER_NS, time_ns)
    return Dag(time_ns, edges.take(sort_edges(topological_order(time_ns, src, dst), src)), floor_ns)


def _sorted(dag: Dag) -> Dag:
    edges = dag.edges
    order = topological_order(dag.time_ns, edges.src, edges.dst)
    return Dag(dag.time_ns, edges.take(sort_edges(order, edges.src)), dag.floor_ns)


@examples(60)
@given(st.one_of(dags().map(_sorted), lanes()), st.integers(0, 2**32 - 1))
def test_a_plan_holds_for_all_lengths(dag: Dag, seed: int) -> None:
    edges = dag.edges
    plan = plan_sweep(dag.n, edges.src, edges.dst, dag.floor_ns != NEVER_NS)
    random = np.random.default_rng(seed)

    for length_ns in (edges.length_ns, random.integers(-50, 1000, len(edges)), edges.length_ns // 2):
        expected = sweep(dag.n, edges.src, edges.dst, length_ns, dag.floor_ns)
        assert plan.times_ns(length_ns, dag.floor_ns).tolist() == expected.tolist()


@examples(30)
@given(lanes())
def test_a_planned_sweep_finds_the_longest_paths(dag: Dag) -> None:
    plan = plan_sweep(dag.n, dag.edges.src, dag.edges.dst, dag.floor_ns != NEVER_NS)

    assert plan.times_ns(dag.edges.length_ns, dag.floor_ns).tolist() == longest_times(dag)


@examples(30)
@given(lanes())
def test_times_far_apart_are_swept_a_few_paths_at_once(dag: Dag) -> None:
    """63 bits do not hold all paths lifted above one another then."""
    edges = dag.edges
    plan = plan_sweep(dag.n, edges.src, edges.dst, dag.floor_ns != NEVER_NS)
    far_ns = edges.length_ns * (1 << 44)

    expected = sweep(dag.n, edges.src, edges.dst, far_ns, dag.floor_ns)
    assert plan.times_ns(far_ns, dag.floor_ns).tolist() == expected.tolist()


def test_only_points_that_have_several_edges_in_and_out_are_swept_one_by_one() -> None:
    """Two streams behind one thread: 0 -> 1 -> 2, kernels 3 -> 4 and 5 -> 6 launched by it, 7 waits for both."""
    src = np.array([0, 0, 1, 1, 3, 5, 4, 6], np.int32)
    dst = np.array([1, 3, 2, 5, 4, 6, 7, 7], np.int32)
    order = topological_order(np.arange(8), src, dst)
    by = sort_edges(order, src)

    plan = plan_sweep(8, src[by], dst[by], np.zeros(8, np.bool_))

    assert plan.left.tolist() == [0]
    floor_ns = np.array([5, *[NEVER_NS] * 7])
    assert plan.times_ns(np.full(8, 10), floor_ns).tolist() == [5, 15, 25, 15, 25, 25, 35, 45]


def test_a_plan_is_for_its_own_edges() -> None:
    plan = plan_sweep(2, np.array([0], np.int32), np.array([1], np.int32), np.zeros(2, np.bool_))

    with pytest.raises(InvariantError, match="planned for 1 edges of 2 points"):
        plan.times_ns(np.array([1, 2]), np.zeros(2, np.int64))
