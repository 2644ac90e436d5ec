"""Where groups of equal keys begin and end in sorted columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def opens(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows begin a run of rows that agree in all keys: `[N]` bool.

    >>> opens(np.array([3, 3, 5])).tolist()
    [True, False, True]
    """
    first = np.ones(len(keys[0]), np.bool_)
    if len(first) > 1:
        first[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return first


def closes(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows end a run of rows that agree in all keys: `[N]` bool.

    >>> closes(np.array([3, 3, 5])).tolist()
    [False, True, True]
    """
    last = np.ones(len(keys[0]), np.bool_)
    if len(last) > 1:
        last[:-1] = opens(*keys)[1:]
    return last
