"""The collectives of the steady units as one table.

rank 0     ══ gemm 100 ══ ···· waits 300 ···· ══ moves 20 ══
rank 1     ══════════════ gemm 400 ══════════ ══ moves 20 ══     launched by the autograd thread, outside any operator
"""

from __future__ import annotations

import numpy as np
import pytest

from longpole.advice.operations import Operations, in_other_times, members, operations_of, where
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from longpole.whatif.predict import measure_effect
from tests.build import ALL_REDUCE
from tests.scenes import loading_job, scene_of, team

US = 1000
SCENE = scene_of(*team([100, 400]))


def _table() -> Operations:
    found = operations_of(SCENE)
    assert found is not None
    return found


def test_each_operation_is_one_row_with_its_transfer_apart_from_the_wait() -> None:
    table = _table()

    assert len(table) == 4
    assert table.kind_name == "all_reduce"
    assert table.unit.tolist() == [0, 1, 2, 3]
    assert table.split.tolist() == [1, 1, 1, 1]
    assert (table.transfer_ns / US).tolist() == pytest.approx([20] * 4, abs=1)
    assert (table.exposed_ns / US).tolist() == pytest.approx([20] * 4, abs=1)
    assert ((table.end_ns - table.start_ns) / US).tolist() == pytest.approx([320] * 4, abs=1)


def test_what_another_thread_launches_outside_operators_is_of_backward_all_the_same() -> None:
    assert _table().backward.tolist() == [1, 1, 1, 1]


def test_what_the_main_thread_launches_is_not() -> None:
    scripts = team([100, 400])
    for script in scripts:
        for row in script.host:
            if row.thread == "autograd":
                row.thread, row.of_autograd = "main", False
                row.name = "aten::mul" if row.name.startswith("autograd") else row.name

    table = operations_of(scene_of(*scripts))

    assert table is not None
    assert table.backward.tolist() == [0, 0, 0, 0]


def test_a_part_is_a_table_again() -> None:
    table = _table()

    assert len(table.of_kind("all_reduce")) == 4
    assert len(table.of_kind("all_gather", "broadcast")) == 0
    assert table.take(np.array([1, 3])).unit.tolist() == [1, 3]
    assert table.take(np.array([1, 3])).n_units == 2
    assert table.take(np.array([], np.intp)).n_units == 1


def test_kinds_come_with_the_longest_exposed_first() -> None:
    table = _table()
    kinds = np.array([COLLECTIVE_KINDS.index(name) for name in ("all_gather", "all_reduce", "all_reduce", "broadcast")])
    mixed = Operations(**{name: getattr(table, name) for name in Operations.__slots__} | {"kind": kinds})

    parts = mixed.by_kind_and_group()

    assert parts[0].kind_name == "all_reduce"
    assert sorted(len(part) for part in parts) == [1, 1, 2]


def test_members_and_the_first_of_them() -> None:
    table = _table()

    assert members(SCENE, table) == [0, 1]
    place = where(SCENE, int(table.operation[2]))
    assert (place.name, place.unit) == (ALL_REDUCE, "ProfilerStep#2")


def test_operations_take_other_times_where_they_are_split() -> None:
    table = _table()
    assert SCENE.ground is not None

    effect = measure_effect(SCENE.ground, in_other_times(SCENE, table, np.full(4, 120 * US, np.int64)))

    assert effect.saving_ns / US == pytest.approx(-100, abs=1)


def test_a_job_without_collectives_has_no_table() -> None:
    assert operations_of(scene_of(loading_job(100, 100, 100))) is None
