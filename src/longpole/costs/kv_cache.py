"""What keys and values of past tokens take while a model generates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.costs.formula import Formula

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture

KEYS_AND_VALUES: Final = Formula(
    "2*L*max(k/tp, 1)*d*element_bytes",
    "B",
    "a key and a value of d elements per layer and key-value head; arXiv:2505.09343, table 1. More ranks than"
    " key-value heads repeat them",
)
LATENT: Final = Formula(
    "L*(kv_rank + rope_dim)*element_bytes",
    "B",
    "multi-head latent attention keeps the compressed vector and the positional key: arXiv:2405.04434, section 2.1.3;"
    " every tensor-parallel rank keeps all of it",
)


def kv_bytes_per_token(model: Architecture, element_bytes: float = 2, tp: int = 1) -> float:
    """Return what one token leaves in the cache of one device, in bytes.

    Layers with a sliding window are counted as well: they keep a token no longer than their window, which
    `kv_bytes_of_sequence` takes into account.

    Args:
        model: Its layers and heads.
        element_bytes: Of an element of the cache: 2 for 16 bits, 1 for 8.
        tp: Devices that share the heads.
    """
    return model.layers * _bytes_per_layer(model, element_bytes, tp)


def kv_bytes_of_sequence(model: Architecture, tokens: int, element_bytes: float = 2, tp: int = 1) -> float:
    """Return what a sequence of so many tokens takes in the cache of one device, in bytes.

    A layer with a sliding window keeps no more tokens than the window.
    """
    windowed = model.windowed_layers if model.window else 0
    kept = (model.layers - windowed) * tokens + windowed * min(tokens, model.window)
    return kept * _bytes_per_layer(model, element_bytes, tp)


def _bytes_per_layer(model: Architecture, element_bytes: float, tp: int) -> float:
    if model.latent is not None:
        rank, rope = model.latent.key_value_rank, model.latent.rope_dim
        return LATENT(L=1, kv_rank=rank, rope_dim=rope, element_bytes=element_bytes)
    return KEYS_AND_VALUES(L=1, k=model.key_value_heads, tp=tp, d=model.head_dim, element_bytes=element_bytes)
