"""What a step sends: bytes and counts of every dimension, against sums done by hand and against the papers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.architecture import Architecture
from longpole.costs.cluster import cluster_of
from longpole.costs.collective_bytes import Message, Wiring, layer_messages, sends, step_messages
from longpole.costs.collective_time import KINDS, CollectiveCosts
from longpole.costs.layout import Layout, Work, complaints
from longpole.costs.parameters import parameters
from longpole.costs.presets import preset
from longpole.hardware.devices import find_device

if TYPE_CHECKING:
    from collections.abc import Iterable

LLAMA_13B = Architecture(
    name="13B", layers=40, hidden=5120, heads=40, key_value_heads=40, head_dim=128, feed_forward=13824, vocabulary=32000
)
S = 8 * 2048 * 5120 * 2  # one micro-batch's hidden states in bytes: 8 sequences of 2048 tokens


def _work(**changed: object) -> Work:
    return Work(**{"sequence": 2048, "micro_batch": 8, "global_batch": 8, **changed})  # type: ignore[arg-type]


def _count(messages: Iterable[Message], name: str, phase: str = "") -> float:
    return sum(one.count for one in messages if one.name == name and phase in ("", one.phase))


def _sent(messages: Iterable[Message], *dimensions: str) -> float:
    """Return bytes on the wire of a step, of all dimensions or of some."""
    return sum(one.step_wire_bytes for one in messages if not dimensions or one.dimension in dimensions)


def test_an_all_reduce_of_the_hidden_states_is_168_mb_and_eighty_are_the_forward_pass_alone() -> None:
    """13B, TP4, 8 sequences of 2048: 2 a layer and pass, 40 layers."""
    messages = step_messages(LLAMA_13B, Layout(tp=4), _work())

    assert {one.bytes for one in messages if one.name == "outputs of blocks"} == {S} == {167_772_160}
    assert _count(messages, "outputs of blocks", "forward") == 80
    assert _count(messages, "outputs of blocks", "backward") == 80


@pytest.mark.parametrize(("pp", "milliseconds"), [(1, 134.2), (2, 67.1)])
def test_blocks_take_134_ms_at_300_gb_per_s_and_half_of_it_on_a_stage_of_two(pp: int, milliseconds: float) -> None:
    """Ring factor 1.5, forward and backward, at the line rate of an A100; not 33.6 ms."""
    messages = step_messages(LLAMA_13B, Layout(tp=4, pp=pp), _work(), stage=0)
    wire = _sent(one for one in messages if one.name == "outputs of blocks")

    assert wire / 300e9 * 1e3 == pytest.approx(milliseconds, abs=0.05)


def test_full_recompute_sends_the_forward_pass_again() -> None:
    messages = step_messages(LLAMA_13B, Layout(tp=4), _work(recompute="full"))

    assert _count(messages, "outputs of blocks") == 240
    assert _count(messages, "outputs of blocks", "recompute") == 80


def test_a_policy_of_each_layer_sends_again_what_that_layer_recomputes() -> None:
    work = _work(recompute_layers=("full",) * 10 + ("selective",) * 10 + ("none",) * 20)

    assert _count(step_messages(LLAMA_13B, Layout(tp=4), work), "outputs of blocks", "recompute") == 20


def test_sequence_parallelism_sends_as_much_and_gathers_inputs_once_more() -> None:
    """An all-gather and a reduce-scatter are an all-reduce; the third gather hides behind the inputs' gradients."""
    plain = step_messages(LLAMA_13B, Layout(tp=4), _work())
    divided = step_messages(LLAMA_13B, Layout(tp=4, sp=True), _work())
    blocks = [one for one in divided if "blocks" in one.name and not one.hides_behind]

    assert _sent(blocks) == pytest.approx(_sent(one for one in plain if "blocks" in one.name))
    again = [one for one in divided if one.name == "inputs of blocks, once more"]
    assert [(one.count, one.phase, one.hides_behind) for one in again] == [(80, "backward", "gradients of inputs")]


def test_embedding_head_and_loss_send_what_is_divided_along_the_vocabulary() -> None:
    first = step_messages(LLAMA_13B, Layout(tp=4, pp=2), _work(), stage=0)
    last = step_messages(LLAMA_13B, Layout(tp=4, pp=2), _work(), stage=1)

    assert (_count(first, "embedding"), _count(first, "head"), _count(first, "loss")) == (1, 0, 0)
    assert (_count(last, "embedding"), _count(last, "head", "backward"), _count(last, "loss")) == (0, 1, 3)
    assert {one.bytes for one in last if one.name == "loss"} == {8 * 2048 * 4}


def test_one_device_sends_nothing() -> None:
    assert step_messages(LLAMA_13B, Layout(), _work()) == []


@pytest.mark.parametrize(
    ("zero", "sent_elements"),
    [(0, {"all_reduce": 1}), (1, {"reduce_scatter": 1, "all_gather": 1}), (2, {"reduce_scatter": 4, "all_gather": 1}),
     (3, {"reduce_scatter": 4, "all_gather": 8})],
)  # fmt: skip
def test_zero_reduces_and_gathers_every_parameter_as_often_as_its_stage_says(
    zero: int, sent_elements: dict[str, int]
) -> None:
    """Four micro-batches, everything in two bytes: per parameter, of each kind. ZeRO, arXiv:1910.02054, section 7."""
    work = _work(micro_batch=1, global_batch=4 * 8, gradient_bytes=2)
    messages = step_messages(LLAMA_13B, Layout(dp=8, zero=zero), work)
    total = parameters(LLAMA_13B).total
    kinds = {kind: sum(one.bytes * one.count for one in messages if one.kind == kind) / (2 * total) for kind in KINDS}

    assert {kind: sent for kind, sent in kinds.items() if sent} == pytest.approx(sent_elements)


def test_gradients_in_32_bits_are_twice_those_in_16() -> None:
    layout = Layout(dp=8)
    wide = step_messages(LLAMA_13B, layout, _work(global_batch=64, gradient_bytes=4))
    narrow = step_messages(LLAMA_13B, layout, _work(global_batch=64, gradient_bytes=2))

    assert _sent(wide) == 2 * _sent(narrow)


def test_weights_that_stay_gathered_are_gathered_once() -> None:
    layout = Layout(dp=8, zero=3)
    work = _work(global_batch=64)
    gathers = [
        sum(
            one.count
            for one in step_messages(LLAMA_13B, layout, work, Wiring(reshard=reshard))
            if one.kind == "all_gather"
        )
        for reshard in (True, False)
    ]

    assert gathers == [2 * 41, 41]  # 40 layers, and what is around them


def test_zero_2_under_a_pipeline_is_as_zero_1() -> None:
    """Whole gradients are summed over the micro-batches and reduced once; without a pipeline, behind each."""
    work = _work(global_batch=512)
    of_data = {
        (stage, pp): [
            (one.kind, one.count)
            for one in step_messages(LLAMA_13B, Layout(dp=8, pp=pp, zero=stage), work)
            if one.dimension == "dp"
        ]
        for stage in (1, 2)
        for pp in (1, 2)
    }

    assert of_data[2, 2] == of_data[1, 2] == of_data[1, 1] == [("reduce_scatter", 1.0), ("all_gather", 1.0)]
    assert of_data[2, 1] == [
        ("reduce_scatter", work.micro_batches(Layout(dp=8))),
        ("all_gather", 1.0),
    ]


def test_fsdp_under_a_pipeline_gathers_and_reduces_once_a_step() -> None:
    """As PyTorch's stages do; nothing runs beside the reduction, which comes behind the last micro-batch."""
    layout = Layout(dp=8, pp=2, zero=3)
    messages = step_messages(LLAMA_13B, layout, _work(global_batch=64))
    of_data = [one for one in messages if one.dimension in ("dp", "fsdp")]

    assert [(one.kind, one.count, one.hides_behind) for one in of_data] == [
        ("reduce_scatter", 1.0, ""),
        ("all_gather", 1.0, "the next forward pass"),
    ]


def test_sharded_layers_are_told_from_what_is_around_them_and_experts_from_the_rest() -> None:
    """The names by which the step model spreads them over the layers."""
    work = Work(sequence=4096, micro_batch=1, global_batch=16)
    messages = step_messages(preset("mixtral-8x7b"), Layout(dp=16, ep=8, zero=3), work)

    assert {(one.name, one.dimension) for one in messages if one.kind == "all_gather"} == {
        ("weights of a layer", "fsdp"),
        ("weights of a layer (experts)", "edp"),
        ("weights of embedding, head and others", "fsdp"),
    }


def test_context_parallelism_is_part_of_the_group_that_reduces_gradients() -> None:
    messages = step_messages(LLAMA_13B, Layout(dp=4, cp=2), _work(global_batch=32))

    assert {(one.dimension, one.group) for one in messages if one.name == "gradients"} == {("dp", 8)}


@pytest.mark.parametrize(
    ("layout", "stage", "forward", "backward"),
    [
        (Layout(pp=4), 0, 1, 0),
        (Layout(pp=4), 2, 1, 1),
        (Layout(pp=4), 3, 0, 1),
        (Layout(pp=4, vp=2, schedule="interleaved"), 0, 2, 1),
        (Layout(pp=4, vp=2, schedule="interleaved"), 3, 1, 2),
        (Layout(pp=4, vp=2, schedule="zbv"), 0, 1, 1),
        (Layout(pp=4, vp=2, schedule="zbv"), 3, 1, 1),
        (Layout(pp=4, schedule="dualpipe"), 0, 0.5, 0.5),
        (Layout(pp=4, schedule="dualpipe"), 1, 1, 1),
        (Layout(), 0, 0, 0),
    ],
)
def test_stages_send_to_their_neighbours_as_the_schedule_places_them(
    layout: Layout, stage: int, forward: float, backward: float
) -> None:
    assert sends(layout, stage) == (forward, backward)


@given(
    pp=st.sampled_from([2, 4, 6, 8]),
    schedule=st.sampled_from([("1f1b", 1), ("interleaved", 2), ("interleaved", 4), ("zbv", 2), ("dualpipe", 1)]),
)
def test_what_is_sent_forward_comes_back(pp: int, schedule: tuple[str, int]) -> None:
    """Over all stages: as many gradients as activations, one of each for every boundary between chunks."""
    layout = Layout(pp=pp, vp=schedule[1], schedule=schedule[0])
    forward, backward = (sum(each) for each in zip(*(sends(layout, stage) for stage in range(pp)), strict=True))
    turns = 1 if schedule[0] == "zbv" else 0  # on the last stage, from one chunk to the other

    assert forward == backward == pp * layout.vp - 1 - turns


def test_a_boundary_carries_a_share_where_ranks_hold_one() -> None:
    def boundary(layout: Layout, wiring: Wiring | None = None) -> float:
        messages = step_messages(LLAMA_13B, layout, _work(), wiring, stage=0)
        return next(one.bytes for one in messages if one.dimension == "pp")

    assert boundary(Layout(tp=4, pp=2)) == S
    assert boundary(Layout(tp=4, pp=2, sp=True)) == S / 4
    assert boundary(Layout(tp=4, pp=2), Wiring(scatter_gather=True)) == S / 4


def test_a_scattered_boundary_is_gathered_by_the_receiver() -> None:
    messages = step_messages(LLAMA_13B, Layout(tp=4, pp=2), _work(), Wiring(scatter_gather=True), stage=0)
    received = [one for one in messages if one.name == "activations, gradients received"]

    assert [(one.phase, one.count, one.bytes) for one in received] == [("backward", 1, S)]  # the first gets gradients


def test_a_ring_passes_keys_and_values_on_and_twice_as_much_back() -> None:
    """Forward 2·(s/c)·b·k·d·(c-1) elements; grouped queries send less. Eight key-value heads of 128, CP4."""
    model = preset("llama-3-8b")
    work = Work(sequence=32768, micro_batch=1, global_batch=1)
    ring = [one for one in layer_messages(model, Layout(cp=4), work, 0) if one.dimension == "cp"]

    assert {one.bytes for one in ring} == {2 * 32768 / 4 * 8 * 128 * 2}
    assert {one.phase: one.count for one in ring} == {"forward": 3, "backward": 6}
    assert {one.hides_behind for one in ring} == {"attention"}


@pytest.mark.parametrize("kind", ["ring", "all_gather", "all_to_all"])
def test_context_parallelism_divides_key_value_heads_by_tp_as_far_as_there_are_any(kind: str) -> None:
    model = preset("llama-3-8b")
    work = Work(sequence=32768, micro_batch=1, global_batch=1)

    def sent(tp: int) -> float:
        return _sent(layer_messages(model, Layout(tp=tp, cp=2, cp_kind=kind), work, 0), "cp")

    assert sent(1) == pytest.approx(8 * sent(8))
    assert sent(16) >= sent(8) * (0.5 if kind == "all_to_all" else 1)


def test_all_gathered_keys_and_values_send_as_much_as_the_ring_forward() -> None:
    model = preset("llama-3-8b")
    work = Work(sequence=32768, micro_batch=1, global_batch=1)
    forward = {
        kind: _sent(one for one in layer_messages(model, Layout(cp=4, cp_kind=kind), work, 0) if one.phase == "forward")
        for kind in ("ring", "all_gather")
    }

    assert forward["ring"] == pytest.approx(forward["all_gather"])


def test_an_exchange_of_heads_sends_queries_keys_values_and_results() -> None:
    """(2a + 2k)·d·(s/c)·b·(c-1)/c elements forward: Ulysses, arXiv:2309.14509."""
    model = preset("llama-3-8b")
    work = Work(sequence=32768, micro_batch=1, global_batch=1)
    forward = [
        one for one in layer_messages(model, Layout(cp=4, cp_kind="all_to_all"), work, 0) if one.phase == "forward"
    ]

    assert _sent(forward) == pytest.approx((2 * 32 + 2 * 8) * 128 * 32768 / 4 * 3 / 4 * 2)


def test_selective_recompute_is_that_of_attention_and_sends_for_it_again() -> None:
    model = preset("llama-3-8b")
    work = Work(sequence=32768, micro_batch=1, global_batch=1, recompute="selective")
    again = [one for one in layer_messages(model, Layout(tp=2, cp=4), work, 0) if one.phase == "recompute"]

    assert {one.dimension for one in again} == {"cp"}


def test_experts_get_every_token_that_visits_them_and_send_it_back() -> None:
    """4·T·topk·h·(e-1)/e elements, forward and backward: DeepSeek-V3, EP8, one sequence of 4096."""
    model = preset("deepseek-v3")
    work = Work(sequence=4096, micro_batch=1, global_batch=8)
    layer = model.layers - 1
    messages = [one for one in layer_messages(model, Layout(dp=8, ep=8), work, layer) if one.dimension == "ep"]

    assert sum(one.wire_bytes * one.per_micro_batch for one in messages) == 4 * 4096 * 8 * 7168 * 7 / 8 * 2
    assert layer_messages(model, Layout(dp=8, ep=8), work, 0) == []  # the first layers have no experts


def test_dispatch_can_be_narrower_than_combine_and_go_to_few_nodes() -> None:
    model = preset("deepseek-v3")
    work = Work(sequence=4096, micro_batch=1, global_batch=8)
    wiring = Wiring(dispatch_bytes=1, routed_nodes=4)
    messages = layer_messages(model, Layout(dp=8, ep=8), work, model.layers - 1, wiring)

    assert {one.name: one.bytes for one in messages if one.phase == "forward"} == {
        "tokens to experts": 4096 * 4 * 7168,
        "tokens from experts": 4096 * 4 * 7168 * 2,
    }


def test_decoding_on_eight_nodes_takes_the_published_time_of_dispatch_and_combine() -> None:
    """arXiv:2505.09343, section 4.3: 3 B x 32 tokens x 9 experts x 7000 / 50 GB/s = 120.96 µs for both ways."""
    model = replace(preset("deepseek-v3"), hidden=7000)
    model = replace(model, experts=replace(model.experts, per_token=9))  # type: ignore[type-var]
    work = Work(sequence=1, micro_batch=32, global_batch=32 * 64)
    layout = Layout(dp=64, ep=64)
    forward = [
        one
        for one in layer_messages(model, layout, work, model.layers - 1, Wiring(dispatch_bytes=1))
        if one.phase == "forward"
    ]

    assert sum(one.bytes for one in forward) / 50e9 * 1e6 == pytest.approx(120.96)


def test_a_layer_of_experts_has_one_block_of_tensor_parallelism_and_two_with_shared_experts() -> None:
    work = Work(sequence=4096, micro_batch=1, global_batch=8)
    layout = Layout(tp=2, dp=8, ep=8, sp=True)

    def gathers(name: str) -> float:
        model = preset(name)
        return _count(layer_messages(model, layout, work, model.layers - 1), "inputs of blocks", "forward")

    assert (gathers("mixtral-8x7b"), gathers("deepseek-v3")) == (1, 2)


def test_sequence_parallel_ranks_route_a_share_of_the_tokens_each() -> None:
    model = preset("mixtral-8x7b")
    work = Work(sequence=4096, micro_batch=1, global_batch=8)

    def routed(layout: Layout) -> float:
        return next(one.bytes for one in layer_messages(model, layout, work, 0) if one.dimension == "ep")

    assert routed(Layout(tp=2, dp=8, ep=8)) == 2 * routed(Layout(tp=2, dp=8, ep=8, sp=True))


def test_experts_reduce_their_gradients_among_their_own_replicas() -> None:
    model = preset("mixtral-8x7b")
    messages = step_messages(model, Layout(dp=16, ep=8), Work(sequence=4096, micro_batch=1, global_batch=16))
    reductions = {one.name: (one.dimension, one.group, one.bytes) for one in messages if one.phase == "step"}
    routed = sum(layer.routed for layer in parameters(model).layers)

    assert reductions["gradients of experts"] == ("edp", 2, routed / 8 * 4)
    assert reductions["gradients"] == ("dp", 16, (parameters(model).total - routed) * 4)


def test_a_tied_matrix_is_reduced_between_the_first_and_the_last_stage() -> None:
    model = preset("gpt2")
    work = Work(sequence=1024, micro_batch=1, global_batch=4)
    tied = [
        [one for one in step_messages(model, Layout(pp=4), work, stage=stage) if one.dimension == "embedding"]
        for stage in range(4)
    ]

    assert [len(each) for each in tied] == [1, 0, 0, 1]
    assert tied[0][0].bytes == 50257 * 768 * 4


def test_norms_are_reduced_over_tensor_parallel_ranks_that_saw_other_tokens() -> None:
    names = {one.name for one in step_messages(LLAMA_13B, Layout(tp=4), _work())}
    divided = {one.name: one.bytes for one in step_messages(LLAMA_13B, Layout(tp=4, sp=True), _work())}

    assert "gradients of norms" not in names
    assert divided["gradients of norms"] == 40 * 2 * 5120 * 4


def test_further_predicted_tokens_add_a_layer_and_a_head() -> None:
    work = Work(sequence=4096, micro_batch=1, global_batch=1)
    plain = replace(preset("deepseek-v3"), predicted_tokens=0)
    more = replace(plain, predicted_tokens=1)
    layout = Layout(tp=8, sp=True)
    heads = [_count(step_messages(model, layout, work), "head", "forward") for model in (plain, more)]
    blocks = [_count(step_messages(model, layout, work), "inputs of blocks", "forward") for model in (plain, more)]

    assert heads == [1, 2]
    assert blocks[1] - blocks[0] == 2


LAYOUTS = st.builds(
    Layout,
    tp=st.sampled_from([1, 2, 4]),
    pp=st.sampled_from([1, 2, 4]),
    dp=st.sampled_from([1, 2, 4]),
    cp=st.sampled_from([1, 2]),
    ep=st.sampled_from([1, 2]),
    sp=st.booleans(),
    zero=st.sampled_from([0, 1, 2, 3]),
    cp_kind=st.sampled_from(["ring", "all_gather", "all_to_all"]),
)
MODELS = st.sampled_from(["mixtral-8x7b", "llama-3-8b", "deepseek-v2-lite", "gpt2-xl"])


@given(layout=LAYOUTS, name=MODELS, micro=st.sampled_from([1, 2, 4]))
def test_every_message_is_priced_by_a_group_of_its_dimension(layout: Layout, name: str, micro: int) -> None:
    """Group, kind, bytes and count are such that a cluster can price them; the formula gives the bytes."""
    model = preset(name)
    if model.experts is None or (layout.dp * layout.cp * layout.tp) % layout.ep:
        layout = replace(layout, ep=1)
    work = Work(sequence=2048, micro_batch=1, global_batch=micro * layout.dp)
    if complaints(model, layout, work):
        return
    costs = CollectiveCosts(cluster_of(find_device("H100"), network_bytes_per_s=50e9))
    for stage in range(layout.pp):
        for one in step_messages(model, layout, work, stage=stage):
            group = costs.cluster.group(layout, one.dimension)
            assert group.devices == one.group > 1
            assert one.kind in KINDS
            assert one.bytes == one.formula(**one.inputs) > 0
            assert one.count == (one.per_micro_batch * micro if one.per_micro_batch else 1)
            assert costs.seconds_in(one.kind, group, one.bytes) > 0
            assert one.explain().endswith("B")


@given(layout=LAYOUTS, name=MODELS)
def test_layers_add_up_to_their_stages(layout: Layout, name: str) -> None:
    """What single layers send for a micro-batch is what all stages together send for their layers."""
    model = preset(name)
    layout = replace(layout, ep=1, zero=0)
    work = Work(sequence=2048, micro_batch=1, global_batch=layout.dp)
    if complaints(model, layout, work):
        return
    single = sum(_sent(layer_messages(model, layout, work, layer)) for layer in range(model.layers))
    around = ("embedding", "head", "head, once more", "loss", "activations, gradients", "gradients",
              "gradients of experts", "gradients of norms", "gradient of the tied matrix")  # fmt: skip
    staged = sum(
        one.step_wire_bytes
        for stage in range(layout.pp)
        for one in step_messages(model, layout, work, stage=stage)
        if one.name not in around
    )

    assert staged == pytest.approx(single)


def test_the_stage_that_sends_most_is_taken_where_none_is_named() -> None:
    layout = Layout(tp=4, pp=4, sp=True)
    chosen = _sent(step_messages(LLAMA_13B, layout, _work()))

    assert chosen == max(_sent(step_messages(LLAMA_13B, layout, _work(), stage=stage)) for stage in range(4))
