"""Hypothesis strategies: records that are valid by construction, with everything that real ones hold.

One to three threads of nested spans (a few of which end a little late, as whole microseconds make them), calls that
launch kernels, collectives, copies and memsets on up to three streams of up to two devices, some of them without a
link, some as nodes of a graph, some that overlap; waits, garbage collections, activities; steps in several disguises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from longpole.settings import Settings
from longpole.timeline.columns import Kind
from tests.build import ALL_REDUCE, COPY_NAMES, GC, LOADER, MAIN, OPTIMIZER, DeviceSpan, HostSpan, Script
from tests.oracle import FUSED

if TYPE_CHECKING:
    from collections.abc import Callable

# Thresholds in proportion to records of a hundred nanoseconds.
SMALL_SETTINGS = Settings(
    blocking_copy_min_ns=3,
    lost_lead_after_ns=4,
    kernel_gap_max_ns=9,
    kernel_gap_default_ns=2,
    launch_latency_max_ns=5,
    p95_min_count=3,
)

RUNTIME_CALLS = ("cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaGraphLaunch")
OTHER_CALLS = (
    "cudaStreamSynchronize",
    "cudaStreamSynchronize",
    "cudaMalloc",
    "cudaFree",
    "cudaEventRecord",
    "cudaGraphInstantiate",
)
OPERATORS = ("aten::mul", "aten::linear", "c10d::allreduce_", "autograd::engine::evaluate_function: MulBackward0")
FRAMES = (GC, "train.py(7): train")
NOTES = (LOADER, "save_checkpoint", "load_weights", "cpu_offload", "init_process_group", OPTIMIZER, "my_range")
KERNELS = ("gemm_kernel", "gemm_kernel", ALL_REDUCE, FUSED)
KINDS = (
    *((name, Kind.RUNTIME) for name in (*RUNTIME_CALLS, *RUNTIME_CALLS, *OTHER_CALLS)),
    *((name, Kind.OPERATOR) for name in (*OPERATORS, *OPERATORS)),
    *((name, Kind.PYTHON) for name in FRAMES),
    *((name, Kind.ANNOTATION) for name in NOTES),
)
CPU_KINDS = (*(pair for pair in KINDS if pair[1] != Kind.RUNTIME), ("gloo:all_reduce", Kind.ANNOTATION))


@dataclass(frozen=True)
class Shape:
    """What a drawn record may hold."""

    horizon_ns: int = 60
    with_device: bool = True
    with_overlaps: bool = True
    with_ties: bool = True
    max_threads: int = 3
    max_devices: int = 2


class _Drawing:
    """One record being drawn."""

    def __init__(self, draw: Callable[..., object], shape: Shape) -> None:
        self.shape = shape
        self.script = Script()
        self._draw = draw
        self._kinds = KINDS if shape.with_device else CPU_KINDS
        self._starts: set[tuple[int, int]] = set()

    def integer(self, low: int, high: int) -> int:
        value = self._draw(st.integers(low, high))
        assert isinstance(value, int)
        return value

    def chance(self, one_in: int) -> bool:
        return self.integer(1, one_in) == one_in

    # --- host -------------------------------------------------------------------------------------------------

    def threads(self) -> None:
        self._steps()
        for number in range(1, self.integer(1, self.shape.max_threads)):
            thread = f"thread {number}"
            first = len(self.script.host)
            self._fill(0, self.shape.horizon_ns, thread, 0)
            if self.chance(2):
                for row in self.script.host[first:]:
                    row.of_autograd = row.kind == Kind.OPERATOR and self.chance(2)

    def _steps(self) -> None:
        """Fill the main thread, with markers around its parts or without."""
        horizon = self.shape.horizon_ns
        marker = self._draw(st.sampled_from(("ProfilerStep#{}", "iter_{}", OPTIMIZER, "")))
        assert isinstance(marker, str)
        cuts = sorted({self.integer(0, horizon - 1) for _ in range(self.integer(2, 7))})
        for number, (low, high) in enumerate(zip(cuts, [*cuts[1:], horizon], strict=True)):
            end = max(high - self.integer(0, 4), low + 1)
            late = int(self.shape.with_overlaps and high < horizon and end == high and self.chance(3))
            if marker:
                self._add(marker.format(number), low, end + late, Kind.ANNOTATION, MAIN)
            self._fill(low + int(not self.shape.with_ties), end, MAIN, 1)
            if end < high and self.chance(2):
                self._fill(end, high, MAIN, 2)

    def _fill(self, low: int, high: int, thread: str, depth: int) -> None:
        """Put up to three spans side by side between two instants, and more inside them."""
        for _ in range(self.integer(0, 3)):
            if low >= high or len(self.script.host) > 40:
                return
            start = self.integer(low, high - 1)
            end = self.integer(start if self.shape.with_ties else start + 1, high)
            name, kind = self._kinds[self.integer(0, len(self._kinds) - 1)]
            late = int(self.shape.with_overlaps and self.chance(8))
            self._add(name, start, end + late, kind, thread)
            if depth < 3 and end - start > 2:
                self._fill(start + int(not self.shape.with_ties), end, thread, depth + 1)
            low = end

    def _add(self, name: str, start: int, end: int, kind: Kind, thread: str) -> None:
        self.script.host.append(HostSpan(name, start, end, kind, thread))

    # --- device -----------------------------------------------------------------------------------------------

    def launches(self) -> None:
        """Let every launching call launch something, first in, first out on each stream."""
        free_ns: dict[tuple[int, int], int] = {}
        n_devices, n_streams = self.integer(1, self.shape.max_devices), self.integer(1, 3)
        calls = [row for row in self.script.host if row.name in RUNTIME_CALLS]
        for call in sorted(calls, key=lambda row: (row.start_ns, row.end_ns)):
            place = self.integer(0, n_devices - 1), self.integer(1, n_streams)
            for node in range(self.integer(1, 3) if call.name == "cudaGraphLaunch" else 1):
                span = self._launched(call, place, free_ns.get(place, 0))
                span.linked = node == 0 or self.chance(2) if call.name == "cudaGraphLaunch" else not self.chance(6)
                free_ns[place] = span.end_ns
                self.script.device.append(span)

    def _launched(self, call: HostSpan, place: tuple[int, int], free_ns: int) -> DeviceSpan:
        # A clock that is off lets a span begin before its call; a dependent launch, before its stream is free.
        start = max(call.start_ns + self.integer(-1, 9), free_ns - int(self.chance(6)), 0)
        while not self.shape.with_ties and (place[0], start) in self._starts:
            start += 1
        self._starts.add((place[0], start))
        end = start + self.integer(0 if self.shape.with_ties else 1, 9)
        device, stream = place
        if call.name == "cudaMemcpyAsync":
            way = self._draw(st.sampled_from(("htod", "dtoh", "dtoh", "dtod", "unknown")))
            size = 8 if self.chance(2) else 1 << 20
            return DeviceSpan(COPY_NAMES[str(way)], start, end, Kind.COPY, call, True, device, stream, size)
        if call.name == "cudaMemsetAsync":
            return DeviceSpan(COPY_NAMES["memset"], start, end, Kind.MEMSET, call, True, device, stream, 8)
        name = str(self._draw(st.sampled_from(KERNELS)))
        return DeviceSpan(name, start, end, Kind.KERNEL, call, True, device, stream)


@st.composite
def scripts(draw: Callable[..., object], shape: Shape = Shape()) -> Script:
    """Draw a record of at most some hundred nanoseconds that holds at least one span with a length."""
    drawing = _Drawing(draw, shape)
    drawing.threads()
    if not any(row.end_ns > row.start_ns for row in drawing.script.host if row.thread == MAIN):
        drawing.script.host.append(HostSpan("my_range", 0, 1, Kind.ANNOTATION))
    if shape.with_device:
        drawing.launches()
    return drawing.script


@st.composite
def device_scripts(draw: Callable[..., object], shape: Shape = Shape()) -> Script:
    """Draw a record with at least one device span."""
    script: Script = draw(scripts(shape))  # type: ignore[assignment]
    if not script.device:
        call = HostSpan("cudaLaunchKernel", 1, 3, Kind.RUNTIME, "thread 9")
        script = replace(script, host=[*script.host, call])
        script.device.append(DeviceSpan("gemm_kernel", 4, 8, Kind.KERNEL, call))
    return script


def scales() -> st.SearchStrategy[int]:
    """Draw how long a nanosecond of a drawn record is to last: from 1 ns to 100 ms."""
    return st.sampled_from((1, 1_000, 37_000, 1_000_000, 100_000_000))


def spans(limit: int = 30, max_size: int = 12) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Draw spans in any order, overlapping or not, some of them empty."""
    pairs = st.tuples(st.integers(0, limit), st.integers(0, limit))
    return st.lists(pairs.map(lambda pair: (min(pair), max(pair))), max_size=max_size)


def call_trees(limit: int = 20, max_size: int = 12) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Draw spans in the order of a host table: by start, the longer one first. Partial overlaps are frequent."""
    return spans(limit, max_size).map(lambda drawn: sorted(drawn, key=lambda span: (span[0], -span[1])))
