"""Looking at pairs before all are made, without being wrong more often for it.

Who adds pairs until an answer appears gets one by chance in the end. So the probability of a false alarm is shared out:
every pair up to the most that would be made earns an equal part of it, and a look may spend what was earned since the
look before. The parts add up to the whole, so the whole holds however the looks depend on one another.

    pairs at a look      10      20      40
    it may spend         1 %     1 %     2 %     of 4 %
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.stats.three_way import INCONCLUSIVE, judge, measure_pairs

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    from longpole.stats.three_way import Bounds

    Values: TypeAlias = NDArray[np.float64]
    Answers: TypeAlias = NDArray[np.str_]

PROMISED: Final = 0.05
"""How often a gate calls what did not change regressed, at most, over all its looks and all that it gates."""

ALPHA: Final = 0.04
"""What it spends of that: t intervals of pairs missed up to 5.4 % where 5 % was meant (bench-io A5)."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look.

    Attributes:
        pairs: Pairs made until then.
        tail: How often each end of its interval may be missed.
    """

    pairs: int
    tail: float


def plan_looks(first: int, most: int, alpha: float = ALPHA) -> tuple[Look, ...]:
    """Return the looks: at the first number of pairs, at each doubling, and at the most.

    >>> [(look.pairs, look.tail) for look in plan_looks(10, 40)]
    [(10, 0.01), (20, 0.01), (40, 0.02)]
    """
    at = [first] if first < most else []
    while at and 2 * at[-1] < most:
        at.append(2 * at[-1])
    at.append(most)
    earlier = [0, *at[:-1]]
    return tuple(Look(now, alpha * (now - before) / most) for before, now in zip(earlier, at, strict=True))


def last_look(pairs: int, spent: float, alpha: float = ALPHA) -> Look:
    """Return the look that ends it early, because time ran out: it may spend all that is left."""
    return Look(pairs, alpha - spent)


def run_looks(differences: Values, bounds: Bounds, looks: tuple[Look, ...]) -> tuple[Answers, NDArray[np.intp]]:
    """Judge many gates look by look, each until it is settled.

    Args:
        differences: (gates, pairs), pairs in the order in which they are made.
        bounds: The threshold.
        looks: In order; the last needs no more pairs than there are.

    Returns:
        The answer of each gate, and the pairs that it took.
    """
    answers = np.full(len(differences), INCONCLUSIVE, dtype="<U12")
    pairs = np.zeros(len(differences), dtype=np.intp)
    for look in looks:
        going = np.flatnonzero(answers == INCONCLUSIVE)
        if not len(going):
            break
        answers[going] = judge(measure_pairs(differences[going, : look.pairs], look.tail), bounds)
        pairs[going] = look.pairs
    return answers, pairs
