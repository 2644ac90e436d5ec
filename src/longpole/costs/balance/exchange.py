"""Local exchange: move or swap sequences between the rank that is last and another one, as long as that helps.

Each step takes, of the moves and swaps of one sequence with one of the ranks that are done first, the one after which
the later of the two ranks is done first; where none of these helps, the next ranks are asked, until all were.
Nothing is ever made worse, and the sorted list of loads falls with every step, so it ends.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.costs.balance.batch import Batch, Parts

_ROUNDING: Final = 1e-12
_WORK_MAX: Final = 2_000_000  # sequences looked at in all: about a second
_STEPS_LEAST: Final = 8
_ASKED_AT_ONCE: Final = 8  # ranks: more of them find hardly a better step, and take as much longer

_Member = tuple[float, int]


class _Step(NamedTuple):
    """One exchange: when the later of the two ranks would be done, with whom, what goes and what comes back."""

    done_at: float
    rank: int
    goes: _Member
    comes: _Member | None


def exchange(batch: Batch, parts: Parts, enough: float) -> Parts:
    """Return an assignment that no single move or swap with the last rank betters, or that is good enough.

    Args:
        batch: What is divided.
        parts: Where to begin.
        enough: The time at which to stop: one that no assignment is below, or a little over it.
    """
    members = [sorted((batch.costs[place], place) for place in part) for part in parts]
    loads = batch.loads(parts)
    for _ in range(max(_WORK_MAX // max(len(batch.costs), 1), _STEPS_LEAST)):
        last = max(range(batch.ranks), key=lambda rank: loads[rank])
        if loads[last] <= enough * (1 + _ROUNDING):
            break
        step = _best_step(batch, members, loads, last)
        if step is None:
            break
        members[last].remove(step.goes)
        insort(members[step.rank], step.goes)
        if step.comes is not None:
            members[step.rank].remove(step.comes)
            insort(members[last], step.comes)
        for rank in (last, step.rank):
            loads[rank] = sum(cost for cost, _ in members[rank]) / batch.speeds[rank]
    return [[place for _, place in part] for part in members]


def _best_step(batch: Batch, members: Sequence[list[_Member]], loads: Sequence[float], last: int) -> _Step | None:
    """Return the exchange to make, None where none helps."""
    others = sorted((rank for rank in range(batch.ranks) if rank != last), key=lambda rank: (loads[rank], rank))
    for begin in range(0, len(others), _ASKED_AT_ONCE):
        asked = others[begin : begin + _ASKED_AT_ONCE]
        steps = (step for rank in asked for step in _steps(batch, members, loads, (last, rank)))
        best = min(steps, key=_order, default=None)
        if best is not None and best.done_at < loads[last] * (1 - _ROUNDING):
            return best
    return None


def _order(step: _Step) -> tuple[float, int, _Member]:
    return step.done_at, step.rank, step.goes


def _steps(
    batch: Batch, members: Sequence[list[_Member]], loads: Sequence[float], between: tuple[int, int]
) -> Iterator[_Step]:
    last, rank = between
    apart = loads[last] - loads[rank]
    if apart <= 0:
        return
    # What would have to change hands for both to be done at once.
    ideal = apart / (1 / batch.speeds[last] + 1 / batch.speeds[rank])
    may_move = len(members[last]) > batch.least_count and len(members[rank]) < batch.most_count
    for goes, comes in _pairs(members[last], members[rank], ideal, may_move=may_move):
        less = goes[0] - (comes[0] if comes is not None else 0.0)
        if less > 0:
            done_at = max(loads[last] - less / batch.speeds[last], loads[rank] + less / batch.speeds[rank])
            yield _Step(done_at, rank, goes, comes)


def _pairs(
    own: list[_Member], other: list[_Member], ideal: float, *, may_move: bool
) -> Iterator[tuple[_Member, _Member | None]]:
    """Yield what comes closest to the ideal: two moves, and for each sequence two swaps."""
    if may_move:
        for goes in _nearest(own, ideal):
            yield goes, None
    for goes in own:
        for comes in _nearest(other, goes[0] - ideal):
            yield goes, comes


def _nearest(members: list[_Member], cost: float) -> list[_Member]:
    """Return the neighbours of a cost: the last one below it and the first one from it on."""
    at = bisect_left(members, (cost, -1))
    return members[max(at - 1, 0) : at + 1]
