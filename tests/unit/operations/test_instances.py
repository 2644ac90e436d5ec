"""Who runs together: one test for each kind of group, on a layout of two in every direction."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from longpole.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.graph.operations.build import OperationGraph
    from tests.operation_tables import Row

    Build = Callable[[Iterable[Row]], OperationGraph]

LATE = (1, 1, 1)  # the dp rank, stage and tp rank that arrives at 50 ms; all others arrive at 10


def collective(name: str, stages: tuple[int, ...] = (0, 1), **more: str) -> list[Row]:
    """Return one collective of a job of 2 × 2 × 2 ranks that ends a millisecond after the last of them comes."""
    rows = []
    for place in product((0, 1), (0, 1), (0, 1)):
        dp, stage, tp = place
        worker = {"step": 1, "rank": 4 * dp + 2 * stage + tp, "dp_rank": dp, "stage": stage, "tp_rank": tp}
        arrives_ms = 50 if place == LATE else 10
        rows.append(worker | {"optype": "work", "start_ts": 0.0, "duration": arrives_ms / 1000})
        if stage in stages:
            rows.append(
                worker
                | {"optype": name, "start_ts": arrives_ms / 1000, "duration": (51 - arrives_ms) / 1000}
                | {"kind": more.get("kind"), "group": more.get("group", "").format(dp=dp, stage=stage, tp=tp) or None}
            )
    return rows


def groups(graph: OperationGraph) -> list[set[int]]:
    """Return the ranks of each instance."""
    found: dict[int, set[int]] = {}
    for instance, rank in zip(graph.instances.of_row.tolist(), graph.table.rank.tolist(), strict=True):
        found.setdefault(instance, set()).add(rank)
    found.pop(-1)
    return sorted(found.values(), key=sorted)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("grads-reduce-scatter", [{0, 4}, {1, 5}, {2, 6}, {3, 7}]),
        ("params-all-gather", [{0, 4}, {1, 5}, {2, 6}, {3, 7}]),
        ("layernorm-grads-all-reduce", [{0, 1}, {2, 3}, {4, 5}, {6, 7}]),
        ("tp-all-gather", [{0, 1}, {2, 3}, {4, 5}, {6, 7}]),
        ("embedding-grads-all-reduce", [{0, 2}, {1, 3}, {4, 6}, {5, 7}]),
        ("optimizer-clip-main-grad", [{0, 1, 2, 3, 4, 5, 6, 7}]),
    ],
)
def test_a_name_says_who_takes_part(build: Build, name: str, expected: list[set[int]]) -> None:
    graph = build(collective(name))

    assert groups(graph) == expected
    assert len(graph.instances.incomplete) == 0


def test_members_of_the_late_ones_group_wait_and_others_do_not(build: Build) -> None:
    """Only ranks 3 and 7 reduce together; the other groups are recorded as ending late for no reason of theirs."""
    graph = build(collective("grads-reduce-scatter"))
    calls = graph.table.optype == [kind.name for kind in graph.table.types].index("grads-reduce-scatter")

    work_ms = dict(zip(graph.table.rank[calls].tolist(), (graph.work_ns[calls] // NS_PER_MS).tolist(), strict=True))

    assert work_ms == {0: 41, 1: 41, 2: 41, 4: 41, 5: 41, 6: 41, 3: 1, 7: 1}


def test_a_written_group_says_who_takes_part(build: Build) -> None:
    graph = build(collective("exchange", kind="collective", group="experts {tp}"))

    assert groups(graph) == [{0, 2, 4, 6}, {1, 3, 5, 7}]
    assert len(graph.instances.unknown_members) == 0


def test_a_collective_of_unknown_members_is_kept_as_recorded(build: Build) -> None:
    graph = build(collective("moe-all-to-all"))

    assert graph.instances.count == 0
    assert len(graph.instances.unknown_members) == 8
    assert graph.replay_ends_ns(graph.work_ns).max() == 51 * NS_PER_MS


def test_a_member_that_is_missing_is_missed(build: Build) -> None:
    """All ranks are there, but rank 5 did not take part: its group is told from the whole ones."""
    rows = [row for row in collective("grads-reduce-scatter") if row["optype"] == "work" or row["rank"] != 5]

    graph = build(rows)

    assert graph.table.rank[graph.instances.incomplete].tolist() == [1]
    assert {1} not in groups(graph)


def test_a_member_that_ends_before_the_last_one_starts_is_counted(build: Build) -> None:
    rows = [
        row | {"duration": 0.005} if (row["rank"], row["optype"]) == (7, "work") else row
        for row in collective("optimizer-clip-main-grad")
    ]
    rows = [
        row | {"duration": 0.010} if (row["rank"], row["optype"]) == (0, "optimizer-clip-main-grad") else row
        for row in rows
    ]

    graph = build(rows)

    assert graph.table.rank[graph.instances.early].tolist() == [0]
    assert graph.work_ns[graph.instances.early].tolist() == [0]


def test_numbers_tell_instances_of_one_type_apart(build: Build) -> None:
    first = collective("grads-reduce-scatter")
    second = [row | {"start_ts": row["start_ts"] + 0.1} for row in first if row["optype"] != "work"]

    graph = build([*first, *second])

    assert graph.instances.count == 8
    assert groups(graph) == sorted([{0, 4}, {1, 5}, {2, 6}, {3, 7}] * 2, key=sorted)
