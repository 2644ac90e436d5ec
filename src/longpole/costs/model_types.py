"""What a Hugging Face `model_type` implies and its configuration does not say.

A `config.json` holds dimensions; whether the feed-forward part has a gate, which layers have biases and how many norms
there are is in the code of the model. *Source:* huggingface/transformers, src/transformers/models/<type>/modeling_*.py
and the defaults of configuration_*.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Biases: TypeAlias = Literal["none", "qkv", "attention", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelType:
    """Traits of a type.

    Attributes:
        gated: Whether the feed-forward part has a gate.
        biases: Which linear layers have biases where the configuration does not say.
        layer_norm: Whether norms have a bias.
        tied: Whether embedding and head share a matrix where the configuration does not say.
        norms_per_layer: Norms of a layer.
        query_key_norm: Whether queries and keys are normalised, by head or all heads together.
        windows: Whether `sliding_window` holds where `use_sliding_window` is not given.
        every_other_window: Every so-manieth layer has no window, where `layer_types` is not given; 0 where all have.
        router_bias: Whether the router adds a number to each expert's score.
        shared_gate: Whether a gate weighs what the shared experts give.
        attention_sinks: Whether each head has a learned score that nothing is attended for.
        chunked: Whether attention is in chunks, `intermediate_size` is an expert's, and one expert is shared.
        positions: The key with the number of learned positions, empty for none.
        extra_positions: How many more there are.
    """

    gated: bool = True
    biases: Biases = "none"
    layer_norm: bool = False
    tied: bool = False
    norms_per_layer: int = 2
    query_key_norm: Literal["", "head", "whole"] = ""
    windows: bool = True
    every_other_window: int = 0
    router_bias: bool = False
    shared_gate: bool = False
    attention_sinks: bool = False
    chunked: bool = False
    positions: str = ""
    extra_positions: int = 0


LIKE_LLAMA: Final = ModelType()
_LIKE_GPT: Final = ModelType(gated=False, biases="all", layer_norm=True, tied=True, positions="n_positions")

MODEL_TYPES: Final[dict[str, ModelType]] = {
    **dict.fromkeys(("llama", "mistral", "mixtral", "ministral", "granite", "phi3", "deepseek_v2"), LIKE_LLAMA),
    **dict.fromkeys(("deepseek_v3", "kimi_k2"), ModelType(router_bias=True)),
    **dict.fromkeys(("llama4_text", "llama4"), ModelType(chunked=True)),
    **dict.fromkeys(("glm4_moe", "glm4v_moe_text"), ModelType(biases="qkv", router_bias=True)),
    **dict.fromkeys(
        ("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), ModelType(biases="qkv", windows=False)
    ),
    "qwen2_moe": ModelType(biases="qkv", windows=False, shared_gate=True),
    **dict.fromkeys(
        ("qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text"), ModelType(query_key_norm="head", windows=False)
    ),
    "gemma": ModelType(tied=True),
    "gemma2": ModelType(tied=True, norms_per_layer=4, every_other_window=2),
    "gemma3_text": ModelType(tied=True, norms_per_layer=4, query_key_norm="head", every_other_window=6),
    "olmo": ModelType(norms_per_layer=0),
    "olmo2": ModelType(query_key_norm="whole"),
    "olmoe": ModelType(query_key_norm="whole"),
    "cohere": ModelType(tied=True, norms_per_layer=1),
    "gpt_oss": ModelType(biases="all", router_bias=True, attention_sinks=True, every_other_window=2),
    "starcoder2": ModelType(gated=False, biases="all", layer_norm=True, tied=True),
    "gpt2": _LIKE_GPT,
    "gpt_bigcode": _LIKE_GPT,
    "gpt_neox": ModelType(gated=False, biases="all", layer_norm=True),
    "opt": ModelType(
        gated=False, biases="all", layer_norm=True, tied=True, positions="max_position_embeddings", extra_positions=2
    ),
}
"""`model_type` -> traits."""

GATED_ACTIVATIONS: Final = ("silu", "swish", "swiglu", "geglu", "reglu")
"""Of a type that is not known, these mean a gate: no published decoder uses SiLU without one."""

OTHER_STRUCTURE: Final = (
    "ssm", "mamba", "hybrid", "recurrent", "lru_width", "rwkv", "time_mix", "linear_num", "linear_attn", "conv_",
    "moe_latent", "index_topk", "kv_shared_layers", "altup", "per_layer_input", "cross_attention_layers",
)  # fmt: skip
"""Parts of keys that show layers other than attention and feed-forward: what has them is not counted."""

UNKNOWN_PARTS: Final = ("experts", "lora_rank")
"""Parts of keys that mean one thing to one type and another to the next: refused of a type that is not known."""
