"""Communication beside computation: it has a stream of its own, and only what needs its result waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.graph.operations.build import OperationGraph
    from tests.operation_tables import Row

    Build = Callable[[Iterable[Row]], OperationGraph]


def rows_of(*spans: tuple[str, int, int]) -> list[Row]:
    """Return operations of one rank: type, start and end in ms."""
    place = {"step": 1, "rank": 0, "dp_rank": 0, "stage": 0}
    return [
        place | {"optype": name, "start_ts": start / 1000, "duration": (end - start) / 1000}
        for name, start, end in spans
    ]


def ends_ms(graph: OperationGraph, **work_ms: int) -> dict[str, int]:
    """Return when the last operation of each type ends, with other work for some of them."""
    names = [graph.table.types[code].name for code in graph.table.optype.tolist()]
    work_ns = graph.work_ns.copy()
    for row, name in enumerate(names):
        work_ns[row] = work_ms.get(name.replace("-", "_"), work_ns[row] // NS_PER_MS) * NS_PER_MS
    ends = graph.replay_ends_ns(work_ns)
    return {name: max(int(e) // NS_PER_MS for e, n in zip(ends, names, strict=True) if n == name) for name in names}


def test_gradients_reduced_beside_the_backward_pass_hold_up_the_optimizer_only(build: Build) -> None:
    """The second backward pass runs on.

    compute   ##B##  ##B##  #optimizer#
    reduce         -----
    """
    graph = build(
        rows_of(
            ("backward-compute", 0, 20),
            ("grads-all-reduce", 20, 35),
            ("backward-compute", 20, 40),
            ("optimizer", 40, 50),
        )
    )

    assert graph.order.asynchronous == ("grads-all-reduce",)
    assert ends_ms(graph)["optimizer"] == 50
    assert ends_ms(graph, grads_all_reduce=60) == {"backward-compute": 40, "grads-all-reduce": 80, "optimizer": 90}
    assert ends_ms(graph, grads_all_reduce=0)["optimizer"] == 50


def test_a_receive_beside_computation_holds_up_the_pass_of_its_number(build: Build) -> None:
    """Each receive is for the pass behind the one that it runs beside.

    compute         ##F0##   ##F1##  ##F2##
    receive   --0-- ---1---- --2--
    """
    graph = build(
        rows_of(
            ("forward-recv", 0, 10),
            ("forward-compute", 10, 30),
            ("forward-recv", 11, 35),
            ("forward-compute", 35, 55),
            ("forward-recv", 36, 50),
            ("forward-compute", 55, 75),
        )
    )

    assert graph.order.asynchronous == ("forward-recv",)
    # The second receive is issued with the end of the first, at 10 ms instead of 11, and takes 24.
    assert ends_ms(graph)["forward-compute"] == 34 + 20 + 20
    assert ends_ms(graph, forward_recv=100)["forward-compute"] > 300


def test_gathers_of_two_chunks_hold_up_the_first_pass_of_their_own(build: Build) -> None:
    rows = rows_of(
        ("warm-up", 0, 5),
        ("params-all-gather", 1, 4),
        ("params-all-gather", 4, 9),
        ("forward-compute", 5, 20),
        ("forward-compute", 20, 40),
    )
    chunks = [-1, 0, 1, 0, 1]

    graph = build([row | {"mc": chunk} for row, chunk in zip(rows, chunks, strict=True)])
    work_ns = graph.work_ns.copy()
    second = (graph.table.chunk == 1) & (graph.table.kind == 3)
    work_ns[second] = 50 * NS_PER_MS

    before, after = graph.replay_ends_ns(graph.work_ns), graph.replay_ends_ns(work_ns)
    passes = graph.table.kind == 0
    assert (before[passes] // NS_PER_MS).tolist() == [5, 20, 40]
    assert (after[passes] // NS_PER_MS).tolist() == [5, 20, 73]


def test_what_blocks_computation_in_the_record_blocks_it_in_the_replay(build: Build) -> None:
    graph = build(rows_of(("forward-compute", 0, 10), ("params-all-gather", 10, 15), ("forward-compute", 15, 25)))

    assert graph.order.asynchronous == ()
    assert ends_ms(graph, params_all_gather=50)["forward-compute"] == 70
