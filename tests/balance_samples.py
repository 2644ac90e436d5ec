"""Divisions whose pages are kept."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from longpole.pipeline.balance import BalanceOptions, balance_lengths

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.report.balance import Balance


def chat_lengths(count: int, seed: int = 42) -> list[int]:
    """Return lengths as chat data has them: many short ones, and a long tail."""
    draw = Random(seed)
    return [min(int(draw.lognormvariate(6.4, 1.1)) + 8, 16384) for _ in range(count)]


def batches() -> Balance:
    """Eight batches, in some of which one sequence is longer than a rank's mean."""
    return _fixed(balance_lengths(chat_lengths(512), BalanceOptions(ranks=8, batch_size=64)))


def slow_rank() -> Balance:
    """Ranks of unequal speed, by tokens and attention together."""
    options = BalanceOptions(speeds=[1, 1, 1, 0.6], crossover=8192)
    return _fixed(balance_lengths(chat_lengths(256), options))


def small() -> Balance:
    """So few sequences that the best division is known."""
    return _fixed(balance_lengths([8, 7, 6, 5, 4], BalanceOptions(ranks=2)))


def many_ranks() -> Balance:
    """More ranks than the page shows, with equal counts."""
    options = BalanceOptions(ranks=64, cost="square", equal_counts=True)
    return _fixed(balance_lengths(chat_lengths(1024), options))


def _fixed(balance: Balance) -> Balance:
    balance.longpole = "0.0.0"
    return balance


SAMPLES: Final[dict[str, Callable[[], Balance]]] = {
    "batches": batches,
    "slow-rank": slow_rank,
    "small": small,
    "many-ranks": many_ranks,
}
