"""The graphs of ranks joined where their collectives meet.

rank 0   ──● entry                        ┌──► ● exit
rank 1   ─────────● entry ──► ● arrived ──┘
"""

from __future__ import annotations

import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.graph.run_graph import Meeting, RunGraph, join_ranks
from longpole.records.ledger import Unknown
from tests.build import Script
from tests.run_graphs import graph_of, joined

K = EdgeKind
NO_CLOCKS = {0: (0, 0.0, 0), 1: (0, 0.0, 0)}


def _pair(starts: tuple[float, float] = (20.0, 70.0), ends: tuple[float, float] = (100.0, 101.0)) -> list[Script]:
    scripts = []
    for rank in range(2):
        script = Script(rank=rank, base_ns=0, world_size=2, path=f"rank{rank}.json")
        for step in range(3):
            at = 500.0 * step
            script.step(step, at, at + 500)
            script.collective(at + starts[rank], at + ends[rank], script.launch(at + 5, at + 8))
            script.sync(at + 10, at + ends[rank] + 5)
        scripts.append(script)
    return scripts


def _meeting(how: int) -> Meeting:
    """Join instance k of both ranks, k = 0, 1, 2."""
    return Meeting(
        np.array([0, 2, 4, 6]),
        np.array([0, 1] * 3, np.int32),
        np.repeat(np.arange(3, dtype=np.int32), 2),
        np.full(3, how, np.uint8),
    )


def _lengths(graph: RunGraph, kind: EdgeKind) -> list[float]:
    return sorted((graph.edges.length_ns[graph.edges.kind == kind] / 1000).tolist())


def test_on_aligned_clocks_each_member_takes_from_the_last_arrival_to_its_own_end() -> None:
    graph = join_ranks([graph_of(s) for s in _pair()], NO_CLOCKS, _meeting(1))
    arrived = graph.edges.dst[graph.edges.kind == K.ARRIVAL]

    assert _lengths(graph, K.TRANSFER) == [30] * 3 + [31] * 3
    assert (graph.time_ns[arrived] / 1000).tolist() == [70, 70, 570, 570, 1070, 1070]
    # The kernels' own durations gave way: what they recorded was mostly waiting.
    assert _lengths(graph, K.DURATION) == []


def test_without_good_clocks_the_shortest_duration_is_the_transfer() -> None:
    graph = join_ranks([graph_of(s) for s in _pair(ends=(60.0, 103.0))], NO_CLOCKS, _meeting(2))

    assert _lengths(graph, K.TRANSFER) == [33] * 6


def test_what_cannot_be_split_keeps_its_durations_and_joins_nothing() -> None:
    graph = join_ranks([graph_of(s) for s in _pair()], NO_CLOCKS, _meeting(0))

    assert _lengths(graph, K.TRANSFER) == _lengths(graph, K.ARRIVAL) == []
    assert _lengths(graph, K.DURATION) == [31] * 3 + [80] * 3
    assert len(graph.time_ns) == int(graph.base[-1]) + 3


def test_ranks_are_brought_to_one_clock() -> None:
    graphs = [graph_of(s) for s in _pair()]
    moved = join_ranks(graphs, {0: (0, 0.0, 0), 1: (-50_000, 0.0, 0)}, _meeting(1))

    low, high = int(moved.base[1]), int(moved.base[2])
    assert (moved.time_ns[low:high] == graphs[1].time_ns - 50_000).all()
    assert _lengths(moved, K.TRANSFER) == [31] * 3 + [80] * 3  # both arrive at 20; they end at 100 and 51


def test_a_drift_stretches_times_about_its_reference() -> None:
    graphs = [graph_of(s) for s in _pair()]
    reference = int(graphs[1].time_ns[0])
    drifting = join_ranks(graphs, {0: (0, 0.0, 0), 1: (0, 0.001, reference)}, _meeting(0))
    own = graphs[1].time_ns - reference

    low, high = int(drifting.base[1]), int(drifting.base[2])
    assert (drifting.time_ns[low:high] - reference == own + np.rint(own * 0.001)).all()


def test_a_unit_of_the_run_is_complete_with_its_last_rank() -> None:
    first, second = _pair()
    for step in range(3):
        second.kernel(500 * step + 120, 500 * step + 560, second.launch(500 * step + 15, 500 * step + 17), stream=8)
    graph = joined(first, second)
    assert not isinstance(graph, Unknown)

    assert (graph.time_ns[graph.completion] / 1000).tolist() == [560, 1060, 1560]
    assert (graph.time_ns[graph.completion_of_rank] / 1000).tolist() == [[500, 1000, 1500], [560, 1060, 1560]]


def test_only_units_that_all_ranks_have_count() -> None:
    first, second = _pair()
    second.host = [row for row in second.host if not row.name.endswith("#1")]
    graph = joined(first, second)
    assert not isinstance(graph, Unknown)

    assert graph.units == ("ProfilerStep#0", "ProfilerStep#2")


def test_every_edge_of_a_rank_can_be_found_again() -> None:
    graphs = [graph_of(s) for s in _pair()]
    run = join_ranks(graphs, NO_CLOCKS, _meeting(1))

    for place, graph in enumerate(graphs):
        low, high = int(run.edge_base[place]), int(run.edge_base[place + 1])
        mine = np.flatnonzero((run.source_edge >= low) & (run.source_edge < high))
        own = run.source_edge[mine] - low
        assert (run.edges.src[mine] - run.base[place] == graph.edges.src[own]).all()
        assert (run.edges.dst[mine] - run.base[place] == graph.edges.dst[own]).all()


def test_members_of_transfers_are_known() -> None:
    run = join_ranks([graph_of(s) for s in _pair()], NO_CLOCKS, _meeting(1))
    transfers = run.edges.kind == K.TRANSFER

    assert sorted(run.member_of_edge[transfers].tolist()) == list(range(6))
    assert (run.member_of_edge[~transfers] == -1).all()


def test_ranks_without_a_common_clock_are_not_joined() -> None:
    first, second = _pair()
    for script in (first, second):
        script.base_ns = None
        script.device.clear()
        for step in range(3):
            script.kernel(500 * step + 20, 500 * step + 90, script.launch(500 * step + 12, 500 * step + 14))
    graph = joined(first, second)

    assert isinstance(graph, Unknown)
    assert "clocks have no common base" in graph.unknown
