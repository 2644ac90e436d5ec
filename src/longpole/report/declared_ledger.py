"""The ledger of declared events as one value; the page and the JSON document pour it out (`longpole.ledger/1`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.costs.declared_events import queue_time
from longpole.costs.declared_savings import find_savings, largest_saving
from longpole.records.ledger import Unknown
from longpole.report.document import UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema
from longpole.units import NS_PER_MS, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.costs.declared_events import DeclaredEvent, EventLedger, LedgerTimes, Lifecycle
    from longpole.costs.declared_savings import Saving

SCHEMA: Final = "longpole.ledger/1"
NOTHING: Final = Unknown("it takes no time")
NEVER_FULL: Final = Unknown("the queue is never full")

PART_WORDS: Final = {
    "bytes": "bytes",
    "fixed_latency": "fixed latency",
    "frequency": "frequency",
    "serialization": "serialisation",
    "back_pressure": "back-pressure",
}
"""What a person calls the parts of an event's time."""


class LedgerFigures(msgspec.Struct, kw_only=True):
    """What an event, an object or everything takes of one unit of work.

    Attributes:
        operations: How many operations; less than one where something happens once in many units.
        bytes: As the program sees them.
        moved_bytes: As paths carry them.
        service_ms: Fixed latencies and transfers, without serialisation.
        hidden_ms: The part of service under independent work.
        exposed_ms: The rest of service.
        serialization_ms: Packing, unpacking and (de)compressing.
        serialization_hidden_ms: The part of serialisation under independent work.
        serialization_exposed_ms: The rest of serialisation.
        back_pressure_ms: What producers stall because their queue is full.
        wait_ms: `exposed_ms`, `serialization_exposed_ms` and `back_pressure_ms` together.
        parts_ms: What service, serialisation and back-pressure are made of: `bytes`, `fixed_latency` (of one
            operation), `frequency` (the latency of all further ones), `serialization`, `back_pressure`.
        dominant_part: The largest part; empty where it takes no time.
        dominant_share: Its share of all parts.
    """

    operations: float
    bytes: int | float
    moved_bytes: int | float
    service_ms: float
    hidden_ms: float
    exposed_ms: float
    serialization_ms: float
    serialization_hidden_ms: float
    serialization_exposed_ms: float
    back_pressure_ms: float
    wait_ms: float
    parts_ms: dict[str, float]
    dominant_part: str
    dominant_share: float | Unknown


class LedgerObject(LedgerFigures, kw_only=True):
    """What one of the four objects takes of a unit.

    Attributes:
        events: How many events are declared of it.
        wait_share: Its share of what a unit waits.
    """

    events: int
    wait_share: float | Unknown


class LedgerSaving(msgspec.Struct, frozen=True, kw_only=True):
    """What a change to an event would save of a unit.

    Attributes:
        change: `overlap`, `fewer_operations`, `bandwidth`, `serialization` or `drain`.
        step: What the step is.
        saves_ms: What the step saves.
        at_most_ms: What going on in that direction saves at most.
        needs_window_ms: For `overlap`: independent work beside each operation that hides all of it; else 0.
    """

    change: str
    step: str
    saves_ms: float | Unknown
    at_most_ms: float
    needs_window_ms: float


class LedgerQueue(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one operation's output in the queue behind its producer.

    Attributes:
        fill_ms: From the start of producing until the queue is full.
        stall_ms: How much longer producing takes because the queue is full.
        peak_bytes: The most that the queue holds.
        empty_after_ms: From the end of producing until the queue is empty; the next operation finds room only then.
    """

    fill_ms: float | Unknown
    stall_ms: float
    peak_bytes: float
    empty_after_ms: float


class LedgerEvent(LedgerFigures, kw_only=True):
    """What one declared event takes of a unit, and what would save most of it.

    Attributes:
        event: Its number in the file, from 1.
        name: As it is declared.
        object: What it moves.
        per: What its frequency counts in.
        frequency: As it is declared.
        blocking_dependency: Whether the next work waits for it.
        crossover_bytes: The size at which transfer takes as long as the fixed latency; smaller operations are ruled by
            latency.
        queue: What becomes of its output, where it has a queue.
        savings: By change.
        largest_saving: The change whose step saves most; empty where none saves anything.
        path: Name of the measured path that its bandwidth and latency come from; empty where they are declared.
    """

    event: int
    name: str
    object: str
    per: str
    frequency: int
    blocking_dependency: bool
    crossover_bytes: float
    queue: LedgerQueue | None
    savings: list[LedgerSaving]
    largest_saving: str
    path: str = ""


class DeclaredLedger(msgspec.Struct, kw_only=True):
    """The document of `longpole ledger --json`.

    Attributes:
        schema: `longpole.ledger/1`.
        longpole: Version of the package.
        source: The file of the events; empty where they came from a program.
        says: The result in a sentence.
        requests_per_unit, tokens_per_unit, units_per_run: What brings events to one unit; null where not given.
        total_bytes, total_service_ms, total_exposed_ms: Of all events.
        total: All figures of all events.
        by_object: The four objects, those without events included.
        events: In their order.
        notes: What a reader should know of how events were taken.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    source: str
    says: str
    requests_per_unit: float | None
    tokens_per_unit: float | None
    units_per_run: float | None
    total_bytes: int | float
    total_service_ms: float
    total_exposed_ms: float
    total: LedgerFigures
    by_object: dict[str, LedgerObject]
    events: list[LedgerEvent]
    notes: list[str] = []
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def make_declared_ledger(  # noqa: PLR0913 - a document is put together from many sides
    events: Sequence[DeclaredEvent],
    ledger: EventLedger,
    lifecycle: Lifecycle,
    *,
    version: str,
    source: str = "",
    paths: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> DeclaredLedger:
    """Put a measured ledger into a document.

    Args:
        events: What was declared.
        ledger: What `measure_ledger` made of them.
        lifecycle: What a unit has.
        version: Version of the package.
        source: The file of the events.
        paths: Of each event the measured path that it takes its figures from, empty for none.
        notes: What else a reader should know.
    """
    named = list(paths) or [""] * len(events)
    by_object = {
        name: LedgerObject(
            **_figures(times),
            events=sum(event.object == name for event in events),
            wait_share=_share(times.wait_ms, ledger.total.wait_ms),
        )
        for name, times in ledger.by_object.items()
    }
    return DeclaredLedger(
        schema=SCHEMA,
        longpole=version,
        source=source,
        says=_says(ledger, by_object),
        requests_per_unit=lifecycle.requests_per_unit,
        tokens_per_unit=lifecycle.tokens_per_unit,
        units_per_run=lifecycle.units_per_run,
        total_bytes=ledger.total.bytes,
        total_service_ms=ledger.total.service_ms,
        total_exposed_ms=ledger.total.exposed_ms,
        total=LedgerFigures(**_figures(ledger.total)),
        by_object=by_object,
        events=[
            _event(place + 1, event, times, lifecycle, path)
            for place, (event, times, path) in enumerate(zip(events, ledger.events, named, strict=True))
        ],
        notes=[*_notes(events), *notes],
    )


def ledger_schema() -> bytes:
    """Return the JSON Schema of `longpole ledger --json`."""
    return document_schema(DeclaredLedger, SCHEMA)


def _figures(times: LedgerTimes) -> dict[str, Any]:
    named = {name: getattr(times, name) for name in LedgerFigures.__struct_fields__ if hasattr(times, name)}
    whole_ms = math.fsum(times.parts_ms.values())
    return named | {"dominant_share": _share(times.parts_ms.get(times.dominant_part, 0.0), whole_ms)}


def _share(part: float, whole: float) -> float | Unknown:
    return part / whole if whole > 0 else NOTHING


def _event(number: int, event: DeclaredEvent, times: LedgerTimes, lifecycle: Lifecycle, path: str) -> LedgerEvent:
    savings = find_savings(event, lifecycle)
    largest = largest_saving(savings)
    return LedgerEvent(
        **_figures(times),
        event=number,
        name=event.name,
        object=event.object,
        per=event.per,
        frequency=int(event.frequency),
        blocking_dependency=event.blocking_dependency,
        crossover_bytes=event.crossover_bytes(),
        queue=_queue(event),
        savings=[_saving(saving) for saving in savings],
        largest_saving=largest.change if largest is not None else "",
        path=path,
    )


def _saving(saving: Saving) -> LedgerSaving:
    saves = saving.saves_ms
    return LedgerSaving(
        change=saving.change,
        step=saving.step,
        saves_ms=saves if isinstance(saves, float) else Unknown(saves.reason, list(saves.missing)),
        at_most_ms=saving.at_most_ms,
        needs_window_ms=saving.needs_window_ms,
    )


def _queue(event: DeclaredEvent) -> LedgerQueue | None:
    if event.queue() is None:
        return None
    time = queue_time(event)
    return LedgerQueue(
        fill_ms=time.fill_ms if math.isfinite(time.fill_ms) else NEVER_FULL,
        stall_ms=time.stall_ms,
        peak_bytes=time.peak_bytes,
        empty_after_ms=time.empty_after_ms,
    )


def _says(ledger: EventLedger, by_object: dict[str, LedgerObject]) -> str:
    """Say how much of the service is exposed, and which object a unit waits for most."""
    total = ledger.total
    if total.wait_ms <= 0:
        hidden = f"all {_ms(total.service_ms + total.serialization_ms)} are hidden" if total.service_ms > 0 else ""
        return f"a unit waits for none of it{f': {hidden}' if hidden else ''}"
    name, most = max(by_object.items(), key=lambda item: item[1].wait_ms)
    waits = f"{_ms(total.exposed_ms)} of {_ms(total.service_ms)} of service"
    beside = [
        f"{_ms(figure)} {words}"
        for figure, words in (
            (total.serialization_exposed_ms, "of serialisation"),
            (total.back_pressure_ms, "of stalls behind full queues"),
        )
        if figure > 0
    ]
    if beside:
        waits = f"{_ms(total.wait_ms)}: {', '.join([waits, *beside])}"
    share = f"{most.wait_share:.0%}" if isinstance(most.wait_share, float) else ""
    part = PART_WORDS[most.dominant_part]
    return f"a unit waits for {waits}; most of it for {name} ({_ms(most.wait_ms)}, {share}), made of {part} above all"


def _ms(dur_ms: float) -> str:
    return format_ns(dur_ms * NS_PER_MS)


def _notes(events: Sequence[DeclaredEvent]) -> list[str]:
    """Say what was taken for granted, and what looks as if it were counted twice."""
    kinds: tuple[tuple[Callable[[DeclaredEvent], bool], str], ...] = (
        (lambda e: e.fixed_latency_ms is None, "no fixed_latency_ms: it counts as 0"),
        (
            lambda e: e.blocking_dependency and bool(e.overlap_window_ms),
            "a window that hides nothing, because the next work waits (blocking_dependency)",
        ),
        (
            lambda e: not e.blocking_dependency and e.overlap_window_ms is None,
            "nothing waits for it, and no overlap_window_ms is given: that counts as 0, so all of it is exposed",
        ),
        (
            _is_counted_twice,
            "the next work waits for a transfer no faster than the queue's drain, and for the full queue as well; if"
            " both are one write, it counts twice",
        ),
    )
    numbered = [(applies, says, [n for n, event in enumerate(events, 1) if applies(event)]) for applies, says in kinds]
    return [f"{_named(numbers)}: {says}" for _, says, numbers in numbered if numbers]


def _is_counted_twice(event: DeclaredEvent) -> bool:
    return event.blocking_dependency and event.drain_gbps is not None and event.bandwidth_gbps <= event.drain_gbps


def _named(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"event {numbers[0]}"
    return f"events {', '.join(map(str, numbers))}" if len(numbers) <= 6 else format_count(len(numbers), "event")
