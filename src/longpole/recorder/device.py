"""Stages whose body is timed on a CUDA device: an event before it and one after it, on the stream that is current."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from longpole.recorder.event_clock import DeviceClock, Pending
from longpole.records.span_file import DeviceLine

if TYPE_CHECKING:
    from types import TracebackType

    from longpole.recorder.session import Recorder


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
