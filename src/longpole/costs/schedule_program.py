"""A schedule's passes sorted so that each comes after what it needs, and run through with times.

Which pass waits for which follows from the order alone. So the sorting is done once for a schedule and its counts, and
a run with other times is one loop over the passes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from longpole.costs.schedule_orders import order_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.costs.schedule_orders import Op, Order, Step

_Output: TypeAlias = tuple[bool, int, int]  # of a forward or not, part, micro-batch


class Entry(NamedTuple):
    """A step and what it needs.

    Attributes:
        device: Where it runs.
        length: Which of `Program.lengths` it takes.
        first, second: Entries whose outputs it takes in; -1 for none.
        first_moved, second_moved: Whether these come from another device.
    """

    device: int
    length: int
    first: int
    first_moved: bool
    second: int
    second_moved: bool


class Program(NamedTuple):
    """A sorted schedule.

    Attributes:
        devices: How many.
        entries: The steps, each after what it needs.
        steps: Their passes.
        lengths: The distinct kinds of steps: per pass its kind and part.
    """

    devices: int
    entries: tuple[Entry, ...]
    steps: tuple[Step, ...]
    lengths: tuple[tuple[tuple[str, int], ...], ...]

    def ends(self, lengths: Sequence[float], transfer_s: float) -> list[float]:
        """Return when every step ends: it starts when its device is free and its inputs are there.

        Args:
            lengths: Times of `self.lengths`.
            transfer_s: From an output's end until it is at another device.
        """
        free: list[float] = [0] * self.devices
        ends: list[float] = []
        for device, length, first, first_moved, second, second_moved in self.entries:
            start = free[device]
            if first >= 0:
                arrived = ends[first] + transfer_s if first_moved else ends[first]
                start = max(start, arrived)
                if second >= 0:
                    arrived = ends[second] + transfer_s if second_moved else ends[second]
                    start = max(start, arrived)
            end = start + lengths[length]
            free[device] = end
            ends.append(end)
        return ends


@lru_cache(maxsize=256)
def program_of(schedule: str, stages: int, micro_batches: int, chunks: int) -> Program:
    """Return a schedule sorted; counts as `check_counts` returns them."""
    return compiled(order_of(schedule, stages, micro_batches, chunks))


def compiled(order: Order) -> Program:
    """Sort the steps of an order.

    Raises:
        AssertionError: Passes wait for one another: a mistake in the order.
    """
    done: dict[_Output, int] = {}
    entries: list[Entry] = []
    steps: list[Step] = []
    lengths: dict[tuple[tuple[str, int], ...], int] = {}
    remaining = [list(reversed(row)) for row in order.devices]
    waiting: dict[_Output, int] = {}
    active = list(reversed(range(len(remaining))))
    while active:
        device = active.pop()
        left = remaining[device]
        while left:
            needs = [need for op in left[-1] if (need := _need(op, order.parts)) is not None]
            missing = next((need for need in needs if need not in done), None)
            if missing is not None:
                waiting[missing] = device
                break
            step = left.pop()
            kind = tuple((op.kind, op.part) for op in step)
            first, second = _inputs(order, device, needs, done)
            entries.append(Entry(device, lengths.setdefault(kind, len(lengths)), *first, *second))
            for output in ((op.kind == "F", op.part, op.micro_batch) for op in step if op.kind != "W"):
                done[output] = len(steps)
                if output in waiting:
                    active.append(waiting.pop(output))
            steps.append(step)
    if any(remaining):
        msg = f"{order.schedule}: passes wait for one another"
        raise AssertionError(msg)
    return Program(len(remaining), tuple(entries), tuple(steps), tuple(lengths))


def _need(op: Op, parts: int) -> _Output | None:
    """Return the output that a pass takes in."""
    before = op.part - 1 if op.kind == "F" else op.part + 1
    if op.kind == "W" or not 0 <= before < parts:
        return None
    return op.kind == "F", before, op.micro_batch


def _inputs(
    order: Order, device: int, needs: list[_Output], done: dict[_Output, int]
) -> tuple[tuple[int, bool], tuple[int, bool]]:
    """Return up to two entries that a step needs, and whether they are on another device."""
    inputs = [(done[need], order.device_of(need[1], need[2]) != device) for need in needs]
    inputs += [(-1, False)] * (2 - len(inputs))
    return inputs[0], inputs[1]
