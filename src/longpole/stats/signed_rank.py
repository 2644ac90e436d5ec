"""Wilcoxon's signed ranks: whether most pairs, and the larger differences, point one way; and by how much.

One wild pair moves a mean and not a rank. Exact, by counting, where differences are symmetric about what they share:
which they are, whatever the noise, where the order within each pair is random and a change only shifts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.float64]

_CHUNK_VALUES: Final = 5_000_000  # 40 MB


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


def signed_rank_interval(differences: Values, tail: float) -> tuple[Values, Values, Values] | None:
    """Return the median of all means of two differences (a difference with itself too), and its exact interval.

    Source: Hodges and Lehmann 1963; Tukey 1949: the ends are the means of two differences beyond which as many lie as
    the distribution of the signed ranks leaves.

    Args:
        differences: (rows, n), at least one column.
        tail: How often each end may be missed.

    Returns:
        Estimates, lower and upper ends, one element a row; None where so few differences never say so much.

    >>> signed_rank_interval(np.array([[1.0, 2.0, 3.0, 4.0, 9.0]]), 0.1)
    (array([3.]), array([2.]), array([6.]))
    """
    n = differences.shape[1]
    chances = _at_least(n)[::-1]  # of so many means, or fewer, on the other side of 0
    left_out = int(np.searchsorted(chances, tail, side="right")) - 1
    if left_out < 0:
        return None
    first, second = np.triu_indices(n)
    parts = [
        _ends((chunk[:, first] + chunk[:, second]) / 2, left_out)
        for chunk in np.array_split(differences, max(differences.shape[0] * len(first) // _CHUNK_VALUES, 1))
    ]
    estimate, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    return estimate, low, high


def _ends(means: Values, left_out: int) -> tuple[Values, Values, Values]:
    means.sort(axis=1)
    count = means.shape[1]
    middle = (means[:, (count - 1) // 2] + means[:, count // 2]) / 2
    return middle, means[:, left_out].copy(), means[:, count - 1 - left_out].copy()


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
