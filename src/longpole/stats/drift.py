"""Slow drift against a pinned baseline, and the moments of change in a series of runs.

One number a run, as a logarithm, so that differences are ratios. Two tools for two questions:

*Is it drifting?* is asked after every new run, so an alarm must stay rare over many looks: a cumulative sum against
the baseline (Page 1954) with an allowance of max(σ/2, θ/2) and a limit of 8σ, confirmed by the median of the last five
runs. Over 100 runs without a change it alarms in at most 1 % of series at a noise of 1 to 2 % a run, and finds a creep
of 0.5 % a run after about 11 runs; the previous run as a reference would never see it. The figures are those of the
simulation in tests/unit/stats/test_drift.py.

*When did it change?* is asked of a finished series: it is split where Student's t is largest, again and again, as long
as the split is beyond chance for all places that were tried, at least 2 % high, and every part has three runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import exp, fsum, log
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LIMIT_SIGMAS: Final = 8.0
"""Of the cumulative sum, in standard deviations of the baseline."""
CONFIRMED_BY: Final = 5
"""Runs whose median must have moved as well."""
BASELINE_MIN: Final = 5
"""Runs that a baseline needs for a standard deviation worth the name."""
FOUND_WITHIN: Final = 10
"""Runs in which a change should be found that a series is called steady without."""
SPLIT_CHANCE: Final = 1e-3
"""Of a split where nothing changed, over all places that were tried."""
SPLIT_SHARE_MIN: Final = 0.02
"""Smaller steps are told by the drift alone, if at all."""
SEGMENT_MIN: Final = 3
"""Runs of a part; fewer are a spike."""
_SIGMA_MIN: Final = 1e-6
_PHASES: Final = 1.4826  # of a normal distribution: standard deviation over median absolute deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A series that left its baseline.

    Attributes:
        direction: `slower` or `faster`.
        alarm_at: The run at which the evidence sufficed.
        began_at: The run behind the last one at which nothing had added up yet.
        share: Median of the last five runs against the baseline.
    """

    direction: str
    alarm_at: int
    began_at: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A step in a series.

    Attributes:
        at: First run behind it.
        share: Median behind it against the median before it.
        chance: How likely so large a step is where nothing changed, over all places that were tried.
    """

    at: int
    share: float
    chance: float


def baseline_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the middle and the spread of a baseline: mean without the outer tenths, and the larger of two σ.

    The mean of the middle is surer than the median and as safe from a spike. The median absolute deviation alone is 0
    for a baseline that mostly repeats itself, the standard deviation alone is blown up by one spike; with few runs
    either is too small by chance, so the larger one is taken.
    """
    cut = len(values) // 10
    kept = sorted(values)[cut : len(values) - cut]
    middle, mean = fsum(kept) / len(kept), fsum(values) / len(values)
    spread = (fsum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)) ** 0.5
    robust = _PHASES * median(abs(value - median(values)) for value in values)
    # A single spike may triple the deviation; more than twice the robust one is one.
    sigma = min(max(spread, robust), 2 * robust) if robust > 0 else spread
    return middle, max(sigma, _SIGMA_MIN)


def smallest_found(sigma: float, n_baseline: int) -> float:
    """Return the smallest lasting change, as a logarithm, that the sum finds within `FOUND_WITHIN` runs.

    m runs of a change s add up m · (s − allowance), which must pass the limit of 8σ; the threshold's part of the
    allowance is left out, for it is what one asked not to see.
    """
    return sigma / 2 + sigma / n_baseline**0.5 / 2 + LIMIT_SIGMAS * sigma / FOUND_WITHIN


def find_drift(values: Sequence[float], n_baseline: int, threshold: float) -> Drift | None:
    """Return the first alarm behind the baseline; None where the series stayed.

    Args:
        values: Logarithm of one positive number a run, in order of time.
        n_baseline: The first so many runs are the baseline, at least `BASELINE_MIN`.
        threshold: A change of this share is worth an alarm.
    """
    middle, sigma = baseline_of(values[:n_baseline])
    # What the baseline's middle may be off by would else add up run after run.
    allowance = max(sigma / 2, log(1 + threshold) / 2) + sigma / n_baseline**0.5 / 2
    limit = LIMIT_SIGMAS * sigma
    most = max(limit / 2, 2 * log(1 + threshold))  # one spike alone must not fill the sum
    up = down = 0.0
    up_from = down_from = n_baseline
    for place in range(n_baseline, len(values)):
        off = min(max(values[place] - middle, -most), most)
        up, down = max(up + off - allowance, 0.0), max(down - off - allowance, 0.0)
        up_from = place + 1 if up <= 0 else up_from
        down_from = place + 1 if down <= 0 else down_from
        recent = median(values[max(n_baseline, place + 1 - CONFIRMED_BY) : place + 1]) - middle
        has_enough = place + 1 - n_baseline >= CONFIRMED_BY
        if has_enough and max(up, down) > limit and abs(recent) >= allowance and (recent > 0) == (up > down):
            direction, began = ("slower", up_from) if up > down else ("faster", down_from)
            return Drift(direction=direction, alarm_at=place, began_at=began, share=exp(recent) - 1)
    return None


def find_change_points(values: Sequence[float], threshold: float = SPLIT_SHARE_MIN) -> list[ChangePoint]:
    """Return the steps of a series, in order.

    Args:
        values: Logarithm of one positive number a run, in order of time.
        threshold: Steps of a smaller share are not told.
    """
    if not values:
        return []
    places = sorted(_split(values, _Sums(values), (0, len(values)), log(1 + max(threshold, SPLIT_SHARE_MIN))))
    bounds = [0, *(at for at, _ in places), len(values)]
    middles = [median(values[low:high]) for low, high in pairwise(bounds)]
    return [
        ChangePoint(at=at, share=exp(after - before) - 1, chance=chance)
        for (at, chance), before, after in zip(places, middles, middles[1:], strict=False)
    ]


class _Sums:
    """Running sums of a series and of its squares, so that any part's mean and spread cost nothing."""

    def __init__(self, values: Sequence[float]) -> None:
        middle = fsum(values) / len(values) if values else 0.0  # small numbers, so that squares do not cancel
        self._first = [0.0, *accumulate(value - middle for value in values)]
        self._second = [0.0, *accumulate((value - middle) ** 2 for value in values)]

    def student(self, low: int, place: int, high: int) -> float:
        """Return Student's t, with a common variance, of the parts on both sides of a place."""
        left, right = place - low, high - place
        sums = [self._first[place] - self._first[low], self._first[high] - self._first[place]]
        squares = self._second[high] - self._second[low] - sums[0] ** 2 / left - sums[1] ** 2 / right
        variance = max(squares / (left + right - 2), _SIGMA_MIN**2)
        return (sums[1] / right - sums[0] / left) / (variance * (1 / left + 1 / right)) ** 0.5


def _split(
    values: Sequence[float], sums: _Sums, bounds: tuple[int, int], step_min: float
) -> Iterator[tuple[int, float]]:
    """Yield (place, chance) of every split between two bounds, by recursion into both halves."""
    low, high = bounds
    places = range(low + SEGMENT_MIN, high - SEGMENT_MIN + 1)
    if not places:
        return
    best = max(places, key=lambda place: abs(sums.student(low, place, high)))
    chance = min(_chance(sums.student(low, best, high), high - low - 2) * len(places), 1.0)
    step = median(values[best:high]) - median(values[low:best])
    if chance > SPLIT_CHANCE or abs(step) < step_min:
        return
    yield best, chance
    yield from _split(values, sums, (low, best), step_min)
    yield from _split(values, sums, (best, high), step_min)


def _chance(t: float, degrees: int) -> float:
    from scipy.special import stdtr  # far quicker to import than scipy.stats

    return 2 * float(stdtr(degrees, -abs(t)))
