"""The greedy method: the longest sequence first, each to the rank that would be done with it first.

At most 4/3 - 1/(3·ranks) times the optimum where ranks are as fast (Graham, SIAM J. Appl. Math. 17, 1969), and less
than 5/3 times where they are not (Friesen, SIAM J. Comput. 16, 1987).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longpole.costs.balance.batch import Batch, Parts


def longest_first(batch: Batch) -> Parts:
    """Assign by the greedy method.

    >>> from longpole.costs.balance.batch import Batch
    >>> longest_first(Batch([5, 4, 3, 3, 3], [1, 1]))  # 8 and 10; the best is 9 and 9
    [[0, 3], [1, 2, 4]]
    """
    parts: Parts = [[] for _ in batch.speeds]
    extras = len(batch.costs) - batch.least_count * batch.ranks if batch.equal_counts else len(batch.costs)
    take = _from_heap if batch.is_even else _by_finish
    take(batch, parts, extras)
    return with_everyone(batch, parts)


def _from_heap(batch: Batch, parts: Parts, extras: int) -> None:
    """Give to the rank with the least so far, which is the one that would be done first where all are as fast."""
    whole = batch.least_count if batch.equal_counts else 0
    heap = [(0.0, rank) for rank in range(batch.ranks)]
    heapify(heap)
    for place in batch.longest_first():
        load, rank = heappop(heap)
        while len(parts[rank]) >= whole and extras <= 0:
            load, rank = heappop(heap)
        if len(parts[rank]) >= whole:
            extras -= 1
        parts[rank].append(place)
        if len(parts[rank]) < batch.most_count:
            heappush(heap, (load + batch.costs[place], rank))


def _by_finish(batch: Batch, parts: Parts, extras: int) -> None:
    """Try every rank."""
    whole = batch.least_count if batch.equal_counts else 0
    sums = [0.0] * batch.ranks
    for place in batch.longest_first():
        cost = batch.costs[place]
        open_ranks = [
            rank
            for rank in range(batch.ranks)
            if len(parts[rank]) < whole or (extras > 0 and len(parts[rank]) < batch.most_count)
        ]
        rank = min(open_ranks, key=lambda one: ((sums[one] + cost) / batch.speeds[one], one))
        if len(parts[rank]) >= whole:
            extras -= 1
        parts[rank].append(place)
        sums[rank] += cost


def with_everyone(batch: Batch, parts: Parts) -> Parts:
    """Give each rank that has nothing the cheapest sequence of those that have more than one."""
    for part in parts:
        if not part and batch.least_count:
            rich = [other for other in parts if len(other) > 1]
            giver = min(rich, key=lambda other: min(batch.costs[place] for place in other))
            cheapest = min(giver, key=lambda place: (batch.costs[place], place))
            giver.remove(cheapest)
            part.append(cheapest)
    return parts
