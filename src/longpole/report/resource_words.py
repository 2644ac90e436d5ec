"""What reports say of the matrix in words: how much is covered, and shares that may be larger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from longpole.records.resources import Cell, Resources

BOUND_SHOWN_MIN: Final = 0.005


def covered_words(found: Resources) -> str:
    """Return how much of the compute time is known: `94 % of compute time, of 26 % only a lower bound`."""
    words = f"{100 * found.covered_share:.0f} % of compute time"
    if found.at_least_share < BOUND_SHOWN_MIN:
        return words
    return f"{words}, of {100 * found.at_least_share:.0f} % only a lower bound"


def at_least(cell: Cell) -> str:
    """Return what to put before a cell's share where its demand is a lower bound."""
    return "≥ " if cell.at_least is True else ""
