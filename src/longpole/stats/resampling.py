"""An interval from one run a side: blocks of consecutive units are drawn again and again (DESIGN 3.12).

Units of a run depend on one another: a slow one is followed by slow ones. So whole stretches are drawn, and the run
counts as a circle, so that every unit is drawn alike (the circular block bootstrap of Politis and Romano). Few blocks
say little of their own spread, so the interval is stretched by Student's t for as many values as there are blocks. It
tells nothing of how one run differs from the next; who asks widens it by that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.stats.intervals import LEVEL, Interval, t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import NDArray

    Draws: TypeAlias = NDArray[np.intp]
    Values: TypeAlias = NDArray[np.float64]

SEED: Final = 20_260_101
DRAWS: Final = 2000
_LONG_FROM: Final = 20
_NORMAL_QUANTILE: Final = 1.6449


@dataclass(frozen=True, slots=True)
class Resampled:
    """One side of a comparison.

    Attributes:
        count: How many units it has.
        statistic: (draws, units) places of units -> the statistic of each draw.
    """

    count: int
    statistic: Callable[[Draws], Values]


def block_length(count: int) -> int:
    """Return how many consecutive units a block has: the cube root of the number of units, from 20 on the square root.

    >>> block_length(5), block_length(10), block_length(50)
    (2, 3, 8)
    """
    power = 1 / 2 if count >= _LONG_FROM else 1 / 3
    return int(np.ceil(round(count**power, 9)))


def resampled_interval(before: Resampled, after: Resampled) -> Interval:
    """Return the interval of the difference, after less before, of one run each.

    Args:
        before: At least two units.
        after: The same.
    """
    own = [float(side.statistic(np.arange(side.count)[None, :])[0]) for side in (before, after)]
    # The smaller side always has the first stream, so that exchanging the sides mirrors the interval.
    streams = (0, 1) if own[0] <= own[1] else (1, 0)
    drawn = [
        side.statistic(_draw(side.count, np.random.default_rng([SEED, stream])))
        for side, stream in zip((before, after), streams, strict=True)
    ]
    estimate = own[1] - own[0]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(drawn[1] - drawn[0], [tail, 1 - tail])
    blocks = sum(side.count / block_length(side.count) for side in (before, after))
    critical = t_quantile(max(blocks - 2, 2))
    stretch = critical / _NORMAL_QUANTILE
    low, high = min(float(low), estimate), max(float(high), estimate)
    return Interval(
        estimate=estimate,
        low=estimate - (estimate - low) * stretch,
        high=estimate + (high - estimate) * stretch,
        method=f"{DRAWS} resamples of blocks of consecutive units, one run a side",
        critical=critical,
        pair_spread=(high - low) / 2 / _NORMAL_QUANTILE,
        single_run=True,
    )


def _draw(count: int, rng: np.random.Generator) -> Draws:
    length = block_length(count)
    blocks = -(-count // length)
    starts = rng.integers(0, count, (DRAWS, blocks))
    places = (starts[:, :, None] + np.arange(length)).reshape(DRAWS, -1)[:, :count] % count
    return places.astype(np.intp)
