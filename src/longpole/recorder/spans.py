"""Units and stages: what a program opens around its work. Everything in here runs inside the user's loop.

A span holds no place in a stack, only its own start: it is written, whole, when it ends. So threads do not share
anything, a generator or a task may suspend inside one, and what nests is read from the times.

`stage` and `unit` are classes, made in C, and not functions that make one: that is a third of what a span costs.
"""

from __future__ import annotations

from operator import index
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, get_args

import msgspec

from longpole.errors import UsageError
from longpole.recorder.annotate import open_ranges
from longpole.recorder.decorate import decorate
from longpole.recorder.device import time_body
from longpole.recorder.session import STATE
from longpole.records.span_file import STAGE_NAMES, QueueLine, SpanLine, SpanObject, UnitLine

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Function = TypeVar("Function", bound="Callable[..., Any]")
Number: TypeAlias = int | None

OBJECTS: Final = frozenset(get_args(SpanObject))
_STAGE_OF: Final = {name: name for name in STAGE_NAMES}


class _Opened(msgspec.Struct, gc=False, eq=False, kw_only=True):
    """What an open span keeps: its recording (None while recording is off), and ranges elsewhere of the same name."""

    recorder: Any = None
    start_ns: int = 0
    ranges: tuple[Any, ...] = ()

    def _close_ranges(self, error: tuple[Any, Any, Any]) -> None:
        # Cleared, for an object that the garbage collector does not see may not be part of a cycle.
        ranges, self.ranges = self.ranges, ()
        for other in reversed(ranges):
            other.__exit__(*error)


class _Named(_Opened, gc=False, eq=False):
    name: str


class Stage(_Named, gc=False, eq=False, kw_only=True):
    """A stage of a unit, or an operation inside one: `with record.stage("forward"):`, or as a decorator.

    As a decorator of a generator it times each step of the generator and not what its consumer does in between; of a
    coroutine, from its start to its end. One object is open once at a time; afterwards it may be opened again.

    Attributes:
        name: What reports and profiler traces call it.
        object: What it moves or does: `input`, `artifact`, `state`, `output`, `compute`, `collective`, `host`.
        bytes: How much it moves; `as span` and `span.bytes = …` where that is known later.
        items: What it processes; likewise.
        stage: The stage of the unit; by default the name, where it is one of the stages (`input`, `forward`, …).
        waits: It only waits for what other threads or processes do for that object.
        device: Time what the body launches on the current CUDA stream too, by a pair of events.

    Raises:
        UsageError: While recording, when it is opened: there is no such object, or a number is negative or none; for a
            number that is set inside, when it ends.
    """

    object: str = ""
    bytes: Number = None
    items: Number = None
    stage: str | None = None
    waits: bool = False
    device: bool = False

    def __enter__(self) -> Stage:
        recorder = STATE.recorder
        if recorder is not None:
            if self.object not in OBJECTS:
                raise _no_such_object(self.object)
            if self.bytes is not None or self.items is not None:
                self._check_numbers()
            self.recorder = recorder
            if self.device or recorder.options.annotate:
                self._open_ranges()
            self.start_ns = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder = self.recorder
        if recorder is None:
            return
        end_ns = perf_counter_ns()
        if self.bytes is not None or self.items is not None:
            self._check_numbers(raises=kind is None)
        stage = self.stage
        line = SpanLine(
            self.name,
            self.start_ns,
            end_ns - self.start_ns,
            get_ident(),
            self.object,  # type: ignore[arg-type]
            self.bytes,
            _STAGE_OF.get(self.name, "") if stage is None else stage,
            kind is not None and kind is not GeneratorExit,
            self.waits,
            self.items,
        )
        lines = recorder.lines
        if len(lines) < recorder.room:
            lines.append(line)
        else:
            recorder.crowded(line)
        self.recorder = None
        if self.ranges:
            self._close_ranges((kind, error, trace))

    def __call__(self, function: Function) -> Function:
        """Decorate a function: recorded by each call that finds recording on."""
        return decorate(function, self._again)

    def _again(self) -> Stage:
        return msgspec.structs.replace(self)

    def _check_numbers(self, *, raises: bool = True) -> None:
        self.bytes = _checked(self.bytes, "bytes", raises=raises)
        self.items = _checked(self.items, "items", raises=raises)

    def _open_ranges(self) -> None:
        ranges = open_ranges(self.name) if self.recorder.options.annotate else ()
        timer = time_body(self.recorder, self) if self.device else None
        self.ranges = ranges if timer is None else (*ranges, timer)
        for other in self.ranges:
            other.__enter__()


class _Numbered(_Opened, gc=False, eq=False):
    step: int | str


class Unit(_Numbered, gc=False, eq=False, kw_only=True):
    """A unit of work: `with record.unit(step):` around what the job repeats.

    Attributes:
        step: Its number, or a name of its own (a request's id).
        items: What it processes (tokens, samples); `as unit` and `unit.items = …` where that is known later.
        name: What a numbered unit is: `step`, `request`, `iteration`.
        dropped: Do as if it had not been opened.

    Raises:
        UsageError: While recording: `items` is negative or no whole number; when it is opened, or when it ends.
    """

    items: Number = None
    name: str = "step"
    dropped: bool = False

    def __enter__(self) -> Unit:
        recorder = STATE.recorder
        if recorder is not None:
            self.items = _checked(self.items, "items")
            self.recorder = recorder
            if recorder.options.annotate:
                self.ranges = open_ranges(self._label())
                for other in self.ranges:
                    other.__enter__()
            self.start_ns = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder = self.recorder
        if recorder is None:
            return
        end_ns = perf_counter_ns()
        if not self.dropped:
            items = _checked(self.items, "items", raises=kind is None)
            failed = kind is not None and kind is not GeneratorExit
            recorder.keep(UnitLine(self._label(), self.start_ns, end_ns - self.start_ns, get_ident(), items, failed))
        self.recorder = None
        if self.ranges:
            self._close_ranges((kind, error, trace))

    def _label(self) -> str:
        step = self.step
        return step if isinstance(step, str) else f"{self.name} {step}"


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
    recorder.keep(
        QueueLine(
            name,
            perf_counter_ns(),
            check_number(depth, "depth"),
            _checked(capacity, "capacity"),
            _checked(bytes, "bytes"),
            object,  # type: ignore[arg-type]
        )
    )


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


def _checked(value: Any, what: str, *, raises: bool = True) -> Number:
    """Return a count that may be left out; where an error is on its way already, a wrong one is as if left out."""
    if value is None or (value.__class__ is int and 0 <= value <= 1 << 62):
        return value
    try:
        return check_number(value, what)
    except UsageError:
        if raises:
            raise
        return None


def _no_such_object(found: Any) -> UsageError:
    known = ", ".join(sorted(OBJECTS - {""}))
    return UsageError(f"object: expected one of {known}, found {found!r}")
