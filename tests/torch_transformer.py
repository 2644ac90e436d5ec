"""A small decoder in PyTorch, built from an `Architecture`, whose products a counter of PyTorch's own can count.

Attention is written as plain products over the full square, so that what the counter sees is what the papers count.
Tokens go to experts in turn, so that every expert gets the same number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import torch
    from torch import nn

    from longpole.costs.architecture import Architecture
else:
    torch = pytest.importorskip("torch")
    nn = torch.nn


class FeedForward(nn.Module):  # type: ignore[misc]
    def __init__(self, model: Architecture, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(model.hidden, width, bias=model.biases)
        self.gate = nn.Linear(model.hidden, width, bias=model.biases) if model.gated else None
        self.down = nn.Linear(width, model.hidden, bias=model.biases)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.up(x)
        gated = nn.functional.silu(self.gate(x)) * inner if self.gate is not None else nn.functional.gelu(inner)
        result: torch.Tensor = self.down(gated)
        return result


class Mixture(nn.Module):  # type: ignore[misc]
    def __init__(self, model: Architecture) -> None:
        super().__init__()
        experts = model.experts
        assert experts is not None
        self.per_token = experts.per_token
        self.router = nn.Linear(model.hidden, experts.count, bias=False)
        self.experts = nn.ModuleList(FeedForward(model, experts.width) for _ in range(experts.count))
        self.shared = nn.ModuleList(FeedForward(model, experts.shared_width) for _ in range(experts.shared))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, x.shape[-1])
        weights = self.router(flat).softmax(-1)
        result = torch.zeros_like(flat)
        for index, expert in enumerate(self.experts):
            visits = torch.arange(flat.shape[0]) * self.per_token % len(self.experts)
            chosen = torch.nonzero((index - visits) % len(self.experts) < self.per_token).flatten()
            result = result.index_add(0, chosen, weights[chosen, index : index + 1] * expert(flat[chosen]))
        for expert in self.shared:
            result = result + expert(flat)
        return result.reshape(x.shape)


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, model: Architecture) -> None:
        super().__init__()
        self.model = model
        biased = model.biases or model.qkv_biases
        self.query = nn.Linear(model.hidden, model.heads * model.head_dim, bias=biased)
        self.key_value = nn.Linear(model.hidden, 2 * model.key_value_heads * model.head_dim, bias=biased)
        self.out = nn.Linear(model.heads * model.head_dim, model.hidden, bias=model.biases)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        model = self.model
        query = _heads(self.query(x), model.heads)
        key, value = (_heads(one, model.key_value_heads) for one in self.key_value(x).chunk(2, dim=-1))
        groups = model.heads // model.key_value_heads
        mixed = _attend(query, key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1))
        result: torch.Tensor = self.out(mixed)
        return result


class LatentAttention(nn.Module):  # type: ignore[misc]
    def __init__(self, model: Architecture) -> None:
        super().__init__()
        latent, heads = model.latent, model.heads
        assert latent is not None
        self.latent, self.heads = latent, heads
        rank = latent.query_rank or model.hidden
        self.query_down = nn.Linear(model.hidden, rank, bias=False) if latent.query_rank else None
        self.query_norm = nn.RMSNorm(rank) if latent.query_rank else None
        self.query_up = nn.Linear(rank, heads * model.score_dim, bias=False)
        self.down = nn.Linear(model.hidden, latent.key_value_rank + latent.rope_dim, bias=False)
        self.norm = nn.RMSNorm(latent.key_value_rank)
        self.up = nn.Linear(latent.key_value_rank, heads * (latent.plain_dim + latent.value_dim), bias=False)
        self.out = nn.Linear(heads * latent.value_dim, model.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        latent, heads = self.latent, self.heads
        down = self.query_norm(self.query_down(x)) if self.query_down and self.query_norm else x
        query = _heads(self.query_up(down), heads)
        held, position = self.down(x).split([latent.key_value_rank, latent.rope_dim], dim=-1)
        plain, value = _heads(self.up(self.norm(held)), heads).split([latent.plain_dim, latent.value_dim], dim=-1)
        key = torch.cat([plain, _heads(position, 1).expand(-1, heads, -1, -1)], dim=-1)
        result: torch.Tensor = self.out(_attend(query, key, value))
        return result


class Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, model: Architecture, layer: int) -> None:
        super().__init__()
        self.attention = LatentAttention(model) if model.latent else Attention(model)
        self.feed_forward = Mixture(model) if model.has_experts(layer) else FeedForward(model, model.feed_forward)
        self.norms = nn.ModuleList(_norm(model) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norms[0](x))
        result: torch.Tensor = x + self.feed_forward(self.norms[1](x))
        return result


class Transformer(nn.Module):  # type: ignore[misc]
    def __init__(self, model: Architecture) -> None:
        super().__init__()
        self.embedding = nn.Embedding(model.vocabulary, model.hidden)
        self.positions = nn.Embedding(model.positions, model.hidden) if model.positions else None
        self.layers = nn.ModuleList(Layer(model, layer) for layer in range(model.layers))
        self.norm = _norm(model)
        self.head = nn.Linear(model.hidden, model.vocabulary, bias=False)
        if model.tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        result: torch.Tensor = self.head(self.norm(x))
        return result


def _norm(model: Architecture) -> nn.Module:
    return nn.LayerNorm(model.hidden) if model.layer_norm else nn.RMSNorm(model.hidden)


def _heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    mixed = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ value
    return mixed.transpose(1, 2).flatten(-2)
