"""A transformer by its dimensions: what parameters, FLOPs, memory and messages are counted from.

Symbols as in the papers: L layers, h hidden, a heads, k key-value heads, d head dimension, f feed-forward width,
V vocabulary. A mixture-of-experts layer has E routed experts of width f_e, of which each token visits some, and shared
experts that every token visits. Multi-head latent attention (DeepSeek-V2 and V3) compresses queries and keys and has
other dimensions for scores and values.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_GATED: Final = ("silu", "swiglu", "geglu", "gelu_pytorch_tanh_glu", "swish", "reglu")
_GATED_TYPES: Final = (
    "llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3",
    "deepseek_v2", "deepseek_v3", "phi3", "olmo", "olmo2", "internlm2", "yi", "baichuan", "gpt_oss", "glm4",
    "cohere", "granite",
)  # fmt: skip
_LARGEST: Final = 1 << 40  # of any dimension: beyond, it is a slip of the pen


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention.

    Attributes:
        query_rank: Of the compressed query; 0 where queries are not compressed.
        key_value_rank: Of what is cached for keys and values.
        rope_dim: Of the part of a score that carries the position, shared by all heads on the key's side.
        plain_dim: Of the rest of a score, per head.
        value_dim: Of a value, per head.
    """

    query_rank: int
    key_value_rank: int
    rope_dim: int
    plain_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The mixture-of-experts part.

    Attributes:
        count: Routed experts of a layer.
        per_token: Of which a token visits so many.
        width: Feed-forward width of one.
        shared: Experts that every token visits.
        shared_width: Width of each of these.
        first_dense: Leading layers without experts.
        every: Of the others, every so-manieth has experts.
        dense_layers: Further layers without experts, counted from 0.
        router_bias: Whether the router adds a number to each expert's score.
        shared_gate: Whether a gate weighs what the shared experts give.
    """

    count: int
    per_token: int
    width: int
    shared: int = 0
    shared_width: int = 0
    first_dense: int = 0
    every: int = 1
    dense_layers: tuple[int, ...] = ()
    router_bias: bool = False
    shared_gate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A decoder-only transformer.

    Attributes:
        name: What reports call it.
        layers, hidden, heads, key_value_heads, head_dim: L, h, a, k, d.
        feed_forward: f of a dense layer.
        vocabulary: V, padded as it is computed with.
        gated: Whether the feed-forward part has a gate (three matrices instead of two).
        tied: Whether embedding and head share one matrix.
        positions: Learned positions, 0 for none.
        biases: Whether all linear layers have biases.
        attention_biases: Whether those of attention have.
        qkv_biases: Whether queries, keys and values have.
        layer_norm: LayerNorm with a bias (True) or RMSNorm (False).
        window: Sliding window of attention in tokens, 0 for none.
        windowed_layers: How many layers have it.
        latent: Multi-head latent attention, None for the usual one.
        experts: The mixture of experts, None for a dense model.
        predicted_tokens: Extra layers that predict further tokens (multi-token prediction).
        norms_per_layer: Norms around attention and the feed-forward part.
        query_key_norm: Whether queries and keys are normalised, head by head.
        query_key_norm_whole: Whether all heads of a token are normalised together.
        attention_sinks: Whether each head has a learned score that nothing is attended for.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int
    gated: bool = True
    tied: bool = False
    positions: int = 0
    biases: bool = False
    attention_biases: bool = False
    qkv_biases: bool = False
    layer_norm: bool = False
    window: int = 0
    windowed_layers: int = 0
    latent: Latent | None = None
    experts: Experts | None = None
    predicted_tokens: int = 0
    norms_per_layer: int = 2
    query_key_norm: bool = False
    query_key_norm_whole: bool = False
    attention_sinks: bool = False

    def __post_init__(self) -> None:
        """Refuse dimensions that no model has."""
        for field in ("layers", "hidden", "heads", "key_value_heads", "head_dim", "vocabulary"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LARGEST:
                msg = f"model {self.name}: {field}: expected a positive whole number, found {value!r}"
                raise UsageError(msg)
        if self.latent is None and self.heads % self.key_value_heads:
            msg = (
                f"model {self.name}: {self.heads} heads cannot share {self.key_value_heads} key-value heads evenly;"
                " the second must divide the first"
            )
            raise UsageError(msg)

    @property
    def score_dim(self) -> int:
        """Width of a head's queries and keys."""
        return self.head_dim if self.latent is None else self.latent.plain_dim + self.latent.rope_dim

    @property
    def value_dim(self) -> int:
        """Width of a head's values."""
        return self.head_dim if self.latent is None else self.latent.value_dim

    @property
    def expert_layers(self) -> int:
        """Layers that have experts."""
        if self.experts is None:
            return 0
        return len([layer for layer in range(self.layers) if self.has_experts(layer)])

    def has_experts(self, layer: int) -> bool:
        """Tell whether a layer, counted from 0, has experts."""
        if self.experts is None or layer < self.experts.first_dense or layer in self.experts.dense_layers:
            return False
        return (layer + 1) % self.experts.every == 0 if self.experts.every > 1 else True


def read_config(path: Path) -> Architecture:
    """Read a Hugging Face `config.json`.

    Raises:
        InputError: It cannot be read, is not JSON, or lacks a dimension.
    """
    try:
        config = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", "Name a config.json") from None
    except (ValueError, RecursionError) as error:
        raise InputError.at(path, None, f"is not JSON: {error}", "Name a config.json") from None
    if not isinstance(config, dict):
        raise InputError.at(path, None, "is no JSON object", "Name a config.json")
    try:
        return from_config(config, name=path.parent.name if path.name == "config.json" else path.stem)
    except UsageError as error:
        raise InputError.at(path, None, str(error), "Mend it, or describe the model in a plan's [model]") from None


def from_config(config: Mapping[str, Any], *, name: str = "") -> Architecture:
    """Return the architecture that a Hugging Face configuration describes.

    Args:
        config: Its keys; of a model with a text part (`text_config`), that part is read.
        name: What reports call it; else `_name_or_path` or `model_type`.

    Raises:
        UsageError: A dimension is missing or none.
    """
    if isinstance(config.get("text_config"), dict):
        config = {**config, **config["text_config"]}
    kind = str(config.get("model_type", ""))
    hidden = _dimension(config, "hidden_size", "n_embd", "d_model")
    heads = _dimension(config, "num_attention_heads", "n_head", "n_heads")
    head_dim = config.get("head_dim") or hidden // heads
    key_value_heads = config.get("num_key_value_heads") or (1 if config.get("multi_query") else heads)
    layers = _dimension(config, "num_hidden_layers", "n_layer", "n_layers")
    activation = str(config.get("hidden_act") or config.get("activation_function") or "")
    return Architecture(
        name=name or str(config.get("_name_or_path") or kind or "model"),
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=int(key_value_heads),
        head_dim=int(head_dim),
        feed_forward=int(
            config.get("intermediate_size") or config.get("n_inner") or config.get("ffn_dim") or 4 * hidden
        ),
        vocabulary=_dimension(config, "vocab_size"),
        gated=kind in _GATED_TYPES or activation in _GATED,
        tied=bool(config.get("tie_word_embeddings", kind in ("gpt2", "gemma", "gemma2", "gemma3"))),
        positions=int(config.get("n_positions") or 0) if kind == "gpt2" else 0,
        biases=bool(config.get("attention_bias", kind in ("gpt2", "opt", "gpt_neox"))),
        layer_norm="layer_norm_epsilon" in config or "layer_norm_eps" in config,
        window=int(config.get("sliding_window") or 0) if config.get("use_sliding_window", True) else 0,
        windowed_layers=_windowed_layers(config, layers),
        latent=_latent(config),
        experts=_experts(config, hidden),
        predicted_tokens=int(config.get("num_nextn_predict_layers") or 0),
        query_key_norm=kind in ("qwen3", "qwen3_moe", "olmo2"),
    )


def _given(config: Mapping[str, Any], *keys: str) -> Any:
    """Return the first of several spellings that is there and not null."""
    return next((config[key] for key in keys if config.get(key)), None)


def _windowed_layers(config: Mapping[str, Any], layers: int) -> int:
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        return len([kind for kind in kinds if kind == "sliding_attention"])
    return layers if config.get("sliding_window") and config.get("use_sliding_window", True) else 0


def _latent(config: Mapping[str, Any]) -> Latent | None:
    if not config.get("kv_lora_rank"):
        return None
    return Latent(
        query_rank=int(config.get("q_lora_rank") or 0),
        key_value_rank=_dimension(config, "kv_lora_rank"),
        rope_dim=_dimension(config, "qk_rope_head_dim"),
        plain_dim=_dimension(config, "qk_nope_head_dim"),
        value_dim=_dimension(config, "v_head_dim"),
    )


def _experts(config: Mapping[str, Any], hidden: int) -> Experts | None:
    count = config.get("n_routed_experts") or config.get("num_local_experts") or config.get("num_experts")
    if not count:
        return None
    width = int(config.get("moe_intermediate_size") or config.get("intermediate_size") or 4 * hidden)
    shared = int(config.get("n_shared_experts") or (1 if config.get("shared_expert_intermediate_size") else 0))
    return Experts(
        count=int(count),
        per_token=_dimension(config, "num_experts_per_tok", "experts_per_token", "num_experts_per_token"),
        width=width,
        shared=shared,
        shared_width=int(config.get("shared_expert_intermediate_size") or width) if shared else 0,
        first_dense=int(config.get("first_k_dense_replace") or 0),
        every=int(config.get("decoder_sparse_step") or config.get("moe_layer_freq") or 1),
    )


def _dimension(config: Mapping[str, Any], *keys: str) -> int:
    """Return the first of several spellings of a dimension."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        if value is not None:
            msg = f"{key}: expected a positive whole number, found {value!r}"
            raise UsageError(msg)
    msg = f"{keys[0]} is missing" + (f" (nor is there {', '.join(keys[1:])})" if len(keys) > 1 else "")
    raise UsageError(msg)
