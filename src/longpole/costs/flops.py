"""Floating-point operations of a token, under a convention that has a name.

The same run has several "MFU" figures: authors count attention as a full square, as the causal half or not at all,
count the embedding or the logits or neither, and some count what is computed again. The figures differ by up to a
third. So nothing here has a default convention, and every figure says which one it was counted under.

What is counted is counted once, forward, for one token (`counts`); a convention is a formula over these counts.

    N            parameters that a token visits (all of a dense model), embedding and head included
    embedding    of these, the embedding; where it is also the head (tied), that matrix
    linear       FLOPs of the layers' matrices, without router, core of attention, and logits
    core         FLOPs of scores and their product with the values, as a full square: 2 a s (d_qk + d_v) a layer
    core_window  the same where a token attends to no more than its window
    core_causal  the same where it attends to the tokens before it, within its window
    router       FLOPs of the routers' matrices
    logits       FLOPs of the head: 2 h V for each token that is predicted

A matrix of m by n costs 2 m n FLOPs a token forward, and twice that backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from longpole.costs.conventions import CONVENTIONS as CONVENTIONS
from longpole.costs.conventions import Convention, convention_of
from longpole.costs.parameters import parameters
from longpole.errors import UsageError

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture
    from longpole.costs.layout import Recompute

Attention: TypeAlias = Literal["full", "causal"]
Lengths: TypeAlias = int | Sequence[int]
"""Tokens of a sequence, or of each sequence that is packed into one row."""

OPERATORS: Final = (
    "query_key_value", "core", "attention_output", "dense", "routed", "shared", "router", "logits",
)  # fmt: skip
"""What a token passes, in this order; the keys of what `forward_flops` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What conventions are formulas over; per token, FLOPs forward. See the module."""

    N: float
    embedding: float
    linear: float
    core: float
    core_window: float
    core_causal: float
    router: float
    logits: float

    def under(self, convention: Convention) -> float:
        """Return FLOPs per token, forward and backward."""
        return convention.formula(**self.inputs())

    def inputs(self) -> dict[str, float]:
        """Return them by the names that the formulas use, to compute and to explain."""
        return {
            "N": self.N,
            "embedding": self.embedding,
            "linear": self.linear,
            "core": self.core,
            "core_window": self.core_window,
            "core_causal": self.core_causal,
            "router": self.router,
            "logits": self.logits,
        }


def flops_per_token(model: Architecture, sequence: Lengths, convention: Convention | str) -> float:
    """Return the FLOPs of a token, forward and backward, under a convention.

    Args:
        model: What is counted.
        sequence: Tokens of a sequence; of packed sequences the length of each, since a token attends to its own
            sequence only: attention costs the sum of squares.
        convention: One of `CONVENTIONS`; required.

    Raises:
        UsageError: The convention is not known, or a length is none.
    """
    chosen = convention if isinstance(convention, Convention) else convention_of(convention)
    return counts(model, sequence).under(chosen)


def counts(model: Architecture, sequence: Lengths) -> Counts:
    """Count a token of a model once, for all conventions.

    Raises:
        UsageError: A length is not a positive whole number.
    """
    if isinstance(sequence, int):
        return _counts(model, sequence)
    return _counts_of(model, _checked(sequence))


@lru_cache(maxsize=1024, typed=True)  # True is 1 to a cache that does not look at types
def _counts(model: Architecture, sequence: int) -> Counts:
    return _counts_of(model, _checked(sequence))


def _counts_of(model: Architecture, lengths: tuple[int, ...]) -> Counts:
    held = parameters(model)
    flops = _forward(model)
    core_of_key = flops["core"]
    return Counts(
        N=held.active,
        embedding=held.embedding,
        linear=sum(flops[name] for name in OPERATORS if name not in ("core", "router", "logits")),
        core=core_of_key * _keys(model, lengths, "full", windows=False),
        core_window=core_of_key * _keys(model, lengths, "full", windows=True),
        core_causal=core_of_key * _keys(model, lengths, "causal", windows=True),
        router=flops["router"],
        logits=flops["logits"],
    )


def forward_flops(
    model: Architecture, sequence: Lengths, *, attention: Attention = "causal", windows: bool = True
) -> dict[str, float]:
    """Return the FLOPs of one token's forward pass by operator.

    The modules that predict further tokens are within the operators that they consist of.

    Args:
        model: What is counted.
        sequence: Tokens of a sequence, or the lengths of packed ones.
        attention: Whether a token attends to all tokens of its sequence, or to those before it.
        windows: Whether sliding windows are heeded.

    Returns:
        `OPERATORS` -> FLOPs per token.
    """
    found = dict(_forward(model))
    found["core"] *= _keys(model, _checked(sequence), attention, windows=windows)
    return found


def layer_forward_flops(
    model: Architecture, layer: int, sequence: Lengths, *, attention: Attention = "causal", windows: bool = True
) -> dict[str, float]:
    """Return the FLOPs of one token's forward pass through one layer, by operator.

    Where only some layers have a sliding window, each is charged the mean of all: which ones is not asked for.

    Args:
        model: What is counted.
        layer: From 0.
        sequence: Tokens of a sequence, or the lengths of packed ones.
        attention: Whether a token attends to all tokens of its sequence, or to those before it.
        windows: Whether sliding windows are heeded.
    """
    found = dict(_layer(model, has_experts=model.has_experts(layer)))
    found["core"] *= _keys(model, _checked(sequence), attention, windows=windows)
    return found


def hardware_flops_per_token(
    model: Architecture, sequence: Lengths, recompute: Recompute | Sequence[Recompute], *, flash: bool
) -> float:
    """Return the FLOPs that a device computes for a token, forward and backward, with what it computes again.

    *Definition:* 3 · (linear + router + logits) + core · (1 + 2), and on top of it, by the layer's policy: `full` the
    layer's forward pass once more, `selective` the core once more. A fused kernel (`flash`) computes only the causal
    half within the window, but computes the scores again in the backward pass: 5 products there for the 2 of the
    forward pass, so 1 + 2.5 (Dao, arXiv:2307.08691, section 4.1). Without it the full square is computed.

    Args:
        model: What is counted.
        sequence: Tokens of a sequence, or the lengths of packed ones.
        recompute: One policy for all layers, or one for each.
        flash: Whether attention is a fused kernel.

    Raises:
        UsageError: There is not a policy for each layer.
    """
    flops = forward_flops(model, sequence, attention="causal" if flash else "full", windows=flash)
    core, logits = flops["core"], flops["logits"]
    linear = sum(flops.values()) - core - logits
    once = 3 * (linear + logits) + core * (3.5 if flash else 3.0)
    if isinstance(recompute, str):
        return once + {"none": 0.0, "selective": core, "full": core + linear}[recompute]
    if len(recompute) != model.layers:
        msg = f"recompute: expected a policy for each of {model.layers} layers, found {len(recompute)}"
        raise UsageError(msg)
    again = 0.0
    for layer, policy in enumerate(recompute):
        if policy != "none":
            part = layer_forward_flops(model, layer, sequence, attention="causal" if flash else "full", windows=flash)
            again += part["core"] if policy == "selective" else sum(part.values())
    return once + again


@lru_cache(maxsize=1024, typed=True)  # True is 1 to a cache that does not look at types
def _forward(model: Architecture) -> dict[str, float]:
    """Return FLOPs forward by operator; of the core for each key that a token attends to."""
    total = dict.fromkeys(OPERATORS, 0.0)
    dense_layers = model.layers - model.expert_layers
    predicting = model.predicted_tokens
    with_experts = model.has_experts(model.layers - 1)
    for has_experts, layers in ((False, dense_layers), (True, model.expert_layers)):
        repeated = layers + (predicting if has_experts == with_experts else 0)
        for name, flops in _layer(model, has_experts=has_experts).items():
            total[name] += repeated * flops
    total["logits"] = 2.0 * model.hidden * model.vocabulary * (1 + predicting)
    total["dense"] += predicting * 4.0 * model.hidden**2  # joins a hidden state and an embedding: 2h by h
    return total


@lru_cache(maxsize=1024, typed=True)  # True is 1 to a cache that does not look at types
def _layer(model: Architecture, *, has_experts: bool) -> dict[str, float]:
    """Return FLOPs forward of a layer by operator; of the core for each key that a token attends to."""
    found = dict.fromkeys(OPERATORS[:-1], 0.0)
    hidden, heads = model.hidden, model.heads
    found["query_key_value"] = 2.0 * _query_key_value(model)
    found["core"] = 2.0 * heads * (model.score_dim + model.value_dim)
    found["attention_output"] = 2.0 * heads * model.value_dim * hidden
    of_width = 2.0 * (3 if model.gated else 2) * hidden
    if has_experts and model.experts is not None:
        experts = model.experts
        found["routed"] = of_width * experts.width * experts.per_token
        found["shared"] = of_width * experts.shared_width * experts.shared
        found["router"] = 2.0 * hidden * experts.count
    else:
        found["dense"] = of_width * model.feed_forward
    return found


def _query_key_value(model: Architecture) -> int:
    """Return the entries of the matrices that make queries, keys and values."""
    latent, hidden, heads = model.latent, model.hidden, model.heads
    if latent is None:
        return hidden * model.head_dim * (heads + 2 * model.key_value_heads)
    scores = heads * model.score_dim
    queries = latent.query_rank * (hidden + scores) if latent.query_rank else hidden * scores
    keys = hidden * (latent.key_value_rank + latent.rope_dim)
    return queries + keys + latent.key_value_rank * heads * (latent.plain_dim + latent.value_dim)


def _keys(model: Architecture, lengths: tuple[int, ...], attention: Attention, *, windows: bool) -> float:
    """Return how many keys a token attends to, on average over tokens and layers.

    *Formula:* of a sequence of s tokens, s (full) or s / 2 (causal; exactly (s + 1) / 2, and every source drops the
    diagonal). Within a window w < s: w, or w - w² / 2s, since the first w tokens see fewer.
    """
    tokens = sum(lengths)
    half = 1.0 if attention == "full" else 0.5
    plain = half * sum(length * length for length in lengths) / tokens
    if not (windows and model.window and model.windowed_layers):
        return plain
    share = min(model.windowed_layers / model.layers, 1.0)
    windowed = sum(length * _keys_in_window(length, model.window, attention) for length in lengths) / tokens
    return share * windowed + (1.0 - share) * plain


def _keys_in_window(length: int, window: int, attention: Attention) -> float:
    if attention == "full":
        return float(min(length, window))
    return length / 2 if length <= window else window - window * window / (2 * length)


def _checked(sequence: Lengths) -> tuple[int, ...]:
    lengths = (sequence,) if isinstance(sequence, int) else tuple(sequence)
    if not lengths or not all(_is_length(one) for one in lengths):
        msg = (
            f"sequence: expected a positive whole number of tokens, or one for each packed sequence; found {sequence!r}"
        )
        raise UsageError(msg)
    return lengths


def _is_length(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
