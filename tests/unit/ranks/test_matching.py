"""Which operations of different ranks are one and the same collective."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.ranks.matching import Why, match
from longpole.records.instances import Group
from tests.collective_rows import UNITS, Op, receive, send, table, world

if TYPE_CHECKING:
    from longpole.ranks.matching import Matched
    from longpole.records.instances import Instances


def _match(tables: dict[int, Instances], world_size: int | None = None) -> Matched:
    units = dict.fromkeys(tables, UNITS)
    return match(tables, unit_names=units, world_size=world_size, offset_ns=dict.fromkeys(tables, 0))[0]


def _codes(tables: dict[int, Instances], world_size: int | None = None) -> list[str]:
    units = dict.fromkeys(tables, UNITS)
    findings = match(tables, unit_names=units, world_size=world_size, offset_ns=dict.fromkeys(tables, 0))[1]
    return [finding.code for finding in findings]


def _members(matched: Matched) -> list[list[tuple[int, int]]]:
    """Return (rank, place in its table) of each operation's members."""
    places = range(len(matched))
    pairs = list(zip(matched.rank.tolist(), matched.instance.tolist(), strict=True))
    return [pairs[int(matched.first[m]) : int(matched.first[m + 1])] for m in places]


def _whys(matched: Matched) -> list[Why]:
    return [Why(code) for code in matched.why.tolist()]


# --- the keys -----------------------------------------------------------------------------------------------------


def test_the_id_that_all_members_write_comes_first() -> None:
    """Ids cross over, and sequence numbers would say otherwise."""
    one = table(Op(0, 9, comms_id=11, sequence=1), Op(20, 29, comms_id=22, sequence=2), groups=world(2))
    two = table(Op(1, 9, comms_id=22, sequence=1), Op(21, 29, comms_id=11, sequence=2), groups=world(2))

    assert _members(_match({0: one, 1: two})) == [[(0, 0), (1, 1)], [(0, 1), (1, 0)]]


def test_the_sequence_comes_second() -> None:
    """Rank 1 recorded from the second operation on."""
    one = table(Op(0, 9, sequence=1), Op(20, 29, sequence=2), groups=world(2))
    two = table(Op(21, 29, sequence=2), groups=world(2))

    matched = _match({0: one, 1: two})

    assert _members(matched) == [[(0, 0)], [(0, 1), (1, 0)]]
    assert _whys(matched) == [Why.NOT_HELD, Why.COMPLETE]


def test_one_member_without_a_sequence_leaves_the_order_within_unit_and_kind() -> None:
    one = table(Op(0, 9, sequence=7), Op(20, 29, "all_gather", sequence=8), Op(40, 49, sequence=9), groups=world(2))
    two = table(Op(0, 9), Op(20, 29, "all_gather"), Op(40, 49), groups=world(2))

    assert _members(_match({0: one, 1: two})) == [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(0, 2), (1, 2)]]


def test_operations_of_one_sequence_number_keep_their_order() -> None:
    """Coalesced calls share a number."""
    one = table(Op(0, 4, sequence=3, bytes=8), Op(5, 9, sequence=3, bytes=16), groups=world(2))
    two = table(Op(1, 4, sequence=3, bytes=8), Op(6, 9, sequence=3, bytes=16), groups=world(2))

    matched = _match({0: one, 1: two})

    assert _members(matched) == [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]
    assert matched.complete.all()


def test_order_counts_within_each_unit() -> None:
    """Rank 1 has one operation less in step 0; step 1 still matches."""
    one = table(Op(0, 9), Op(20, 29), Op(40, 49, unit=2), groups=world(2))
    two = table(Op(20, 29), Op(40, 49, unit=2), groups=world(2))

    assert _members(_match({0: one, 1: two}))[-1] == [(0, 2), (1, 1)]


# --- groups -------------------------------------------------------------------------------------------------------

TP_LOW, TP_HIGH = Group("1", "TP", [0, 1], 2), Group("1", "TP", [2, 3], 2)


def test_groups_that_share_a_name_are_told_apart_by_their_members() -> None:
    tables = {rank: table(Op(rank, 9, sequence=1), groups=[TP_LOW if rank < 2 else TP_HIGH]) for rank in range(4)}

    matched = _match(tables)

    assert _members(matched) == [[(0, 0), (1, 0)], [(2, 0), (3, 0)]]
    assert matched.complete.all()


def test_groups_whose_names_differ_per_rank_are_one_by_their_members() -> None:
    one = table(Op(0, 9, sequence=1), groups=[Group("7", "", [0, 1], 2)])
    two = table(Op(0, 9, sequence=1), groups=[Group("9", "", [0, 1], 2)])

    assert _members(_match({0: one, 1: two})) == [[(0, 0), (1, 0)]]


def test_two_groups_of_the_same_members_are_told_apart_by_their_names() -> None:
    groups = [Group("1", "", [0, 1], 2), Group("2", "", [0, 1], 2)]
    one = table(Op(0, 9, group=0, sequence=1), Op(20, 29, group=1, sequence=1), groups=groups)
    two = table(Op(0, 9, group=1, sequence=1), Op(20, 29, group=0, sequence=1), groups=groups)

    assert _members(_match({0: one, 1: two})) == [[(0, 0), (1, 1)], [(0, 1), (1, 0)]]


def test_more_holders_than_a_group_has_members_are_no_match() -> None:
    """The member list was cut, and two groups bear the name."""
    cut = [Group("1", "", [], 2)]
    matched = _match({rank: table(Op(0, 9, sequence=1), groups=cut) for rank in range(4)})

    assert _whys(matched) == [Why.GROUP_UNKNOWN]


def test_a_member_without_a_trace_makes_an_operation_incomplete() -> None:
    matched = _match({0: table(Op(0, 9, sequence=1), groups=world(2))}, world_size=2)

    assert _whys(matched) == [Why.NO_TRACE]
    assert matched.expected.tolist() == [2]


# --- no group recorded --------------------------------------------------------------------------------------------


def test_without_a_group_all_ranks_of_the_job_are_complete() -> None:
    tables = {rank: table(Op(rank, 9, group=-1)) for rank in range(3)}

    assert _match(tables, world_size=3).complete.all()
    assert _whys(_match(tables, world_size=4)) == [Why.NO_TRACE]
    assert _whys(_match(tables)) == [Why.GROUP_UNKNOWN]


def test_without_a_group_the_ranks_of_a_known_group_are_complete() -> None:
    """Ranks 0 and 1 share an operation of a size that rank 2 does not have, and are a group of the header."""
    known = [Group("0", "", [0, 1, 2], 3), Group("1", "TP", [0, 1], 2)]
    tables = {
        0: table(Op(0, 9, bytes=64, group=-1, on_device=False), groups=known),
        1: table(Op(0, 9, bytes=64, group=-1, on_device=False), groups=known),
        2: table(Op(0, 9, bytes=8, group=-1, on_device=False), groups=known[:1]),
    }

    matched = _match(tables, world_size=3)

    assert sorted(zip(matched.bytes.tolist(), _whys(matched), strict=True)) == [(8, Why.NOT_HELD), (64, Why.COMPLETE)]


def test_a_backend_on_the_host_is_matched_by_order_and_size_over_all_threads_and_units() -> None:
    """Two worker threads take turns; the second operation starts in step 1 on one rank, in step 0 on the other."""
    one = table(
        Op(0, 9, group=-1, on_device=False, bytes=8, stream=1),
        Op(10, 19, group=-1, on_device=False, bytes=16, stream=2),
        Op(20, 29, group=-1, on_device=False, bytes=8, stream=2, unit=2),
    )
    two = table(
        Op(0, 9, group=-1, on_device=False, bytes=8, stream=2),
        Op(1, 19, group=-1, on_device=False, bytes=16, stream=1),
        Op(19, 29, group=-1, on_device=False, bytes=8, stream=1, unit=1),
    )

    assert _members(_match({0: one, 1: two}, world_size=2)) == [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(0, 2), (1, 2)]]


# --- recordings that do not begin together ------------------------------------------------------------------------


def test_kernels_launched_before_the_record_line_up_at_their_end() -> None:
    """Rank 0 still shows two kernels of before, rank 1 one."""
    one = table(Op(0, 4, issued=False), Op(5, 9, issued=False), Op(20, 29), groups=world(2))
    two = table(Op(5, 9, issued=False), Op(20, 29), groups=world(2))

    assert _members(_match({0: one, 1: two})) == [[(0, 0)], [(0, 1), (1, 0)], [(0, 2), (1, 1)]]


def test_ends_line_up_a_unit_that_was_recorded_in_part() -> None:
    """Rank 1's record begins with the third of five operations; its clock is 1 s ahead, as step 1 shows."""
    ends = (9, 31, 58, 71, 97)
    one = table(*(Op(end - 5, end) for end in ends), Op(200, 209, unit=2), groups=world(2))
    late = [Op(1e6 + end - 3, 1e6 + end) for end in ends[2:]]
    two = table(*late, Op(1e6 + 205, 1e6 + 209, unit=2), groups=world(2))

    members = _members(_match({0: one, 1: two}))

    assert [group for group in members if len(group) == 2] == [[(0, 2 + i), (1, i)] for i in range(4)]


def test_even_intervals_line_up_by_base_times_and_else_at_the_end() -> None:
    """Both ranks show an operation every 100 µs; rank 1 lacks the last two, or its clock lies."""
    one = table(*(Op(100 * i, 100 * i + 50) for i in range(6)), groups=world(2))
    two = table(*(Op(100 * i + 10, 100 * i + 50.2) for i in range(4)), groups=world(2))
    units = {0: UNITS, 1: UNITS}

    based, _ = match({0: one, 1: two}, unit_names=units, offset_ns={0: 0, 1: 0})
    without, _ = match({0: one, 1: two}, unit_names=units)

    assert [group for group in _members(based) if len(group) == 2] == [[(0, i), (1, i)] for i in range(4)]
    assert [group for group in _members(without) if len(group) == 2] == [[(0, i + 2), (1, i)] for i in range(4)]


# --- what is checked ----------------------------------------------------------------------------------------------


def test_sizes_that_differ_are_a_finding_and_no_match() -> None:
    tables = {
        0: table(Op(0, 9, sequence=1, bytes=8), groups=world(2)),
        1: table(Op(0, 9, sequence=1, bytes=16), groups=world(2)),
    }

    assert _whys(_match(tables)) == [Why.SIZES]
    assert _codes(tables) == ["collective.sizes_differ"]


def test_an_uneven_all_to_all_is_none() -> None:
    tables = {
        0: table(Op(0, 9, "all_to_all", sequence=1, bytes=8), groups=world(2)),
        1: table(Op(0, 9, "all_to_all", sequence=1, bytes=16), groups=world(2)),
    }

    matched = _match(tables)

    assert matched.complete.all()
    assert matched.bytes.tolist() == [16]
    assert _codes(tables) == []


def test_kinds_that_differ_are_a_finding_but_an_unnamed_one_is_not() -> None:
    one = table(Op(0, 9, sequence=1), Op(20, 29, "", sequence=2), groups=world(2))
    two = table(Op(0, 9, "all_gather", sequence=1), Op(20, 29, "all_gather", sequence=2), groups=world(2))

    assert _whys(_match({0: one, 1: two})) == [Why.KINDS, Why.COMPLETE]
    assert _codes({0: one, 1: two}) == ["collective.kinds_differ"]


def test_an_operation_that_a_rank_with_a_trace_lacks_is_a_finding() -> None:
    tables = {0: table(Op(0, 9, sequence=1), groups=world(2)), 1: table(groups=world(2))}

    assert _codes(tables) == ["collective.not_on_all_ranks"]


# --- send and receive ---------------------------------------------------------------------------------------------


def test_sends_meet_receives_in_order_each_way() -> None:
    one = table(send(0, 9, 1), send(10, 19, 1), receive(20, 29, 1))
    two = table(receive(0, 9, 0), receive(10, 19, 0), send(20, 29, 0))

    matched = _match({0: one, 1: two}, world_size=2)

    assert _members(matched) == [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(0, 2), (1, 2)]]
    assert matched.complete.all()


def test_a_send_to_a_rank_without_a_trace_stays_alone() -> None:
    matched = _match({0: table(send(0, 9, 1))}, world_size=2)

    assert _whys(matched) == [Why.NO_TRACE]


def test_sequences_of_sends_count_per_rank_and_match_nothing() -> None:
    """Rank 1 sent to rank 2 before, so its count is ahead."""
    one = table(send(0, 9, 1, sequence=1), groups=world(3))
    two = table(receive(0, 9, 0, sequence=2), send(20, 29, 2, sequence=3), groups=world(3))
    three = table(receive(20, 29, 1, sequence=1), groups=world(3))

    assert _members(_match({0: one, 1: two, 2: three})) == [[(0, 0), (1, 0)], [(1, 1), (2, 0)]]


# --- nothing ------------------------------------------------------------------------------------------------------


def test_no_operation_matches_nothing() -> None:
    matched, findings = match({0: table(), 1: table()})

    assert len(matched) == 0
    assert matched.column({0: table(), 1: table()}, "start_ns").tolist() == []
    assert findings == []
