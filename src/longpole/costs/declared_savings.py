"""What each kind of change to a declared event would save: the event is measured again with one thing changed.

Every change comes with one step that a person can picture (twice the bandwidth, half as many operations) and with the
most that going on in that direction can save, so that different directions can be compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from longpole.costs.declared_events import NOTHING_SAID, measure_event, merging
from longpole.costs.output_queue import measure_queue
from longpole.errors import Unanswered

if TYPE_CHECKING:
    from longpole.costs.declared_events import DeclaredEvent, LedgerTimes, Lifecycle, Operation

CHANGES: Final = ("overlap", "fewer_operations", "bandwidth", "serialization", "drain")
"""What may be changed, in the order of pages."""

_FACTOR: Final = 2.0  # one step: twice, or half
_NO_WINDOW: Final = Unanswered("no overlap window is declared", ("overlap_window_ms",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What one change to one event saves of a unit's time.

    Attributes:
        change: One of `CHANGES`.
        step: What the step is.
        saves_ms: What the step saves.
        at_most_ms: What is saved by going on for ever: all hidden, one operation, no transfer, no serialisation, no
            stall.
        needs_window_ms: For `overlap`: independent work beside each operation that hides all of it; else 0.
    """

    change: str
    step: str
    saves_ms: float | Unanswered
    at_most_ms: float
    needs_window_ms: float = 0.0


def find_savings(event: DeclaredEvent, lifecycle: Lifecycle = NOTHING_SAID) -> list[Saving]:
    """Say what each change that applies to an event would save of a unit, in the order of `CHANGES`.

    *Assumes* for fewer operations: as many bytes, as much serialisation and as much independent work in all, so that
    each of the fewer operations has more of all three, and the same fixed latency.

    Args:
        event: What is declared.
        lifecycle: What a unit has.

    Raises:
        InputError: As `measure_event`.
    """
    times = measure_event(event, lifecycle)
    found = [_overlap(event, times), _fewer(event, lifecycle, times), _bandwidth(event, times)]
    found += [_serialization(event, times), _drain(event, times)]
    return [saving for saving in found if saving is not None]


def largest_saving(savings: list[Saving]) -> Saving | None:
    """Return the saving whose step saves most, the first one of several; None where no step saves anything."""
    known = [saving for saving in savings if isinstance(saving.saves_ms, float) and saving.saves_ms > 0]
    return max(known, key=_saved_ms, default=None)


def _saved_ms(saving: Saving) -> float:
    return saving.saves_ms if isinstance(saving.saves_ms, float) else -math.inf


def _overlap(event: DeclaredEvent, times: LedgerTimes) -> Saving | None:
    """Let nothing wait for it; where nothing does, give it a longer window."""
    operation = event.operation()
    waits_ms = times.operations * operation.wait_ms
    if waits_ms <= 0:
        return None
    longer = replace(operation, window_ms=_FACTOR * operation.window_ms)
    changed = replace(operation, blocks=False) if operation.blocks else longer
    known = event.overlap_window_ms is not None
    return Saving(
        change="overlap",
        step="let the next work go on beside it" if operation.blocks else "twice the independent work beside it",
        saves_ms=_saves_ms(operation, changed, times.operations) if known else _NO_WINDOW,
        at_most_ms=waits_ms,
        needs_window_ms=operation.service_ms + operation.serialization_ms,
    )


def _fewer(event: DeclaredEvent, lifecycle: Lifecycle, times: LedgerTimes) -> Saving | None:
    operation = event.operation()
    mergeable, _ = merging(event, lifecycle)
    if mergeable <= 1 or operation.latency_ms <= 0:
        return None
    factor = min(_FACTOR, mergeable)
    return Saving(
        change="fewer_operations",
        step="half as many operations, each twice as large" if factor == _FACTOR else "one operation",
        saves_ms=_fewer_saves_ms(operation, factor, times.operations),
        at_most_ms=_fewer_saves_ms(operation, mergeable, times.operations),
    )


def _fewer_saves_ms(operation: Operation, factor: float, n_operations: float) -> float:
    merged = replace(
        operation,
        transfer_ms=factor * operation.transfer_ms,
        serialization_ms=factor * operation.serialization_ms,
        window_ms=factor * operation.window_ms,
    )
    return max(n_operations * operation.wait_ms - n_operations / factor * merged.wait_ms, 0.0)


def _bandwidth(event: DeclaredEvent, times: LedgerTimes) -> Saving | None:
    operation = event.operation()
    if operation.transfer_ms <= 0:
        return None
    faster = replace(operation, transfer_ms=operation.transfer_ms / _FACTOR)
    return Saving(
        change="bandwidth",
        step="twice the bandwidth, or half the bytes",
        saves_ms=_saves_ms(operation, faster, times.operations),
        at_most_ms=_saves_ms(operation, replace(operation, transfer_ms=0.0), times.operations),
    )


def _serialization(event: DeclaredEvent, times: LedgerTimes) -> Saving | None:
    operation = event.operation()
    if operation.serialization_ms <= 0:
        return None
    lighter = replace(operation, serialization_ms=operation.serialization_ms / _FACTOR)
    return Saving(
        change="serialization",
        step="half the serialisation",
        saves_ms=_saves_ms(operation, lighter, times.operations),
        at_most_ms=_saves_ms(operation, replace(operation, serialization_ms=0.0), times.operations),
    )


def _drain(event: DeclaredEvent, times: LedgerTimes) -> Saving | None:
    queue = event.queue()
    if queue is None or times.back_pressure_ms <= 0:
        return None
    faster = measure_queue(replace(queue, drain_gbps=_FACTOR * queue.drain_gbps))
    return Saving(
        change="drain",
        step="a queue that drains twice as fast",
        saves_ms=times.back_pressure_ms - times.operations * faster.stall_ms,
        at_most_ms=times.back_pressure_ms,
    )


def _saves_ms(before: Operation, after: Operation, n_operations: float) -> float:
    return max(n_operations * before.wait_ms - n_operations * after.wait_ms, 0.0)
