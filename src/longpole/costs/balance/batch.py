"""What is divided, and how it was divided; and the two ways in which it is divided without looking at lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

Parts: TypeAlias = list[list[int]]
"""Of each rank the places of its sequences in the batch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences that ranks process together before they wait for one another.

    Attributes:
        costs: Of each sequence, in any unit.
        speeds: Of each rank: cost that it processes in a unit of time.
        equal_counts: Whether all ranks must get as many sequences, give or take one.
    """

    costs: Sequence[float]
    speeds: Sequence[float]
    equal_counts: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be divided."""
        if not self.speeds:
            msg = "expected at least one rank"
            raise UsageError(msg)
        for rank, speed in enumerate(self.speeds):
            if not (math.isfinite(speed) and speed > 0):
                msg = f"speed of rank {rank}: expected a number above 0, found {speed!r}"
                raise UsageError(msg)

    @property
    def ranks(self) -> int:
        """How many ranks."""
        return len(self.speeds)

    @property
    def is_even(self) -> bool:
        """Whether all ranks are as fast."""
        return min(self.speeds) == max(self.speeds)

    @property
    def least_count(self) -> int:
        """Sequences that each rank gets at least: a rank without any would leave the others waiting for ever."""
        whole = len(self.costs) // self.ranks
        return whole if self.equal_counts else min(whole, 1)

    @property
    def most_count(self) -> int:
        """Sequences that a rank gets at most."""
        return -(-len(self.costs) // self.ranks) if self.equal_counts else len(self.costs)

    def longest_first(self) -> list[int]:
        """Return the places of the sequences by falling cost; equal ones stay in order."""
        return sorted(range(len(self.costs)), key=lambda place: -self.costs[place])

    def loads(self, parts: Sequence[Sequence[int]]) -> list[float]:
        """Return the time that each rank takes for its part."""
        return [
            math.fsum(self.costs[place] for place in part) / speed
            for part, speed in zip(parts, self.speeds, strict=True)
        ]

    def longest_load(self, parts: Sequence[Sequence[int]]) -> float:
        """Return the time until the last rank is done: the step's."""
        return max(self.loads(parts))

    @property
    def mean_load(self) -> float:
        """The time that all ranks would take together, were costs divisible at will."""
        return math.fsum(self.costs) / math.fsum(self.speeds)


def in_turn(batch: Batch) -> Parts:
    """Deal the sequences out one by one, as torch's DistributedSampler does."""
    return [list(range(rank, len(batch.costs), batch.ranks)) for rank in range(batch.ranks)]


def in_rotation(batch: Batch, parts: Parts, number: int) -> Parts:
    """Let ranks that are as fast take turns from batch to batch, so that not always the same gets the longest.

    >>> in_rotation(Batch([3, 2, 1], [1, 1, 1]), [[0], [1], [2]], 1)
    [[1], [2], [0]]
    """
    turn = number % batch.ranks if batch.is_even else 0
    return parts[turn:] + parts[:turn]


def in_blocks(batch: Batch) -> Parts:
    """Give each rank a run of neighbouring sequences, the first ranks one more where that does not come out even.

    >>> in_blocks(Batch([1, 1, 1, 1, 1], [1, 1]))
    [[0, 1, 2], [3, 4]]
    """
    whole, rest = divmod(len(batch.costs), batch.ranks)
    ends = [whole * rank + min(rank, rest) for rank in range(batch.ranks + 1)]
    return [list(range(begin, end)) for begin, end in pairwise(ends)]
