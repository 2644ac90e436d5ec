"""Intervals of a difference between two sides, by how the runs were made (DESIGN 3.12).

pairs of runs                  t over the differences of the pairs
runs a side, at least 5        Hodges-Lehmann: the median of all differences, its interval by counting (exact)
runs a side, 2 to 4            Welch's t
one run on a side              t with the spread of the other side's runs
one run a side                 resampling.py

Everything works on differences; whoever asks for ratios hands over logarithms.
Why these: docs/decisions/0019-verdicts.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import fsum
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL: Final = 0.9
"""Of every interval: each end is missed in one of twenty, so a statement about one side is wrong at most that often."""

TAIL: Final = (1 - LEVEL) / 2
_HODGES_LEHMANN_FROM: Final = 5
_EXACT_MAX: Final = 400  # pairs of values; beyond, the normal approximation of the count is off by one at most
_POWER_QUANTILE: Final = 0.8416  # of the normal distribution: 80 % power
_NORMAL_QUANTILE: Final = 1.6449  # 95 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimated difference, after less before, and where it may lie.

    Attributes:
        estimate: The difference.
        low, high: 90 % interval, ends that may be infinite.
        method: How it was found.
        critical: How many standard errors half the interval is, for what needs a power.
        pair_spread: Standard deviation of the difference between one run before and one after.
        single_run: One run on at least one side.
    """

    estimate: float
    low: float
    high: float
    method: str
    critical: float
    pair_spread: float
    single_run: bool = False

    def widened(self, by: float) -> Interval:
        """Return the interval with more room on both sides."""
        return replace(self, low=self.low - by, high=self.high + by)

    def half_width(self) -> float:
        """Return half the length, the longer half where they differ."""
        return max(self.high - self.estimate, self.estimate - self.low)


def paired_interval(before: Sequence[float], after: Sequence[float], tail: float = TAIL) -> Interval:
    """Return the interval of the mean difference over pairs.

    Source: Student's t; bench-io A5: it misses 4.4 to 5.4 % a side at 5 to 20 pairs, where a bootstrap misses up to
    10 %.

    Args:
        before: At least two values.
        after: As many, in the order of the pairs.
        tail: How often each end may be missed.
    """
    differences = [b - a for a, b in zip(before, after, strict=True)]
    n = len(differences)
    mean, spread = _mean(differences), _deviation(differences)
    critical = t_quantile(n - 1, tail)
    half = critical * spread / n**0.5
    return Interval(
        estimate=mean,
        low=mean - half,
        high=mean + half,
        method=f"t interval over {n} pairs",
        critical=critical,
        pair_spread=spread,
    )


def unpaired_interval(before: Sequence[float], after: Sequence[float], tail: float = TAIL) -> Interval:
    """Return the interval of the difference between two groups of runs, each of which counts once.

    Args:
        before: At least one value.
        after: The same; one side has at least two.
        tail: How often each end may be missed.
    """
    if min(len(before), len(after)) == 1:
        return _one_against_several(before, after, tail)
    if min(len(before), len(after)) >= _HODGES_LEHMANN_FROM:
        return _hodges_lehmann(before, after, tail)
    return _welch(before, after, tail)


@lru_cache(maxsize=4096)
def t_quantile(degrees: float, tail: float = TAIL) -> float:
    """Return the quantile of Student's t that is exceeded with probability `tail`; by default the 95 % quantile."""
    from scipy.stats import t

    return float(t.ppf(1 - tail, max(degrees, 1e-3)))


def smallest_seen(interval: Interval, threshold: float) -> float:
    """Return the smallest difference that would have been told from the threshold in four of five tries.

    threshold + half the interval + 0.84 standard errors (bench-io A6).
    """
    half = interval.half_width()
    return threshold + half * (1 + _POWER_QUANTILE / max(interval.critical, _NORMAL_QUANTILE))


def runs_to_settle(pair_spread: float, gap: float, *, paired: bool, most: int) -> int | None:
    """Return how many runs a side would make half the interval as small as a gap; None for more than `most`.

    Args:
        pair_spread: Standard deviation of the difference between one run before and one after.
        gap: How far the estimate lies from what would settle it.
        paired: Whether runs are pairs, which leaves fewer degrees of freedom.
        most: The largest number worth saying.
    """
    if gap <= 0:
        return None
    for runs in range(2, most + 1):
        degrees = runs - 1 if paired else 2 * (runs - 1)
        if t_quantile(degrees) * pair_spread / runs**0.5 <= gap:
            return runs
    return None


def _welch(before: Sequence[float], after: Sequence[float], tail: float) -> Interval:
    parts = [_deviation(side) ** 2 / len(side) for side in (before, after)]
    error = sum(parts) ** 0.5
    below = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True))
    critical = t_quantile(sum(parts) ** 2 / below if below > 0 else len(before) + len(after) - 2, tail)
    estimate = _mean(after) - _mean(before)
    return Interval(
        estimate=estimate,
        low=estimate - critical * error,
        high=estimate + critical * error,
        method=f"Welch's t interval over {len(before)} and {len(after)} runs",
        critical=critical,
        pair_spread=(_deviation(before) ** 2 + _deviation(after) ** 2) ** 0.5,
    )


def _one_against_several(before: Sequence[float], after: Sequence[float], tail: float) -> Interval:
    """Take the spread of the side that has one for both."""
    several = before if len(before) > 1 else after
    n = len(several)
    spread = _deviation(several)
    critical = t_quantile(n - 1, tail)
    half = critical * spread * (1 + 1 / n) ** 0.5
    estimate = _mean(after) - _mean(before)
    return Interval(
        estimate=estimate,
        low=estimate - half,
        high=estimate + half,
        method=f"t interval of one run against {n}, with the spread of those",
        critical=critical,
        pair_spread=spread * 2**0.5,
        single_run=True,
    )


def _hodges_lehmann(before: Sequence[float], after: Sequence[float], tail: float) -> Interval:
    """Return the median of all differences, and the interval that the Mann-Whitney test leaves.

    Source: Hodges and Lehmann 1963; bench-io A5: it covers 89 to 91.5 % at 5 to 50 values a side.
    """
    differences = sorted(b - a for b in after for a in before)
    left_out = _mann_whitney_count(len(before), len(after), tail)
    middle = len(differences) // 2
    estimate = differences[middle] if len(differences) % 2 else (differences[middle - 1] + differences[middle]) / 2
    return Interval(
        estimate=estimate,
        low=differences[left_out - 1],
        high=differences[-left_out],
        method=f"Hodges-Lehmann interval over {len(before)} and {len(after)} runs",
        critical=_normal_quantile(tail),
        pair_spread=(_robust_deviation(before) ** 2 + _robust_deviation(after) ** 2) ** 0.5,
    )


def _mann_whitney_count(n: int, m: int, tail: float = TAIL) -> int:
    """Return how many of the ordered differences lie beyond each end: the most that keeps `tail` a side."""
    if n * m > _EXACT_MAX:
        quantile = _normal_quantile(tail)
        return max(int(n * m / 2 - quantile * (n * m * (n + m + 1) / 12) ** 0.5), 1)
    total = sum(_arrangements(n, m, u) for u in range(n * m + 1))
    below, count = 0, 0
    while (below + _arrangements(n, m, count)) <= tail * total:
        below += _arrangements(n, m, count)
        count += 1
    return max(count, 1)


def _normal_quantile(tail: float) -> float:
    return NormalDist().inv_cdf(1 - tail)


@cache
def _arrangements(n: int, m: int, u: int) -> int:
    """Count the orders of n and m values in which u pairs stand the wrong way round."""
    if u < 0:
        return 0
    if n == 0 or m == 0:
        return int(u == 0)
    return _arrangements(n - 1, m, u - m) + _arrangements(n, m - 1, u)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)  # exact, so that the order of the runs changes nothing


def _deviation(values: Sequence[float]) -> float:
    mean = _mean(values)
    return (fsum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5


def _robust_deviation(values: Sequence[float]) -> float:
    """Return the standard deviation that the quartiles of a normal distribution would mean."""
    import numpy as np

    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / 1.349
