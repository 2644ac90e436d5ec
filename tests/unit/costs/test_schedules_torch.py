"""The orders of passes are those that torch's own pipelines run."""

from __future__ import annotations

from typing import Any

import pytest

from longpole.costs.schedule_orders import order_of

schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
pytestmark = pytest.mark.slow  # importing torch takes seconds

KINDS = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W"}


def _order_of_torch(name: str, stages: int, micro_batches: int, chunks: int) -> list[list[tuple[Any, ...]]]:
    """Ask a schedule for each rank's passes; only its counts are set, for it is never run."""
    schedule = object.__new__(getattr(schedules, name))
    schedule.pp_group_size, schedule.n_local_stages = stages, chunks
    schedule.num_stages, schedule._n_microbatches = stages * chunks, micro_batches
    schedule.number_of_rounds = max(1, micro_batches // stages)
    schedule.microbatches_per_round = micro_batches // schedule.number_of_rounds
    rows = []
    for rank in range(stages):
        actions = [action for action in schedule._calculate_single_rank_operations(rank) if action is not None]
        rows.append([tuple(map(_pass, action.sub_actions or (action,))) for action in actions])
    return rows


def _pass(action: Any) -> tuple[str, int, int]:
    return KINDS[action.computation_type.name], action.stage_index, action.microbatch_index


@pytest.mark.parametrize(
    ("ours", "theirs", "chunks"),
    [
        ("interleaved", "ScheduleInterleaved1F1B", 2),
        ("interleaved", "ScheduleInterleaved1F1B", 3),
        ("zb1p", "ScheduleInterleavedZeroBubble", 1),
        ("zbv", "ScheduleZBVZeroBubble", 2),
        ("dualpipev", "ScheduleDualPipeV", 2),
    ],
)
@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 8), (4, 20), (8, 24)])
def test_our_order_is_torchs(ours: str, theirs: str, chunks: int, stages: int, micro_batches: int) -> None:
    order = order_of(ours, stages, micro_batches, chunks)

    rows = [[tuple((op.kind, op.part, op.micro_batch) for op in step) for step in row] for row in order.devices]
    assert rows == _order_of_torch(theirs, stages, micro_batches, chunks)
