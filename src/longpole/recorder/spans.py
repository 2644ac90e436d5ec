"""Units and stages: what a program opens around its work. Everything in here runs inside the user's loop.

A span holds no place in a stack, only its own start: it is written, whole, when it ends. So threads do not share
anything, a generator or a task may suspend inside one, and what nests is read from the times.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from operator import index
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, get_args

import msgspec

from longpole.errors import UsageError
from longpole.recorder.annotate import open_ranges
from longpole.recorder.decorate import decorate
from longpole.recorder.device import time_body
from longpole.recorder.session import STATE, Recorder
from longpole.records.span_file import STAGE_NAMES, QueueLine, SpanLine, SpanObject, UnitLine

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Function = TypeVar("Function", bound="Callable[..., Any]")
Number: TypeAlias = int | None

OBJECTS: Final = frozenset(get_args(SpanObject))
_STAGE_OF: Final = {name: name for name in STAGE_NAMES}


class _Span(msgspec.Struct, gc=False, eq=False):
    """What a unit and a stage share: sizes that may become known while it is open."""

    name: str
    what: str
    size: Number
    count: Number
    place: str
    waits: bool

    @property
    def bytes(self) -> Number:
        """How many bytes it moves; may be set until the span ends."""
        return self.size

    @bytes.setter
    def bytes(self, value: Number) -> None:
        self.size = None if value is None else check_number(value, "bytes")

    @property
    def items(self) -> Number:
        """What it processes; may be set until the span ends."""
        return self.count

    @items.setter
    def items(self, value: Number) -> None:
        self.count = None if value is None else check_number(value, "items")


class Dormant(_Span, gc=False, eq=False):
    """What `stage` and `unit` give while recording is off: it does nothing, and as a decorator it waits to be on."""

    device: bool = False

    def __enter__(self) -> Dormant:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def drop(self) -> None:
        """Do as if it had not been opened."""

    def __call__(self, function: Function) -> Function:
        """Decorate a function: recorded from the next call on that finds recording on."""
        return decorate(function, self._again)

    def _again(self) -> Stage | Dormant:
        return stage(
            self.name,
            object=self.what,
            bytes=self.size,
            items=self.count,
            stage=self.place,
            waits=self.waits,
            device=self.device,
        )


class Stage(_Span, gc=False, eq=False):
    """A span of the running recording. One object is open once at a time; afterwards it may be opened again."""

    recorder: Recorder
    start_ns: int = 0

    def __enter__(self) -> Stage:
        self.start_ns = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_ns = perf_counter_ns()
        recorder = self.recorder
        line = SpanLine(
            self.name,
            self.start_ns,
            end_ns - self.start_ns,
            get_ident(),
            self.what,  # type: ignore[arg-type]
            self.size,
            self.place,
            kind is not None and kind is not GeneratorExit,
            self.waits,
            self.count,
        )
        lines = recorder.lines
        if len(lines) < recorder.room:
            lines.append(line)
        else:
            recorder.crowded(line)

    def __call__(self, function: Function) -> Function:
        """Decorate a function."""
        dormant = Dormant(self.name, self.what, self.size, self.count, self.place, self.waits, self.is_on_device())
        return dormant(function)

    def is_on_device(self) -> bool:
        """Tell whether it times what it launches on a device too."""
        return False


class AnnotatedStage(Stage, gc=True, eq=False):
    """A stage that is shown elsewhere too: as a profiler's range, or timed by events on a device."""

    on_device: bool = False
    opened: tuple[AbstractContextManager[Any], ...] = ()

    def __enter__(self) -> AnnotatedStage:
        self.opened = open_ranges(self.name) if self.recorder.options.annotate else ()
        if self.on_device and (timer := time_body(self.recorder, self)) is not None:
            self.opened = (*self.opened, timer)
        for other in self.opened:
            other.__enter__()
        Stage.__enter__(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        Stage.__exit__(self, kind, error, trace)
        for other in reversed(self.opened):
            other.__exit__(kind, error, trace)

    def is_on_device(self) -> bool:
        """Tell whether it times what it launches on a device too."""
        return self.on_device


class Unit(_Span, gc=True, eq=False):
    """A unit of work of the running recording."""

    recorder: Recorder
    start_ns: int = 0
    dropped: bool = False
    opened: tuple[AbstractContextManager[Any], ...] = ()

    def drop(self) -> None:
        """Do as if it had not been opened: it is not written."""
        self.dropped = True

    def __enter__(self) -> Unit:
        if self.recorder.options.annotate:
            self.opened = open_ranges(self.name)
            for other in self.opened:
                other.__enter__()
        self.start_ns = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_ns = perf_counter_ns()
        failed = kind is not None and kind is not GeneratorExit
        if not self.dropped:
            dur_ns = end_ns - self.start_ns
            self.recorder.keep(UnitLine(self.name, self.start_ns, dur_ns, get_ident(), self.count, failed))
        for other in reversed(self.opened):
            other.__exit__(kind, error, trace)


def stage(  # noqa: PLR0913 - what a span can say of itself, all optional and by name
    name: str,
    *,
    object: str = "",
    bytes: Number = None,
    items: Number = None,
    stage: str | None = None,
    waits: bool = False,
    device: bool = False,
) -> Stage | Dormant:
    """Open a stage of a unit, or an operation inside one: `with record.stage("forward"):`, or as a decorator.

    As a decorator of a generator it times each step of the generator and not what its consumer does in between; of a
    coroutine, from its start to its end.

    Args:
        name: What reports and profiler traces call it.
        object: What it moves or does: `input`, `artifact`, `state`, `output`, `compute`, `collective`, `host`.
        bytes: How much it moves; `as span` and `span.bytes = …` where that is known later.
        items: What it processes.
        stage: The stage of the unit; by default the name, where it is one of the stages (`input`, `forward`, …).
        waits: It only waits for what other threads or processes do for that object.
        device: Time what the body launches on the current CUDA stream too, by a pair of events.

    Raises:
        UsageError: While recording: there is no such object, or a number is negative or none.
    """
    recorder = STATE.recorder
    if recorder is None:
        return Dormant(name, object, bytes, items, stage, waits, device)  # type: ignore[arg-type]
    if object not in OBJECTS:
        raise _no_such_object(object)
    if bytes is not None and (bytes.__class__ is not int or bytes < 0):
        bytes = check_number(bytes, "bytes")
    if items is not None and (items.__class__ is not int or items < 0):
        items = check_number(items, "items")
    if stage is None:
        stage = _STAGE_OF.get(name, "")
    if device or recorder.options.annotate:
        return AnnotatedStage(name, object, bytes, items, stage, waits, recorder, 0, device)
    return Stage(name, object, bytes, items, stage, waits, recorder)


def unit(step: int | str, *, items: Number = None, name: str = "step") -> Unit | Dormant:
    """Open a unit of work: `with record.unit(step):` around what the job repeats.

    Args:
        step: Its number, or a name of its own (a request's id).
        items: What it processes (tokens, samples); `as unit` and `unit.items = …` where that is known later.
        name: What a numbered unit is: `step`, `request`, `iteration`.

    Raises:
        UsageError: While recording: `items` is negative or no whole number.
    """
    recorder = STATE.recorder
    if recorder is None:
        return Dormant(name, "", None, items, "", waits=False)
    if items is not None and (items.__class__ is not int or items < 0):
        items = check_number(items, "items")
    return Unit(step if isinstance(step, str) else f"{name} {step}", "", None, items, "", False, recorder)  # noqa: FBT003


def queue(name: str, depth: int, capacity: Number = None, *, bytes: Number = None, object: str = "") -> None:
    """Note how full a queue is.

    Args:
        name: What reports call it.
        depth: Entries waiting.
        capacity: How many it holds; None without a bound.
        bytes: Bytes waiting.
        object: What it holds.

    Raises:
        UsageError: While recording: there is no such object, or a number is negative or none.
    """
    recorder = STATE.recorder
    if recorder is None:
        return
    if object not in OBJECTS:
        raise _no_such_object(object)
    entries = check_number(depth, "depth")
    bound = None if capacity is None else check_number(capacity, "capacity")
    size = None if bytes is None else check_number(bytes, "bytes")
    recorder.keep(QueueLine(name, perf_counter_ns(), entries, bound, size, object))  # type: ignore[arg-type]


def check_number(value: Any, what: str) -> int:
    """Return a count as an int; numbers of other libraries are taken too.

    Raises:
        UsageError: It is negative, too large or no whole number.
    """
    try:
        number = index(value)
    except TypeError:
        number = -1
    if not 0 <= number <= 1 << 62 or isinstance(value, bool):
        msg = f"{what}: expected a whole number, 0 or more, found {value!r}"
        raise UsageError(msg)
    return number


def _no_such_object(found: Any) -> UsageError:
    known = ", ".join(sorted(OBJECTS - {""}))
    return UsageError(f"object: expected one of {known}, found {found!r}")
