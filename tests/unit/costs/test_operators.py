"""Operators of one device: their FLOPs are those that are counted elsewhere, their bytes those of the papers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.flops import forward_flops
from longpole.costs.layout import Layout, Work
from longpole.costs.operators import (
    OPERATOR_S,
    Operator,
    PassTime,
    Rates,
    embedding_operators,
    head_operators,
    layer_operators,
    seen_keys,
    shard_of,
    time_of,
)
from longpole.costs.presets import preset
from tests.published_steps import gpt

WORK = Work(sequence=4096, micro_batch=2, global_batch=2, flash=False)
RATES = Rates(
    matmul_flops_per_s=200e12,
    attention_flops_per_s=100e12,
    head_flops_per_s=200e12,
    memory_bytes_per_s=1.6e12,
    launch_s=4e-6,
)
MODELS = ("llama-3-8b", "llama-2-70b", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b")


def whole(name: str, layout: Layout, work: Work) -> float:
    """Return the FLOPs of one micro-batch on all devices that share it, layers and head."""
    model = preset(name)
    shard = shard_of(layout, work)
    shares = layout.tp * layout.cp
    layers = [
        sum(one.flops for one in layer_operators(model, shard, experts=model.has_experts(layer)))
        for layer in range(model.layers)
    ]
    head = sum(one.flops for one in head_operators(model, shard))
    return (sum(layers) + head) * shares


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "layout", [Layout(), Layout(tp=4, sp=True), Layout(cp=2), Layout(dp=8, ep=8), Layout(tp=2, cp=2, sp=True)]
)
def test_flops_are_those_of_the_count_however_the_model_is_divided(name: str, layout: Layout) -> None:
    """The count of `flops.py` is made from parameters, this one from shapes on one device."""
    counted = sum(forward_flops(preset(name), WORK.sequence, attention="full").values())

    assert whole(name, layout, WORK) / (WORK.micro_batch * WORK.sequence) == pytest.approx(counted, rel=1e-6)


def test_a_kernel_that_skips_what_causality_hides_does_half_of_the_square() -> None:
    shard = shard_of(Layout(), WORK)
    square = _named(layer_operators(preset("llama-3-8b"), shard, experts=False), "attention")
    skipping = _named(layer_operators(preset("llama-3-8b"), shard._replace(flash=True), experts=False), "attention")

    assert skipping.flops == pytest.approx(square.flops / 2)
    assert skipping.backward == 2.5


@pytest.mark.parametrize(
    ("sequence", "window", "skips", "keys"),
    [(8, 0, False, 8.0), (8, 0, True, 4.0), (8, 2, True, 1.75), (8, 100, True, 4.0), (8, 8, True, 4.0)],
)
def test_a_query_meets_the_keys_before_it_within_its_window(
    sequence: int, window: int, skips: bool, keys: float
) -> None:
    """Of 8 queries with a window of 2: 2²/2 for the first two, 2 for each of the other six, over 8."""
    assert seen_keys(sequence, window, skips=skips) == keys


def test_element_wise_bytes_are_those_of_the_gpt_layer() -> None:
    """28 sbh for norms, dropout and residual, 8 sbf for bias and GeLU, 9 a s² b for softmax and its dropout."""
    work = replace(WORK, sequence=2048, micro_batch=4, dropout=True)
    tokens, hidden = 4 * 2048, 6144
    operators = layer_operators(gpt(6144, 48, 64, 2048), shard_of(Layout(tp=8), work), experts=False)

    assert _named(operators, "norms and residual").moved_bytes == 28 * tokens * hidden
    assert _named(operators, "feed-forward activation").moved_bytes == 8 * tokens * 4 * hidden / 8
    assert _named(operators, "softmax").moved_bytes == 9 * 64 / 8 * 2048 * tokens


def test_sequence_parallelism_divides_what_tensor_parallelism_leaves_whole() -> None:
    model = gpt(6144, 48, 64, 2048)
    whole_bytes, shared_bytes = (
        _named(layer_operators(model, shard_of(Layout(tp=8, sp=sp), WORK), experts=False), "norms and residual")
        for sp in (False, True)
    )

    assert shared_bytes.moved_bytes == whole_bytes.moved_bytes / 8


def test_expert_parallelism_does_not_shrink_what_a_device_computes() -> None:
    """It trades tokens: fewer experts each, with more tokens each."""
    model = preset("mixtral-8x7b")
    alone, shared = (
        [one for one in layer_operators(model, shard_of(layout, WORK), experts=True) if "experts" in one.name]
        for layout in (Layout(dp=8), Layout(dp=8, ep=8))
    )

    assert sum(one.flops for one in shared) == pytest.approx(sum(one.flops for one in alone))
    assert sum(one.moved_bytes for one in shared) < sum(one.moved_bytes for one in alone)


def test_products_in_8_bits_move_half_of_their_operands() -> None:
    wide, narrow = (
        _named(
            layer_operators(preset("llama-3-8b"), shard_of(Layout(), replace(WORK, dtype=dtype)), experts=False), "qkv"
        )
        for dtype in ("bf16", "fp8")
    )

    assert narrow.flops == wide.flops
    assert wide.moved_bytes / 2 < narrow.moved_bytes < wide.moved_bytes


def test_an_operator_takes_what_its_formula_says() -> None:
    """Bound by arithmetic, by memory, and by its launch."""
    cases = ((8e12, 1e6, 1), (1e6, 8e9, 1), (1.0, 1.0, 3))
    for flops, moved_bytes, launches in cases:
        one = Operator(name="it", kind="matmul", flops=flops, moved_bytes=moved_bytes, launches=launches)

        formula_s = OPERATOR_S(
            flops=flops,
            flops_per_s=RATES.matmul_flops_per_s,
            moved_bytes=moved_bytes,
            memory_bytes_per_s=RATES.memory_bytes_per_s,
            launches=launches,
            launch_s=RATES.launch_s,
        )
        assert time_of((one,), RATES).forward_s == pytest.approx(formula_s)


def test_where_the_host_is_slower_than_the_device_a_pass_takes_as_long_as_its_launches() -> None:
    small = Operator(name="small", kind="memory", moved_bytes=1.6e6, launches=1)  # 1 µs
    large = Operator(name="large", kind="memory", moved_bytes=1.6e9, launches=1)  # 1 ms
    slow_host = RATES._replace(launch_s=0.0, host_s=50e-6)

    assert time_of((small,) * 10, slow_host).forward_s == pytest.approx(500e-6)
    assert time_of((large,), slow_host).forward_s == pytest.approx(1e-3)


def test_a_product_of_few_tiles_is_slower_than_its_flops_say() -> None:
    one = Operator(name="it", kind="matmul", flops=2e9, tiles=100.0)

    assert time_of((one,), RATES._replace(launch_s=0.0, half_tiles=100.0)).forward_s == pytest.approx(2 * 1e-5)


@given(flash=st.booleans(), dropout=st.booleans(), policy=st.sampled_from(["none", "selective", "full"]))
def test_what_passes_spend_adds_up_to_them(flash: bool, dropout: bool, policy: str) -> None:
    shard = shard_of(Layout(tp=2), replace(WORK, flash=flash, dropout=dropout))
    model = preset("llama-3-8b")
    operators = (*layer_operators(model, shard, experts=False), *head_operators(model, shard))

    found = time_of((*operators, *embedding_operators(model, shard)), RATES, policy)

    assert found.total_s == pytest.approx(found.matmul_s + found.attention_s + found.memory_s + found.launch_s)
    assert 0 < found.weight_s < found.backward_s


def test_passes_are_added_part_by_part() -> None:
    one = PassTime(*(float(part) for part in range(1, 9)))

    assert PassTime().plus(one, 3.0) == PassTime(*(3.0 * part for part in range(1, 9)))


def _named(operators: tuple[Operator, ...], name: str) -> Operator:
    return next(one for one in operators if one.name == name)
