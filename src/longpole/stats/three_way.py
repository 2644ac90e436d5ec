"""Whether something became worse: regressed, same, improved or inconclusive, by one rule (DESIGN 3.12, bench-io A7).

    regressed      the interval lies above 0, and the estimate reaches the threshold
    improved       the interval lies below 0, and the estimate reaches the threshold on that side
    same           the interval ends below the threshold, and twice the threshold would have been seen
    inconclusive   none of these

                          0        threshold
    regressed             │    ├──────┼─*───┤
    same            ├───*─┼──────┤    │
    inconclusive        ├─┼───────*───┼────┤

Differences are logarithms of ratios, turned so that above 0 is worse. Everything works on arrays, one element a gate,
so that the simulation of thousands of gates (`benchmarks/gate`) is this code and no copy of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.stats.intervals import TAIL, t_quantile
from longpole.stats.signed_rank import signed_rank_interval

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.float64]
    Answers: TypeAlias = NDArray[np.str_]

REGRESSED: Final = "regressed"
SAME: Final = "same"
IMPROVED: Final = "improved"
INCONCLUSIVE: Final = "inconclusive"

RANKS_FROM: Final = 8
"""Pairs from which on the interval is by signed ranks: fewer cannot reach a small probability (bench-io A5)."""

_POWER_QUANTILE: Final = 0.8416  # of the normal distribution: 80 % power
_SEEN_FACTOR: Final = 2.0  # bench-io A6: no "same" where twice the threshold would have been overlooked


@dataclass(frozen=True, slots=True)
class Bounds:
    """The threshold as differences of logarithms, turned so that above 0 is worse.

    Attributes:
        worse_at: From here on a change counts as worse; above 0.
        better_at: From here on downwards it counts as better; below 0.
        proven: Whether the whole interval must lie beyond the threshold, and not the estimate alone.
    """

    worse_at: float
    better_at: float
    proven: bool = False

    @classmethod
    def of_share(cls, threshold: float, *, higher_is_better: bool = False, proven: bool = False) -> Bounds:
        """Return the bounds of a change by a share of what it was.

        >>> up = Bounds.of_share(0.25, higher_is_better=True)  # three quarters of the throughput are worse
        >>> round(up.worse_at, 3), round(up.better_at, 3)
        (0.288, -0.223)
        """
        more, less = log(1 + threshold), -log(1 - threshold)
        return cls(less, -more, proven) if higher_is_better else cls(more, -less, proven)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What pairs say, one element a gate.

    Attributes:
        estimate: Typical difference.
        low, high: Its interval; each end is missed with the probability asked for.
        error: Standard error; of an interval by ranks, what half of it stands for.
        spread: Standard deviation of the pairs; of an interval by ranks, that of normal noise with the same error.
        critical: Standard errors in half the interval.
        method: `t` or `Hodges-Lehmann`.
    """

    estimate: Values
    low: Values
    high: Values
    error: Values
    spread: Values
    critical: float
    method: str = "t"


def measure_pairs(differences: Values, tail: float = TAIL) -> Seen:
    """Return the interval of every row of differences: by signed ranks from `RANKS_FROM` pairs on, else Student's t.

    A pair in which one process met another machine than its partner (a clock that was raised, a CPU that was shared)
    is common and large. It widens an interval of means and hardly one of ranks: over 40 real pairs the latter was 0.4
    times as wide (docs/decisions/0039-pairs-by-ranks.md), and with normal noise it is 1.02 to 1.1 times as wide.

    Args:
        differences: (gates, pairs) with at least two pairs.
        tail: How often each end may be missed.
    """
    n = differences.shape[1]
    ranked = signed_rank_interval(differences, tail) if n >= RANKS_FROM else None
    if ranked is None:
        estimate = differences.mean(axis=1)
        spread = differences.std(axis=1, ddof=1)
        critical = t_quantile(n - 1, tail)
        half = critical * spread / n**0.5
        return Seen(
            estimate=estimate,
            low=estimate - half,
            high=estimate + half,
            error=spread / n**0.5,
            spread=spread,
            critical=critical,
        )
    estimate, low, high = ranked
    critical = NormalDist().inv_cdf(1 - tail)
    error = (high - low) / (2 * critical)
    return Seen(
        estimate=estimate,
        low=low,
        high=high,
        error=error,
        spread=error * n**0.5,
        critical=critical,
        method="Hodges-Lehmann",
    )


def judge(seen: Seen, bounds: Bounds) -> Answers:
    """Return the answer of every gate."""
    answers = np.full(len(seen.estimate), INCONCLUSIVE, dtype="<U12")
    is_same = (seen.high < bounds.worse_at) & (smallest_worsening(seen, bounds) <= _SEEN_FACTOR * bounds.worse_at)
    if bounds.proven:
        is_worse, is_better = seen.low > bounds.worse_at, seen.high < bounds.better_at
    else:
        is_worse = (seen.low > 0) & (seen.estimate >= bounds.worse_at)
        is_better = (seen.high < 0) & (seen.estimate <= bounds.better_at)
    answers[is_same] = SAME
    answers[is_better] = IMPROVED
    answers[is_worse] = REGRESSED
    return answers


def smallest_worsening(seen: Seen, bounds: Bounds) -> Values:
    """Return the smallest true change for the worse that would be called regressed in four of five tries.

    The interval must lie above 0, for which the estimate needs `critical` standard errors, and the estimate must reach
    the threshold; 0.84 standard errors on top make either happen in 80 % (bench-io A6, with the threshold's own 0.84).
    """
    of_interval = seen.critical * seen.error
    if bounds.proven:
        return bounds.worse_at + of_interval + _POWER_QUANTILE * seen.error
    return np.maximum(of_interval, bounds.worse_at) + _POWER_QUANTILE * seen.error


def pairs_to_settle(estimate: float, spread: float, bounds: Bounds, most: int) -> int | None:
    """Return how many pairs would settle an estimate that stays what it is; None for more than `most`.

    Args:
        estimate: Mean difference.
        spread: Standard deviation of the pairs.
        bounds: The threshold.
        most: The largest number worth saying.
    """
    for pairs in range(2, most + 1):
        error = np.array([spread / pairs**0.5])
        critical = t_quantile(pairs - 1)
        seen = Seen(
            estimate=np.array([estimate]),
            low=estimate - critical * error,
            high=estimate + critical * error,
            error=error,
            spread=np.array([spread]),
            critical=critical,
        )
        if judge(seen, bounds)[0] != INCONCLUSIVE:
            return pairs
    return None
