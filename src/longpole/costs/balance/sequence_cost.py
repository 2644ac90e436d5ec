"""What a sequence costs: its tokens, its attention, or both together as a model has them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from longpole.costs.formula import Formula
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.costs.architecture import Architecture
    from longpole.costs.conventions import Convention


class LengthCost(Protocol):
    """What sequences cost, by their lengths."""

    def of_all(self, lengths: Sequence[int]) -> list[float]:
        """Return the cost of each sequence."""


COST: Final = Formula(
    "linear*s + square*s**2",
    "cost",
    "matrix products cost the same for each token, attention for each pair of tokens (arXiv:2104.04473, appendix)",
)


@dataclass(frozen=True, slots=True)
class SequenceCost:
    """The cost of a sequence of s tokens: linear · s + square · s².

    Attributes:
        linear: Of a token.
        square: Of a pair of tokens.
    """

    linear: float
    square: float

    def __post_init__(self) -> None:
        """Refuse a cost that is none."""
        parts = (self.linear, self.square)
        if not all(math.isfinite(part) and part >= 0 for part in parts) or sum(parts) <= 0:
            msg = f"cost of a sequence: expected two factors of at least 0 that are not both 0, found {parts}"
            raise UsageError(msg)

    def of(self, tokens: float) -> float:
        """Return the cost of one sequence."""
        return self.linear * tokens + self.square * tokens * tokens

    def of_all(self, lengths: Sequence[int]) -> list[float]:
        """Return the cost of each sequence."""
        linear, square = self.linear, self.square
        return [linear * tokens + square * tokens * tokens for tokens in lengths]

    @property
    def crossover_tokens(self) -> float:
        """The length from which on attention costs more than the rest; infinite where it costs nothing."""
        return self.linear / self.square if self.square else math.inf


BY_TOKENS: Final = SequenceCost(1.0, 0.0)
BY_SQUARE: Final = SequenceCost(0.0, 1.0)


def by_crossover(tokens: float) -> SequenceCost:
    """Return the cost where a sequence of so many tokens costs as much for attention as for everything else.

    >>> by_crossover(8192).of(8192)
    16384.0

    Raises:
        UsageError: It is no number above 0.
    """
    if not (math.isfinite(tokens) and tokens > 0):
        msg = f"crossover: expected a number of tokens above 0, found {tokens!r}"
        raise UsageError(msg)
    return SequenceCost(1.0, 1.0 / tokens)


@dataclass(frozen=True, slots=True)
class ModelCost:
    """The FLOPs of a sequence, forward and backward, as a convention counts those of a model."""

    model: Architecture
    convention: Convention

    def of_all(self, lengths: Sequence[int]) -> list[float]:
        """Return the cost of each sequence; lengths that occur again are counted once."""
        from longpole.costs.flops import flops_per_token

        known = {
            tokens: tokens * flops_per_token(self.model, tokens, self.convention) if tokens else 0.0
            for tokens in set(lengths)
        }
        return [known[tokens] for tokens in lengths]
