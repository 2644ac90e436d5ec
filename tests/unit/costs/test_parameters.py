"""Parameters are those of the tensors written out one by one, and of published checkpoints to the last digit."""

from __future__ import annotations

from math import isclose, lcm
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.formula import Range
from longpole.costs.parameters import GPT_PARAMETERS, parameters
from longpole.costs.presets import all_presets, preset
from tests.counted_tensors import count, count_visited
from tests.model_strategies import models

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture
    from longpole.costs.presets import Preset


@given(models())
def test_parameters_are_the_sum_over_all_tensors(model: Architecture) -> None:
    assert parameters(model).total == count(model)
    assert parameters(model).active == count_visited(model)


@given(models())
def test_the_kinds_add_up_to_the_total(model: Architecture) -> None:
    found = parameters(model)

    assert sum(found.by_kind().values()) == found.total
    assert found.active <= found.total


@given(models(), st.integers(1, 4), st.integers(1, 4))
def test_ranks_hold_the_whole_layer_together_and_what_is_replicated_once_each(
    model: Architecture, multiple: int, ep: int
) -> None:
    """Of tp ranks that divide the key-value heads, the sum is the layer and tp - 1 further copies of what is whole."""
    tp = next(one for one in (3, 2, 1) if model.key_value_heads % one == 0)
    for layer in parameters(model).layers:
        routed = layer.routed
        others = layer.total - routed
        held = tp * layer.held(tp, ep=ep, etp=multiple)
        assert isclose(held, others + (tp - 1) * layer.replicated + tp * routed / (ep * multiple), abs_tol=1e-6)


@given(models(), st.integers(1, 3))
def test_beyond_the_key_value_heads_every_rank_holds_one_head_whole(model: Architecture, times: int) -> None:
    layer = parameters(model).layers[0]
    tp = lcm(model.key_value_heads, model.heads) * times
    one_head = layer.key_value / model.key_value_heads
    rest = layer.total - layer.replicated - layer.routed - layer.key_value

    assert isclose(layer.held(tp), layer.replicated + rest / tp + one_head + layer.routed, abs_tol=1e-6)


@pytest.mark.parametrize("one", [one for one in all_presets() if one.published], ids=lambda one: one.name)
def test_a_preset_has_the_parameters_that_its_source_prints(one: Preset) -> None:
    """Most are of a checkpoint, and exact; of the others every printed digit holds."""
    printed = Range.of_rounded(one.published)
    total = parameters(one.model).total

    assert printed.low <= total <= printed.high


def test_most_presets_are_held_against_a_count_without_rounding() -> None:
    assert sum("e" not in one.published and one.published != "" for one in all_presets()) >= 50


@pytest.mark.parametrize("name", ["sc21-1.7b", "sc21-76b", "sc21-1t", "korthikanti-22b"])
def test_the_closed_form_for_gpt_is_the_count_without_its_final_norm(name: str) -> None:
    model = preset(name)
    closed = GPT_PARAMETERS(L=model.layers, h=model.hidden, V=model.vocabulary, s=model.positions)

    assert parameters(model).total - parameters(model).final_norm == pytest.approx(closed, rel=1e-12)


def test_active_parameters_of_deepseek_v3_are_36_6_billion_without_its_embedding() -> None:
    """Its README_WEIGHTS says 36.7 with embedding and head; with both they are 37.55."""
    found = parameters(preset("deepseek-v3"))

    assert (found.active - found.embedding) / 1e9 == pytest.approx(36.6, abs=0.05)
    assert found.active / 1e9 == pytest.approx(37.55, abs=0.005)


def test_the_router_and_norms_of_a_mixture_are_on_every_rank() -> None:
    layer = parameters(preset("mixtral-8x7b")).per_layer(0)

    assert layer.replicated == layer.norms + layer.router == 2 * 4096 + 8 * 4096
