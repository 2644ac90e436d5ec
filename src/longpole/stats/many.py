"""Looking at many things at once: Holm's correction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.float64]


def adjust_by_holm(p: Values) -> Values:
    """Return probabilities that may each be compared with the level of all together.

    The smallest counts as many times as there are, the next one time less, and none is below the one before it, so
    that among all that did not change, one or more is named at most as often as the level says.
    Source: Holm 1979.

    Args:
        p: (rows, things) or (things,): how likely each would be by chance.

    >>> adjust_by_holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    count = p.shape[-1]
    order = np.argsort(p, axis=-1, kind="stable")
    ordered = np.take_along_axis(p, order, axis=-1) * np.arange(count, 0, -1)
    adjusted = np.empty_like(ordered)
    np.put_along_axis(adjusted, order, np.minimum(np.maximum.accumulate(ordered, axis=-1), 1.0), axis=-1)
    return adjusted
