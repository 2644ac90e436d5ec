"""The best setting for each range of sizes, where the difference is beyond noise.

Rounds are what repeats: in each, every setting ran once in fresh processes, in random order. So a setting is compared
with the default round by round: the logarithm of the ratio of the two medians is one value a round, Student's t over
the rounds says how sure its sign is. All settings and sizes of a kind are one family, at 5 % by Holm's method: with
many looks, some would differ by chance. Faster and slower are two such families.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, fsum, log
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.bench.collectives.fits import predict_ns
from longpole.records.bench_collectives import DEFAULT_SETTING, CollectivesBand, CollectivesCrossover
from longpole.stats import median_ns
from longpole.stats.many import adjust_by_holm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.bench_collectives import CollectivesFit, CollectivesPoint

ROUNDS_FROM: Final = 3
"""Rounds from which on two settings are told apart: with two, t at 5 % is 6.3 times the spread of two values."""
FAMILY_ERROR: Final = 0.05
LEAST_GAIN: Final = 0.03
"""A smaller gain is not worth a setting (DESIGN 3.12: the threshold of a verdict)."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """A setting against the default at one size: how many times faster, and how likely by chance."""

    setting: str
    size_bytes: int
    times_faster: float
    chance: float


def choose_best(points: Sequence[CollectivesPoint]) -> list[CollectivesBand]:
    """Return, for each kind that was measured with several settings, ranges of sizes and the best setting of each."""
    bands: list[CollectivesBand] = []
    for kind, ranks in dict.fromkeys((point.kind, point.ranks) for point in points):
        mine = [point for point in points if (point.kind, point.ranks) == (kind, ranks)]
        if len({point.setting for point in mine}) > 1:
            bands += _bands(kind, ranks, mine)
    return bands


def _bands(kind: str, ranks: int, points: list[CollectivesPoint]) -> list[CollectivesBand]:
    sizes = sorted({point.bytes for point in points})
    rounds = max(len(point.rounds) for point in points)
    if rounds < ROUNDS_FROM or not any(point.setting == DEFAULT_SETTING for point in points):
        why = (
            f"{ROUNDS_FROM} rounds of fresh processes and the default beside them tell settings from noise; found "
            + ("no rounds" if rounds == 0 else f"{rounds}" if rounds < ROUNDS_FROM else "no default")
        )
        return [CollectivesBand(kind, ranks, sizes[0], sizes[-1], "", why=why)]
    compared = [one for size in sizes for one in _at_size(points, size)]
    faster = _beyond_chance(compared, [one.chance for one in compared])
    slower = _beyond_chance(compared, [1 - one.chance for one in compared])
    bands: list[CollectivesBand] = []
    for size in sizes:
        setting, gain = _best_at(size, compared, faster, slower)
        if bands and bands[-1].setting == setting:
            last = bands[-1]
            last.to_bytes = size
            last.gain_low, last.gain_high = min(last.gain_low, gain), max(last.gain_high, gain)
        else:
            bands.append(CollectivesBand(kind, ranks, size, size, setting, gain, gain, _why(setting, rounds)))
    return bands


def _best_at(
    size: int, compared: list[_Compared], faster: list[_Compared], slower: list[_Compared]
) -> tuple[str, float]:
    """Return the best setting of a size and its gain: the default where all others are slower, none in doubt."""
    ahead = [one for one in faster if one.size_bytes == size and one.times_faster >= 1 + LEAST_GAIN]
    if ahead:
        best = max(ahead, key=lambda one: one.times_faster)
        return best.setting, best.times_faster
    others = [one for one in compared if one.size_bytes == size]
    behind = [one for one in slower if one.size_bytes == size and one.times_faster <= 1 / (1 + LEAST_GAIN)]
    if others and len(behind) == len(others):
        return DEFAULT_SETTING, 1 / max(one.times_faster for one in behind)
    return "", 0.0


def _why(setting: str, rounds: int) -> str:
    if setting == DEFAULT_SETTING:
        return f"every other setting slower in {rounds} rounds, beyond chance (5 % over all sizes and settings)"
    if setting:
        return f"faster than the default in {rounds} rounds, beyond chance (5 % over all sizes and settings)"
    return f"no setting faster than the default by {LEAST_GAIN:.0%} and beyond chance in {rounds} rounds"


def _at_size(points: list[CollectivesPoint], size: int) -> list[_Compared]:
    """Compare every other setting with the default at one size, where both were right."""
    of_setting = {
        point.setting: {one.round: median_ns(one.samples_ns) for one in point.rounds if one.samples_ns}
        for point in points
        if point.bytes == size and isinstance(point.time_ns, int)
    }
    default = of_setting.pop(DEFAULT_SETTING, {})
    found = []
    for setting, times in of_setting.items():
        both = sorted(default.keys() & times.keys())
        if len(both) >= ROUNDS_FROM:
            logs = [log(max(default[place], 1) / max(times[place], 1)) for place in both]
            mean = fsum(logs) / len(logs)
            found.append(_Compared(setting, size, exp(mean), _chance(logs, mean)))
    return found


def _chance(logs: list[float], mean: float) -> float:
    """Return how likely a mean this far above 0 is, were there no difference: Student's t, one side."""
    from scipy.stats import t

    n = len(logs)
    error = (fsum((value - mean) ** 2 for value in logs) / (n - 1) / n) ** 0.5
    if error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(t.sf(mean / error, n - 1))


def _beyond_chance(compared: list[_Compared], chances: list[float]) -> list[_Compared]:
    """Return what stands when all comparisons together may err with 5 %."""
    if not compared:
        return []
    adjusted = adjust_by_holm(np.array(chances))
    return [one for one, chance in zip(compared, adjusted.tolist(), strict=True) if chance <= FAMILY_ERROR]


def find_crossovers(bands: Sequence[CollectivesBand], fits: Sequence[CollectivesFit]) -> list[CollectivesCrossover]:
    """Return where the best setting changes from one range of sizes to the next one that has a best setting.

    Args:
        bands: As `choose_best` returns them.
        fits: Of the same record.
    """
    models = {(fit.kind, fit.ranks, fit.setting): fit for fit in fits if not fit.why_none}
    found = []
    for below, above in pairwise(band for band in bands if band.setting):
        if (below.kind, below.ranks) != (above.kind, above.ranks):
            continue
        one, other = below.setting, above.setting
        pair = [models.get((below.kind, below.ranks, name)) for name in (one, other)]
        low, high = below.to_bytes, above.from_bytes
        fitted = _crossing(pair[0], pair[1], low, high) if pair[0] is not None and pair[1] is not None else None
        found.append(CollectivesCrossover(below.kind, below.ranks, one, other, (low, high), fitted))
    return found


def _crossing(one: CollectivesFit, other: CollectivesFit, low: int, high: int) -> int | None:
    """Return the size between two at which two fitted curves cross, None where they do not."""

    def ahead_ns(size: float) -> float:
        return _of(one, size) - _of(other, size)

    if ahead_ns(low) > 0 or ahead_ns(high) < 0:
        return None
    left, right = float(low), float(high)
    while right - left > 1:
        middle = (left + right) / 2
        left, right = (middle, right) if ahead_ns(middle) <= 0 else (left, middle)
    return round(right)


def _of(fit: CollectivesFit, size: float) -> float:
    return predict_ns(fit.alpha_ns or 0, fit.gamma or 0.0, fit.gb_per_s or 1.0, size)
