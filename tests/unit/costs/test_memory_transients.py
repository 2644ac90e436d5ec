"""What is needed for a moment: counted by hand on small layers, and which moment is the peak."""

from __future__ import annotations

from dataclasses import replace

import pytest

from longpole.costs.architecture import Architecture, Experts
from longpole.costs.layout import Layout, Work
from longpole.costs.memory import device_memory
from longpole.costs.memory_states import held_by_stage, layer_kinds
from longpole.costs.memory_transients import backward_terms, head_backward_term, standing_terms

H, A, K, D, F, V = 512, 8, 2, 64, 2048, 10000
MODEL = Architecture(
    name="small", layers=4, hidden=H, heads=A, key_value_heads=K, head_dim=D, feed_forward=F, vocabulary=V
)
MIXTURE = replace(MODEL, experts=Experts(count=8, per_token=2, width=256))
TOKENS = 128
WORK = Work(sequence=TOKENS, micro_batch=1, global_batch=8)


def backward(
    model: Architecture = MODEL, layout: Layout | None = None, work: Work = WORK, imbalance: float = 1.0
) -> list[float]:
    """Attention's and the feed-forward part's, in elements per token."""
    layout = layout or Layout()
    terms = backward_terms(model, layout, work, has_experts=model.experts is not None, imbalance=imbalance)
    return [term.bytes / 2 / TOKENS for term in terms]


# ------------------------------------------------------------------ in a layer


def test_a_gated_part_holds_two_inner_gradients_and_that_of_its_output() -> None:
    """Of gate, value and product: the product's gradient is freed when those of gate and value are there."""
    assert backward()[1] == 2 * F + H


def test_a_part_without_a_gate_holds_one() -> None:
    assert backward(replace(MODEL, gated=False))[1] == F + H


def test_sequence_parallelism_gathers_the_input_again() -> None:
    assert backward(layout=Layout(tp=2, sp=True))[1] == 2 * F / 2 + 2 * H
    assert backward(layout=Layout(tp=2))[1] == 2 * F / 2 + H


def test_attention_holds_gradients_of_queries_keys_values_and_output() -> None:
    assert backward()[0] == 2 * A * D + 2 * K * D


def test_written_scores_have_a_gradient_too() -> None:
    assert backward(work=replace(WORK, flash=False))[0] == 2 * A * D + 2 * K * D + TOKENS * A


@pytest.mark.parametrize(
    ("kind", "elements"),
    [
        ("ring", 2 * A * D + 4 * 2 * K * D),  # keys and values here and on their way, and the gradients of both
        ("all_gather", 2 * A * D + 2 * 4 * 2 * K * D),  # of all four ranks, and their gradients
        ("all_to_all", 4 * (2 * A * D + 2 * K * D)),  # caller's, sent, received and sorted
    ],
)
def test_context_parallelism_holds_what_it_exchanges(kind: str, elements: float) -> None:
    assert 4 * backward(layout=Layout(cp=4, cp_kind=kind))[0] == elements


def test_experts_hold_inner_gradients_of_each_visit_and_four_copies_of_the_token() -> None:
    assert backward(MIXTURE)[1] == 2 * (2 * 256 + 4 * H)
    assert backward(MIXTURE, imbalance=1.5)[1] == 1.5 * backward(MIXTURE)[1]


def test_the_head_holds_its_gradient_and_that_of_its_input() -> None:
    whole, divided = (head_backward_term(MODEL, layout, WORK) for layout in (Layout(), Layout(tp=2, sp=True)))

    assert whole.bytes == 2 * V * H + 2 * TOKENS * H
    assert divided.bytes == 2 * V * H / 2 + 2 * TOKENS * 2 * H


# ------------------------------------------------------------------ while a step runs


def standing(model: Architecture = MODEL, layout: Layout | None = None, work: Work = WORK, *, ends: bool) -> float:
    kinds = [layer for layer in layer_kinds(model) if layer is not None]
    return sum(term.bytes for term in standing_terms(model, layout or Layout(), work, kinds, has_matrix=ends))


LAYER = H * D * (A + 2 * K) + A * D * H + 3 * H * F + 2 * H
EXPERT = 3 * H * 256


def test_gradients_of_32_bits_leave_a_placeholder_for_each_shape_of_a_layer() -> None:
    assert standing(ends=False) == 2 * LAYER
    assert standing(MIXTURE, ends=False) == 2 * (LAYER - 3 * H * F + 8 * H + EXPERT)


def test_gradients_of_16_bits_pass_one_weight_at_a_time() -> None:
    assert standing(work=replace(WORK, gradient_bytes=2), ends=False) == 2 * H * F


def test_zero_3_gathers_two_layers_and_reduces_one() -> None:
    layout = Layout(dp=8, zero=3)

    assert standing(layout=layout, ends=False) == 2 * 2 * LAYER + (2 + 4) * LAYER
    assert standing(layout=layout, ends=True) == 2 * (V * H + LAYER) + (2 + 4) * V * H


def test_fsdp_under_a_pipeline_keeps_weights_and_gradients_whole() -> None:
    """Stage 1 of 2 has half of the layers, the final norm and the head: 2 bytes of weight, 4 of gradient each."""
    layout = Layout(dp=8, pp=2, zero=3)
    stage = device_memory(MODEL, layout, replace(WORK, global_batch=16)).stages[1]
    held = held_by_stage(MODEL, layout)[1].total

    moments = stage.transient_bytes - (2 + 4) * held - 2 * max(LAYER, V * H)

    assert held == MODEL.layers // 2 * LAYER + V * H + H
    assert 0 < moments == 2 * V * H + 2 * TOKENS * H  # the head's backward, as without FSDP


# ------------------------------------------------------------------ which moment is the peak


def test_at_a_large_vocabulary_the_peak_is_at_the_head() -> None:
    """The head's weight has its gradient while all activations are still held."""
    stage = device_memory(MODEL, Layout(), WORK).worst

    assert stage.transient_bytes == 2 * LAYER + 2 * V * H + 2 * TOKENS * H


def test_with_many_tokens_the_peak_is_in_a_layer() -> None:
    work = replace(WORK, sequence=TOKENS * 512)
    model = replace(MODEL, vocabulary=100)
    stage = device_memory(model, Layout(), work).worst

    assert stage.transient_bytes == 2 * LAYER + 2 * work.sequence * (2 * F + H) - stage.logits_bytes


def test_with_next_to_no_layers_the_peak_is_at_the_embedding() -> None:
    """A stage without a head: the embedding's gradient appears when its micro-batch's activations are freed."""
    stage = device_memory(MODEL, Layout(pp=4), replace(WORK, sequence=1)).stages[0]
    kept = stage.activations_bytes / stage.in_flight

    assert stage.transient_bytes == pytest.approx(2 * LAYER + 2 * V * H - kept)


def test_a_layer_that_is_computed_again_stands_whole_for_a_moment() -> None:
    work = replace(WORK, sequence=TOKENS * 512)
    model = replace(MODEL, vocabulary=100)
    none, full = (device_memory(model, Layout(), replace(work, recompute=policy)).worst for policy in ("none", "full"))
    whole = (none.activations_bytes - 2 * 2 * work.sequence * H) / 4

    assert full.transient_bytes - none.transient_bytes == pytest.approx(whole)


# ------------------------------------------------------------------ around the layers


def test_dropout_keeps_a_mask_after_the_embedding_and_two_in_each_layer() -> None:
    without, masked = (
        device_memory(MODEL, Layout(pp=4), replace(WORK, dropout=dropout)).stages for dropout in (False, True)
    )
    more = [
        (one.activations_bytes - other.activations_bytes) / one.in_flight / TOKENS / H
        for one, other in zip(masked, without, strict=True)
    ]

    assert more == [3, 2, 2, 2]


def test_the_last_stage_keeps_the_final_norms_input_and_the_heads() -> None:
    stages = device_memory(MODEL, Layout(pp=4), WORK).stages
    per_micro_batch = [stage.activations_bytes / stage.in_flight for stage in stages]

    assert per_micro_batch[3] - per_micro_batch[2] == 2 * 2 * TOKENS * H
