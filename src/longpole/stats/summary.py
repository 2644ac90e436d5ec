"""Medians and percentiles of samples, by definitions that are stated beside every figure (DESIGN 3.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def median_ns(samples: Sequence[int]) -> int:
    """Return the median; of an even number of samples the mean of the two in the middle, rounded to even.

    Args:
        samples: At least one duration in ns.

    >>> median_ns([30, 10, 20]), median_ns([10, 21])
    (20, 16)
    """
    ordered = sorted(samples)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return round((ordered[middle - 1] + ordered[middle]) / 2)


def percentile_ns(samples: Sequence[int], share: float) -> int:
    """Return the nearest-rank percentile: the smallest sample that at least `share` of all samples do not exceed.

    Args:
        samples: At least one duration in ns.
        share: In (0, 1].

    >>> percentile_ns(range(1, 101), 0.95)
    95
    """
    ordered = sorted(samples)
    # Integer arithmetic in thousandths: 0.95 * 20 as a double is a little more than 19.
    rank = -(-round(share * 1000) * len(ordered) // 1000)
    return ordered[max(rank, 1) - 1]


def mean_ns(samples: Sequence[int]) -> int:
    """Return the arithmetic mean in whole ns, half a nanosecond upwards.

    Args:
        samples: At least one duration in ns.
    """
    return (2 * sum(samples) + len(samples)) // (2 * len(samples))
