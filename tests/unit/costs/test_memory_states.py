"""Model states: the ZeRO paper's figures, Megatron's bytes per parameter, and every parameter held somewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.architecture import Architecture, Experts
from longpole.costs.layout import Layout, Work
from longpole.costs.memory_states import (
    OPTIMIZERS,
    Held,
    held_by_stage,
    layer_kinds,
    optimizer_of,
    state_bytes,
    state_terms,
)
from longpole.costs.parameters import parameters
from longpole.errors import UsageError
from tests.published_tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

DENSE = Architecture(
    name="dense", layers=8, hidden=512, heads=8, key_value_heads=4, head_dim=64, feed_forward=1024, vocabulary=1000
)
MIXTURE = replace(DENSE, name="mixture", experts=Experts(count=8, per_token=2, width=256, first_dense=2))
MEGATRON = Work(sequence=1024, micro_batch=1, global_batch=64)
PAPER = replace(MEGATRON, gradient_bytes=2)
ADAM = OPTIMIZERS["adam"]


def per_parameter(layout: Layout, work: Work, optimizer: str = "adam") -> float:
    return state_bytes(Held(dense=1e9, routed=0), layout, work, optimizer_of(optimizer)).total / 1e9


# ------------------------------------------------------------------ published figures


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_figure_1_of_the_zero_paper(zero: int, gigabytes: float) -> None:
    """7.5 billion parameters on 64 devices, K = 12: arXiv:1910.02054, figure 1."""
    states = state_bytes(Held(dense=7.5e9, routed=0), Layout(dp=64, zero=zero), PAPER, ADAM)

    assert round(states.total / 1e9, 1) == gigabytes


@pytest.mark.parametrize(
    ("name", "layers", "hidden", "pp"),
    [("22B", 48, 6144, 1), ("175B", 96, 12288, 8), ("530B", 105, 20480, 35), ("1T", 128, 25600, 64)],
)
def test_states_of_korthikantis_figure_1_come_out_to_a_millionth(
    oracles: Path, name: str, layers: int, hidden: int, pp: int
) -> None:
    """TP 8; the figure counts the matrices of layers, 12 h² each, without norms, biases and embedding."""
    (published,) = (
        float(row["value"])
        for row in read_table(oracles, "korthikanti_fig1_fig7_memory")
        if row["figure"] == "fig1" and row["model"] == name and row["quantity"] == "params_opt_gib"
    )
    model = replace(
        DENSE, layers=layers, hidden=hidden, heads=64, key_value_heads=64, head_dim=hidden // 64,
        feed_forward=4 * hidden, gated=False,
    )  # fmt: skip
    kind, _ = layer_kinds(model)
    assert kind is not None
    matrices = kind.held(8) - kind.replicated

    states = state_bytes(Held(dense=matrices * layers / pp, routed=0), Layout(tp=8, pp=pp), MEGATRON, ADAM)

    assert states.total / 2**30 == pytest.approx(published, rel=1e-6)


def test_megatron_has_18_bytes_a_parameter_and_the_zero_paper_16() -> None:
    assert per_parameter(Layout(), MEGATRON) == 18
    assert per_parameter(Layout(), PAPER) == 16


@pytest.mark.parametrize("replicas", [1, 2, 8, 64])
def test_the_distributed_optimizer_has_6_and_12_over_d(replicas: int) -> None:
    assert per_parameter(Layout(dp=replicas, zero=1), MEGATRON) == pytest.approx(6 + 12 / replicas)


def test_context_parallel_ranks_share_the_optimizer_too() -> None:
    assert per_parameter(Layout(dp=2, cp=4, zero=1), MEGATRON) == pytest.approx(6 + 12 / 8)


@pytest.mark.parametrize(
    ("optimizer", "dtype", "expected"),
    [("adam", "fp32", 4 + 4 + 8), ("adam-8bit", "bf16", 2 + 4 + 4 + 2), ("sgd", "bf16", 2 + 4 + 4),
     ("adam-fsdp", "bf16", 2 + 4 + 2 + 8), ("lion", "bf16", 2 + 4 + 4 + 4), ("adam-bf16", "bf16", 2 + 4 + 4 + 4)],
)  # fmt: skip
def test_optimizers_keep_what_they_say(optimizer: str, dtype: str, expected: float) -> None:
    assert per_parameter(Layout(), replace(MEGATRON, dtype=dtype), optimizer) == expected


def test_an_unknown_optimizer_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match=r"expected one of adam, .*; found 'adamw9'"):
        optimizer_of("adamw9")


# ------------------------------------------------------------------ who holds what


@pytest.mark.parametrize("model", [DENSE, MIXTURE])
@given(pp=st.integers(1, 8), ep=st.sampled_from([1, 2, 4]))
def test_stages_and_expert_ranks_hold_every_parameter_once(model: Architecture, pp: int, ep: int) -> None:
    ep = ep if model.experts is not None else 1
    stages = held_by_stage(model, Layout(pp=pp, dp=4, ep=ep))

    whole = sum(stage.dense + stage.routed * ep for stage in stages)

    assert whole == parameters(model).total


def test_tensor_parallel_ranks_repeat_norms_and_router() -> None:
    whole, half = (sum(stage.dense for stage in held_by_stage(MIXTURE, Layout(tp=tp))) for tp in (1, 2))
    replicated = sum(layer.replicated for layer in parameters(MIXTURE).layers) + parameters(MIXTURE).final_norm

    assert half == whole / 2 + replicated / 2


def test_a_tied_head_is_a_second_copy_where_the_ends_are_apart() -> None:
    tied = replace(DENSE, tied=True)
    matrix = DENSE.vocabulary * DENSE.hidden

    assert sum(stage.total for stage in held_by_stage(tied, Layout())) == parameters(tied).total
    assert sum(stage.total for stage in held_by_stage(tied, Layout(pp=4))) == parameters(tied).total + matrix
    assert [stage.vocabulary for stage in held_by_stage(tied, Layout(pp=4))] == [matrix, 0, 0, matrix]


def test_dual_pipe_holds_the_weights_twice() -> None:
    once = sum(stage.total for stage in held_by_stage(DENSE, Layout(pp=4)))

    assert sum(stage.total for stage in held_by_stage(DENSE, Layout(pp=4, schedule="dualpipe"))) == 2 * once


def test_experts_are_sharded_over_their_own_replicas() -> None:
    """16 devices, ep 8: the optimizer of an expert is shared by 2, of the rest by 16."""
    held = Held(dense=16e6, routed=2e6)
    states = state_bytes(held, Layout(dp=16, ep=8, zero=1), MEGATRON, ADAM)

    assert states.optimizer == 12 * (1e6 + 1e6)
    assert states.weights == 2 * 18e6


def test_modules_of_further_prediction_are_on_the_last_stage() -> None:
    predicting = replace(DENSE, predicted_tokens=1)
    more = [
        with_it.total - without.total
        for with_it, without in zip(
            held_by_stage(predicting, Layout(pp=4)), held_by_stage(DENSE, Layout(pp=4)), strict=True
        )
    ]

    assert more == [0, 0, 0, parameters(predicting).prediction]


@given(zero=st.integers(0, 3), dp=st.integers(1, 64), cp=st.integers(1, 8))
def test_a_higher_stage_of_zero_never_needs_more(zero: int, dp: int, cp: int) -> None:
    held = Held(dense=3e8, routed=5e7)
    lower, higher = (
        state_bytes(held, Layout(dp=dp, cp=cp, zero=stage), MEGATRON, ADAM).total for stage in (zero, min(zero + 1, 3))
    )

    assert higher <= lower


def test_what_is_explained_is_what_is_computed() -> None:
    layout = Layout(dp=4, zero=2)
    terms = state_terms(Held(dense=8.0, routed=0.0), layout, MEGATRON, ADAM)

    assert terms["optimizer"] == {"bytes_each": 12, "dense": 8, "dense_shards": 4, "routed": 0, "routed_shards": 4}
    assert terms["weights"]["dense_shards"] == 1
