"""A time that no assignment of whole sequences can be below."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longpole.costs.balance.batch import Batch


def lower_bound(batch: Batch) -> float:
    """Return the largest of the bounds that are known; 0 for an empty batch.

    With costs c₁ ≥ c₂ ≥ … and speeds s₁ ≥ s₂ ≥ …, none can be done before

        all costs together          Σc / Σs
        the m longest               (c₁ + … + cₘ) / (s₁ + … + sₘ), for every m below the number of ranks: they are on
                                    no more than m ranks (Horvath, Lam & Sethi, J. ACM 24, 1977)
        those that share a rank     among the first m·ranks + 1 some rank has m + 1, so at least the m + 1 cheapest of
                                    them; divided by the largest speed (Martello & Toth for equal ranks)
        the longest in its company  c₁ and, with equal counts, the cheapest ones that its rank must have besides
    """
    if not batch.costs:
        return 0.0
    costs = sorted(batch.costs, reverse=True)
    speeds = sorted(batch.speeds, reverse=True)
    sums = list(accumulate(costs, initial=0.0))
    bounds = [batch.mean_load]
    bounds += [cost / speed for cost, speed in zip(sums[1 : batch.ranks], accumulate(speeds), strict=False)]
    bounds += [
        (sums[m * batch.ranks + 1] - sums[m * batch.ranks - m]) / speeds[0]
        for m in range(1, (len(costs) - 1) // batch.ranks + 1)
    ]
    company = max(batch.least_count - 1, 0)
    bounds.append((costs[0] + math.fsum(costs[len(costs) - company :])) / speeds[0])
    return max(bounds)
