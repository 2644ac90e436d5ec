"""Layouts: what does not divide is refused with what would be accepted, and every layer is on a stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.architecture import Architecture, Experts
from longpole.costs.layout import Layout, Work, check, complaints
from longpole.errors import UsageError

DENSE = Architecture(
    name="dense", layers=32, hidden=4096, heads=32, key_value_heads=8, head_dim=128, feed_forward=14336,
    vocabulary=128256,
)  # fmt: skip
MIXTURE = replace(DENSE, name="mixture", experts=Experts(count=8, per_token=2, width=14336))
WORK = Work(sequence=8192, micro_batch=1, global_batch=128)


def found(model: Architecture = DENSE, devices: int | None = None, work: Work = WORK, **degrees: Any) -> str:
    return "; ".join(complaints(model, Layout(**degrees), work, devices))


# ------------------------------------------------------------------ how many devices


def test_degrees_multiply_to_the_devices_they_need() -> None:
    """TP4 · PP2 · DP2 needs 16 devices, not 8."""
    assert Layout(tp=4, pp=2, dp=2).world == 16
    assert "TP4 · PP2 · CP1 · DP2 needs 16 devices, not 8" in found(devices=8, tp=4, pp=2, dp=2)


def test_expert_parallelism_does_not_multiply() -> None:
    layout = Layout(tp=2, dp=8, ep=8)

    assert layout.world == 16
    assert layout.expert_dp == 2


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("degrees", "says"),
    [
        ({"tp": 3}, "tp=3 does not divide 32 heads; what does: 1, 2, 4, 8, 16, 32"),
        ({"tp": 0}, "tp: expected a positive whole number, found 0"),
        ({"tp": -4}, "tp: expected a positive whole number, found -4"),
        ({"tp": True}, "tp: expected a positive whole number, found True"),
        ({"dp": 1 << 50}, "dp: expected a positive whole number"),
        ({"pp": 33}, "pp=33 · vp=1 is more than 32 layers"),
        ({"vp": 2}, "vp > 1 needs pp > 1"),
        ({"zero": 4}, "zero: expected one of 0, 1, 2, 3; found 4"),
        ({"schedule": "1f2b"}, "schedule: expected one of gpipe, 1f1b"),
        ({"schedule": "zbv", "pp": 4}, "expected vp=2, found 1"),
        ({"schedule": "dualpipe", "pp": 3}, "an even pp, found 3"),
        ({"schedule": "gpipe", "pp": 2, "vp": 2}, "expected vp=1, found 2"),
        ({"cp_kind": "star"}, "cp_kind: expected one of ring, all_gather, all_to_all; found 'star'"),
        ({"cp": 3}, "cp=3 does not divide the sequence of 8192"),
        ({"cp": 64, "cp_kind": "all_to_all"}, "does not divide 32 heads"),
        ({"ep": 8}, "ep=8: the model has no experts"),
        ({"dp": 3}, "global batch 128 is no multiple of dp · micro-batch = 3"),
        ({"pp": 2, "chunk_layers": (16, 15)}, "expected 2 whole numbers that add up to 32 layers, found 2 that add up"),
    ],
)
def test_what_does_not_divide_is_refused_with_what_would(degrees: dict[str, Any], says: str) -> None:
    assert says in found(**degrees)


@pytest.mark.parametrize(
    ("degrees", "says"),
    [
        ({"ep": 3, "dp": 3}, "ep=3 does not divide 8 experts"),
        ({"ep": 8, "dp": 4}, "ep=8 · etp=1 does not divide dp · cp · tp"),
        ({"etp": 3, "dp": 3}, "etp=3 does not divide the experts' width"),
    ],
)
def test_experts_that_do_not_divide_are_refused(degrees: dict[str, Any], says: str) -> None:
    assert says in found(MIXTURE, **degrees)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"sequence": -1}, "sequence: expected a positive whole number, found -1"),
        ({"micro_batch": 1.5}, "micro_batch: expected a positive whole number, found 1.5"),
        ({"global_batch": 1 << 60}, "global_batch: expected a positive whole number"),
        ({"recompute": "some"}, "recompute: expected one of none, selective, full; found 'some'"),
        ({"recompute_layers": ("full",)}, "recompute: 1 policies for 32 layers"),
        ({"dtype": "fp4"}, "dtype: expected one of bf16, fp16, fp8, fp32; found 'fp4'"),
        ({"gradient_bytes": 3}, "gradient_bytes: expected one of 2, 4; found 3"),
    ],
)
def test_work_that_cannot_be_is_refused(changed: dict[str, Any], says: str) -> None:
    assert says in found(work=replace(WORK, **changed))


def test_sequence_parallelism_needs_tokens_for_every_rank() -> None:
    assert "cp · tp = 16 does not divide 8200 tokens" in found(work=replace(WORK, sequence=8200), tp=8, cp=2, sp=True)


def test_all_complaints_come_at_once() -> None:
    with pytest.raises(UsageError, match=r"tp=3 does not divide 32 heads.*; .*no multiple of dp"):
        check(DENSE, Layout(tp=3, dp=3), WORK)


def test_a_layout_that_divides_passes() -> None:
    check(DENSE, Layout(tp=8, pp=4, dp=4, sp=True, zero=1), WORK, devices=128)
    check(MIXTURE, Layout(tp=2, dp=8, ep=8), WORK, devices=16)


# ------------------------------------------------------------------ which layers are where


def test_layers_that_do_not_divide_go_to_inner_stages_first() -> None:
    """Llama 3 405B has 126 layers over 16 stages: one less on the first and on the last."""
    assert Layout(pp=16).chunks(126) == (7, *[8] * 14, 7)


def test_chunks_of_a_v_schedule_come_back_to_the_first_stage() -> None:
    stages = Layout(pp=2, vp=2, schedule="zbv").stages(8)

    assert stages == ((range(2), range(6, 8)), (range(2, 4), range(4, 6)))


def test_dual_pipe_holds_every_layer_twice() -> None:
    stages = Layout(pp=4, schedule="dualpipe").stages(8)

    assert stages[0] == (range(2), range(6, 8))
    assert stages[3] == (range(6, 8), range(2))


def test_stated_chunks_are_taken_as_they_are() -> None:
    assert Layout(pp=2, chunk_layers=(5, 3)).stages(8) == ((range(5),), (range(5, 8),))


@given(
    layers=st.integers(1, 200),
    pp=st.integers(1, 32),
    vp=st.integers(1, 4),
    schedule=st.sampled_from(["1f1b", "interleaved", "zbv"]),
)
def test_every_layer_is_on_exactly_one_stage_and_chunks_differ_by_one(
    layers: int, pp: int, vp: int, schedule: str
) -> None:
    layout = Layout(pp=pp, vp=vp, schedule=schedule)
    counts = layout.chunks(layers)
    held = sorted(layer for stage in layout.stages(layers) for chunk in stage for layer in chunk)

    assert held == list(range(layers))
    assert max(counts) - min(counts) <= 1
    assert len(layout.stages(layers)) == pp


def test_a_policy_of_its_own_wins_over_that_of_all() -> None:
    work = replace(WORK, recompute="full", recompute_layers=("none", "selective"))

    assert (work.policy(0), work.policy(1), replace(WORK, recompute="full").policy(7)) == ("none", "selective", "full")


def test_labels_leave_out_what_is_one() -> None:
    assert Layout(tp=4, pp=2, dp=2).label() == "TP4·PP2·DP2"
    assert Layout().label() == "one device"
