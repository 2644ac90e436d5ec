"""Make units of what a process recorded of itself: their periods, their stages and what each object took.

Stages are the outermost spans of the thread that carries the units, by stage, else by name; what lies between them is
the stage `residual`, so that stages add up to the unit (bench-io A8). Objects follow DESIGN 3.3 without a device: at
each instant the innermost span of that thread, but a collective of any thread before anything that is not compute; what
is under no span of an object is `host`.

    unit      ├──────────────────────────┤
    spans       ├ input ┤ ├── forward ──┤
                             ├ save ┤
    stages    r├ input ┤r├── forward ──┤r      r = residual
    objects   h├ input ┤h├c┤├ output├┤c┤h      h = host, c = compute
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from longpole.analyses.sums import round_shares
from longpole.records.ledger import Unknown
from longpole.records.run_record import NOT_RECORDED, RecordStage, RecordTime, RecordUnit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.records.span_file import SpanLine, UnitLine
    from longpole.records.span_file_read import SpanFile

RESIDUAL: Final = "residual"
WARM_UP: Final = "warm-up"
FAILED: Final = "failed"
_FIRST: Final = Unknown("when the unit before it was complete is not recorded")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a thread's time, `[start, end)`, with what it is charged to."""

    start_ns: int
    end_ns: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that belongs to one unit.

    Attributes:
        start_ns, end_ns: On the process's clock.
        period_ns: Of the unit.
        name: As recorded.
        items: What it processed.
        left_out: Why no statistic counts it.
        conditions, flags: What was read around it.
        calls: How many calls of a step it holds; the unit is one of them, so its times are divided by that.
    """

    start_ns: int
    end_ns: int
    period_ns: int | Unknown
    name: str = ""
    items: int | Unknown = NOT_RECORDED
    left_out: str = ""
    conditions: Mapping[str, float] = field(default_factory=dict)
    flags: Sequence[str] = ()
    calls: int = 1


def units_of_spans(recorded: SpanFile, *, warmup_units: int = 0, process: int = 0) -> list[RecordUnit]:
    """Return the units that a process recorded, in the order of their ends.

    The period of a unit runs from the end of the unit before it to its own, and its stages tile that time; those of a
    first unit, and of units that overlap others (requests), tile the unit's own time.

    Args:
        recorded: The process's span file.
        warmup_units: So many of the first units are left out.
        process: Which process of a benchmark it was.
    """
    units = sorted(recorded.units, key=lambda unit: (unit.s + unit.d, unit.s))
    apart = all(one.s + one.d <= other.s for one, other in pairwise(units))
    found: list[RecordUnit] = []
    for thread in dict.fromkeys(unit.t for unit in units):
        views = SpanViews.of(recorded, thread)
        for place, unit in enumerate(units):
            if unit.t != thread:
                continue
            before = units[place - 1] if place else None
            window = Window(
                start_ns=before.s + before.d if before is not None and apart else unit.s,
                end_ns=unit.s + unit.d,
                period_ns=_period(unit, before, alone=len(units) == 1),
                name=unit.n,
                items=unit.items or NOT_RECORDED,
                left_out=_why_left_out(unit, place, warmup_units),
            )
            found.append(views.unit(window, process=process))
    return found


def _period(unit: UnitLine, before: UnitLine | None, *, alone: bool) -> int | Unknown:
    if before is None:
        return unit.d if alone else _FIRST
    return unit.s + unit.d - (before.s + before.d)


def _why_left_out(unit: UnitLine, place: int, warmup_units: int) -> str:
    if unit.failed:
        return FAILED
    return WARM_UP if place < warmup_units else ""


@dataclass(frozen=True, slots=True)
class SpanViews:
    """A thread's time by stage and by object, as disjoint pieces in order."""

    stages: Sequence[Piece] = ()
    objects: Sequence[Piece] = ()

    @classmethod
    def of(cls, recorded: SpanFile, thread: int) -> SpanViews:
        """Sort the spans of a thread, and the collectives of all threads, into pieces."""
        spans = [span for span in recorded.spans if span.t == thread and span.d]
        stages = _cut(spans, lambda span: span.stage or span.n, outermost=True)
        objects = _cut([span for span in spans if span.o], lambda span: span.o, outermost=False)
        return cls(stages, _with_collectives(objects, _collective_times(recorded)))

    def unit(self, window: Window, *, process: int) -> RecordUnit:
        """Return the unit of a window: its stages and objects add up to its length where there are any."""
        wall_ns = per_call([window.end_ns - window.start_ns], window.calls)[0]
        objects = _sums(self.objects, window, "host")
        stages = _sums(self.stages, window, RESIDUAL)
        return RecordUnit(
            period_ns=window.period_ns,
            name=window.name,
            wall_ns=wall_ns,
            items=window.items,
            left_out=window.left_out,
            objects={name: RecordTime(time_ns) for name, time_ns in objects.items()},
            stages={name: RecordStage(time_ns) for name, time_ns in stages.items()},
            process=process,
            conditions=dict(window.conditions),
            flags=list(window.flags),
        )


def per_call(parts_ns: Sequence[int], calls: int) -> list[int]:
    """Divide parts so that they add up to their sum divided likewise (largest remainder)."""
    return round_shares(list(parts_ns), calls)


def _cut(spans: Sequence[SpanLine], label: Callable[[SpanLine], str], *, outermost: bool) -> list[Piece]:
    """Return who holds each piece of time: of the spans that are open, the one that began first, or last.

    Spans of one thread nest, as a rule; those that cross are cut alike.
    """
    order = 1 if outermost else -1
    waiting = sorted(spans, key=lambda span: span.s)
    bounds = sorted({moment for span in spans for moment in (span.s, span.s + span.d)})
    running: list[tuple[int, int, int, int]] = []  # (start in order, length in order, end, place)
    pieces: list[Piece] = []
    taken = 0
    for start_ns, end_ns in pairwise(bounds):
        while taken < len(waiting) and waiting[taken].s <= start_ns:
            span = waiting[taken]
            heapq.heappush(running, (order * span.s, -order * span.d, span.s + span.d, taken))
            taken += 1
        while running and running[0][2] <= start_ns:
            heapq.heappop(running)
        if running:
            pieces.append(Piece(start_ns, end_ns, label(waiting[running[0][3]])))
    return pieces


def _collective_times(recorded: SpanFile) -> list[tuple[int, int]]:
    """Return when collectives ran on any thread, as disjoint intervals in order; one that never came back is none."""
    found = [(span.s, span.s + span.d) for span in recorded.spans if span.o == "collective"]
    entered: dict[tuple[str, str, int | None, int], int] = {}
    for mark in recorded.collectives:
        operation = mark.group, mark.kind, mark.peer, mark.seq
        if mark.what == "enter":
            entered[operation] = mark.s
        elif operation in entered:
            found.append((entered.pop(operation), mark.s))
    joined: list[tuple[int, int]] = []
    for start_ns, end_ns in sorted(found):
        if joined and start_ns <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end_ns))
        else:
            joined.append((start_ns, end_ns))
    return joined


def _with_collectives(pieces: Sequence[Piece], collectives: Sequence[tuple[int, int]]) -> list[Piece]:
    """Charge what is not compute to a collective where one runs (DESIGN 3.3: rung 2 before rungs 3 and 4)."""
    if not collectives:
        return list(pieces)
    compute = [piece for piece in pieces if piece.label == "compute"]
    found = list(compute)
    free = _less(collectives, [(piece.start_ns, piece.end_ns) for piece in compute])
    found += [Piece(start_ns, end_ns, "collective") for start_ns, end_ns in free]
    for piece in pieces:
        if piece.label not in ("compute", "collective"):
            rest = _less([(piece.start_ns, piece.end_ns)], collectives)
            found += [Piece(start_ns, end_ns, piece.label) for start_ns, end_ns in rest]
    return sorted(found, key=lambda piece: piece.start_ns)


def _less(spans: Sequence[tuple[int, int]], holes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return what is left of disjoint intervals without others; both in order."""
    found: list[tuple[int, int]] = []
    ends = [end_ns for _, end_ns in holes]
    for start_ns, end_ns in spans:
        at_ns = start_ns
        for hole_start, hole_end in holes[bisect_right(ends, start_ns) :]:
            if hole_start >= end_ns:
                break
            if hole_start > at_ns:
                found.append((at_ns, hole_start))
            at_ns = max(at_ns, hole_end)
        if at_ns < end_ns:
            found.append((at_ns, end_ns))
    return found


def _sums(pieces: Sequence[Piece], window: Window, rest: str) -> dict[str, int]:
    """Return label -> time in a window, and the rest of it under a name of its own; nothing without a piece."""
    if not pieces:
        return {}
    first = bisect_right(pieces, window.start_ns, key=lambda piece: piece.end_ns)
    found: dict[str, int] = {}
    left_ns = window.end_ns - window.start_ns
    for piece in pieces[first:]:
        if piece.start_ns >= window.end_ns:
            break
        inside_ns = min(piece.end_ns, window.end_ns) - max(piece.start_ns, window.start_ns)
        found[piece.label] = found.get(piece.label, 0) + inside_ns
        left_ns -= inside_ns
    found[rest] = found.get(rest, 0) + left_ns
    return dict(zip(found, per_call(list(found.values()), window.calls), strict=True))
