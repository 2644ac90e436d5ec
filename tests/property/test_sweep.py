"""The order of points and the sweep, against slow oracles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.errors import InvariantError
from longpole.graph.sweep import circle_edges, sort_edges, sweep, topological_order
from tests.graph_strategies import Dag, dags, longest_times


@given(dags())
def test_every_edge_points_forward_in_the_order(dag: Dag) -> None:
    order = topological_order(dag.time_ns, dag.edges.src, dag.edges.dst)

    place = np.empty(dag.n, np.int64)
    place[order] = np.arange(dag.n)
    assert sorted(order.tolist()) == list(range(dag.n))
    assert (place[dag.edges.src] < place[dag.edges.dst]).all()


@given(dags())
def test_recorded_times_decide_where_no_edge_contradicts_them(dag: Dag) -> None:
    before = dag.time_ns.tolist()
    order = topological_order(dag.time_ns, dag.edges.src, dag.edges.dst)

    place = {point: at for at, point in enumerate(order.tolist())}
    lifted = _lifted(dag)
    for u in range(dag.n):
        for v in range(dag.n):
            if lifted[u] < lifted[v]:
                assert place[u] < place[v]
    assert dag.time_ns.tolist() == before


def _lifted(dag: Dag) -> list[int]:
    """Return the latest recorded time of each point and of everything it waits for."""
    time = dag.time_ns.tolist()
    for _ in range(dag.n):
        for u, v in zip(dag.edges.src.tolist(), dag.edges.dst.tolist(), strict=True):
            time[v] = max(time[v], time[u])
    return time


@given(dags())
def test_the_sweep_finds_the_longest_paths(dag: Dag) -> None:
    edges = dag.edges
    order = topological_order(dag.time_ns, edges.src, edges.dst)

    swept = sweep(dag.n, edges.src, edges.dst, edges.length_ns, dag.floor_ns, order)

    assert swept.tolist() == longest_times(dag)


@given(dags())
def test_edges_that_are_sorted_already_need_no_order(dag: Dag) -> None:
    edges = dag.edges
    order = topological_order(dag.time_ns, edges.src, edges.dst)
    ready = edges.take(sort_edges(order, edges.src))

    swept = sweep(dag.n, ready.src, ready.dst, ready.length_ns, dag.floor_ns)

    assert swept.tolist() == sweep(dag.n, edges.src, edges.dst, edges.length_ns, dag.floor_ns, order).tolist()


@given(dags(), st.randoms(use_true_random=False))
def test_the_order_in_which_edges_are_given_changes_no_time(dag: Dag, random: object) -> None:
    rows = list(range(len(dag.edges)))
    random.shuffle(rows)  # type: ignore[attr-defined]
    other = dag.edges.take(np.array(rows, np.intp))
    order = topological_order(dag.time_ns, other.src, other.dst)

    assert sweep(dag.n, other.src, other.dst, other.length_ns, dag.floor_ns, order).tolist() == longest_times(dag)


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(0, 4), min_size=n, max_size=n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20),
        )
    )
)
def test_circles_are_found_and_raise(drawn: tuple[list[int], list[tuple[int, int]]]) -> None:
    times, pairs = drawn
    src, dst = np.array([u for u, _ in pairs], np.int32), np.array([v for _, v in pairs], np.int32)
    reach = _reach(len(times), pairs)
    inside = [place for place, (u, v) in enumerate(pairs) if u in reach[v]]

    assert circle_edges(len(times), src, dst).tolist() == inside
    if inside:
        with pytest.raises(InvariantError, match="circle"):
            topological_order(np.array(times, np.int64), src, dst)
    else:
        topological_order(np.array(times, np.int64), src, dst)


def _reach(n: int, pairs: list[tuple[int, int]]) -> list[set[int]]:
    """Return what each point leads to, itself included."""
    reach = [{point} for point in range(n)]
    for _ in range(n):
        for u, v in pairs:
            reach[u] |= reach[v]
    return reach
