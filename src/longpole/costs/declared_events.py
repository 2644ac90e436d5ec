"""What declared operations cost a unit of work: service, hidden and exposed time, and the ledger by object.

Pure arithmetic on what a person declares (DESIGN 3.5). Times are milliseconds as floats here, as they are declared and
answered: one operation may take less than a nanosecond of a unit, and none of these is a moment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from longpole.costs.declared_fields import LIFECYCLE_FIELDS, MOST, find_complaints, finite_number, show
from longpole.costs.output_queue import OutputQueue, QueueTime, measure_queue
from longpole.errors import InputError
from longpole.units import BYTES_PER_GB, NS_PER_MS, NS_PER_S
from longpole.vocabulary.objects import MOVED_OBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PARTS: Final = ("bytes", "fixed_latency", "frequency", "serialization", "back_pressure")
"""What an event's time is made of.

`fixed_latency` is the latency of one operation a unit (request, token, run), `frequency` that of all further ones: what
would go if they were one operation.
"""

_MS_PER_S = NS_PER_S // NS_PER_MS
_FINITE: Final = 1e300  # sums of as many events as memory holds stay below infinity


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """How much of what a unit of work has, to bring events to one unit; numbers above 0, None for what is not known.

    Attributes:
        requests_per_unit: Requests that are served in a unit.
        tokens_per_unit: Tokens that are processed in a unit.
        units_per_run: Units of a run, over which is spread what happens once in a while.
    """

    requests_per_unit: float | None = None
    tokens_per_unit: float | None = None
    units_per_run: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no number above 0."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not 0 < (finite_number(value) or 0) <= MOST:
                msg = f"{field.name}: expected a number above 0 and at most 2^62; found {show(value)}"
                raise InputError(msg)


NOTHING_SAID: Final = Lifecycle()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredEvent:
    """One kind of operation, as it is declared; `declared_fields` says what each key holds.

    A latency or a window that is None was not said: it counts as 0, and savings and notes know the difference.

    Raises:
        InputError: A value is none that the key holds: the event's name and the key are in the message.
    """

    object: str
    bytes: int
    bandwidth_gbps: float
    fixed_latency_ms: float | None = None
    frequency: int = 1
    overlap_window_ms: float | None = None
    blocking_dependency: bool = True
    name: str = ""
    serialization_ms: float = 0.0
    stored_bytes: int | None = None
    per: str = "unit"
    production_gbps: float | None = None
    drain_gbps: float | None = None
    queue_bytes: int | None = None
    duration_ms: float | None = None

    def __post_init__(self) -> None:
        """Check every value."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in given.items() if value is not None}
        for name, complaint in find_complaints(given):
            who = f"event {self.name!r:.60}" if self.name else "event"
            msg = f"{who}: {name}: {complaint}"
            raise InputError(msg)

    def operation(self) -> Operation:
        """Return the times of one operation."""
        return Operation(
            transfer_ms=transfer_ms(_moved_bytes(self), float(self.bandwidth_gbps)),
            latency_ms=float(self.fixed_latency_ms or 0.0),
            serialization_ms=float(self.serialization_ms),
            window_ms=float(self.overlap_window_ms or 0.0),
            blocks=self.blocking_dependency,
        )

    def crossover_bytes(self) -> float:
        """Return the size at which transfer takes as long as the fixed latency; below it, latency rules."""
        return float(self.fixed_latency_ms or 0.0) / _MS_PER_S * self.bandwidth_gbps * BYTES_PER_GB

    def queue(self) -> OutputQueue | None:
        """Return the queue behind the producer, None where none is declared."""
        if (
            self.production_gbps is None
            or self.drain_gbps is None
            or self.queue_bytes is None
            or self.duration_ms is None
        ):
            return None
        return OutputQueue(
            production_gbps=self.production_gbps,
            drain_gbps=self.drain_gbps,
            queue_bytes=self.queue_bytes,
            duration_ms=self.duration_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation on its path, and what runs beside it.

    Attributes:
        transfer_ms: What its bytes take.
        latency_ms: What it takes before they move.
        serialization_ms: Packing, unpacking and (de)compressing.
        window_ms: Independent work beside it.
        blocks: The next work waits for it.
    """

    transfer_ms: float
    latency_ms: float
    serialization_ms: float
    window_ms: float
    blocks: bool

    @property
    def service_ms(self) -> float:
        """Latency and transfer; serialisation is none of it."""
        return self.transfer_ms + self.latency_ms

    @property
    def hidden_ms(self) -> float:
        """The part of service under independent work."""
        return 0.0 if self.blocks else min(self.service_ms, self.window_ms)

    @property
    def exposed_ms(self) -> float:
        """The rest of service."""
        return self.service_ms - self.hidden_ms

    @property
    def serialization_hidden_ms(self) -> float:
        """The part of serialisation under what service leaves of the window."""
        return 0.0 if self.blocks else min(self.serialization_ms, self.window_ms - self.hidden_ms)

    @property
    def serialization_exposed_ms(self) -> float:
        """The rest of serialisation."""
        return self.serialization_ms - self.serialization_hidden_ms

    @property
    def wait_ms(self) -> float:
        """What the next work waits for: exposed service and exposed serialisation."""
        return self.exposed_ms + self.serialization_exposed_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTimes:
    """What an event, an object or all of them take of one unit of work.

    Laws: exposed + hidden = service, the same of serialisation, wait = exposed + serialization_exposed +
    back_pressure, and the parts add up to service + serialization + back_pressure; to the precision of floats.

    Attributes:
        operations: How many operations; less than one where something happens once in many units.
        bytes: As the program sees them.
        moved_bytes: As the path carries them: less than `bytes` where they are compressed.
        service_ms: Fixed latencies and transfers.
        hidden_ms: The part of service under independent work.
        exposed_ms: The rest of service.
        serialization_ms: Packing, unpacking and (de)compressing; no part of service.
        serialization_hidden_ms: The part of serialisation under independent work.
        serialization_exposed_ms: The rest of serialisation.
        back_pressure_ms: What a producer stalls because its queue is full.
        parts_ms: Part of `PARTS` -> what it takes of service, serialisation and back-pressure together.
    """

    operations: float
    bytes: float
    moved_bytes: float
    service_ms: float
    hidden_ms: float
    exposed_ms: float
    serialization_ms: float
    serialization_hidden_ms: float
    serialization_exposed_ms: float
    back_pressure_ms: float
    parts_ms: dict[str, float]

    @property
    def wait_ms(self) -> float:
        """What a unit waits for it in all."""
        return self.exposed_ms + self.serialization_exposed_ms + self.back_pressure_ms

    @property
    def dominant_part(self) -> str:
        """The largest of its parts, the first one where several are; empty where it takes no time."""
        largest = max(self.parts_ms, key=lambda part: self.parts_ms[part], default="")
        return largest if largest and self.parts_ms[largest] > 0 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLedger:
    """The ledger of declared events, for one unit of work.

    Attributes:
        events: Of each event, in their order.
        by_object: Of each of the four objects, those without an event included.
        total: Of all.
    """

    events: tuple[LedgerTimes, ...]
    by_object: dict[str, LedgerTimes]
    total: LedgerTimes


def transfer_ms(size_bytes: float, bandwidth_gbps: float) -> float:
    """Return what bytes take at a bandwidth: bytes / (bandwidth · 10⁹) · 1000 (DESIGN 3.5).

    >>> transfer_ms(10**9, 1.0)
    1000.0
    """
    return size_bytes / (bandwidth_gbps * BYTES_PER_GB) * _MS_PER_S


def service_ms(event: DeclaredEvent) -> float:
    """Return how long all `frequency` operations of an event take, one after the other (DESIGN 3.5).

    >>> service_ms(DeclaredEvent(object="input", bytes=10**9, bandwidth_gbps=1.0, fixed_latency_ms=2.0))
    1002.0
    """
    return event.frequency * event.operation().service_ms


def hidden_ms(event: DeclaredEvent) -> float:
    """Return the part of `service_ms` under independent work: none where the next work waits (DESIGN 3.5)."""
    return event.frequency * event.operation().hidden_ms


def exposed_ms(event: DeclaredEvent) -> float:
    """Return the part of `service_ms` that the next work waits for (DESIGN 3.5).

    >>> exposed_ms(DeclaredEvent(object="state", bytes=10**8, bandwidth_gbps=10.0, frequency=4, overlap_window_ms=6.0,
    ...     blocking_dependency=False))
    16.0
    """
    return event.frequency * event.operation().exposed_ms


def measure_event(event: DeclaredEvent, lifecycle: Lifecycle = NOTHING_SAID) -> LedgerTimes:
    """Say what an event takes of one unit of work.

    *Definition:* per operation as in `Operation`; times `frequency`; times how many of what `per` names a unit has (for
    `run`: divided by the units of a run). A queue's stall is that of one operation, which finds the queue empty.

    Args:
        event: What is declared.
        lifecycle: What a unit has.

    Raises:
        InputError: The event counts in requests, tokens or runs, and how many a unit has is not known; or a time is
            beyond what a float holds.
    """
    operation = event.operation()
    up, down = _to_unit(event, lifecycle)
    n_operations = _scaled(int(event.frequency), up, down)
    mergeable, groups = merging(event, lifecycle)
    once_ms = groups * operation.latency_ms
    stall_ms = queue_time(event).stall_ms
    times = LedgerTimes(
        operations=n_operations,
        bytes=_scaled(int(event.bytes) * int(event.frequency), up, down),
        moved_bytes=_scaled(_moved_bytes(event) * int(event.frequency), up, down),
        service_ms=n_operations * operation.service_ms,
        hidden_ms=n_operations * operation.hidden_ms,
        exposed_ms=n_operations * operation.exposed_ms,
        serialization_ms=n_operations * operation.serialization_ms,
        serialization_hidden_ms=n_operations * operation.serialization_hidden_ms,
        serialization_exposed_ms=n_operations * operation.serialization_exposed_ms,
        back_pressure_ms=n_operations * stall_ms,
        parts_ms={
            "bytes": n_operations * operation.transfer_ms,
            "fixed_latency": once_ms,
            "frequency": once_ms * (mergeable - 1),
            "serialization": n_operations * operation.serialization_ms,
            "back_pressure": n_operations * stall_ms,
        },
    )
    if not times.service_ms + times.serialization_ms + times.back_pressure_ms + times.bytes <= _FINITE:
        msg = "its figures together make a time or an amount that no number holds; check their units"
        raise InputError(msg)
    return times


def merging(event: DeclaredEvent, lifecycle: Lifecycle) -> tuple[float, float]:
    """Return how many operations of an event could be one, and how many such groups a unit has.

    Operations of one unit could be one, whether they are counted by unit, request or token; those of a run too.

    Raises:
        InputError: As `measure_event`.
    """
    up, down = _to_unit(event, lifecycle)
    mergeable = max(float(event.frequency * up), 1.0)
    return mergeable, event.frequency * up / down / mergeable


def queue_time(event: DeclaredEvent) -> QueueTime:
    """Return what becomes of one operation's production; all 0 where no queue is declared."""
    queue = event.queue()
    if queue is None:
        return QueueTime(fill_ms=math.inf, stall_ms=0.0, peak_bytes=0.0, empty_after_ms=0.0)
    return measure_queue(queue)


def measure_ledger(events: Sequence[DeclaredEvent], lifecycle: Lifecycle = NOTHING_SAID) -> EventLedger:
    """Say what declared events take of one unit of work: each, by object, and together.

    Sums are exactly rounded ones (`math.fsum`), so that no order of the events and no grouping changes a total by more
    than its last digit.

    >>> events = [
    ...     DeclaredEvent(object="artifact", bytes=10**9, bandwidth_gbps=1.0),
    ...     DeclaredEvent(object="state", bytes=10**8, bandwidth_gbps=10.0, frequency=4, overlap_window_ms=6.0,
    ...         blocking_dependency=False),
    ... ]
    >>> ledger = measure_ledger(events)
    >>> ledger.total.bytes, ledger.by_object["state"].service_ms, ledger.total.exposed_ms
    (1400000000, 40.0, 1016.0)

    Raises:
        InputError: As `measure_event`; the message names the event.
    """
    measured = []
    for place, event in enumerate(events):
        try:
            measured.append(measure_event(event, lifecycle))
        except InputError as error:
            msg = f"event {place + 1}{f' ({event.name})' if event.name else ''}: {error}"
            raise InputError(msg) from None
    of_object: dict[str, list[LedgerTimes]] = {name: [] for name in MOVED_OBJECTS}
    for event, times in zip(events, measured, strict=True):
        of_object[event.object].append(times)
    return EventLedger(
        events=tuple(measured),
        by_object={name: add_up(times) for name, times in of_object.items()},
        total=add_up(measured),
    )


def add_up(times: Sequence[LedgerTimes]) -> LedgerTimes:
    """Return the sum of several; zero of none."""
    names = [field.name for field in fields(LedgerTimes) if field.name.endswith("_ms") and field.name != "parts_ms"]
    return LedgerTimes(
        operations=_sum_of_counts(each.operations for each in times),
        bytes=_sum_of_counts(each.bytes for each in times),
        moved_bytes=_sum_of_counts(each.moved_bytes for each in times),
        **{name: math.fsum(getattr(each, name) for each in times) for name in names},
        parts_ms={part: math.fsum(each.parts_ms[part] for each in times) for part in PARTS},
    )


def _moved_bytes(event: DeclaredEvent) -> int:
    return int(event.bytes if event.stored_bytes is None else event.stored_bytes)


def _to_unit(event: DeclaredEvent, lifecycle: Lifecycle) -> tuple[float, float]:
    """Return by what counts of an event are multiplied and divided to be those of a unit.

    Raises:
        InputError: It is not known.
    """
    if event.per == "unit":
        return 1, 1
    key = next(key for key, per in LIFECYCLE_FIELDS.items() if per == event.per)
    number = getattr(lifecycle, key)
    if number is None:
        many = "units a run has" if event.per == "run" else f"{event.per}s a unit has"
        msg = f"per: it counts by {event.per}, and how many {many} is not said; give {key} (--{key.replace('_', '-')})"
        raise InputError(msg)
    return (1, number) if event.per == "run" else (number, 1)


def _scaled(count: int, up: float, down: float) -> float:
    """Return count · up / down, as an integer where it is one."""
    product = count * up
    if isinstance(product, int) and isinstance(down, int) and product % down == 0:
        whole = product // down
        return whole if whole <= MOST else float(whole)
    return product / down


def _sum_of_counts(values: Iterable[float]) -> float:
    """Return an exactly rounded sum, an integer where all are."""
    numbers = list(values)
    if all(isinstance(number, int) for number in numbers):
        return sum(numbers) if sum(numbers) <= MOST else float(sum(numbers))
    return math.fsum(numbers)
