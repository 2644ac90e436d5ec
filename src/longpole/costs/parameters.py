"""Parameters of a transformer, counted tensor by tensor.

A layer has attention, a feed-forward part (dense, or routed and shared experts behind a router) and norms; around the
layers stand the embedding, the final norm and the head. Every count follows from the dimensions alone, and is exact
for the architectures that `Architecture` describes: the totals of published checkpoints come out to the last digit.

*Sources:* Narayanan et al., SC21, arXiv:2104.04473, section 5.1 (the closed form for GPT); DeepSeek-V2,
arXiv:2405.04434, section 2.1 (multi-head latent attention); DeepSeek-V3, arXiv:2412.19437, section 2.2 (modules that
predict further tokens).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from longpole.costs.formula import Formula

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture

GPT_PARAMETERS: Final = Formula(
    "12*L*h**2*(1 + 13/(12*h) + (V + s)/(12*L*h))",
    "parameters",
    "Narayanan et al., SC21, arXiv:2104.04473, section 5.1: GPT with tied embeddings and s learned positions",
)
KINDS: Final = ("attention", "dense", "routed", "shared", "router", "norms")
"""Tensor kinds of a layer, in the order of their fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParameters:
    """Parameters of one layer, by tensor kind.

    Attributes:
        attention: Queries, keys, values and output, with their biases, norms inside attention and sinks.
        dense: The feed-forward part of a layer without experts.
        routed: All routed experts.
        routed_active: Of these, what one token visits.
        shared: Experts that every token visits, and their gate.
        router: What scores the experts.
        norms: Norms before and after the two halves.
        replicated: Of all of these, what every rank of a tensor-parallel group holds whole: norms, router, biases
            of what is divided by rows, and the compressing matrices of latent attention.
        key_value: Of attention, keys and values: replicated as far as there are more ranks than key-value heads.
        key_value_heads: How many ranks can divide these.
    """

    attention: int
    dense: int
    routed: int
    routed_active: int
    shared: int
    router: int
    norms: int
    replicated: int
    key_value: int
    key_value_heads: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.attention + self.dense + self.routed + self.shared + self.router + self.norms

    @property
    def active(self) -> int:
        """What one token visits."""
        return self.total - self.routed + self.routed_active

    def held(self, tp: int, *, ep: int = 1, etp: int = 1) -> float:
        """Return what one rank holds, on average over the ranks of its groups.

        *Definition:* replicated + (total - replicated - routed) / tp + routed / (ep · etp), and where tp exceeds the
        key-value heads, each rank holds one whole head.

        Args:
            tp: Ranks of a tensor-parallel group.
            ep: Ranks over which the routed experts are spread.
            etp: Ranks that divide each of them.
        """
        divided = self.total - self.replicated - self.routed
        whole_heads = self.key_value * (1 / self.key_value_heads - 1 / tp) if tp > self.key_value_heads else 0.0
        return self.replicated + divided / tp + whole_heads + self.routed / (ep * etp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Parameters of a model.

    Attributes:
        layers: Of each layer, in order.
        embedding: Of tokens and of learned positions.
        head: The matrix that gives the logits; 0 where it is the embedding (tied).
        final_norm: After the last layer.
        prediction: Of the modules that predict further tokens, their own (embedding and head are shared).
        prediction_active: Of these, what one token visits.
    """

    layers: tuple[LayerParameters, ...]
    embedding: int
    head: int
    final_norm: int
    prediction: int
    prediction_active: int

    @property
    def total(self) -> int:
        """All of them, with the modules that predict further tokens."""
        return self.embedding + self.head + self.final_norm + self.prediction + sum(one.total for one in self.layers)

    @property
    def active(self) -> int:
        """What one token visits, embedding and head included.

        Some authors leave the embedding out of what they call active; `active - embedding` is that.
        """
        fixed = self.embedding + self.head + self.final_norm + self.prediction_active
        return fixed + sum(one.active for one in self.layers)

    def per_layer(self, layer: int) -> LayerParameters:
        """Return those of one layer, counted from 0."""
        return self.layers[layer]

    def by_kind(self) -> dict[str, int]:
        """Return all of them by tensor kind; the values add up to `total`."""
        kinds = {kind: sum(getattr(layer, kind) for layer in self.layers) for kind in KINDS}
        kinds["norms"] += self.final_norm
        outside = {"embedding": self.embedding, "head": self.head, "prediction": self.prediction}
        return {**outside, **kinds}


@lru_cache(maxsize=512)
def parameters(model: Architecture) -> Parameters:
    """Count the parameters of a model.

    *Source:* see the module; biases, norms and the like as `Architecture` says.
    """
    kinds = {has: _layer(model, has_experts=has) for has in {model.has_experts(layer) for layer in range(model.layers)}}
    vector = 2 if model.layer_norm else 1
    predicting = kinds[model.has_experts(model.layers - 1)]
    # A module joins the norms of a hidden state and an embedding (2h by h), and has three norms besides its layer's.
    joins = 2 * model.hidden**2 + 3 * vector * model.hidden
    return Parameters(
        layers=tuple(kinds[model.has_experts(layer)] for layer in range(model.layers)),
        embedding=(model.vocabulary + model.positions) * model.hidden,
        head=0 if model.tied else model.vocabulary * model.hidden,
        final_norm=vector * model.hidden,
        prediction=model.predicted_tokens * (predicting.total + joins),
        prediction_active=model.predicted_tokens * (predicting.active + joins),
    )


def _layer(model: Architecture, *, has_experts: bool) -> LayerParameters:
    attention, compressing, key_value = _attention(model)
    norms = model.norms_per_layer * (2 if model.layer_norm else 1) * model.hidden
    dense = routed = active = shared = router = 0
    row_biases = model.hidden if model.biases or model.attention_biases else 0
    gate = 0
    if has_experts and model.experts is not None:
        experts = model.experts
        one = _feed_forward(model, experts.width)
        routed, active = experts.count * one, experts.per_token * one
        gate = model.hidden if experts.shared_gate else 0
        shared = experts.shared * _feed_forward(model, experts.shared_width) + gate
        router = experts.count * (model.hidden + (1 if experts.router_bias else 0))
    else:
        dense = _feed_forward(model, model.feed_forward)
        row_biases += model.hidden if model.biases else 0
    return LayerParameters(
        attention=attention,
        dense=dense,
        routed=routed,
        routed_active=active,
        shared=shared,
        router=router,
        norms=norms,
        replicated=norms + router + row_biases + compressing + gate,
        key_value=key_value,
        key_value_heads=model.key_value_heads,
    )


def _attention(model: Architecture) -> tuple[int, int, int]:
    """Return all of attention, what of it every tensor-parallel rank holds, and keys and values."""
    if model.latent is not None:
        return _latent_attention(model)
    queries, keys = model.heads * model.head_dim, model.key_value_heads * model.head_dim
    biased = model.biases or model.attention_biases
    bias = (queries + 2 * keys if biased or model.qkv_biases else 0) + (model.hidden if biased else 0)
    norms = _query_key_norms(model, queries, keys)
    sinks = model.heads if model.attention_sinks else 0
    key_value = 2 * model.hidden * keys
    return 2 * model.hidden * queries + key_value + bias + norms + sinks, norms, key_value


def _query_key_norms(model: Architecture, queries: int, keys: int) -> int:
    if not model.query_key_norm:
        return 0
    return queries + keys if model.query_key_norm_whole else 2 * model.head_dim


def _latent_attention(model: Architecture) -> tuple[int, int, int]:
    """Count multi-head latent attention.

    *Formula:* q_r (h + a (d_n + d_r)) + h (kv_r + d_r) + kv_r a (d_n + d_v) + a d_v h, and a norm of each compressed
    vector; without compressed queries h a (d_n + d_r).
    """
    latent = model.latent
    assert latent is not None
    scores = model.heads * model.score_dim
    down = model.hidden * (latent.key_value_rank + latent.rope_dim) + latent.key_value_rank
    up = latent.key_value_rank * model.heads * (latent.plain_dim + latent.value_dim)
    if latent.query_rank:
        down += latent.query_rank * (model.hidden + 1)
        up += latent.query_rank * scores
    else:
        up += model.hidden * scores
    return down + up + model.heads * latent.value_dim * model.hidden, down, 0


def _feed_forward(model: Architecture, width: int) -> int:
    """Count two or, with a gate, three matrices, and their biases."""
    matrices = 3 if model.gated else 2
    bias = (matrices - 1) * width + model.hidden if model.biases else 0
    return matrices * model.hidden * width + bias
