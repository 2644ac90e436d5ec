"""Process groups as records name them, and the sizes of what they move."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longpole.analyses.comm_groups import Groups, element_bytes, full_bytes, parse_members
from longpole.timeline.tables import CollectiveArgs
from tests.build import Script

if TYPE_CHECKING:
    from longpole.timeline.timeline import Timeline


def args(**given: Any) -> CollectiveArgs:
    plain: dict[str, Any] = {
        "row": 0,
        "on_device": True,
        "name": "allreduce",
        "in_elements": 1000,
        "out_elements": 1000,
        "group_size": 4,
        "dtype": "Float",
        "group_name": "7",
        "group_ranks": "[0, 1, 2, 3]",
        "sequence": None,
    }
    return CollectiveArgs(**{**plain, **given})


def timeline(*configured: dict[str, Any]) -> Timeline:
    script = Script()
    script.op("aten::mm", 0, 10)
    made = script.timeline()
    return replace(made, identity=replace(made.identity, groups=configured))


@pytest.mark.parametrize(
    ("kind", "given", "taken", "expected"),
    [
        ("all_reduce", 1000, 1000, 4000),
        ("all_gather", 1000, 4000, 16_000),
        ("all_gather", 1000, None, 16_000),
        ("reduce_scatter", 4000, 1000, 16_000),
        ("all_to_all", 900, 1100, 4400),
        ("broadcast", 1000, 1000, 4000),
        ("send_recv", 0, 1000, 4000),
        ("all_reduce", None, None, -1),
    ],
)
def test_sizes_are_of_the_full_buffer(kind: str, given: int | None, taken: int | None, expected: int) -> None:
    assert full_bytes(kind, args(in_elements=given, out_elements=taken), 4) == expected


def test_an_unknown_type_has_no_size() -> None:
    assert element_bytes("quaternion") == -1
    assert full_bytes("all_reduce", args(dtype="quaternion"), 4) == -1


@pytest.mark.parametrize(("text", "cut"), [("[0, 1, ...]", True), ("[0, 1, x]", True), ("[0, 1]", False)])
def test_member_lists_may_be_cut(text: str, cut: bool) -> None:
    assert parse_members(text) == ([0, 1], cut)


def test_a_cut_list_is_completed_by_start_stride_and_size() -> None:
    groups = Groups(timeline())

    number = groups.number_of(args(group_ranks="[1, 9, ...]", group_size=16, rank_start=1, rank_stride=8))

    assert groups.listed()[number].members == [1 + 8 * place for place in range(16)]


def test_a_cut_list_that_start_and_stride_contradict_is_completed_by_the_header() -> None:
    members = [0, 1, 2, 3, 8, 9]
    groups = Groups(timeline({"pg_name": "7", "pg_desc": "mesh_dp", "pg_size": 6, "ranks": members}))

    number = groups.number_of(args(group_ranks="[0, 1, 2, 3, 8, ...]", group_size=6, rank_start=0, rank_stride=1))

    assert groups.listed()[number].members == members
    assert groups.listed()[number].description == "mesh_dp"


def test_a_cut_list_that_nothing_completes_leaves_the_size() -> None:
    groups = Groups(timeline())

    number = groups.number_of(args(group_ranks="[0, 1, ...]", group_size=64))

    assert (groups.listed()[number].members, groups.size_of(number)) == ([], 64)


def test_an_operation_without_a_group_has_none() -> None:
    assert Groups(timeline()).number_of(args(group_name="", group_ranks="")) == -1


def test_a_group_is_listed_once() -> None:
    groups = Groups(timeline({"pg_name": "7", "pg_desc": "", "pg_size": 4, "ranks": [0, 1, 2, 3]}))

    assert groups.number_of(args()) == groups.number_of(args(name="allgather")) == 0
    assert len(groups.listed()) == 1


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"pg_name": "1"},
        {"pg_name": "1", "ranks": [0, "x"]},
        {"pg_name": ["1"], "ranks": [0]},
        {"pg_name": "1", "ranks": [-1]},
        {"pg_name": "1", "ranks": {"0": 1}},
    ],
)
def test_damaged_headers_name_no_group(entry: dict[str, Any]) -> None:
    assert Groups(timeline(entry)).listed() == []


def test_local_ranks_become_global_ones() -> None:
    groups = Groups(timeline({"pg_name": "1", "pg_desc": "", "pg_size": 2, "ranks": [4, 6]}))

    assert [groups.global_rank(0, local) for local in (0, 1, 2)] == [4, 6, -1]
    assert groups.global_rank(-1, 0) == -1
