"""FLOPs are two for each entry of a matrix, attention's are counted pair by pair, and a convention is named."""

from __future__ import annotations

import doctest
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.architecture import Architecture
from longpole.costs.conventions import (
    CONVENTIONS,
    GPT_MODEL_FLOPS,
    GPT_RECOMPUTED_FLOPS,
    GPT_SELECTIVE_FLOPS,
    PALM_FLOPS,
    convention_of,
)
from longpole.costs.flops import (
    OPERATORS,
    counts,
    flops_per_token,
    forward_flops,
    hardware_flops_per_token,
    layer_forward_flops,
)
from longpole.costs.parameters import parameters
from longpole.costs.presets import preset
from longpole.errors import UsageError
from tests.counted_tensors import attended, matrix_flops
from tests.model_strategies import models

LENGTHS = st.integers(1, 20)


def _core_of_pairs(model: Architecture, lengths: list[int], *, causal: bool) -> float:
    """Scores and their product with values, for each pair of tokens and each layer."""
    of_pair = 2 * model.heads * (model.score_dim + model.value_dim)
    layers = model.layers + model.predicted_tokens
    return layers * of_pair * sum(attended(length, causal=causal) for length in lengths) / sum(lengths)


@given(models(), st.lists(LENGTHS, min_size=1, max_size=4))
def test_a_token_costs_two_flops_for_each_entry_of_a_matrix_that_it_visits(
    model: Architecture, lengths: list[int]
) -> None:
    found = forward_flops(model, lengths)
    core = found.pop("core")

    assert sum(found.values()) == pytest.approx(matrix_flops(model, router=True, logits=True))
    assert core >= 0
    assert counts(model, lengths).linear == pytest.approx(matrix_flops(model, router=False, logits=False))


@given(models(), st.lists(LENGTHS, min_size=1, max_size=4))
def test_attention_is_the_pairs_of_tokens_of_the_same_sequence(model: Architecture, lengths: list[int]) -> None:
    """Packed sequences cost the sum of squares. Causal attention is half of it, up to half of the diagonal."""
    plain = replace(model, window=0)
    full = forward_flops(plain, lengths, attention="full")["core"]
    causal = forward_flops(plain, lengths, attention="causal")["core"]
    diagonal = 0.5 * _core_of_pairs(plain, [1], causal=False)

    assert full == pytest.approx(_core_of_pairs(plain, lengths, causal=False))
    assert causal + diagonal == pytest.approx(_core_of_pairs(plain, lengths, causal=True))


@given(st.integers(1, 40), st.integers(1, 40))
def test_a_window_leaves_the_pairs_within_it(length: int, window: int) -> None:
    model = Architecture(
        name="windowed", layers=1, hidden=4, heads=1, key_value_heads=1, head_dim=1, feed_forward=4, vocabulary=4,
        window=window, windowed_layers=1,
    )  # fmt: skip
    found = forward_flops(model, length)["core"] * length / 4  # 2 for scores and values, 2 for product and sum

    # The diagonal is dropped by half, and in a window the row's far end too: half a pair a token at the most.
    assert found == pytest.approx(attended(length, window=window, causal=True), abs=0.5 * length)


@given(models(), LENGTHS)
def test_the_layers_and_the_head_are_the_model(model: Architecture, sequence: int) -> None:
    plain = replace(model, predicted_tokens=0)
    whole = forward_flops(plain, sequence)
    layers = [layer_forward_flops(plain, layer, sequence) for layer in range(plain.layers)]

    for name in OPERATORS[:-1]:
        assert sum(one[name] for one in layers) == pytest.approx(whole[name])
    assert whole["logits"] == 2 * plain.hidden * plain.vocabulary


@given(models(), LENGTHS)
def test_conventions_are_what_their_formulas_say(model: Architecture, sequence: int) -> None:
    """Each written a second time, from the tensors."""
    linear = matrix_flops(model, router=False, logits=False)
    logits = matrix_flops(model, router=False, logits=True) - linear
    router = matrix_flops(model, router=True, logits=False) - linear
    core = _core_of_pairs(model, [sequence], causal=False)
    active, embedding = parameters(model).active, parameters(model).embedding
    expected = {
        "6n": 6 * active,
        "palm": 6 * active + 3 * core,
        "palm_hw": 8 * active + 4 * core,
        "korthikanti": 3 * (linear + core + logits),
        "selective_hw": 3 * (linear + logits) + 6 * core,
        "sc21_hw": 4 * (linear + core) + 3 * logits,
        "mcore": 3 * (linear + core / 2 + logits),
        "titan": 6 * (active - embedding) + 3 * core,
    }
    for name, flops in expected.items():
        assert flops_per_token(model, sequence, name) == pytest.approx(flops), name
    if not model.window:
        assert flops_per_token(model, sequence, "bridge") == pytest.approx(expected["mcore"])
        assert flops_per_token(model, sequence, "maxtext") == pytest.approx(expected["mcore"] + 3 * router)
        assert flops_per_token(model, sequence, "maxtext_2024") == pytest.approx(expected["korthikanti"] + 3 * router)


@given(models(), LENGTHS)
def test_recomputation_adds_passes_and_a_fused_kernel_one_product_in_five(model: Architecture, sequence: int) -> None:
    flops = forward_flops(model, sequence, attention="full", windows=False)
    core, logits = flops["core"], flops["logits"]
    layers = sum(flops.values()) - logits

    def hardware(policy: str) -> float:
        return hardware_flops_per_token(model, sequence, policy, flash=False)  # type: ignore[arg-type]

    assert hardware("none") == pytest.approx(3 * (layers + logits))
    assert hardware("selective") - hardware("none") == pytest.approx(core)
    assert hardware("full") - hardware("none") == pytest.approx(layers)
    fused = hardware_flops_per_token(model, sequence, "none", flash=True)
    causal = forward_flops(model, sequence)["core"]
    assert fused == pytest.approx(3 * (layers - core + logits) + 3.5 * causal)


@given(models(), LENGTHS, st.sampled_from(["none", "selective", "full"]), st.booleans())
def test_one_policy_for_all_layers_is_the_same_policy_for_each(
    model: Architecture, sequence: int, policy: str, flash: bool
) -> None:
    plain = replace(model, predicted_tokens=0)
    for_all = hardware_flops_per_token(plain, sequence, policy, flash=flash)  # type: ignore[arg-type]
    for_each = hardware_flops_per_token(plain, sequence, [policy] * plain.layers, flash=flash)  # type: ignore[list-item]

    assert for_each == pytest.approx(for_all)


def test_a_policy_is_needed_for_each_layer() -> None:
    with pytest.raises(UsageError, match="expected a policy for each of 32 layers, found 2"):
        hardware_flops_per_token(preset("llama-3-8b"), 8192, ["none", "full"], flash=True)


@pytest.mark.parametrize("name", ["korthikanti-22b", "sc21-1.7b", "sc21-530b"])
def test_the_papers_closed_forms_for_gpt_are_the_counts(name: str) -> None:
    model = preset(name)
    inputs = {"B": 1, "L": model.layers, "s": 2048, "h": model.hidden, "V": model.vocabulary}

    for convention, closed in (
        ("korthikanti", GPT_MODEL_FLOPS), ("selective_hw", GPT_SELECTIVE_FLOPS), ("sc21_hw", GPT_RECOMPUTED_FLOPS)
    ):  # fmt: skip
        assert 2048 * flops_per_token(model, 2048, convention) == pytest.approx(closed(**inputs), rel=1e-12)
    recomputed = hardware_flops_per_token(model, 2048, "full", flash=False)
    assert recomputed == pytest.approx(flops_per_token(model, 2048, "sc21_hw"), rel=1e-12)


def test_the_closed_form_of_palm_is_the_count() -> None:
    model = preset("palm-540b")
    closed = PALM_FLOPS(N=parameters(model).total, L=118, a=48, d=256, s=2048)

    assert flops_per_token(model, 2048, "palm") == pytest.approx(closed, rel=1e-12)


def test_conventions_of_one_run_differ_by_a_tenth_and_more() -> None:
    """Llama 3 8B at 8,192 tokens: 57.9 (titan) and 51.5 GFLOP a token (mcore)."""
    model = preset("llama-3-8b")

    assert flops_per_token(model, 8192, "titan") / 1e9 == pytest.approx(57.9, abs=0.05)
    assert flops_per_token(model, 8192, "mcore") / 1e9 == pytest.approx(51.5, abs=0.05)


@pytest.mark.parametrize(
    ("written", "name"),
    [("6N", "6n"), ("Megatron-Core", "mcore"), ("torchtitan", "titan"), ("llm-foundry", "palm"), (" PaLM ", "palm")],
)
def test_a_convention_is_known_by_who_counts_so(written: str, name: str) -> None:
    assert convention_of(written).name == name


@pytest.mark.parametrize("written", ["mfu", "7n", ""])
def test_a_convention_that_is_not_known_or_left_out_is_refused_with_those_that_are(written: str) -> None:
    with pytest.raises(UsageError) as refused:
        flops_per_token(preset("llama-3-8b"), 8192, written)

    assert all(name in str(refused.value) for name in CONVENTIONS)


@pytest.mark.parametrize("sequence", [0, -1, True, [], [2048, 0], [2048, True]])
def test_a_length_that_is_none_is_refused(sequence: object) -> None:
    flops_per_token(preset("llama-3-8b"), 1, "mcore")  # a remembered answer for 1 is none for True
    with pytest.raises(UsageError, match="sequence: expected a positive whole number"):
        flops_per_token(preset("llama-3-8b"), sequence, "mcore")  # type: ignore[arg-type]


def test_every_convention_explains_itself_with_its_counts() -> None:
    found = counts(preset("llama-3-8b"), 8192)

    for convention in CONVENTIONS.values():
        explained = convention.formula.explain(**found.inputs())
        assert explained.startswith(convention.formula.text + " = "), convention.name
        assert explained.endswith("FLOP/token")
        assert convention.formula.source


def test_the_docstrings_table_names_every_count() -> None:
    import longpole.costs.flops as module

    described = doctest.script_from_examples(module.__doc__ or "")
    assert all(f"{name} " in described for name in counts(preset("gpt2"), 8).inputs())
