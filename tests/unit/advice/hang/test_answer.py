"""Who holds up a job that does not go on, from what every rank was in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.advice.hang.answer import explain_hang, name_ranks
from tests.flight_dumps import dump, entry, group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.flight import FlightDump
    from longpole.records.hang import Hang

ALL = group(range(4))


def _explain(dumps: Sequence[FlightDump]) -> Hang:
    return explain_hang(dumps, [], [], "0.1.0")


def _roots(hang: Hang) -> tuple[str, list[int]]:
    return hang.verdict, sorted(root.rank for root in hang.roots)


def test_a_rank_that_never_came_is_named_and_who_waits_for_it() -> None:
    waiting = [dump(rank, [entry(ALL, 8), entry(ALL, 9, done=False)]) for rank in (0, 1, 3)]

    hang = _explain([*waiting, dump(2, [entry(ALL, 8)])])

    assert _roots(hang) == ("host", [2])
    assert hang.roots[0].waited_for_by == [0, 1, 3]
    assert (hang.groups[0].stuck_at, hang.groups[0].not_entered) == (9, [2])


def test_a_rank_that_waits_elsewhere_is_no_root() -> None:
    """Rank 3 waits in its pair for rank 2; ranks 0 and 1 wait for both: 2 is the one."""
    pair = group((2, 3), "3", "TP")
    dumps = [dump(rank, [entry(ALL, 9, done=False)]) for rank in (0, 1)]
    dumps += [dump(2, [entry(ALL, 8)], [pair]), dump(3, [entry(ALL, 8), entry(pair, 4, done=False)])]

    hang = _explain(dumps)

    assert _roots(hang) == ("host", [2])
    assert hang.roots[0].waited_for_by == [0, 1, 3]


def test_a_device_that_holds_what_others_finished_is_named() -> None:
    """Its program queued the next one long ago; the others' devices wait for its own there."""
    others = [dump(rank, [entry(ALL, 8, done=False)]) for rank in (0, 2, 3)]

    hang = _explain([*others, dump(1, [entry(ALL, 7, done=False), entry(ALL, 8, done=False)])])

    assert _roots(hang) == ("device", [1])
    assert hang.roots[0].at.sequence == 7


def test_an_end_that_is_not_yet_written_down_is_no_hang() -> None:
    dumps = [dump(rank, [entry(ALL, 8)]) for rank in (0, 1, 3)]

    hang = _explain([*dumps, dump(2, [entry(ALL, 8, done=False)])])

    assert hang.verdict == "none"
    assert any("rank 2 had not noted the end" in caution for caution in hang.cautions)


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        ({"operation": "broadcast"}, "operation"),
        ({"input_sizes": ((512,),)}, "sizes"),
        ({"input_types": ("Half",)}, "dtype"),
    ],
)
def test_the_rank_that_differs_from_the_most_is_named(odd: dict[str, Any], what: str) -> None:
    usual = [dump(rank, [entry(ALL, 8, done=False)]) for rank in (0, 1, 3)]

    hang = _explain([*usual, dump(2, [entry(ALL, 8, done=False, **odd)])])

    assert _roots(hang) == ("mismatch", [2])
    assert (hang.mismatches[0].what, hang.mismatches[0].odd) == (what, [2])


def test_two_against_two_names_all_four() -> None:
    forms = ("all_reduce", "all_reduce", "broadcast", "broadcast")

    hang = _explain([dump(rank, [entry(ALL, 8, form, done=False)]) for rank, form in enumerate(forms)])

    assert _roots(hang) == ("mismatch", [0, 1, 2, 3])


def test_uneven_sizes_of_an_all_to_all_are_as_they_should_be() -> None:
    dumps = [dump(rank, [entry(ALL, 8, "all_to_all", done=False, input_sizes=((rank + 1,),))]) for rank in range(4)]

    assert _roots(_explain(dumps)) == ("transfer", [0, 1, 2, 3])


def test_groups_used_in_another_order_are_a_circle() -> None:
    """Rank 0 is in A and has not come to B; rank 1 is in B and has not come to A."""
    first, second = group((0, 1), "1", "A"), group((0, 1), "2", "B")

    hang = _explain(
        [dump(0, [entry(first, 3, done=False)], [second]), dump(1, [entry(second, 5, done=False)], [first])]
    )

    assert _roots(hang) == ("order", [0, 1])


def test_when_all_are_there_the_network_is_next() -> None:
    hang = _explain([dump(rank, [entry(ALL, 8, done=False)]) for rank in range(4)])

    assert hang.verdict == "transfer"
    assert "all members are in all_reduce number 8" in hang.says


def test_a_receive_waits_for_the_rank_that_does_not_send() -> None:
    pipeline = group((4, 5), "7", "PP")
    receiving = entry(pipeline, 2, "recv", done=False, peers=(0, 1))

    hang = _explain([dump(4, [], [pipeline]), dump(5, [receiving])])

    assert _roots(hang) == ("host", [4])
    assert "never came to the other end of recv" in hang.says


def test_a_send_with_its_receive_beside_it_waits_for_nobody() -> None:
    pipeline = group((4, 5), "7", "PP")
    ends = [dump(4, [entry(pipeline, 2, "send", done=False, peers=(0, 1))])]
    ends.append(dump(5, [entry(pipeline, 2, "recv", done=False, peers=(0, 1))]))

    assert _roots(_explain(ends)) == ("transfer", [4, 5])


def test_a_rank_without_a_dump_may_be_the_one() -> None:
    hang = _explain([dump(rank, [entry(ALL, 8, done=False)]) for rank in (0, 1, 3)])

    assert (hang.verdict, hang.missing, hang.roots) == ("not_told", [2], [])
    assert "rank 2 left no dump" in hang.says


def test_members_that_no_dump_lists_are_those_that_used_the_group() -> None:
    """As on gloo, where torch lists the groups before they have names."""
    unlisted = group((), "1", "DP")
    waiting = [dump(rank, [entry(unlisted, 8), entry(unlisted, 9, done=False)]) for rank in (0, 1)]

    hang = _explain([*waiting, dump(2, [entry(unlisted, 8)])])

    assert _roots(hang) == ("host", [2])
    assert hang.groups[0].members_inferred


def test_a_rank_between_those_with_a_dump_may_be_the_one_where_nobody_lists_members() -> None:
    """Rank 1 died, and its peers' operations failed with it, which on gloo looks like an end."""
    unlisted = group((), "0", "default_pg")
    gone = [dump(rank, [entry(unlisted, 13, state="scheduled", backend="gloo")]) for rank in (0, 2)]

    hang = _explain([*gone, dump(3, [entry(unlisted, 13, done=False, backend="gloo")])])

    assert (hang.verdict, hang.missing) == ("not_told", [1])
    assert "rank 1 left no dump" in hang.says


def test_rings_that_begin_at_other_numbers_are_compared_from_where_all_do() -> None:
    firsts = {0: 5, 1: 7, 2: 6, 3: 6}
    dumps = [
        dump(rank, [entry(ALL, n) for n in range(first, 9)] + [entry(ALL, 9, done=False)] * (rank != 2))
        for rank, first in firsts.items()
    ]

    hang = _explain(dumps)

    assert (hang.groups[0].compare_from, hang.groups[0].stuck_at, hang.groups[0].not_entered) == (7, 9, [2])
    assert hang.mismatches == []


def test_what_timed_out_on_nccl_is_not_done() -> None:
    """The recorder lets go of it, and its state never became `completed`."""
    waiting = [dump(rank, [entry(ALL, 9, done=False, is_retired=True)]) for rank in (0, 1, 3)]

    assert _roots(_explain([*waiting, dump(2, [entry(ALL, 8)])])) == ("host", [2])


def test_what_failed_on_gloo_looks_done_and_the_answer_says_so() -> None:
    gone: dict[str, Any] = {"state": "scheduled", "is_retired": True, "backend": "gloo"}
    dumps = [dump(rank, [entry(ALL, 9, **gone)]) for rank in (0, 1, 3)]

    hang = _explain([*dumps, dump(2, [entry(ALL, 8, **gone)])])

    assert hang.verdict == "none"
    assert any("on gloo an operation that failed looks like one that is done" in one for one in hang.cautions)


def test_ranks_in_a_sentence() -> None:
    assert [name_ranks(range(n)) for n in (1, 2, 3, 9)] == [
        "rank 0",
        "ranks 0 and 1",
        "ranks 0, 1 and 2",
        "ranks 0, 1, 2, 3, 4, 5 and 3 more",
    ]


@given(
    layout=st.tuples(st.integers(2, 4), st.integers(2, 4)),
    late=st.data(),
    steps=st.integers(1, 5),
)
def test_in_any_grid_of_groups_the_ranks_that_stopped_are_the_roots(
    layout: tuple[int, int], late: st.DataObject, steps: int
) -> None:
    """A simulated job: each step reduces in every row and then in every column; some ranks stop before a step.

    Whoever can go no further waits where the rule says; only who stopped is a root.
    """
    rows, columns = layout
    ranks = range(rows * columns)
    stopped = late.draw(st.sets(st.sampled_from(ranks), min_size=1, max_size=2))
    stop_at = late.draw(st.integers(0, steps - 1))

    hang = _explain(_simulate(rows, columns, steps, stopped, stop_at))

    assert _roots(hang) == ("host", sorted(stopped))
    waiting = {one.rank for one in hang.waiting}
    assert waiting | stopped == set(ranks)


def _simulate(rows: int, columns: int, steps: int, stopped: set[int], stop_at: int) -> list[FlightDump]:
    """Run every rank as far as it comes; an operation ends once all its members are in it."""
    ranks = range(rows * columns)
    in_row = {
        rank: group([r for r in ranks if r // columns == rank // columns], f"r{rank // columns}") for rank in ranks
    }
    in_column = {
        rank: group([r for r in ranks if r % columns == rank % columns], f"c{rank % columns}") for rank in ranks
    }
    program = {
        rank: [
            (kind[rank], step) for step in range(stop_at if rank in stopped else steps) for kind in (in_row, in_column)
        ]
        for rank in ranks
    }
    place = dict.fromkeys(ranks, 0)
    moved = True
    while moved:
        moved = False
        for rank in ranks:
            if place[rank] == len(program[rank]):
                continue
            at = program[rank][place[rank]]
            if all(at in program[other][: place[other] + 1] for other in at[0].members):
                place[rank] += 1
                moved = True
    return [
        dump(
            rank,
            [
                entry(key, step, done=number < place[rank])
                for number, (key, step) in enumerate(program[rank][: place[rank] + 1])
            ],
            [in_row[rank], in_column[rank]],
        )
        for rank in ranks
    ]
