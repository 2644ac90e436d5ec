"""A schedule's passes sorted so that each comes after what it needs, and run through with times.

Which pass waits for which follows from the order alone. So the sorting is done once for a schedule and its counts, and
a run with other times is one loop over the passes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.costs.schedule_orders import order_of
from longpole.errors import InvariantError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.costs.schedule_orders import Op, Order, Step

_NOTHING: Final = (-1, False)


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


@lru_cache(maxsize=64)
def program_of(schedule: str, stages: int, micro_batches: int, chunks: int) -> Program:
    """Return a schedule sorted; counts as `check_counts` returns them."""
    return compiled(order_of(schedule, stages, micro_batches, chunks))


@lru_cache(maxsize=64)
def groups_of(schedule: str, stages: int, micro_batches: int, chunks: int) -> tuple[tuple[int, int, int], ...]:
    """Return the entries of each pass of the third p micro-batches, and of the same pass p and 2p micro-batches on."""
    places: dict[tuple[str, int, int], int] = {}
    for place, step in enumerate(program_of(schedule, stages, micro_batches, chunks).steps):
        for op in step:
            places[op] = place
    return tuple(
        (place, places[kind, part, number + stages], places[kind, part, number + 2 * stages])
        for (kind, part, number), place in places.items()
        if 2 * stages <= number < 3 * stages
    )


def compiled(order: Order) -> Program:
    """Sort the steps of an order.

    Raises:
        InvariantError: Passes wait for one another: a mistake in the order.
    """
    sorting = _Sorting(order)
    active = list(reversed(range(len(order.devices))))
    while active:
        device = active.pop()
        active += sorting.advance(device)
    if sorting.left():
        msg = f"{order.schedule}: passes wait for one another"
        raise InvariantError(msg)
    return Program(len(order.devices), tuple(sorting.entries), tuple(sorting.steps), tuple(sorting.lengths))


class _Sorting:
    """Steps sorted so far. An output's number is of a forward or not, a part, a micro-batch."""

    def __init__(self, order: Order) -> None:
        self.entries: list[Entry] = []
        self.steps: list[Step] = []
        self.lengths: dict[tuple[tuple[str, int], ...], int] = {}
        self._order = order
        self._at = [0] * len(order.devices)
        self._count = 1 + max(op.micro_batch for step in order.devices[0] for op in step)
        outputs = 2 * order.parts * self._count
        self._done = [-1] * outputs  # entry of each output
        self._waiting = [-1] * outputs  # the device that waits for it
        self._kinds: dict[tuple[str, int], int] = {}

    def left(self) -> bool:
        """Tell whether steps are left."""
        return any(at < len(row) for at, row in zip(self._at, self._order.devices, strict=True))

    def advance(self, device: int) -> list[int]:
        """Take a device's steps up to one whose inputs are not there, and return the devices that waited for them."""
        woken: list[int] = []
        done, row = self._done, self._order.devices[device]
        for at in range(self._at[device], len(row)):
            step = row[at]
            inputs = []
            for op in step:
                output, moved = self._input(op, device)
                if output >= 0:
                    if done[output] < 0:
                        self._waiting[output] = device
                        self._at[device] = at
                        return woken
                    inputs.append((done[output], moved))
            self._finish(step, woken)
            first = inputs[0] if inputs else _NOTHING
            second = inputs[1] if len(inputs) > 1 else _NOTHING
            self.entries.append(Entry(device, self._length(step), *first, *second))
            self.steps.append(step)
        self._at[device] = len(row)
        return woken

    def _finish(self, step: Step, woken: list[int]) -> None:
        """Note what a step puts out, and which devices waited for that."""
        for kind, part, micro_batch in step:
            if kind != "W":
                output = (part + self._order.parts * (kind == "F")) * self._count + micro_batch
                self._done[output] = len(self.steps)
                if self._waiting[output] >= 0:
                    woken.append(self._waiting[output])

    def _length(self, step: Step) -> int:
        """Return which of the lengths a step takes."""
        if len(step) > 1:
            return self.lengths.setdefault(tuple([(op.kind, op.part) for op in step]), len(self.lengths))
        kind, part, _ = step[0]
        found = self._kinds.get((kind, part))
        if found is None:
            found = self._kinds[kind, part] = self.lengths.setdefault(((kind, part),), len(self.lengths))
        return found

    def _input(self, op: Op, device: int) -> tuple[int, bool]:
        """Return the number of the output that a pass takes in, and whether it is on another device; -1 for none."""
        kind, part, micro_batch = op
        before = part - 1 if kind == "F" else part + 1
        if kind == "W" or not 0 <= before < self._order.parts:
            return _NOTHING
        output = (before + self._order.parts * (kind == "F")) * self._count + micro_batch
        return output, self._order.device_of(before, micro_batch) != device
