"""Shapes of tensors as exporters write them: a JSON list of lists of sizes, lists of tensors included."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import msgspec

_SIZE_MAX: Final = 1 << 40  # no dimension is longer; a product of damaged ones would leave 64 bits


def count_products(dims: str | bytes) -> int | None:
    """Count the multiplications of a product of matrices by the shapes of what it takes in, None where they tell none.

    The operands are the first two tensors that follow each other and agree in a dimension, of which the second one's
    last two may stand either way; dimensions before those are a batch, or experts over which the first one's rows are
    spread.

    >>> count_products("[[8, 4], [4, 3]]"), count_products("[[3], [8, 4], [3, 4]]")
    (96, 96)
    >>> count_products("[[8, 4], [2, 4, 3], [2]]"), count_products("[[8, 4], [5, 3]]")
    (96, None)
    """
    try:
        shapes = msgspec.json.decode(dims, type=list[list[int]])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    matrices = [shape for shape in shapes if len(shape) > 1 and all(0 < size < _SIZE_MAX for size in shape)]
    for left, right in pairwise(matrices):
        if left[-1] in right[-2:]:
            total = math.prod(left) * math.prod(right[-2:]) // left[-1]
            return total if 0 < total < 1 << 62 else None
    return None


def count_elements(dims: str | bytes) -> int | None:
    """Count the elements of all tensors of a text of shapes, None where it describes none.

    >>> count_elements("[[2, 3], [], [[4], [5]]]"), count_elements("[[]]"), count_elements("[[2,")
    (15, None, None)
    """
    try:
        left = msgspec.json.decode(dims)
    except msgspec.DecodeError:
        return None
    total = 0
    left = list(left) if isinstance(left, list) else []
    while left:
        shape = left.pop()
        if not isinstance(shape, list) or not shape:
            continue
        if any(isinstance(part, list) for part in shape):
            left += shape
        elif all(isinstance(part, int) and 0 <= part < _SIZE_MAX for part in shape):
            total += math.prod(shape)
    return total if 0 < total < 1 << 62 else None
