"""The multifit method: guess the time, pack by first fit into what each rank can do in it, and halve the doubt.

At most 1.22 times the optimum where ranks are as fast (Coffman, Garey & Johnson, SIAM J. Comput. 7, 1978), at most 1.4
times where they are not, slower ranks being filled first (Friesen & Langston, SIAM J. Comput. 12, 1983).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.costs.balance.longest_first import with_everyone

if TYPE_CHECKING:
    from longpole.costs.balance.batch import Batch, Parts

_HALVINGS: Final = 12  # the doubt is a 4,000th of the first one then
_ROUNDING: Final = 1e-12


def multifit(batch: Batch, least: float, most: float) -> Parts | None:
    """Assign by the multifit method.

    Args:
        batch: Without equal counts.
        least: A time that no assignment is below.
        most: A time that some assignment reaches.

    Returns:
        The best packing found, None where none was better than `most`.
    """
    order = batch.longest_first()
    slowest_first = sorted(range(batch.ranks), key=lambda rank: (batch.speeds[rank], rank))
    best: Parts | None = None
    for _ in range(_HALVINGS):
        guess = (least + most) / 2
        packed = _pack(batch, order, slowest_first, guess)
        if packed is None:
            least = guess
        else:
            best, most = packed, min(guess, batch.longest_load(packed))
    return with_everyone(batch, best) if best is not None else None


def _pack(batch: Batch, order: list[int], slowest_first: list[int], time: float) -> Parts | None:
    """Put each sequence where it fits first; None where one fits nowhere."""
    parts: Parts = [[] for _ in batch.speeds]
    room = [(time * batch.speeds[rank]) * (1 + _ROUNDING) for rank in slowest_first]
    for place in order:
        cost = batch.costs[place]
        at = next((at for at, left in enumerate(room) if cost <= left), None)
        if at is None:
            return None
        room[at] -= cost
        parts[slowest_first[at]].append(place)
    return parts
