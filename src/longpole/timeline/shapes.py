"""Shapes of tensors as exporters write them: a JSON list of lists of sizes, lists of tensors included."""

from __future__ import annotations

import math
from typing import Final

import msgspec

_SIZE_MAX: Final = 1 << 40  # no dimension is longer; a product of damaged ones would leave 64 bits


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
