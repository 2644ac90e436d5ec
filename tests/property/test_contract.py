"""Laws of the contraction: every kept point happens when it does in the full graph, whatever other ranks do."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import longpole.graph.sweep as sweep_module
from longpole.graph.contract import Added, Contracted, contract
from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.graph.sweep import NEVER_NS, sweep, topological_order
from tests.bare_graphs import bare_graph, floors, give_way, swept, with_exits
from tests.examples import examples
from tests.graph_strategies import Dag, dags, jobs, longest_times, teams
from tests.run_graphs import graph_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.rank_graph import RankGraph
    from tests.build import Script

    Ints = NDArray[np.int64]


@st.composite
def graphs(draw: st.DrawFn) -> RankGraph:
    """Draw a rank: a thread with calls that may be collectives, one in another, and spans with waits between them."""
    n_host, n_spans = draw(st.integers(2, 9)), draw(st.integers(0, 8))
    n = n_host + 2 * n_spans + 2
    moments = draw(st.lists(st.integers(0, 40), min_size=n, max_size=n))
    time_ns = np.array([*sorted(moments[:n_host]), *moments[n_host:]], np.int64)
    lengths = st.integers(-2, 9)
    bounds = st.tuples(st.integers(0, n_host - 1), st.integers(0, n_host - 1)).filter(lambda pair: pair[0] < pair[1])
    calls = draw(st.lists(bounds, max_size=3))
    rows = []
    for point in range(n_host - 1):
        inside = any(entry <= point < left for entry, left in calls)
        kind = draw(st.sampled_from((EdgeKind.MEMBER, EdgeKind.SECTION))) if inside else EdgeKind.SECTION
        rows.append((point, point + 1, draw(lengths), kind))
    meets = [*calls]
    for span in range(n_spans):
        start = n_host + 2 * span
        time_ns[start + 1] = max(time_ns[start], time_ns[start + 1])
        rows.append((start, start + 1, draw(lengths), EdgeKind.DURATION))
        if draw(st.booleans()):
            meets.append((start, start + 1))
    # More edges, forward in an order in which those above point forward too.
    key = {point: (int(time_ns[point]), point) for point in range(n)}
    for point in (n - 2, n - 1):
        time_ns[point] = time_ns.max()
        key[point] = (int(time_ns[point]), point)
    pairs = [(u, v) for u in range(n) for v in range(n) if key[u] < key[v]]
    for u, v in draw(st.lists(st.sampled_from(pairs), max_size=3 * n)) if pairs else []:
        rows.append((u, v, draw(lengths), draw(st.sampled_from((EdgeKind.LAUNCH, EdgeKind.STREAM)))))
    src, dst, weight, kinds = zip(*rows, strict=True)
    edges = Edges(
        np.array(src, np.int32), np.array(dst, np.int32), np.array(kinds, np.uint8), np.array(weight, np.int64)
    )
    return bare_graph(time_ns.tolist(), edges, [n - 2, n - 1], meets)


def _times(contracted: Contracted, met: NDArray[np.bool_], exits_ns: list[int]) -> Ints:
    """Sweep a contracted graph; the exits of what met happen no earlier than the times given."""
    src, dst, length_ns = contracted.given_way(met)
    n = len(contracted.point)
    floor_ns = floors(n, contracted.source, contracted.floor_ns)
    floor_ns = with_exits(floor_ns, contracted.exit[met].tolist(), exits_ns)
    edges = Edges(src, dst, np.zeros(len(src), np.uint8), length_ns)
    return swept(contracted.time_ns, edges, floor_ns)


def _check(graph: RankGraph, met: NDArray[np.bool_], exits_ns: list[int], changed: Edges | None = None) -> Contracted:
    edges = graph.edges if changed is None else changed
    contracted = contract(graph, changed)
    floor_ns = graph.floors_ns()
    place = np.searchsorted(contracted.point, contracted.exit)
    assert place.shape == contracted.exit.shape
    lost = floor_ns == NEVER_NS
    lost[edges.dst] = False
    floor_ns[lost] = NEVER_NS + 1
    full = swept(graph.time_ns, give_way(graph, edges, met), with_exits(floor_ns, graph.exit[met].tolist(), exits_ns))
    assert _times(contracted, met, exits_ns).tolist() == full[contracted.point].tolist()
    for points, kept in (
        (graph.entry, contracted.entry),
        (graph.exit, contracted.exit),
        (graph.completion, contracted.completion),
    ):
        assert contracted.point[kept].tolist() == points.tolist()
    return contracted


@examples(200)
@given(graphs(), st.data())
def test_kept_points_happen_as_in_the_full_graph(graph: RankGraph, data: st.DataObject) -> None:
    n = len(graph.entry)
    met = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), np.bool_)
    exits_ns = data.draw(st.lists(st.integers(0, 90), min_size=int(met.sum()), max_size=int(met.sum())))

    contracted = _check(graph, met, exits_ns)

    assert len(contracted.src) <= len(graph.edges)
    assert len(contracted.point) <= len(graph.time_ns)


@examples(200)
@given(graphs(), st.data())
def test_so_they_do_with_other_lengths_and_fewer_edges(graph: RankGraph, data: st.DataObject) -> None:
    m, n = len(graph.edges), len(graph.entry)
    lengths = data.draw(st.lists(st.integers(0, 20), min_size=m, max_size=m))
    kept = np.array(data.draw(st.lists(st.sampled_from((True, True, True, False)), min_size=m, max_size=m)), np.bool_)
    edges = graph.edges
    changed = Edges(edges.src, edges.dst, edges.kind, np.array(lengths, np.int64)).take(kept)

    _check(graph, np.ones(n, np.bool_), [50] * n, changed)


@given(graphs(), st.integers(0, 60), st.integers(0, 9), st.data())
def test_so_they_do_with_points_that_a_change_added(
    graph: RankGraph, floor_ns: int, length_ns: int, data: st.DataObject
) -> None:
    """An added point waits for one point, is held down by its own floor, and holds another one up."""
    n = len(graph.time_ns)
    before = data.draw(st.integers(0, n - 3))
    extra = Edges.of(
        EdgeKind.WORKER, np.array([before, n]), np.array([n, n - 1]), np.array([length_ns, length_ns], np.int64)
    )
    edges = Edges.join([graph.edges, extra])
    added = Added(graph.time_ns[[before]], np.array([floor_ns], np.int64))
    met = np.zeros(len(graph.entry), np.bool_)

    contracted = contract(graph, lambda _: edges, added)

    time_ns = np.concatenate([graph.time_ns, added.time_ns])
    full = swept(time_ns, edges, np.concatenate([graph.floors_ns(), added.floor_ns]))
    assert _times(contracted, met, []).tolist() == full[contracted.point].tolist()


@given(jobs())
def test_records_of_one_rank_contract_exactly(script: Script) -> None:
    graph = graph_of(script)

    contracted = _check(graph, np.zeros(len(graph.entry), np.bool_), [])

    assert len(contracted.src) <= 2 * len(graph.completion)


@given(teams(), st.integers(0, 10**7))
def test_records_with_collectives_contract_exactly(scripts: list[Script], exit_ns: int) -> None:
    for script in scripts:
        graph = graph_of(script)
        _check(graph, np.ones(len(graph.entry), np.bool_), [exit_ns] * len(graph.entry))


@given(graphs())
def test_a_contraction_contracts_no_further(graph: RankGraph) -> None:
    """What is left has an order, no edge twice, and no point that leads nowhere."""
    contracted = contract(graph)

    rows = list(zip(contracted.src.tolist(), contracted.dst.tolist(), contracted.inside.tolist(), strict=True))
    assert rows == sorted(set(rows))
    wanted = {*contracted.entry.tolist(), *contracted.exit.tolist(), *contracted.completion.tolist()}
    assert set(range(len(contracted.point))) - wanted <= set(contracted.src.tolist())
    topological_order(contracted.time_ns, contracted.src, contracted.dst)


@examples(200)
@given(dags(max_points=30))
def test_a_sweep_that_leaves_chains_out_gives_the_same_times(dag: Dag) -> None:
    order = topological_order(dag.time_ns, dag.edges.src, dag.edges.dst)
    with patch.object(sweep_module, "_PLAIN_MAX_POINTS", 0):
        found = sweep(dag.n, dag.edges.src, dag.edges.dst, dag.edges.length_ns, dag.floor_ns, order)

    assert found.tolist() == longest_times(dag)


@given(jobs())
def test_so_it_does_on_records(script: Script) -> None:
    graph = graph_of(script)
    plain = swept(graph.time_ns, graph.edges, graph.floors_ns())
    with patch.object(sweep_module, "_PLAIN_MAX_POINTS", 0):
        assert swept(graph.time_ns, graph.edges, graph.floors_ns()).tolist() == plain.tolist()
