"""A step's parts add up, and each answers to what it is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from longpole.costs.calibration import Calibration
from longpole.costs.cluster import cluster_of
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.layout import Layout, Recompute, Work, complaints
from longpole.costs.presets import preset
from longpole.costs.schedules import Times, simulate
from longpole.costs.step import StepTime, _simulated, step_time
from longpole.costs.step_traffic import ASYNC_TP_SHARE, Software
from longpole.errors import UsageError
from longpole.hardware.devices import find_device

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture

H100 = CollectiveCosts(cluster_of(find_device("H100-SXM5-80GB"), 50e9, 8))
LLAMA = preset("llama-3-8b")
WORK = Work(sequence=8192, micro_batch=1, global_batch=64)

layouts = st.builds(
    Layout,
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4]),
    dp=st.sampled_from([1, 2, 8]),
    cp=st.sampled_from([1, 2]),
    sp=st.booleans(),
    zero=st.sampled_from([0, 1, 2, 3]),
    schedule=st.sampled_from(["gpipe", "1f1b", "zb1p", "zb2p"]),
    cp_kind=st.sampled_from(["ring", "all_gather", "all_to_all"]),
)
works = st.builds(
    Work,
    sequence=st.sampled_from([1024, 8192]),
    micro_batch=st.sampled_from([1, 2]),
    global_batch=st.sampled_from([32, 128]),
    recompute=st.sampled_from(["none", "selective", "full"]),
    flash=st.booleans(),
    dtype=st.sampled_from(["bf16", "fp8"]),
)


def took(layout: Layout, work: Work = WORK, model: Architecture = LLAMA, software: Software | None = None) -> StepTime:
    """Return what a step takes on H100s."""
    return step_time(model, H100, layout, work, software=software)


@given(layout=layouts, work=works)
def test_the_parts_add_up_to_the_step_and_none_is_negative(layout: Layout, work: Work) -> None:
    assume(not complaints(LLAMA, layout, work))

    found = took(layout, work)

    assert found.total_s == sum(found.parts_s.values())
    assert min(found.parts_s.values()) >= 0
    assert min(found.hidden_s.values(), default=0) >= 0
    assert sum(found.spent_s.values()) == pytest.approx(found.compute_s + found.recompute_s)
    assert found.tokens_per_s == pytest.approx(work.global_batch * work.sequence / found.total_s)
    assert len(found.stages_s) == layout.pp


@given(layout=layouts, work=works)
def test_what_a_framework_hides_never_makes_a_step_longer(layout: Layout, work: Work) -> None:
    """But for what hidden messages slow the computation by, which is left out here."""
    assume(not complaints(LLAMA, layout, work))
    alone = Calibration(scale_up_contention=0.0, network_contention=0.0)
    nothing = Software(hides_tp=False, hides_cp=False, hides_ep=False, hides_pp=False, hides_dp=False)
    everything = Software(hides_tp=True, hides_cp=True, hides_ep=True, hides_pp=True, hides_dp=True, bucket_bytes=1e9)

    slow = step_time(LLAMA, H100, layout, work, alone, nothing)
    fast = step_time(LLAMA, H100, layout, work, alone, everything)

    # Some buckets are more operations than one, each with its latency.
    assert fast.total_s <= slow.total_s * 1.02


@given(layout=layouts, work=works, faster=st.floats(1.0, 1.3))
def test_faster_products_never_make_a_step_longer(layout: Layout, work: Work, faster: float) -> None:
    """But with zero-bubble schedules, whose passes then no longer fit into one another."""
    assume(not complaints(LLAMA, layout, work) and not layout.schedule.startswith("zb"))
    alone = Calibration(scale_up_contention=0.0, network_contention=0.0, matmul_of_ceiling=0.7)

    slow = step_time(LLAMA, H100, layout, work, alone)
    fast = step_time(LLAMA, H100, layout, work, replace(alone, matmul_of_ceiling=0.7 * faster))

    assert fast.total_s <= slow.total_s * (1 + 1e-9)


def test_one_device_only_computes_and_updates() -> None:
    found = took(Layout(), replace(WORK, global_batch=1))

    assert {name for name, spent_s in found.parts_s.items() if spent_s} == {"compute", "optimizer"}
    assert found.limits[0] == "matmul"


def test_recomputation_costs_a_forward_pass_of_the_layers() -> None:
    """Full: a third of forward and backward, less the head; selective: attention's core alone."""
    parts = {policy: took(Layout(), replace(WORK, recompute=policy)).recompute_s for policy in _POLICIES}
    plain = took(Layout(), WORK)

    assert parts["none"] == 0
    assert plain.compute_s / 4 < parts["full"] < plain.compute_s / 3
    assert 0 < parts["selective"] < parts["full"] / 2


_POLICIES: tuple[Recompute, ...] = ("none", "selective", "full")


def test_a_policy_per_layer_lies_between_the_same_for_all() -> None:
    half: tuple[Recompute, ...] = ("full",) * 16 + ("none",) * 16
    full = took(Layout(), replace(WORK, recompute="full")).recompute_s

    found = took(Layout(), replace(WORK, recompute_layers=half)).recompute_s

    assert found == pytest.approx(full / 2)


def test_dividing_a_model_by_tensors_halves_its_products_and_exposes_messages() -> None:
    one, two = took(Layout(tp=1)), took(Layout(tp=2, sp=True))

    assert two.spent_s["matmul"] == pytest.approx(one.spent_s["matmul"] / 2, rel=0.01)
    assert two.exposed_s["tp"] > 0
    assert "tp" not in one.exposed_s


def test_split_products_hide_half_of_their_messages_and_slow_down() -> None:
    exposed = took(Layout(tp=4, sp=True))
    hidden = took(Layout(tp=4, sp=True), software=Software(hides_tp=True))

    assert hidden.exposed_s["tp"] == pytest.approx(ASYNC_TP_SHARE * exposed.exposed_s["tp"], rel=0.01)
    assert hidden.hidden_s["tp"] > exposed.hidden_s["tp"]
    assert hidden.contention_s > exposed.contention_s


def test_a_pipeline_waits_as_long_as_its_schedule_says() -> None:
    """With equal stages the bubble of 1F1B is (p - 1) micro-batches; twice the micro-batches halve its share."""
    few = took(Layout(pp=4), replace(WORK, global_batch=16))
    many = took(Layout(pp=4), replace(WORK, global_batch=32))

    assert few.bubble_s == pytest.approx(many.bubble_s, rel=1e-6)
    assert 3 * min(few.stages_s) <= few.bubble_s <= 3 * max(few.stages_s)


def test_the_head_of_a_large_vocabulary_makes_the_last_stage_the_busiest() -> None:
    assert took(Layout(pp=4)).stage == 3


def test_sharded_weights_are_gathered_for_every_micro_batch() -> None:
    """FSDP pays for each micro-batch; ZeRO-1 once a step."""
    few, many = replace(WORK, global_batch=8), replace(WORK, global_batch=32)

    def sent_s(layout: Layout, work: Work) -> float:
        found = took(layout, work)
        return sum(found.exposed_s.values()) + sum(found.hidden_s.values())

    sharded, divided = Layout(dp=8, zero=3), Layout(dp=8, zero=1)
    assert sent_s(sharded, many) == pytest.approx(4 * sent_s(sharded, few), rel=1e-6)
    assert sent_s(divided, many) == pytest.approx(sent_s(divided, few), rel=1e-6)


def test_gathering_a_layer_ahead_hides_what_gathering_when_needed_exposes() -> None:
    layout = Layout(dp=8, zero=3)

    assert took(layout).exposed_s["fsdp"] < 0.3 * took(layout, software=Software(hides_dp=False)).exposed_s["fsdp"]


def test_only_the_ends_of_a_sharded_model_are_not_spread_over_its_layers() -> None:
    """Each layer's weights are gathered twice and its gradients reduced once: all of it is either exposed or hidden."""
    from longpole.costs.collective_bytes import step_messages

    layout = Layout(dp=8, zero=3)
    wanted_s = sum(
        H100.seconds_along(message.kind, layout, message.dimension, message.bytes) * message.count
        for message in step_messages(LLAMA, layout, WORK)
    )

    found = took(layout)

    assert found.exposed_s["fsdp"] + found.hidden_s["fsdp"] == pytest.approx(wanted_s)
    assert {message.name.rsplit(" of ", 1)[1] for message in step_messages(LLAMA, layout, WORK)} == {
        "a layer",
        "embedding, head and others",
    }


def test_an_optimizer_with_less_state_takes_less() -> None:
    adam = step_time(LLAMA, H100, Layout(), WORK)
    small = step_time(LLAMA, H100, Layout(), WORK, software=Software(optimizer="sgd"))
    divided = step_time(LLAMA, H100, Layout(dp=8, zero=1), WORK)

    assert small.optimizer_s < adam.optimizer_s
    assert divided.optimizer_s == pytest.approx(adam.optimizer_s / 8)


def test_a_mixture_of_experts_sends_tokens_both_ways() -> None:
    """Among 8 devices of a node, and in 4 nodes of them, where the network carries them."""
    model, work = preset("mixtral-8x7b"), replace(WORK, sequence=4096)
    inside, across = took(Layout(dp=8, ep=8), work, model), took(Layout(dp=64, ep=8, tp=1), work, model)

    assert inside.exposed_s["ep"] > 0
    assert across.exposed_s["ep"] <= inside.exposed_s["ep"]
    assert took(Layout(dp=8), work, model).exposed_s.get("ep", 0) == 0


def test_a_device_with_two_stages_sends_as_much_as_one_with_one() -> None:
    """DualPipe: each stage is held twice, and each copy sees half of the micro-batches."""
    model, work = preset("mixtral-8x7b"), replace(WORK, sequence=4096)
    one = took(Layout(dp=8, ep=8, pp=4), work, model)
    two = took(Layout(dp=8, ep=8, pp=4, schedule="dualpipe"), work, model)

    assert two.exposed_s["ep"] == pytest.approx(one.exposed_s["ep"])
    assert two.hidden_s["dp"] + two.exposed_s["dp"] > one.hidden_s["dp"] + one.exposed_s["dp"]


@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b", "deepseek-v3-mtp"])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved", "zb1p", "zb2p", "zbv", "dualpipe"])
def test_under_every_schedule_the_parts_add_up_and_the_work_is_the_same(name: str, schedule: str) -> None:
    """A device computes as much for its share of the micro-batches, but that unequal stages are dealt differently."""
    model, work = preset(name), replace(WORK, sequence=4096, global_batch=128)
    layout = Layout(pp=4, dp=8, ep=8 if model.experts else 1, schedule=schedule)
    layout = replace(layout, vp=2 if schedule in ("interleaved", "zbv") else 1)

    found = took(layout, work, model)

    assert found.total_s == sum(found.parts_s.values())
    assert min(found.parts_s.values()) >= 0
    plain = took(replace(layout, schedule="1f1b", vp=1), work, model)
    assert sum(found.stages_s) == pytest.approx(sum(plain.stages_s), rel=0.02)


@settings(max_examples=30)
@given(
    counts=st.tuples(st.integers(2, 6), st.integers(2, 3), st.integers(1, 8)),
    first=st.floats(1.0, 2.0),
    more=st.floats(0.0, 2.0),
    transfer_s=st.sampled_from([0.0, 0.1]),
)
def test_a_settled_schedule_goes_on_as_its_busiest_device_does(
    counts: tuple[int, int, int], first: float, more: float, transfer_s: float
) -> None:
    """Parts alike but for a first, and a last that takes longest: one round simulated and the rest added is exact."""
    p, v, rounds = counts
    found_s, whole_s = _in_part_and_whole(p, v, rounds * p, [first, *[1.0] * (p * v - 2), first + more], transfer_s)

    assert found_s == pytest.approx(whole_s, rel=1e-9)


@settings(max_examples=20)
@given(p=st.integers(2, 5), v=st.integers(2, 3), first=st.floats(1.0, 2.0), last=st.floats(1.0, 2.0))
def test_a_schedule_that_settles_late_is_off_by_less_than_a_hundredth(
    p: int, v: int, first: float, last: float
) -> None:
    found_s, whole_s = _in_part_and_whole(p, v, 8 * p, [first, *[1.0] * (p * v - 2), last], 0.0)

    assert found_s == pytest.approx(whole_s, rel=0.01)


def _in_part_and_whole(p: int, v: int, m: int, forward_s: list[float], transfer_s: float) -> tuple[float, float]:
    """Return the time of a step by a few simulated micro-batches, and by all of them."""
    parts = [Times(forward_s=one, backward_s=2 * one) for one in forward_s]
    few = min(m, _simulated("interleaved", p, m, parts))
    busiest_s = max(sum(3 * one for one in forward_s[device::p]) for device in range(p))
    in_part_s = simulate("interleaved", p, few, parts, v, transfer_s).period_s + (m - few) * busiest_s
    return in_part_s, simulate("interleaved", p, m, parts, v, transfer_s).period_s


def test_a_device_without_a_peak_of_the_type_is_refused() -> None:
    cluster = cluster_of(find_device("A100-SXM4-80GB"))
    with pytest.raises(UsageError, match="no fp8 peak"):
        step_time(LLAMA, cluster, Layout(), replace(WORK, dtype="fp8"))


def test_a_group_that_needs_a_network_is_refused_where_none_is_stated() -> None:
    cluster = cluster_of(find_device("H100-SXM5-80GB"))
    with pytest.raises(UsageError, match="state the network"):
        step_time(LLAMA, cluster, Layout(dp=16), WORK)
