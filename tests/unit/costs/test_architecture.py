"""A configuration is counted as its model's code counts; what it does not describe is refused, not guessed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.architecture import Architecture, Experts, Latent, from_config, read_config
from longpole.costs.model_types import MODEL_TYPES
from longpole.costs.parameters import parameters
from longpole.costs.presets import preset
from longpole.errors import InputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

# As the repositories of these names on Hugging Face have them, as far as dimensions go.
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "llama-3-8b": {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu",
        "tie_word_embeddings": False, "attention_bias": False, "max_position_embeddings": 8192,
    },
    "llama-3.2-1b": {
        "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "head_dim": 64,
        "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "hidden_act": "silu",
        "tie_word_embeddings": True,
    },
    "mistral-7b": {
        "model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "sliding_window": 4096,
    },
    "mixtral-8x7b": {
        "model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8,
        "num_experts_per_tok": 2, "sliding_window": None, "tie_word_embeddings": False,
    },
    "deepseek-v2-lite": {
        "model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16,
        "num_key_value_heads": 16, "intermediate_size": 10944, "vocab_size": 102400, "kv_lora_rank": 512,
        "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_layer_freq": 1,
        "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1, "attention_bias": False, "tie_word_embeddings": False,
    },
    "deepseek-v3-mtp": {
        "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128,
        "num_key_value_heads": 128, "intermediate_size": 18432, "vocab_size": 129280, "kv_lora_rank": 512,
        "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_layer_freq": 1,
        "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
        "first_k_dense_replace": 3, "num_nextn_predict_layers": 1, "tie_word_embeddings": False,
    },
    "qwen2.5-7b": {
        "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
        "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "sliding_window": 131072,
        "use_sliding_window": False, "max_window_layers": 28, "tie_word_embeddings": False,
    },
    "qwen3-30b-a3b": {
        "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936,
        "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1,
        "mlp_only_layers": [], "sliding_window": None, "attention_bias": False, "tie_word_embeddings": False,
    },
    "gpt-oss-20b": {
        "model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088,
        "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "attention_bias": True,
        "layer_types": ["sliding_attention", "full_attention"] * 12, "tie_word_embeddings": False,
    },
    "gemma-2-9b": {
        "model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14336, "vocab_size": 256000,
        "sliding_window": 4096, "hidden_act": "gelu_pytorch_tanh", "attention_bias": False,
    },
    "gemma-3-1b": {
        "model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26, "num_attention_heads": 4,
        "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144,
        "sliding_window": 512, "sliding_window_pattern": 6, "hidden_activation": "gelu_pytorch_tanh",
    },
    "olmo-2-7b": {
        "model_type": "olmo2", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 100352, "tie_word_embeddings": False,
    },
    "gpt2": {
        "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "n_ctx": 1024,
        "vocab_size": 50257, "activation_function": "gelu_new", "n_inner": None,
    },
    "gpt-neox-20b": {
        "model_type": "gpt_neox", "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64,
        "intermediate_size": 24576, "vocab_size": 50432, "hidden_act": "gelu_fast", "tie_word_embeddings": False,
    },
}  # fmt: skip
LLAMA: Final = CONFIGS["llama-3-8b"]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_is_the_preset_of_its_model(name: str) -> None:
    """Two ways to the same dimensions; of the presets the parameters are held against published counts."""
    assert from_config(CONFIGS[name], name=name) == preset(name)


def test_opt_has_two_positions_more_than_its_configuration_says() -> None:
    config = {
        "model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "ffn_dim": 3072,
        "vocab_size": 50272, "max_position_embeddings": 2048, "activation_function": "relu", "enable_bias": True,
    }  # fmt: skip

    assert parameters(from_config(config)).total == 125_239_296


def test_qwen_2_moe_has_a_shared_expert_with_a_gate() -> None:
    """Qwen1.5-MoE-A2.7B: 14.3 billion parameters, 2.7 active."""
    config = {
        "model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 16, "intermediate_size": 5632, "vocab_size": 151936, "num_experts": 60,
        "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
        "decoder_sparse_step": 1, "tie_word_embeddings": False,
    }  # fmt: skip

    assert parameters(from_config(config)).total == 14_315_784_192
    assert parameters(from_config(config)).active / 1e9 == pytest.approx(2.69, abs=0.01)


GLM_AIR: Final = {
    "model_type": "glm4_moe", "hidden_size": 4096, "num_hidden_layers": 46, "num_attention_heads": 96, "head_dim": 128,
    "num_key_value_heads": 8, "intermediate_size": 10944, "vocab_size": 151552, "n_routed_experts": 128,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 1, "attention_bias": True, "use_qk_norm": False, "tie_word_embeddings": False,
}  # fmt: skip
GLM: Final = {
    **GLM_AIR, "hidden_size": 5120, "num_hidden_layers": 92, "intermediate_size": 12288, "n_routed_experts": 160,
    "moe_intermediate_size": 1536, "first_k_dense_replace": 3, "use_qk_norm": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "name", "checkpoint"), [(GLM_AIR, "glm-4.5-air", 110_468_824_832), (GLM, "glm-4.5", 358_337_791_296)]
)
def test_glm_checkpoints_have_embedding_and_head_of_the_predicting_module_a_second_time(
    config: dict[str, Any], name: str, checkpoint: int
) -> None:
    model = from_config(config, name=name)

    assert replace(model, predicted_tokens=0) == preset(name)
    assert parameters(model).total + 2 * model.vocabulary * model.hidden == checkpoint


def test_the_two_llama_4_checkpoints_differ_by_what_their_texts_differ_by() -> None:
    """Both have the same vision part, which is not counted."""
    scout = {
        "model_type": "llama4_text", "hidden_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 40,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
        "vocab_size": 202048, "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1,
        "attention_chunk_size": 8192, "use_qk_norm": True, "tie_word_embeddings": False,
    }  # fmt: skip
    maverick = {**scout, "num_local_experts": 128, "interleave_moe_layer_step": 2}
    small, large = (from_config(one, name="llama 4") for one in (scout, maverick))

    assert parameters(large).total - parameters(small).total == 401_583_781_376 - 108_641_793_536
    assert "chunks of 8192" in small.note
    assert replace(small, note="", name="llama-4-scout") == preset("llama-4-scout")
    assert replace(large, note="", name="llama-4-maverick") == preset("llama-4-maverick")


def test_of_qwen_2_with_windows_only_the_layers_after_the_first_ones_have_one() -> None:
    config = {**CONFIGS["qwen2.5-7b"], "use_sliding_window": True, "max_window_layers": 20}

    assert from_config(config).windowed_layers == 8
    assert from_config(config).window == 131072
    assert from_config({**config, "max_window_layers": 28}).window == 0


@pytest.mark.parametrize(
    ("change", "biases"),
    [
        ({}, (False, False, False)),
        ({"attention_bias": True}, (False, True, False)),
        ({"attention_bias": True, "mlp_bias": True}, (True, False, False)),
        ({"model_type": "qwen2"}, (False, False, True)),
        ({"model_type": "qwen2", "attention_bias": False}, (False, False, False)),
        ({"model_type": "starcoder2", "use_bias": False}, (False, False, False)),
    ],
)
def test_biases_are_where_the_configuration_or_else_the_type_says(
    change: dict[str, Any], biases: tuple[bool, bool, bool]
) -> None:
    config = {key: value for key, value in LLAMA.items() if key != "attention_bias"}
    found = from_config({**config, **change})

    assert (found.biases, found.attention_biases, found.qkv_biases) == biases


def test_layers_that_a_list_names_have_no_experts() -> None:
    model = from_config({**CONFIGS["qwen3-30b-a3b"], "mlp_only_layers": [0, 47]})

    assert [layer for layer in range(48) if not model.has_experts(layer)] == [0, 47]
    assert model.expert_layers == 46


def test_every_second_layer_with_experts_is_the_second_of_each_pair() -> None:
    model = from_config({**CONFIGS["qwen3-30b-a3b"], "decoder_sparse_step": 2})

    assert [model.has_experts(layer) for layer in range(4)] == [False, True, False, True]


def test_the_text_part_of_a_larger_model_is_read() -> None:
    assert from_config({"model_type": "whole", "text_config": LLAMA}, name="llama-3-8b") == preset("llama-3-8b")


def test_a_type_that_is_not_known_is_counted_like_llama_where_its_activation_says_so_and_that_is_told() -> None:
    found = from_config({**LLAMA, "model_type": "newest"}, name="llama-3-8b")

    assert "newest is not known" in found.note
    assert replace(found, note="") == preset("llama-3-8b")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"model_type": "newest", "hidden_act": "gelu"}, "newest is not known.*Known: .*llama"),
        ({"model_type": "newest", "num_experts": 8}, "newest is not known, so that nothing says what num_experts mean"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "t5 has an encoder and a decoder"),
        ({"model_type": "nemotron_h", "mamba_num_heads": 8}, r"other layers .*mamba_num_heads"),
        ({"layer_types": ["linear_attention", "full_attention"]}, r"other layers .*linear_attention"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": "4096"}, "hidden_size: expected a positive whole number, found '4096'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is missing"),
        ({"num_hidden_layers": -1}, "num_hidden_layers: expected a positive whole number, found -1"),
        ({"num_hidden_layers": 10**12}, "layers: expected at most 65536"),
        ({"vocab_size": True}, "vocab_size: expected a positive whole number, found True"),
        ({"intermediate_size": 1.5}, "intermediate_size: expected a positive whole number, found 1.5"),
        ({"num_key_value_heads": 5}, "32 heads cannot share 5 key-value heads evenly"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings: expected true or false"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "a token visits 9 experts, but there are 8"),
        ({"num_local_experts": 8}, "num_experts_per_tok is missing"),
        ({"mlp_only_layers": "all", "num_experts": 8, "num_experts_per_tok": 2}, "mlp_only_layers: expected a list"),
    ],
)
def test_what_does_not_describe_a_decoder_is_refused_by_the_key_that_is_wrong(
    change: dict[str, Any], what: str
) -> None:
    with pytest.raises(UsageError, match=what):
        from_config({**LLAMA, **change})


@given(
    st.dictionaries(
        st.sampled_from(sorted({key for config in CONFIGS.values() for key in config})),
        st.none() | st.booleans() | st.integers(-2, 40) | st.floats() | st.text(max_size=3) | st.lists(st.integers()),
    ),
    st.sampled_from(sorted(MODEL_TYPES)),
)
def test_a_damaged_configuration_is_a_model_or_a_usage_error(damage: dict[str, Any], kind: str) -> None:
    try:
        model = from_config({**LLAMA, "model_type": kind, "n_positions": 64, **damage})
    except UsageError:
        return
    assert parameters(model).total > 0


def test_a_file_that_is_no_configuration_is_an_input_error_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    for text in ("[1, 2]", "{", "\x00", "{}", json.dumps({**LLAMA, "vocab_size": -1})):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"config\.json"):
            read_config(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "none.json")


def test_a_models_name_is_the_folder_of_its_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "llama-3-8b"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")

    assert read_config(folder / "config.json") == preset("llama-3-8b")


@pytest.mark.parametrize(
    "change",
    [
        {"layers": 0},
        {"hidden": -1},
        {"heads": 1.5},
        {"vocabulary": True},
        {"vocabulary": 1 << 41},
        {"feed_forward": 0},
        {"window": -1},
        {"experts": Experts(count=0, per_token=1, width=1)},
        {"experts": Experts(count=2, per_token=1, width=1, shared=1)},
        {"experts": Experts(count=2, per_token=1, width=1, every=0)},
        {"latent": Latent(query_rank=0, key_value_rank=0, rope_dim=1, plain_dim=1, value_dim=1)},
    ],
)
def test_dimensions_that_no_model_has_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected"):
        replace(preset("llama-3-8b"), **change)


def test_a_model_of_experts_only_needs_no_dense_width() -> None:
    model = replace(preset("mixtral-8x7b"), feed_forward=0)

    assert parameters(model).total == parameters(preset("mixtral-8x7b")).total


def test_the_dimensions_of_latent_attention_are_those_of_scores_and_values() -> None:
    model: Architecture = preset("deepseek-v3")

    assert (model.score_dim, model.value_dim) == (192, 128)
    assert (preset("llama-3-8b").score_dim, preset("llama-3-8b").value_dim) == (128, 128)
