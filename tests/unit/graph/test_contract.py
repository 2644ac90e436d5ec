"""What is left of small graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.contract import STAYS, WITH_REPLAY_NS, contract
from longpole.graph.kinds import EdgeKind
from tests.bare_graphs import arrows, bare_graph

if TYPE_CHECKING:
    from longpole.graph.contract import Contracted

D, M, S = EdgeKind.DURATION, EdgeKind.MEMBER, EdgeKind.SECTION


def left(contracted: Contracted) -> list[tuple[int, int, int]]:
    """Return the edges as (source, target, length), with the full graph's points."""
    point = contracted.point
    return list(
        zip(
            point[contracted.src].tolist(),
            point[contracted.dst].tolist(),
            contracted.length_ns.tolist(),
            strict=True,
        )
    )


def test_a_chain_becomes_one_edge() -> None:
    graph = bare_graph([0, 1, 3, 6], arrows((0, 1, 1), (1, 2, 2), (2, 3, 3)), [3])

    contracted = contract(graph)

    assert left(contracted) == [(0, 3, 6)]
    assert contracted.point[contracted.source].tolist() == [0]


def test_a_million_points_in_a_row_take_no_million_rounds() -> None:
    n = 200_000
    points = np.arange(n, dtype=np.int32)
    edges = arrows((0, 1, 1))
    edges = type(edges)(points[:-1], points[1:], np.zeros(n - 1, np.uint8), np.ones(n - 1, np.int64))

    assert left(contract(bare_graph(range(n), edges, [n - 1]))) == [(0, n - 1, n - 1)]


def test_of_two_ways_the_longer_one_stays() -> None:
    edges = arrows((0, 1, 5), (0, 2, 1), (1, 3, 5), (2, 3, 1))

    assert left(contract(bare_graph([0, 5, 1, 10], edges, [3]))) == [(0, 3, 10)]


def test_what_leads_nowhere_goes() -> None:
    edges = arrows((0, 1, 4), (0, 2, 1), (2, 3, 1))

    assert contract(bare_graph([0, 4, 1, 2], edges, [1])).point.tolist() == [0, 1]


def test_a_stream_behind_its_host_becomes_one_edge() -> None:
    """host 0 → 1 → 2 launches spans 3-4, 5-6, 7-8, which run one after the other; 9 waits for the last."""
    host = arrows((0, 1, 10), (1, 2, 10))
    spans = arrows(
        (0, 3, 6), (3, 4, 50, D), (4, 5, 1), (1, 5, 6), (5, 6, 2, D), (6, 7, 1), (2, 7, 6), (7, 8, 4, D), (8, 9, 8)
    )
    graph = bare_graph([0, 10, 20, 6, 56, 57, 59, 60, 64, 72], type(host).join([host, spans]), [9])

    assert left(contract(graph)) == [(0, 9, 72)]


def test_spans_that_others_wait_for_are_led_back_to_the_host() -> None:
    """Each span of a stream is waited for by a call of its own kind; entries 8 and 9 need two edges, not a chain."""
    edges = arrows((0, 1, 5), (0, 2, 9), (0, 3, 30), (1, 2, 4), (2, 3, 4), (1, 4, 1), (2, 5, 1), (3, 6, 1))
    graph = bare_graph([0, 5, 9, 30, 6, 10, 31], edges, [4, 5, 6])

    assert left(contract(graph)) == [(0, 4, 6), (0, 5, 10), (0, 6, 31)]


def test_no_edge_runs_past_an_exit_that_others_hold_up() -> None:
    """Point 3 waits for 0 and for exit 2, which waits for 0 and 1: yet its time is not theirs once it is split."""
    edges = arrows((0, 1, 0), (1, 2, 5, S), (0, 2, 7), (0, 3, 9), (2, 3, 1))
    contracted = contract(bare_graph([0, 0, 7, 9], edges, [3], [(1, 2)]))

    assert (2, 3, 1) in left(contracted)


def test_a_join_whose_removal_would_add_edges_stays() -> None:
    """Three entries wait for the later of three exits: nine edges, or six through the join."""
    into = [(exit_, 6, 1) for exit_ in (1, 3, 5)]
    out = [(6, entry, 1) for entry in (7, 9, 11)]
    own = [(point, point + 1, 5, D) for point in (0, 2, 4, 7, 9, 11)]
    graph = bare_graph(
        [0, 5, 0, 5, 0, 5, 6, 7, 12, 7, 12, 7, 12],
        arrows(*into, *out, *own),
        [8],
        [(0, 1), (2, 3), (4, 5), (7, 8), (9, 10), (11, 12)],
    )

    contracted = contract(graph)

    assert 6 in contracted.point
    assert len(contracted.src) == 12


def test_only_what_holds_in_any_case_stands_for_a_direct_edge() -> None:
    """A collective from 1 to 2 takes longer than the way around it, but may take less once it is split."""
    edges = arrows((0, 1, 1), (1, 2, 50, D), (0, 3, 20), (2, 3, 1), (1, 3, 30))
    graph = bare_graph([0, 1, 51, 52], edges, [3], [(1, 2)])

    assert (1, 3, 30) in left(contract(graph))
    assert (0, 3, 20) not in left(contract(graph))  # 0 → 1 → 3 takes 31 whatever happens


def test_a_collective_of_a_thread_keeps_its_order_when_it_gives_way() -> None:
    edges = arrows((0, 1, 3, S), (1, 2, 4, M), (2, 3, 5, M), (3, 4, 6, S))
    contracted = contract(bare_graph([0, 3, 7, 12, 18], edges, [4], [(1, 3)]))

    assert left(contracted) == [(0, 1, 3), (1, 3, 9), (3, 4, 6)]
    assert contracted.inside.tolist() == [STAYS, 1, STAYS]
    assert contracted.given_way(np.array([True]))[2].tolist() == [3, 0, 6]
    assert contracted.given_way(np.array([False]))[2].tolist() == [3, 9, 6]


def test_a_collective_of_a_device_goes_when_it_gives_way() -> None:
    edges = arrows((0, 1, 3), (1, 2, 4, D), (2, 3, 1))
    contracted = contract(bare_graph([0, 3, 7, 8], edges, [3], [(1, 2)]))

    src, dst, _ = contracted.given_way(np.array([True]))
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == [(0, 1), (2, 3)]


def test_a_change_acts_before_the_contraction() -> None:
    """The longer of two ways is shortened: contracting first would have forgotten the other one."""
    edges = arrows((0, 1, 9), (0, 2, 5), (1, 3, 0), (2, 3, 0))
    graph = bare_graph([0, 9, 5, 9], edges, [3])
    shorter = type(edges)(
        graph.edges.src,
        graph.edges.dst,
        graph.edges.kind,
        np.where(graph.edges.length_ns == 9, 1, graph.edges.length_ns),
    )

    assert left(contract(graph)) == [(0, 3, 9)]
    assert left(contract(graph, shorter)) == [(0, 3, 5)]
    assert left(contract(graph, lambda _: shorter)) == [(0, 3, 5)]


def test_points_that_lost_their_edges_start_with_the_replay() -> None:
    graph = bare_graph([0, 9, 12], arrows((0, 1, 9), (1, 2, 3)), [2])

    contracted = contract(graph, arrows((1, 2, 3)))

    assert left(contracted) == [(1, 2, 3)]
    assert contracted.floor_ns.tolist() == [WITH_REPLAY_NS]


def test_a_rank_without_edges_is_left_as_it_is() -> None:
    contracted = contract(bare_graph([4], arrows(), [0]))

    assert contracted.point.tolist() == [0]
    assert contracted.floor_ns.tolist() == [4]
    assert len(contracted.src) == 0
