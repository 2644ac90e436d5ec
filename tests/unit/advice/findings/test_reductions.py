"""Rounds of buckets are told from layers by distances, and what backward can hide from what it cannot."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from longpole.advice.findings.reductions import left_over, micro_batches
from longpole.advice.operations import Operations

MIB = 1 << 20


def _operations(sizes_mib: list[int], starts: list[int], transfer_ns: int = 10) -> Operations:
    columns = {field.name: np.zeros(len(sizes_mib), np.int64) for field in fields(Operations)}
    columns["operation"] = np.arange(len(sizes_mib))
    columns["size_bytes"] = np.array(sizes_mib, np.int64) * MIB
    columns["start_ns"] = np.array(starts, np.int64)
    columns["transfer_ns"] = np.full(len(sizes_mib), transfer_ns, np.int64)
    return Operations(**columns)


@pytest.mark.parametrize(
    ("sizes_mib", "starts", "rounds"),
    [
        ([25, 25, 9] * 3, [0, 5, 10, 25, 30, 35, 50, 55, 60], 3),
        ([25, 9] * 4, [0, 5, 10, 15, 20, 25, 30, 35], 1),  # attention and feed-forward, layer by layer
        ([25, 25, 9, 25, 9, 25], [0, 5, 20, 25, 40, 45], 1),  # no two rounds alike
        ([25] * 4, [0, 20, 40, 60], 1),  # one bucket a round looks like one operation a layer
        ([25, 9], [0, 5], 1),
    ],
)
def test_rounds_are_repeated_buckets_with_a_forward_pass_before_each(
    sizes_mib: list[int], starts: list[int], rounds: int
) -> None:
    assert micro_batches(_operations(sizes_mib, starts)) == rounds


@pytest.mark.parametrize(
    ("sizes_mib", "room_ns", "left"),
    [
        ([25, 25, 9], 1000, [0, 0, 10]),  # the last bucket has nothing to hide under
        ([25, 25, 9], 15, [0, 0, 15]),  # 20 to hide, room for 15
        ([100], 1000, [2]),  # cut into buckets of 25 MiB, a quarter stays
        ([20], 1000, [10]),  # one bucket as it is
    ],
)
def test_backward_hides_all_but_the_last_bucket_as_far_as_it_is_long_enough(
    sizes_mib: list[int], room_ns: int, left: list[int]
) -> None:
    operations = _operations(sizes_mib, list(range(len(sizes_mib))))

    assert list(left_over(operations, room_ns).values()) == left
