"""Device spans, on a device that is played: a clock of its own, work that takes its time, events that know both."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from longpole import record
from longpole.recorder.annotate import open_ranges
from longpole.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.span_files import Recording


class Stream:
    """A queue of a device: work ends after what was queued before it."""

    def __init__(self, stream_id: int = 0) -> None:
        self.stream_id = stream_id
        self.busy_until_ns = 0

    def launch(self, dur_ns: int) -> None:
        self.busy_until_ns = max(self.busy_until_ns, time.perf_counter_ns()) + dur_ns


class Event:
    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.at_ns = 0

    def record(self, stream: Stream) -> None:
        self.at_ns = max(stream.busy_until_ns, time.perf_counter_ns())

    def query(self) -> bool:
        return time.perf_counter_ns() >= self.at_ns

    def synchronize(self) -> None:
        while not self.query():
            pass

    def elapsed_time(self, other: Event) -> float:
        return (other.at_ns - self.at_ns) / NS_PER_MS


class Torch:
    """As much of PyTorch as is asked for."""

    def __init__(self) -> None:
        self.stream = Stream(7)
        self.capturing = False
        self.ranges: list[str] = []
        self.autograd = SimpleNamespace(profiler=SimpleNamespace(record_function=self.range))
        self.cuda = SimpleNamespace(
            Event=Event,
            Stream=lambda _device: Stream(),
            is_initialized=lambda: True,
            is_current_stream_capturing=lambda: self.capturing,
            current_device=lambda: 2,
            current_stream=lambda: self.stream,
            nvtx=SimpleNamespace(
                range_push=lambda name: self.ranges.append(f"nvtx {name}"), range_pop=lambda: self.ranges.append("pop")
            ),
        )

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        self.ranges.append(f"open {name}")
        yield
        self.ranges.append(f"close {name}")


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    played = Torch()
    monkeypatch.setitem(sys.modules, "torch", played)
    return played


def test_a_device_span_covers_the_work_and_not_its_launch(torch: Torch, recording: Recording) -> None:
    torch.stream.launch(20 * NS_PER_MS)
    before_ns = torch.stream.busy_until_ns
    with record.stage("forward", object="compute", bytes=5, device=True):
        torch.stream.launch(30 * NS_PER_MS)
    time.sleep(0.08)

    file = recording.stop()
    (line,) = file.devices
    assert (line.n, line.o, line.b, line.device, line.stream) == ("forward", "compute", 5, 2, 7)
    assert line.d == 30 * NS_PER_MS
    assert abs(line.s - before_ns) < 5 * NS_PER_MS, "the clocks are as far apart as the anchor is late"
    assert file.spans[0].d < line.d


def test_the_loop_does_not_wait_and_unfinished_work_stays_for_the_next_flush(
    torch: Torch, recording: Recording
) -> None:
    with record.stage("forward", device=True):
        torch.stream.launch(300 * NS_PER_MS)
    record.flush()
    path = record.path()
    assert path is not None
    assert b'"k":"device"' not in path.read_bytes()

    time.sleep(0.35)
    assert len(recording.stop().devices) == 1


def test_nothing_is_recorded_into_a_graph_that_is_captured(torch: Torch, recording: Recording) -> None:
    torch.capturing = True
    with record.stage("forward", device=True):
        pass

    file = recording.stop()
    assert (len(file.spans), file.devices) == (1, [])


def test_without_pytorch_a_device_span_is_a_plain_one(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with record.stage("forward", device=True):
        pass

    assert recording.stop().devices == []


def test_ranges_of_the_same_names_are_opened_where_asked_for(torch: Torch, recording: Recording) -> None:
    record.start(recording.folder, annotate=True)
    with record.unit(3), record.stage("forward"):
        pass

    assert torch.ranges == [
        "open step 3",
        "nvtx step 3",
        "open forward",
        "nvtx forward",
        "pop",
        "close forward",
        "pop",
        "close step 3",
    ]


def test_without_pytorch_there_are_no_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert open_ranges("forward") == ()


def test_ranges_are_in_a_trace_of_pytorchs_profiler(recording: Recording) -> None:
    torch: Any = pytest.importorskip("torch")
    record.start(recording.folder, annotate=True)
    with torch.profiler.profile() as profiler, record.unit(3), record.stage("forward"):
        torch.ones(2) + 1

    assert {"step 3", "forward"} <= {event.name for event in profiler.events()}
