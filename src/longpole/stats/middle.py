"""The middle of one group of values, with the interval in which it lies."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from statistics import mean, median, stdev
from typing import TYPE_CHECKING

from longpole.stats.intervals import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """A median, and the 90 % interval of what it estimates; no interval where the values are too few for one.

    Attributes:
        value: The median.
        low, high: Ends of the interval; None where there is none.
        method: How the interval was found, or why there is none.
    """

    value: float
    low: float | None
    high: float | None
    method: str


def half_width(values: Sequence[float]) -> float | None:
    """Return half the 90 % interval of the typical value, as a share: t · s / √k of the logarithms; None below two.

    Args:
        values: Such as medians of processes, above 0.
    """
    if len(values) < 2:
        return None
    return t_quantile(len(values) - 1) * stdev(map(log, values)) / len(values) ** 0.5


def middle_of_processes(medians: Sequence[float]) -> Middle:
    """Return the middle of several processes: t over the logarithms of their medians.

    Args:
        medians: Of each process, above 0; at least one.
    """
    value = median(medians)
    half = half_width(medians)
    if half is None:
        return Middle(value=value, low=None, high=None, method="one process says nothing of the next one")
    centre = mean(map(log, medians))
    return Middle(
        value=value, low=exp(centre - half), high=exp(centre + half), method=f"t interval over {len(medians)} processes"
    )


def middle_of_samples(samples: Sequence[float]) -> Middle:
    """Return the middle of the samples of one process: an interval between two of them that needs no distribution.

    It covers the median of *this* process, and says nothing of how another one would be. Source: the k-th smallest and
    the k-th largest of n values enclose the median with a probability of 1 - 2 * P(Binomial(n, 1/2) < k).

    Args:
        samples: At least one.
    """
    from scipy.stats import binom

    ordered, n = sorted(samples), len(samples)
    k = int(binom.ppf(0.05, n, 0.5))  # the largest with at most 5 % below
    if binom.cdf(k - 1, n, 0.5) > 0.05 or k < 1:
        return Middle(value=median(ordered), low=None, high=None, method=f"{n} samples are too few for an interval")
    return Middle(
        value=median(ordered),
        low=ordered[k - 1],
        high=ordered[-k],
        method=f"order statistics of {n} samples of one process",
    )
