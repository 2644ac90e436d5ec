"""The difference of one figure between two sides, by the design: pairs, several processes a side, one run a side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.bench.gate.sides import PAIRED, SINGLE_RUN
from longpole.stats.intervals import TAIL, Interval, t_quantile, unpaired_interval
from longpole.stats.resampling import Resampled, resampled_interval
from longpole.stats.signed_rank import signed_rank_p
from longpole.stats.three_way import RANKS_FROM, Seen, measure_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.stats.resampling import Draws, Values

_NORMAL_QUANTILE: Final = 1.6449
_LARGEST_LOG: Final = 50.0


@dataclass(frozen=True, slots=True)
class FigureValues:
    """A figure of every process of both sides.

    Attributes:
        base: Of the base, all above 0 where logarithms are asked for; of pairs, in their order.
        new: The same of the other side.
        design: `paired`, `unpaired` or `single run`.
        of_units: Of a single run: its units' values on each side, and the statistic that makes the figure of them.
    """

    base: Sequence[float]
    new: Sequence[float]
    design: str
    of_units: tuple[Resampled, Resampled] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A difference, and where it may lie.

    Attributes:
        interval: It, with the given probability of missing either end.
        seen: The same as the rule takes it, turned so that above 0 is worse.
        p_worse: How likely so large a difference for the worse is by chance.
        p_better: The same for the better.
        rank_p: Of the signed ranks, for the worse; None below eight pairs or without pairs.
    """

    interval: Interval
    seen: Seen
    p_worse: float
    p_better: float
    rank_p: float | None


def find_difference(values: FigureValues, tail: float = TAIL, *, higher_is_better: bool = False) -> Found:
    """Return the difference of the logarithms of a figure, the new side less the base.

    Args:
        values: The figure of every process, above 0.
        tail: How often each end may be missed.
        higher_is_better: Which direction is worse.
    """
    base, new = [log(value) for value in values.base], [log(value) for value in values.new]
    if values.design == PAIRED:
        seen, rank_p = _of_pairs(base, new, tail, higher_is_better=higher_is_better)
        interval = _interval(seen, len(base), higher_is_better=higher_is_better)
        return _found(interval, seen, rank_p, degrees=len(base) - 1)
    if values.design == SINGLE_RUN:
        assert values.of_units is not None
        interval = _stretched(resampled_interval(*values.of_units), tail)
        return _found(interval, _seen(interval, higher_is_better=higher_is_better), None, degrees=None)
    interval = unpaired_interval(base, new, tail)
    seen = _seen(interval, higher_is_better=higher_is_better)
    found = _found(interval, seen, None, degrees=len(base) + len(new) - 2)
    return _with_ranks(found, base, new, higher_is_better=higher_is_better)


def find_amount(values: FigureValues, tail: float = TAIL) -> Interval | None:
    """Return the difference of a figure in its own unit; None for a single run, whose units say little of amounts."""
    if values.design == PAIRED:
        changes = np.array([values.new], dtype=float) - np.array([values.base], dtype=float)
        return _interval(measure_pairs(changes, tail), len(values.base))
    if values.design == SINGLE_RUN:
        return None
    return unpaired_interval(values.base, values.new, tail)


def widened(found: Found, spread: float, *, higher_is_better: bool = False) -> Found:
    """Return a difference of single runs with room for how much one run differs from the next.

    Args:
        found: The difference.
        spread: What nine of ten runs stay within of the next, as a share.
        higher_is_better: As of the difference.
    """
    interval = found.interval.widened(log(1 + spread))
    between = log(1 + spread) / _NORMAL_QUANTILE
    interval = replace(interval, pair_spread=(interval.pair_spread**2 + between**2) ** 0.5)
    return _found(interval, _seen(interval, higher_is_better=higher_is_better), None, degrees=None)


def share_of(logarithm: float) -> float:
    """Return a difference of logarithms as a share of what it was.

    >>> share_of(0.0)
    0.0
    """
    return exp(min(logarithm, _LARGEST_LOG)) - 1


def resample_median(values: Sequence[float]) -> Resampled:
    """Return units to draw from, whose figure is the logarithm of their median."""
    units = np.array(values, dtype=float)
    return Resampled(len(units), lambda draw: np.log(np.median(units[draw], axis=1)))


def resample_mean(values: Sequence[float], weights: Sequence[float]) -> Resampled:
    """Return units to draw from, whose figure is the logarithm of their sum over the sum of their weights."""
    units, of = np.array(values, dtype=float), np.array(weights, dtype=float)
    tiny = np.finfo(float).tiny

    def mean(draw: Draws) -> Values:
        sums: Values = units[draw].sum(axis=1) / of[draw].sum(axis=1)
        return np.log(np.maximum(sums, tiny))

    return Resampled(len(units), mean)


def _of_pairs(
    base: Sequence[float], new: Sequence[float], tail: float, *, higher_is_better: bool
) -> tuple[Seen, float | None]:
    worse = np.array([new]) - np.array([base])
    worse = -worse if higher_is_better else worse
    rank_p = float(signed_rank_p(worse)[0]) if len(base) >= RANKS_FROM else None
    return measure_pairs(worse, tail), rank_p


def _interval(seen: Seen, pairs: int, *, higher_is_better: bool = False) -> Interval:
    """Return what pairs say as a difference of the new side less the base."""
    sign = -1.0 if higher_is_better else 1.0
    ends = sorted((sign * float(seen.low[0]), sign * float(seen.high[0])))
    return Interval(
        estimate=sign * float(seen.estimate[0]),
        low=ends[0],
        high=ends[1],
        method=f"{seen.method} interval over {pairs} pairs",
        critical=seen.critical,
        pair_spread=float(seen.spread[0]),
    )


def _seen(interval: Interval, *, higher_is_better: bool) -> Seen:
    """Return an interval as the rule takes it; the error is what half of it stands for."""
    sign = -1.0 if higher_is_better else 1.0
    ends = sorted((sign * interval.low, sign * interval.high))
    critical = max(interval.critical, _NORMAL_QUANTILE)
    return Seen(
        estimate=np.array([sign * interval.estimate]),
        low=np.array([ends[0]]),
        high=np.array([ends[1]]),
        error=np.array([interval.half_width() / critical]),
        spread=np.array([interval.pair_spread]),
        critical=critical,
        method=interval.method,
    )


def _found(interval: Interval, seen: Seen, rank_p: float | None, *, degrees: int | None) -> Found:
    """Add how likely the difference is by chance, from its standard error."""
    from scipy.stats import norm, t

    estimate, error = float(seen.estimate[0]), float(seen.error[0])
    if error > 0:
        score = estimate / error
        tails = norm if degrees is None else t(max(degrees, 1))
        p_worse, p_better = float(tails.sf(score)), float(tails.cdf(score))
    else:
        p_worse, p_better = (0.5, 0.5) if estimate == 0 else (float(estimate < 0), float(estimate > 0))
    return Found(interval, seen, p_worse, p_better, rank_p)


def _with_ranks(found: Found, base: Sequence[float], new: Sequence[float], *, higher_is_better: bool) -> Found:
    """Take the probability from the ranks of all processes, where there are enough for an interval by ranks."""
    if "Hodges" not in found.interval.method:
        return found
    from scipy.stats import mannwhitneyu

    grows = float(mannwhitneyu(new, base, alternative="greater").pvalue)
    falls = float(mannwhitneyu(new, base, alternative="less").pvalue)
    worse, better = (falls, grows) if higher_is_better else (grows, falls)
    return replace(found, p_worse=worse, p_better=better)


def _stretched(interval: Interval, tail: float) -> Interval:
    """Return an interval of resamples, made for 5 % a side, for another probability by the ratio of t."""
    if tail == TAIL:
        return interval
    # The critical value of the resamples is t of about as many degrees as there are blocks; 8 of them are typical.
    factor = t_quantile(8, tail) / t_quantile(8)
    return replace(
        interval,
        low=interval.estimate - (interval.estimate - interval.low) * factor,
        high=interval.estimate + (interval.high - interval.estimate) * factor,
        critical=interval.critical * factor,
    )
