"""The differencing method of Karmarkar and Karp, for ranks that are as fast.

Every sequence begins as a division of its own: it on one rank, nothing on the others. Of all divisions the two whose
loads differ most are put together, the largest load of one with the smallest of the other, so that their differences
cancel; until one is left. What differs in the end falls as n^(-c·log n) for random costs, far below the greedy method's
1/n (Karmarkar & Karp 1982, UCB/CSD 82/113; Yakir 1996).

    two ranks, costs 8 7 6 5 4:   8|7 → 1,  6|5 → 1 and 4;   4 and 1 → 3,  3 and 1 → 2:  16 and 14

With equal counts each division begins with one sequence for every rank, so that all of them stay as many (Michiels et
al., "balanced largest differencing", Theor. Comput. Sci. 2003).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from longpole.costs.balance.longest_first import with_everyone

if TYPE_CHECKING:
    from longpole.costs.balance.batch import Batch, Parts

_Tree: TypeAlias = "int | tuple[_Tree, _Tree] | None"
_Slots: TypeAlias = list[tuple[float, "_Tree"]]
"""Loads by falling size with what they are made of; a load of nothing is left out."""


def differencing(batch: Batch) -> Parts:
    """Assign by the differencing method, speeds left aside.

    >>> from longpole.costs.balance.batch import Batch
    >>> differencing(Batch([8, 7, 6, 5, 4], [1, 1]))
    [[4, 1, 3], [0, 2]]
    """
    ranks = batch.ranks
    heap = [(-_spread(slots, ranks), number, slots) for number, slots in enumerate(_beginnings(batch))]
    heapify(heap)
    number = len(heap)
    while len(heap) > 1:
        _, _, first = heappop(heap)
        _, _, second = heappop(heap)
        both = _put_together(first, second, ranks)
        heappush(heap, (-_spread(both, ranks), number, both))
        number += 1
    slots = heap[0][2] if heap else []
    parts = [_places(tree) for _, tree in slots]
    return with_everyone(batch, parts + [[] for _ in range(ranks - len(parts))])


def _beginnings(batch: Batch) -> list[_Slots]:
    order = batch.longest_first()
    if not batch.equal_counts:
        return [[(batch.costs[place], place)] for place in order]
    chunks = [order[begin : begin + batch.ranks] for begin in range(0, len(order), batch.ranks)]
    # A rank without a sequence in the last chunk is one that gets one less.
    nothing: _Slots = [(0.0, None)]
    return [[(batch.costs[place], place) for place in chunk] + nothing * (batch.ranks - len(chunk)) for chunk in chunks]


def _spread(slots: _Slots, ranks: int) -> float:
    return slots[0][0] - (slots[-1][0] if len(slots) == ranks else 0.0)


def _put_together(first: _Slots, second: _Slots, ranks: int) -> _Slots:
    """Pair the largest loads of one with the smallest of the other."""
    free = ranks - len(second)  # ranks on which the second has nothing: its smallest loads
    if len(first) <= free:
        return sorted(first + second, key=_load, reverse=True)
    paired = [
        (load + other, (tree, more)) for (load, tree), (other, more) in zip(first[free:], second[::-1], strict=False)
    ]
    alone = second[: len(second) - len(paired)]
    return sorted(first[:free] + paired + alone, key=_load, reverse=True)


def _load(slot: tuple[float, _Tree]) -> float:
    return slot[0]


def _places(tree: _Tree) -> list[int]:
    found: list[int] = []
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple):
            waiting += [one[1], one[0]]
        elif one is not None:
            found.append(one)
    return found
