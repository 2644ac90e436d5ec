"""Ranks merged in any order, joined and swept."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.errors import InvariantError
from longpole.graph.contract import contract
from longpole.graph.kinds import EdgeKind
from longpole.graph.merge import Merged, finish, members_of, merge, of, transfers_ns
from longpole.graph.run_graph import Meeting, join_ranks
from longpole.graph.sweep import sweep
from tests.bare_graphs import Arrow, arrows, bare_graph
from tests.graph_strategies import teams
from tests.merges import check_run
from tests.run_graphs import joined

if TYPE_CHECKING:
    from longpole.graph.rank_graph import RankGraph
    from tests.build import Script

D = EdgeKind.DURATION
HERE = (0, 0.0, 0)


def rank_of(rank: int, work_ns: int, units: int = 2) -> RankGraph:
    """Return a rank that works, then meets the others until 110 ns into the unit, and works 5 ns more, per unit."""
    rows: list[Arrow] = []
    times, meets, done, now = [0], [], [], 0
    for _ in range(units):
        before = len(times) - 1
        entry, left, end = len(times), len(times) + 1, len(times) + 2
        rows += [(before, entry, work_ns), (entry, left, 110 - work_ns, D), (left, end, 5)]
        times += [now + work_ns, now + 110, now + 115]
        meets.append((entry, left))
        done.append(end)
        now += 115
    return bare_graph(times, arrows(*rows), done, meets, rank=rank)


def meeting_of(ranks: list[int], operations: int, how: int = 1) -> Meeting:
    """Return operations that all ranks take part in, in order."""
    first = np.arange(operations + 1, dtype=np.int64) * len(ranks)
    return Meeting(
        first,
        np.tile(np.array(ranks, np.int32), operations),
        np.repeat(np.arange(operations, dtype=np.int32), len(ranks)),
        np.full(operations, how, np.uint8),
    )


def merged_of(graphs: list[RankGraph], meeting: Meeting) -> Merged:
    members = members_of(meeting)
    return reduce(merge, [of(contract(g), HERE, members.met(g.rank, len(g.entry))) for g in graphs])


def test_the_latest_rank_holds_the_others_up() -> None:
    graphs = [rank_of(0, 40), rank_of(1, 100)]
    meeting = meeting_of([0, 1], 2)

    run = finish(merged_of(graphs, meeting), members_of(meeting))

    assert run.completion_ns.tolist() == [115, 230]
    assert run.entry_ns.tolist() == [40, 155, 100, 215]
    assert run.exit_ns.tolist() == [110, 225, 110, 225]
    assert [column.tolist() for column in run.periods_ns(["0", "1", "missing"])] == [[115, 115], [115, 115]]


def test_a_change_of_one_rank_lets_the_next_one_show() -> None:
    """Rank 1 works 30 ns instead of 100: now rank 0, at 40, comes last."""
    meeting = meeting_of([0, 1], 2)
    members = members_of(meeting)
    recorded = merged_of([rank_of(0, 40), rank_of(1, 100)], meeting)
    slow = rank_of(1, 100)
    faster = type(slow.edges)(
        slow.edges.src,
        slow.edges.dst,
        slow.edges.kind,
        np.where(slow.edges.length_ns == 100, 30, slow.edges.length_ns),
    )
    met = members.met(1, 2)
    changed = merge(Merged(recorded.parts[:1]), of(contract(slow, faster), HERE, met))

    run = finish(changed, members, transfers_ns(recorded, members))

    assert run.completion_ns.tolist() == [55, 110]


def test_other_transfers_take_their_place() -> None:
    meeting = meeting_of([0, 1], 2)
    merged = merged_of([rank_of(0, 40), rank_of(1, 100)], meeting)

    assert transfers_ns(merged, members_of(meeting)).tolist() == [10, 10, 10, 10]
    assert finish(merged, members_of(meeting), np.full(4, 3)).completion_ns.tolist() == [108, 216]


@pytest.mark.parametrize(("how", "transfers"), [(1, [-1, -1, 10, 10]), (2, [10, 10, 10, 10])])
def test_without_clocks_the_shortest_duration_moves_the_bytes(how: int, transfers: list[int]) -> None:
    """Rank 0's clock is 11 ns behind: by its ends nothing would be moved, and less than nothing is 0."""
    meeting = meeting_of([0, 1], 2, how=how)
    members = members_of(meeting)
    behind, right = (contract(graph) for graph in (rank_of(0, 40), rank_of(1, 100)))
    merged = merge(of(behind, (-11, 0.0, 0), members.met(0, 2)), of(right, HERE, members.met(1, 2)))

    assert transfers_ns(merged, members).tolist() == [max(ns, 0) for ns in transfers]


def test_what_a_transfer_leads_to_starts_no_earlier() -> None:
    """Rank 0 recorded nothing that its collective's end waits for: on its own it ends at 110, in the run at 80."""
    lonely = bare_graph([0, 40, 110, 115], arrows((0, 1, 40), (2, 3, 5)), [3], [(1, 2)], rank=0)
    meeting = meeting_of([0, 1], 1)
    members = members_of(meeting)
    merged = merge(
        of(contract(lonely), HERE, members.met(0, 1)), of(contract(rank_of(1, 100, 1)), HERE, members.met(1, 1))
    )

    assert finish(merged, members, np.array([-20, -20])).exit_ns.tolist() == [80, 80]


def test_periods_begin_with_the_first_unit_on_the_runs_clock() -> None:
    graph = replace(rank_of(0, 40), unit_start_ns=np.array([7, 115]))
    meeting = meeting_of([0], 0)

    run = finish(of(contract(graph), (1000, 0.0, 0), np.zeros(2, np.bool_)), members_of(meeting))

    assert run.begin_ns == 1007
    assert run.periods_ns(["0"])[0].tolist() == [115 - 7]


def test_what_was_not_split_keeps_its_duration() -> None:
    meeting = meeting_of([0, 1], 2, how=0)

    run = finish(merged_of([rank_of(0, 40), rank_of(1, 100)], meeting), members_of(meeting), wide=True)

    assert run.exit_ns.tolist() == [110, 225, 110, 225]


def test_a_rank_is_merged_once() -> None:
    meeting = meeting_of([0], 2)
    part = merged_of([rank_of(0, 40)], meeting)

    with pytest.raises(InvariantError, match="rank 0 is merged twice"):
        merge(part, part)


@pytest.mark.parametrize("wide", [True, False])
def test_ranks_that_wait_for_each_other_are_refused(wide: bool) -> None:
    """Rank 0 enters operation 0 first, rank 1 operation 1."""
    meeting = meeting_of([0, 1], 2)
    crossed = meeting._replace(instance=np.array([0, 1, 1, 0], np.int32))
    merged = merged_of([rank_of(0, 40), rank_of(1, 100)], crossed)

    with pytest.raises(InvariantError, match="circle"):
        finish(merged, members_of(crossed), np.full(4, 10), wide=wide)


def test_damaged_bytes_are_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        Merged.from_bytes(b"\x93")


@given(st.integers(1, 9), st.data())
def test_any_bracketing_and_order_give_the_same_bytes(ranks: int, data: st.DataObject) -> None:
    graphs = [rank_of(rank, 10 * rank + 3) for rank in range(ranks)]
    meeting = meeting_of(list(range(ranks)), 2)
    straight = merged_of(graphs, meeting).to_bytes()
    heap = [merged_of([graph], meeting) for graph in data.draw(st.permutations(graphs))]
    while len(heap) > 1:
        place = data.draw(st.integers(0, len(heap) - 2))
        heap[place : place + 2] = [merge(heap[place], heap[place + 1])]

    assert heap[0].to_bytes() == straight
    again = Merged.from_bytes(straight)
    assert again.to_bytes() == straight
    assert (
        finish(again, members_of(meeting)).completion_ns.tolist()
        == finish(heap[0], members_of(meeting)).completion_ns.tolist()
    )


@settings(max_examples=25)
@given(teams(ranks=3))
def test_records_of_teams_are_replayed_as_in_the_full_graph(scripts: list[Script]) -> None:
    graph = joined(*scripts)
    assert not hasattr(graph, "why")
    check_run(graph)  # type: ignore[arg-type]


def test_drifting_clocks_move_floors_and_times_like_in_the_full_graph() -> None:
    graphs = [rank_of(0, 40), rank_of(1, 100)]
    clocks = {0: (1000, 0.0, 0), 1: (1003, 0.02, 50)}
    meeting = meeting_of([0, 1], 2)
    members = members_of(meeting)
    full = join_ranks(graphs, clocks, meeting)
    merged = reduce(merge, [of(contract(g), clocks[g.rank], members.met(g.rank, 2)) for g in graphs])
    time_ns = sweep(full.n_points, full.edges.src, full.edges.dst, full.edges.length_ns, full.floor_ns)

    run = finish(merged, members)

    assert run.completion_ns.tolist() == time_ns[full.completion].tolist()
    assert run.recorded_ns.tolist() == full.time_ns[full.completion].tolist()
