"""How the batch changed, read from the shapes of operators: activations grow with it, and weights do not."""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Operator -> which input is the activation, which the weight, and which dimension of the activation counts features.
_WEIGHTED: Final = {
    "aten::linear": (0, 1, -1),
    "aten::addmm": (1, 2, -1),
    "aten::conv1d": (0, 1, 1),
    "aten::conv2d": (0, 1, 1),
    "aten::conv3d": (0, 1, 1),
    "aten::convolution": (0, 1, 1),
    "aten::embedding": (1, 0, None),
}
_CLOSE: Final = 1e-6
_UNRELATED_FROM: Final = 2  # weights on each side, none in common: another model


def batch_ratio(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> float | None:
    """Return how many rows an operator processes after for each one before, where all of them agree.

    Args:
        before: Operator -> its input shapes, each a JSON list of lists.
        after: The same.

    Returns:
        None where no operator with a weight is on both sides, or where they disagree.

    >>> batch_ratio({"aten::linear": ["[[8, 64], [10, 64]]"]}, {"aten::linear": ["[[16, 64], [10, 64]]"]})
    2.0
    """
    ratios = []
    for name in _WEIGHTED.keys() & before.keys() & after.keys():
        one, other = _rows_by_weight(name, before[name]), _rows_by_weight(name, after[name])
        ratios += [other[weight] / one[weight] for weight in one.keys() & other.keys() if one[weight]]
    if not ratios or max(ratios) > min(ratios) * (1 + _CLOSE):
        return None
    return ratios[0]


def is_other_model(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether the two have operators with weights of the same names, and not one weight in common."""
    one: set[Any] = set()
    other: set[Any] = set()
    for name in _WEIGHTED.keys() & before.keys() & after.keys():
        one |= {(name, weight) for weight in _rows_by_weight(name, before[name])}
        other |= {(name, weight) for weight in _rows_by_weight(name, after[name])}
    return min(len(one), len(other)) >= _UNRELATED_FROM and not one & other


def _rows_by_weight(name: str, texts: Sequence[str]) -> dict[tuple[int, ...], float]:
    """Return weight -> rows of the activations that meet it; those that meet several sizes are left out."""
    place, weight_place, features = _WEIGHTED[name]
    rows: dict[tuple[int, ...], set[float]] = {}
    for text in texts:
        dims = _dims(text)
        if len(dims) <= max(place, weight_place):
            continue
        activation, weight = dims[place], dims[weight_place]
        if not activation or not weight:
            continue
        # What is counted: all elements over the features, which belong to the model.
        per_row = 1 if features is None else activation[features] if len(activation) > abs(features) else 0
        if per_row:
            rows.setdefault(tuple(weight), set()).add(prod(activation) / per_row)
    return {weight: next(iter(found)) for weight, found in rows.items() if len(found) == 1}


def _dims(text: str) -> list[list[int]]:
    try:
        dims = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(dims, list):
        return []
    return [d if isinstance(d, list) and all(isinstance(n, int) and n >= 0 for n in d) else [] for d in dims]
