"""A transformer written out tensor by tensor, and its work token by token: slow, and obvious."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.costs.architecture import Architecture


class Tensor(NamedTuple):
    """A tensor, how many of its like there are, how many of these a token visits, and whether it is multiplied by."""

    name: str
    shape: tuple[int, ...]
    copies: int = 1
    visited: int = 1
    matrix: bool = True


def write_out(model: Architecture) -> Iterator[Tensor]:
    """Name every tensor of a model, as checkpoints do."""
    h = model.hidden
    yield Tensor("embed_tokens", (model.vocabulary, h), matrix=False)
    if model.positions:
        yield Tensor("embed_positions", (model.positions, h), matrix=False)
    for layer in range(model.layers):
        for tensor in _layer(model, has_experts=model.has_experts(layer)):
            yield tensor._replace(name=f"layers.{layer}.{tensor.name}")
    yield from _norm(model, "norm", h)
    yield Tensor("lm_head", (h, model.vocabulary), copies=0 if model.tied else 1)
    for module in range(model.predicted_tokens):
        for tensor in _layer(model, has_experts=model.has_experts(model.layers - 1)):
            yield tensor._replace(name=f"mtp.{module}.{tensor.name}")
        yield Tensor(f"mtp.{module}.join", (2 * h, h))
        for norm in ("hidden", "embedding", "head"):
            yield from _norm(model, f"mtp.{module}.{norm}_norm", h)
        yield Tensor(f"mtp.{module}.lm_head", (h, model.vocabulary), copies=0)


def count(model: Architecture) -> int:
    """Return all parameters."""
    return sum(one.copies * prod(one.shape) for one in write_out(model))


def count_visited(model: Architecture) -> int:
    """Return the parameters that a token visits."""
    return sum((one.visited if one.copies else 0) * prod(one.shape) for one in write_out(model))


def matrix_flops(model: Architecture, *, router: bool, logits: bool) -> int:
    """Return the FLOPs of a token's products with matrices, forward: a product and a sum for each entry."""
    return sum(
        2 * one.visited * prod(one.shape)
        for one in write_out(model)
        if one.matrix and (router or "router" not in one.name) and (logits or "lm_head" not in one.name)
    )


def attended(length: int, *, window: int = 0, causal: bool) -> int:
    """Return how many pairs of a token and one that it attends to a sequence has, each pair looked at."""
    return sum(
        1
        for query in range(length)
        for key in range(length)
        if (key <= query or not causal) and (not window or query - key < window)
    )


def _layer(model: Architecture, *, has_experts: bool) -> Iterator[Tensor]:
    yield from _latent_attention(model) if model.latent else _attention(model)
    for norm in range(model.norms_per_layer):
        yield from _norm(model, f"norm.{norm}", model.hidden)
    experts = model.experts
    if not has_experts or experts is None:
        yield from _feed_forward(model, "mlp", model.feed_forward)
        return
    yield Tensor("router", (model.hidden, experts.count))
    if experts.router_bias:
        yield Tensor("router.bias", (experts.count,), matrix=False)
    for tensor in _feed_forward(model, "experts", experts.width):
        yield tensor._replace(copies=experts.count, visited=experts.per_token)
    for tensor in _feed_forward(model, "shared", experts.shared_width):
        yield tensor._replace(copies=experts.shared, visited=experts.shared)
    if experts.shared_gate:
        yield Tensor("shared.gate", (model.hidden, 1), matrix=False)


def _attention(model: Architecture) -> Iterator[Tensor]:
    h, queries, keys = model.hidden, model.heads * model.head_dim, model.key_value_heads * model.head_dim
    all_biases = model.biases or model.attention_biases
    for name, width in (("q", queries), ("k", keys), ("v", keys)):
        yield Tensor(name, (h, width))
        if all_biases or model.qkv_biases:
            yield Tensor(f"{name}.bias", (width,), matrix=False)
    yield Tensor("o", (queries, h))
    if all_biases:
        yield Tensor("o.bias", (h,), matrix=False)
    if model.query_key_norm:
        whole = model.query_key_norm_whole
        yield Tensor("q_norm", (queries if whole else model.head_dim,), matrix=False)
        yield Tensor("k_norm", (keys if whole else model.head_dim,), matrix=False)
    if model.attention_sinks:
        yield Tensor("sinks", (model.heads,), matrix=False)


def _latent_attention(model: Architecture) -> Iterator[Tensor]:
    latent = model.latent
    assert latent is not None
    scores = latent.plain_dim + latent.rope_dim
    if latent.query_rank:
        yield Tensor("q_a", (model.hidden, latent.query_rank))
        yield Tensor("q_a.norm", (latent.query_rank,), matrix=False)
        yield Tensor("q_b", (latent.query_rank, model.heads * scores))
    else:
        yield Tensor("q", (model.hidden, model.heads * scores))
    yield Tensor("kv_a", (model.hidden, latent.key_value_rank + latent.rope_dim))
    yield Tensor("kv_a.norm", (latent.key_value_rank,), matrix=False)
    yield Tensor("kv_b", (latent.key_value_rank, model.heads * (latent.plain_dim + latent.value_dim)))
    yield Tensor("o", (model.heads * latent.value_dim, model.hidden))


def _feed_forward(model: Architecture, name: str, width: int) -> Iterator[Tensor]:
    for part in ("gate", "up") if model.gated else ("up",):
        yield Tensor(f"{name}.{part}", (model.hidden, width))
        if model.biases:
            yield Tensor(f"{name}.{part}.bias", (width,), matrix=False)
    yield Tensor(f"{name}.down", (width, model.hidden))
    if model.biases:
        yield Tensor(f"{name}.down.bias", (model.hidden,), matrix=False)


def _norm(model: Architecture, name: str, width: int) -> Iterator[Tensor]:
    yield Tensor(f"{name}.weight", (width,), matrix=False)
    if model.layer_norm:
        yield Tensor(f"{name}.bias", (width,), matrix=False)
