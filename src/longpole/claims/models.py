"""The model that a claim is about: from the table, from its dimensions, or only its size."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from longpole.claims.figures import Figure, figure_of, parse_written
from longpole.costs.architecture import Architecture
from longpole.costs.parameters import parameters
from longpole.costs.presets import preset
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SIZE: Final = re.compile(r"(?<![a-z\d.])(\d+(?:\.\d+)?)\s*([bmt])(?![a-z\d])", re.IGNORECASE)
_WORTH: Final = {"m": 1e6, "b": 1e9, "t": 1e12}
# A name is rounder than a count: MPT-70B has 64.9B parameters, Llama-3-8B 8.03B, Gemma-7B 8.54B.
NAME_SHARE: Final = 0.09
SIZES_B: Final = (
    0.125, 0.35, 0.76, 1, 1.3, 1.5, 1.7, 2.7, 3, 3.6, 6.7, 7, 7.5, 8, 9, 12, 13, 14, 18, 20, 22, 27, 30, 32, 33, 34, 39,
    40, 47, 65, 70, 72, 76, 110, 120, 123, 141, 145, 175, 176, 180, 235, 280, 310, 314, 405, 530, 540, 671, 1000,
)  # fmt: skip
"""Sizes that models are published in, in billions; a wrong one is looked for among these."""


def architecture_of(
    name: str, sequence: int | None, resolve: Callable[[str], Architecture | None] | None
) -> Architecture | None:
    """Return a model by its name or by the path of its configuration; None where neither is known."""
    if resolve is not None and (found := resolve(name)) is not None:
        return found
    try:
        return preset(name, sequence)
    except UsageError:
        return None


def nominal_size(name: str) -> Figure | None:
    """Return the parameters that a name such as "Llama-2-13B" promises; None where it has no size.

    >>> nominal_size("MPT-70B").value / 1e9
    70.0
    """
    match = _SIZE.search(re.sub(r"[_/]", "-", name))
    if match is None:
        return None
    figure = figure_of(parse_written(match[1]), _WORTH[match[2].lower()], name)
    low = tuple(min(end, figure.value * (1 - NAME_SHARE)) for end in figure.low)
    high = tuple(max(end, figure.value * (1 + NAME_SHARE)) for end in figure.high)
    return Figure(name, figure.value, (figure.low[0], low[1], low[2]), (figure.high[0], high[1], high[2]))


def described(figures: Mapping[str, Figure], name: str) -> Architecture | None:
    """Return the architecture that stated dimensions describe best; None where too few are stated.

    Raises:
        UsageError: No model has such dimensions.
    """
    forms = described_forms(figures, name)
    if not forms:
        return None
    if "params" not in figures:
        return forms[0]
    stated = figures["params"].value
    return min(forms, key=lambda form: abs(parameters(form).total - stated))


def described_forms(figures: Mapping[str, Figure], name: str) -> list[Architecture]:
    """Return the architectures that stated dimensions may mean, the likeliest first; none where too few are stated.

    Layers, hidden size and vocabulary are needed. Without a feed-forward width it is a GPT: two matrices of 4h. With
    one, it has a gate unless that would miss the stated parameters by more. Embedding and head may be one matrix.

    Raises:
        UsageError: No model has such dimensions.
    """
    dims = {key: round(figures[key].value) for key in ("layers", "hidden", "vocab") if key in figures}
    if len(dims) < 3:
        return []
    hidden = dims["hidden"]
    heads = _count(figures, "heads", max(hidden // 128, 1))
    kv_heads = _count(figures, "kv_heads", heads)
    head_dim = _count(figures, "head_dim", max(hidden // heads, 1))
    heads, kv_heads = (heads, kv_heads) if heads % kv_heads == 0 else (heads, heads)
    given = "ffn" in figures
    return [
        Architecture(
            name=name or "as described", layers=dims["layers"], hidden=hidden, heads=heads, key_value_heads=kv_heads,
            head_dim=head_dim, feed_forward=_count(figures, "ffn", 4 * hidden), vocabulary=dims["vocab"], gated=gated,
            tied=tied, positions=0 if gated else _count(figures, "seq", 0), biases=not gated, layer_norm=not gated,
        )
        for gated in ((True, False) if given else (False,))
        for tied in ((False, True) if given else (True, False))
    ]  # fmt: skip


def _count(figures: Mapping[str, Figure], name: str, otherwise: int) -> int:
    return round(figures[name].value) if name in figures else otherwise
