"""The exact optimum of a small batch, by branching and bounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from longpole.costs.balance.batch import Batch, Parts

SEQUENCES_MAX: Final = 20
"""Of a batch whose optimum is looked for: beyond, the search rarely ends in a second."""

_ROUNDING: Final = 1e-12


class OutOfSteps(Exception):  # noqa: N818 - no error: the search ends without a proof
    """The search was given up."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found.

    Attributes:
        parts: The best assignment there is, None where that was not settled.
        steps: How many it took.
    """

    parts: Parts | None
    steps: int


def optimum(batch: Batch, parts: Parts, bound: float, *, steps_max: int = 200_000) -> Searched:
    """Look for the best assignment there is.

    Sequences are tried by falling cost on every rank; ranks that are as fast and as full are tried once, and a rank
    that would be done no earlier than the best assignment so far is not tried.

    Args:
        batch: What is divided.
        parts: An assignment to begin with.
        bound: A time that no assignment is below.
        steps_max: Assignments of single sequences that are tried at most.
    """
    search = _Search(batch, parts, bound, steps_max)
    try:
        search.go_on(0)
    except OutOfSteps:
        return Searched(None, steps_max)
    return Searched(search.best, steps_max - search.steps_left)


class _Search:
    """The state of a search."""

    def __init__(self, batch: Batch, parts: Parts, bound: float, steps_max: int) -> None:
        self.batch = batch
        self.order = batch.longest_first()
        self.best = [list(part) for part in parts]
        self.best_load = batch.longest_load(parts)
        self.bound = bound
        self.steps_left = steps_max
        self.sums = [0.0] * batch.ranks
        self.parts: Parts = [[] for _ in batch.speeds]

    def go_on(self, at: int) -> None:
        """Assign all sequences from one on."""
        if self.best_load <= self.bound * (1 + _ROUNDING):
            return
        if self._lacking() > len(self.order) - at:
            return
        if at == len(self.order):
            load = self.batch.longest_load(self.parts)
            if load < self.best_load * (1 - _ROUNDING):
                self.best, self.best_load = [list(part) for part in self.parts], load
            return
        tried: set[tuple[float, float, int]] = set()
        for rank in range(self.batch.ranks):
            self._try(at, rank, tried)

    def _lacking(self) -> int:
        """Return how many sequences are needed to give every rank what it must have."""
        least = self.batch.least_count
        return sum(max(least - len(part), 0) for part in self.parts)

    def _try(self, at: int, rank: int, tried: set[tuple[float, float, int]]) -> None:
        place, speed, part = self.order[at], self.batch.speeds[rank], self.parts[rank]
        same = (speed, self.sums[rank], len(part))
        after = self.sums[rank] + self.batch.costs[place]
        if same in tried or len(part) >= self.batch.most_count or after / speed >= self.best_load * (1 - _ROUNDING):
            return
        tried.add(same)
        self.steps_left -= 1
        if self.steps_left < 0:
            raise OutOfSteps
        before, self.sums[rank] = self.sums[rank], after
        part.append(place)
        self.go_on(at + 1)
        part.pop()
        self.sums[rank] = before
