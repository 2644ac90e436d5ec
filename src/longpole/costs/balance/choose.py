"""The best assignment that the methods find, with what each of them found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.costs.balance.bound import lower_bound
from longpole.costs.balance.differencing import differencing
from longpole.costs.balance.exchange import exchange
from longpole.costs.balance.longest_first import longest_first
from longpole.costs.balance.multifit import multifit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.costs.balance.batch import Batch, Parts

METHODS: Final = ("longest_first", "differencing", "multifit", "exchange")
"""The greedy one, two better ones (for ranks that are as fast, and that are not), and what local exchange adds."""

_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """How a batch is divided.

    Attributes:
        parts: Of each rank the places of its sequences, in their order in the batch.
        load: When the last rank is done.
        bound: A time that no assignment is below.
        method: Which method, of `METHODS`, was the first to find it so good.
        by_method: When the last rank is done by each method that was tried; `exchange` begins at the best of them.
    """

    parts: Parts
    load: float
    bound: float
    method: str
    by_method: Mapping[str, float]

    @property
    def meets_bound(self) -> bool:
        """Whether nothing can be better."""
        return self.load <= self.bound * (1 + 1e-9)


def balance(batch: Batch, *, enough_share: float = 0.0) -> Balanced:
    """Divide a batch so that the last rank is done as early as the methods can have it.

    The greedy method, then Karmarkar and Karp's differencing where ranks are as fast, else multifit; then local
    exchange from the best of them. What meets the bound ends the search.

    Args:
        batch: What is divided.
        enough_share: What is over the bound by no more than this share of it ends the search, too.
    """
    bound = lower_bound(batch)
    enough = bound * (1 + enough_share)
    parts = longest_first(batch)
    best, load, method = parts, batch.longest_load(parts), "longest_first"
    by_method = {method: load}
    for name in ("differencing", "multifit", "exchange"):
        if load <= enough * (1 + _ROUNDING):
            break
        found = _try(name, batch, best, (enough, load))
        if found is None:
            continue
        by_method[name] = batch.longest_load(found)
        if by_method[name] < load * (1 - _ROUNDING):
            best, load, method = found, by_method[name], name
    parts = [sorted(part) for part in best]
    return Balanced(parts=parts, load=load, bound=bound, method=method, by_method=by_method)


def _try(name: str, batch: Batch, best: Parts, between: tuple[float, float]) -> Parts | None:
    if name == "exchange":
        return exchange(batch, best, between[0])
    if name == "differencing":
        return differencing(batch) if batch.is_even else None
    return None if batch.is_even or batch.equal_counts else multifit(batch, *between)
