"""What a count is said to be made of is what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.count_formulas import explain_counts
from longpole.costs.flops import counts
from longpole.costs.parameters import parameters
from longpole.costs.presets import preset
from tests.model_strategies import models

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture


@given(models(), st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_the_formulas_give_what_is_counted(model: Architecture, lengths: list[int]) -> None:
    found = {one.name: one.value.value for one in explain_counts(model, lengths)}
    counted = counts(model, lengths)
    layers = model.layers + model.predicted_tokens

    assert found["parameters"] == parameters(model).total
    assert found.get("active parameters", counted.N) == pytest.approx(counted.N)
    assert found["matrices of all layers"] == pytest.approx(counted.linear)
    assert layers * found["core of attention"] == pytest.approx(counted.core)
    assert found["logits"] == counted.logits


def test_a_figure_is_printed_with_the_values_that_it_was_computed_from() -> None:
    found = {one.name: one.formula for one in explain_counts(preset("llama-3-8b"), 8192)}

    assert found["queries, keys and values"] == (
        "2*h*d*(a + 2*k) = 2*4,096*128*(32 + 2*8) = 5.033e+07 FLOP/token in a layer"
    )
    assert found["core of attention"] == (
        "2*a*(d_qk + d_v)*s = 2*32*(128 + 128)*8,192 = 1.342e+08 FLOP/token in a layer"
    )


def test_queries_that_are_not_compressed_have_a_formula_of_their_own() -> None:
    lite, whole = (
        {one.name: one.formula for one in explain_counts(preset(name), 4096)}
        for name in ("deepseek-v2-lite", "deepseek-v2")
    )

    assert "q_r" not in lite["queries, keys and values"]
    assert "q_r" in whole["queries, keys and values"]


def test_what_a_model_does_not_have_is_not_explained() -> None:
    dense = {one.name for one in explain_counts(preset("llama-3-8b"), 8192)}
    mixture = {one.name for one in explain_counts(preset("mixtral-8x7b"), 8192)}

    assert not dense & {"router", "routed experts", "shared experts", "joining matrix", "active parameters"}
    assert "feed-forward" not in mixture
    assert {"router", "routed experts", "active parameters"} <= mixture
