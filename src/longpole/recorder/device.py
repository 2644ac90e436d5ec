"""What a program launches on a CUDA device, timed by pairs of events: recorded in the loop, asked for by the flush.

    stream      ├ e0 ├── kernels ──┤ e1 ┤
    own stream              ├ anchor ┤             recorded and waited for by the flush thread, alone on its stream
    start = when the anchor was seen on the host + (e0 − anchor),  duration = e1 − e0

The loop never waits: it records two events. The flush thread asks whether they are done, and measures them then. A
device's time runs as float32 milliseconds from one event to another, 0.06 µs apart at 1 s, so each flush sets an
anchor of its own. How long the anchor took to come back bounds how far the two clocks are apart; it is a span's own
uncertainty, and one of a millisecond or more is tried again.
"""

from __future__ import annotations

import sys
from collections import deque
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from longpole.records.span_file import DeviceLine
from longpole.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from longpole.recorder.session import Recorder

# More than a flush interval's worth of launches by far; a device that hangs may not fill the host's memory with events.
_PENDING_LIMIT: Final = 1 << 14
_ANCHOR_TRIES: Final = 4
_GOOD_ANCHOR_NS: Final = NS_PER_MS // 20


class Pending(NamedTuple):
    """Work on a device that may not be done yet.

    Attributes:
        device: Its index.
        start: Event before it.
        end: Event after it.
        done: Called with start and end, ns on the process's clock, once it is.
    """

    device: int
    start: Any
    end: Any
    done: Callable[[int, int], None]


class Anchor(NamedTuple):
    """An event that both clocks saw."""

    event: Any
    clock_ns: int
    uncertainty_ns: int


class DeviceClock:
    """Holds what is on the devices, and turns it into lines once it is done."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._pending: deque[Pending] = deque()
        self._streams: dict[int, Any] = {}

    def add(self, pending: Pending) -> bool:
        """Watch for the end of some work; False where too much is waited for already."""
        if len(self._pending) >= _PENDING_LIMIT:
            return False
        self._pending.append(pending)
        return True

    def poll(self) -> None:
        """Report everything that is done by now; what is not stays."""
        anchors: dict[int, Anchor] = {}
        for _ in range(len(self._pending)):
            pending = self._pending.popleft()
            try:
                if not pending.end.query():
                    self._pending.append(pending)
                    continue
                if pending.device not in anchors:
                    anchors[pending.device] = self._set_anchor(pending.device)
                pending.done(*_place(pending, anchors[pending.device]))
            except RuntimeError:  # the device failed, or is being taken down: what it did is not known
                continue

    def _set_anchor(self, device: int) -> Anchor:
        cuda = self._torch.cuda
        tries = []
        if device not in self._streams:
            self._streams[device] = cuda.Stream(device)
        for _ in range(_ANCHOR_TRIES):
            event = cuda.Event(enable_timing=True)
            before_ns = perf_counter_ns()
            event.record(self._streams[device])
            event.synchronize()  # of a stream of its own: nothing of the program's is waited for
            width_ns = perf_counter_ns() - before_ns
            tries.append(Anchor(event, before_ns + width_ns // 2, width_ns // 2))
            if width_ns < _GOOD_ANCHOR_NS:
                break
        return min(tries, key=lambda anchor: anchor.uncertainty_ns)


class BodyTimer:
    """Records an event before and after the body of a stage."""

    __slots__ = ("_clock", "_device", "_end", "_recorder", "_span", "_start", "_stream", "_torch")

    def __init__(self, recorder: Recorder, clock: DeviceClock, torch: Any, span: Any) -> None:
        self._recorder = recorder
        self._clock = clock
        self._torch = torch
        self._span = span

    def __enter__(self) -> BodyTimer:
        cuda = self._torch.cuda
        self._device = cuda.current_device()
        self._stream = cuda.current_stream()
        self._start = cuda.Event(enable_timing=True)
        self._end = cuda.Event(enable_timing=True)
        self._start.record(self._stream)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.record(self._stream)
        self._clock.add(Pending(self._device, self._start, self._end, self._write))

    def _write(self, start_ns: int, end_ns: int) -> None:
        span = self._span
        self._recorder.keep(
            DeviceLine(
                span.name,
                start_ns,
                end_ns - start_ns,
                self._device,
                getattr(self._stream, "stream_id", 0),
                span.object,
                span.bytes,
            )
        )


def clock_of(recorder: Recorder) -> DeviceClock | None:
    """Return what watches the devices for a recording; None while the program has not initialised CUDA.

    Nothing is recorded during the capture of a graph: an event would become part of it.
    """
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized() or torch.cuda.is_current_stream_capturing():
            return None
    except (AttributeError, RuntimeError):
        return None
    if recorder.device_clock is None:
        recorder.device_clock = DeviceClock(torch)
        recorder.polls.append(recorder.device_clock.poll)
    return recorder.device_clock


def time_body(recorder: Recorder, span: Any) -> BodyTimer | None:
    """Return what times the body of a stage on the current device; None where there is none."""
    clock = clock_of(recorder)
    return None if clock is None else BodyTimer(recorder, clock, sys.modules["torch"], span)


def _place(pending: Pending, anchor: Anchor) -> tuple[int, int]:
    """Return start and end on the process's clock.

    The start may lie before the anchor, and then the time from one to the other is negative.
    """
    start_ns = anchor.clock_ns + round(anchor.event.elapsed_time(pending.start) * NS_PER_MS)
    dur_ns = round(pending.start.elapsed_time(pending.end) * NS_PER_MS)
    return max(start_ns, 0), max(start_ns, 0) + max(dur_ns, 0)
