"""Wilcoxon's signed ranks: whether most pairs, and the larger differences, point one way.

One wild pair moves a mean and not a rank, so ranks say whether a t interval rests on a few pairs. Exact, by counting.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.float64]


def signed_rank_p(differences: Values) -> Values:
    """Return how likely ranks at least as positive are where differences are symmetric about 0, for every row.

    Equal sizes share the mean of their ranks, and a difference of 0 counts half on either side.
    Source: Wilcoxon 1945; the counts of all 2^n signs by the recurrence over the ranks.

    Args:
        differences: (rows, n), at least one column.

    >>> signed_rank_p(np.array([[1.0, 2.0, 3.0]]))
    array([0.125])
    """
    from scipy.stats import rankdata

    n = differences.shape[1]
    ranks = rankdata(np.abs(differences), axis=1)
    positive = (ranks * (differences > 0)).sum(axis=1) + (ranks * (differences == 0)).sum(axis=1) / 2
    # Ties leave halves; rounding down counts such a sum as less positive, so that the probability is not too small.
    return _at_least(n)[np.floor(positive + 1e-9).astype(np.intp)]


@lru_cache(maxsize=256)
def _at_least(n: int) -> Values:
    """Return for each sum of positive ranks of n values how likely it, or a larger one, is."""
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1.0
    for rank in range(1, n + 1):
        shifted = np.zeros_like(counts)
        shifted[rank:] = counts[:-rank]
        counts = (counts + shifted) / 2
    return np.minimum(np.cumsum(counts[::-1])[::-1], 1.0)
