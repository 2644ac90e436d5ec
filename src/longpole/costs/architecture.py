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

from longpole.costs.model_types import GATED_ACTIVATIONS, LIKE_LLAMA, MODEL_TYPES, OTHER_STRUCTURE, UNKNOWN_PARTS
from longpole.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from longpole.costs.model_types import Biases, ModelType

_LARGEST: Final = 1 << 40  # of any dimension: beyond, it is a slip of the pen
_MOST_LAYERS: Final = 1 << 16  # they are counted one by one


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
        note: What was assumed where its description was silent; empty for nothing.
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
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse dimensions that no model has."""
        for field in ("layers", "hidden", "heads", "key_value_heads", "head_dim", "vocabulary"):
            self._check(field, getattr(self, field), 1)
        if self.layers > _MOST_LAYERS:
            msg = f"model {self.name}: layers: expected at most {_MOST_LAYERS}, found {self.layers}"
            raise UsageError(msg)
        for field in ("positions", "window", "windowed_layers", "predicted_tokens", "norms_per_layer"):
            self._check(field, getattr(self, field), 0)
        self._check("feed_forward", self.feed_forward, 0 if self.expert_layers == self.layers else 1)
        self._check_experts()
        if self.latent is not None:
            self._check("latent.query_rank", self.latent.query_rank, 0)
            for field in ("key_value_rank", "rope_dim", "plain_dim", "value_dim"):
                self._check(f"latent.{field}", getattr(self.latent, field), 1)
        elif self.heads % self.key_value_heads:
            msg = (
                f"model {self.name}: {self.heads} heads cannot share {self.key_value_heads} key-value heads evenly;"
                " the second must divide the first"
            )
            raise UsageError(msg)

    def _check(self, field: str, value: object, least: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < _LARGEST:
            wanted = "a positive whole number" if least else "a whole number from 0"
            msg = f"model {self.name}: {field}: expected {wanted}, found {value!r}"
            raise UsageError(msg)

    def _check_experts(self) -> None:
        experts = self.experts
        if experts is None:
            return
        for field in ("count", "per_token", "width", "every"):
            self._check(f"experts.{field}", getattr(experts, field), 1)
        for field in ("shared", "first_dense"):
            self._check(f"experts.{field}", getattr(experts, field), 0)
        self._check("experts.shared_width", experts.shared_width, 1 if experts.shared else 0)
        if experts.per_token > experts.count:
            msg = f"model {self.name}: a token visits {experts.per_token} experts, but there are {experts.count}"
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
        UsageError: A dimension is missing or none, or the model has layers of another kind.
    """
    if isinstance(config.get("text_config"), dict):
        config = {**config, **config["text_config"]}
    _refuse_other_structure(config)
    traits, note = _traits(config)
    if traits.chunked:
        config, note = _renamed(config)
    layers = _dimension(config, "num_hidden_layers", "n_layer", "n_layers")
    hidden = _dimension(config, "hidden_size", "n_embd", "d_model")
    heads = _dimension(config, "num_attention_heads", "n_head", "n_heads")
    latent = _latent(config)
    window, windowed_layers = _windows(config, traits, layers)
    biases = _biases(config, traits)
    return Architecture(
        name=name or str(config.get("_name_or_path") or config.get("model_type") or "model"),
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=_optional(config, "num_key_value_heads") or (1 if config.get("multi_query") else heads),
        head_dim=_head_dim(config, latent, hidden, heads),
        feed_forward=_optional(config, "intermediate_size", "n_inner", "ffn_dim") or 4 * hidden,
        vocabulary=_dimension(config, "vocab_size"),
        gated=traits.gated,
        tied=_flag(config, "tie_word_embeddings", otherwise=traits.tied),
        positions=_dimension(config, traits.positions) + traits.extra_positions if traits.positions else 0,
        biases=biases == "all",
        attention_biases=biases == "attention",
        qkv_biases=biases == "qkv",
        layer_norm=traits.layer_norm,
        window=window,
        windowed_layers=windowed_layers,
        latent=latent,
        experts=_experts(config, traits, hidden),
        predicted_tokens=_optional(config, "num_nextn_predict_layers") or 0,
        norms_per_layer=traits.norms_per_layer,
        query_key_norm=bool(traits.query_key_norm) or _flag(config, "use_qk_norm", otherwise=False),
        query_key_norm_whole=traits.query_key_norm == "whole",
        attention_sinks=traits.attention_sinks,
        note=note,
    )


def _refuse_other_structure(config: Mapping[str, Any]) -> None:
    """Refuse what a decoder of attention and feed-forward layers does not describe: a count would be wrong."""
    kind = str(config.get("model_type") or "the model")
    if config.get("is_encoder_decoder"):
        msg = f"{kind} has an encoder and a decoder; only decoders are described"
        raise UsageError(msg)
    given = [key for key, value in config.items() if value not in (None, False, 0, [], {})]
    others = sorted(key for key in given if any(part in key for part in OTHER_STRUCTURE))
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        others += sorted({str(one) for one in kinds} - {"full_attention", "sliding_attention", "chunked_attention"})
    if others:
        msg = f"{kind} has other layers than attention and feed-forward ({', '.join(others)}); these are not described"
        raise UsageError(msg)


def _traits(config: Mapping[str, Any]) -> tuple[ModelType, str]:
    """Return what the type implies, and what was assumed where it is not known."""
    kind = str(config.get("model_type") or "")
    if kind in MODEL_TYPES:
        return MODEL_TYPES[kind], ""
    activation = str(_given(config, "hidden_act", "hidden_activation", "activation_function") or "")
    parts = sorted(key for key in config if config[key] and any(part in key for part in UNKNOWN_PARTS))
    if activation in GATED_ACTIVATIONS and not parts:
        return LIKE_LLAMA, f"model_type {kind or 'not given'} is not known; counted as a type like llama"
    known = ", ".join(sorted(MODEL_TYPES))
    what = f"what {', '.join(parts)} mean to it" if parts else "whether its feed-forward part has a gate"
    msg = (
        f"model_type {kind or 'not given'} is not known, so that nothing says {what}."
        f" Known: {known}. Or describe the model by its dimensions"
    )
    raise UsageError(msg)


def _renamed(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return a configuration of Llama 4 with the keys that other types have, and what is not as it is there."""
    width = _dimension(config, "intermediate_size")
    chunk = _optional(config, "attention_chunk_size")
    found = {
        **config,
        "use_qk_norm": False,  # its norm of queries and keys has no parameters
        "moe_intermediate_size": width,
        "intermediate_size": _optional(config, "intermediate_size_mlp") or width,
        "n_shared_experts": 1,
        "decoder_sparse_step": _optional(config, "interleave_moe_layer_step") or 1,
    }
    return found, f"attention in chunks of {chunk} is counted as if there were none" if chunk else ""


def _biases(config: Mapping[str, Any], traits: ModelType) -> Biases:
    """Return which linear layers have biases."""
    for key in ("enable_bias", "use_bias"):
        if key in config:
            return "all" if config[key] else "none"
    if "attention_bias" not in config:
        return traits.biases
    if not config["attention_bias"]:
        return "none"
    if traits.biases == "none":
        return "all" if config.get("mlp_bias") else "attention"
    return traits.biases


def _head_dim(config: Mapping[str, Any], latent: Latent | None, hidden: int, heads: int) -> int:
    if latent is not None:
        return latent.plain_dim + latent.rope_dim
    return _optional(config, "head_dim") or hidden // heads


def _windows(config: Mapping[str, Any], traits: ModelType, layers: int) -> tuple[int, int]:
    """Return the sliding window, and how many layers have it; zeros for none."""
    window = _optional(config, "sliding_window") or 0
    if not window or not _flag(config, "use_sliding_window", otherwise=traits.windows):
        return 0, 0
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        windowed = len([kind for kind in kinds if kind == "sliding_attention"])
        return (window, windowed) if windowed else (0, 0)
    if config.get("use_sliding_window") and "max_window_layers" in config:
        windowed = max(layers - (_optional(config, "max_window_layers") or 0), 0)
        return (window, windowed) if windowed else (0, 0)
    every = _optional(config, "sliding_window_pattern") or traits.every_other_window
    return window, layers - layers // every if every else layers


def _latent(config: Mapping[str, Any]) -> Latent | None:
    if not config.get("kv_lora_rank"):
        return None
    return Latent(
        query_rank=_optional(config, "q_lora_rank") or 0,
        key_value_rank=_dimension(config, "kv_lora_rank"),
        rope_dim=_dimension(config, "qk_rope_head_dim"),
        plain_dim=_dimension(config, "qk_nope_head_dim"),
        value_dim=_dimension(config, "v_head_dim"),
    )


def _experts(config: Mapping[str, Any], traits: ModelType, hidden: int) -> Experts | None:
    count = _optional(config, "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
    if not count or count == 1:
        return None
    width = _optional(config, "moe_intermediate_size", "intermediate_size") or 4 * hidden
    shared_width = _optional(config, "shared_expert_intermediate_size") or width
    has_shared = bool(config.get("shared_expert_intermediate_size"))
    shared = _optional(config, "n_shared_experts") or (1 if has_shared else 0)
    return Experts(
        count=count,
        per_token=_dimension(config, "num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_top_k"),
        width=width,
        shared=shared,
        shared_width=shared_width if shared else 0,
        first_dense=_optional(config, "first_k_dense_replace") or 0,
        every=_optional(config, "decoder_sparse_step", "moe_layer_freq") or 1,
        dense_layers=_dense_layers(config),
        router_bias=traits.router_bias,
        shared_gate=traits.shared_gate,
    )


def _dense_layers(config: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the layers that a list names as having no experts."""
    listed = config.get("mlp_only_layers") or []
    if not isinstance(listed, list) or not all(isinstance(one, int) and not isinstance(one, bool) for one in listed):
        msg = f"mlp_only_layers: expected a list of layers, found {listed!r}"
        raise UsageError(msg)
    return tuple(listed)


def _given(config: Mapping[str, Any], *keys: str) -> Any:
    """Return the first of several spellings that is there and not null."""
    return next((config[key] for key in keys if config.get(key) is not None), None)


def _flag(config: Mapping[str, Any], key: str, *, otherwise: bool) -> bool:
    value = config.get(key)
    if value is None:
        return otherwise
    if not isinstance(value, bool):
        msg = f"{key}: expected true or false, found {value!r}"
        raise UsageError(msg)
    return value


def _dimension(config: Mapping[str, Any], *keys: str) -> int:
    """Return the first of several spellings of a dimension."""
    found = _optional(config, *keys)
    if found:
        return found
    msg = f"{keys[0]} is missing" + (f" (nor is there {', '.join(keys[1:])})" if len(keys) > 1 else "")
    raise UsageError(msg)


def _optional(config: Mapping[str, Any], *keys: str) -> int | None:
    """Return the first of several spellings of a dimension that may be left out; null and 0 are left out."""
    for key in keys:
        value = config.get(key)
        if value is None or value is False:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            msg = f"{key}: expected a positive whole number, found {value!r}"
            raise UsageError(msg)
        if value:
            return value
    return None
