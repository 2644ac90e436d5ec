"""Kineto traces of a data-parallel job whose gradients, buckets and cost are known: one rank, device spans, no skew."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longpole.costs.overlap import fill_buckets

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
_PID, _MAIN, _ENGINE = 100, 100, 101


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job: equal gradients that become ready evenly over a backward pass.

    Attributes:
        gradients: How many.
        gradient_bytes: Of each, in four-byte elements.
        backward_us: From the first kernel of the backward pass to the last gradient.
        cap_bytes, first_cap_bytes: Of the buckets.
        latency_us, gb_per_s: Of an all-reduce.
        steps: How many are recorded.
        tail_us: From the last bucket to the end of the step.
        shapes, bytes_written: Whether the profiler recorded shapes, and the sizes of collectives.
        world: Ranks of the job.
    """

    gradients: int = 40
    gradient_bytes: int = 4 * MIB
    backward_us: int = 20_000
    cap_bytes: int = 25 * MIB
    first_cap_bytes: int = MIB
    latency_us: int = 60
    gb_per_s: float = 12.5
    steps: int = 4
    tail_us: int = 2_000
    shapes: bool = True
    bytes_written: bool = True
    world: int = 8

    def ready_us(self) -> list[int]:
        """Return when each gradient is ready, from the first kernel of the backward pass."""
        return [self.backward_us * (place + 1) // self.gradients for place in range(self.gradients)]

    def took_us(self, size_bytes: float) -> int:
        """Return what an all-reduce takes."""
        return self.latency_us + round(size_bytes / self.gb_per_s / 1000)


def write_trace(job: Job, path: Path) -> Path:
    """Write the trace of rank 0."""
    events: list[dict[str, Any]] = []
    at = 1_000
    for number in range(job.steps):
        at = _step(job, number, at, events)
    groups = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": job.world, "ranks": list(range(job.world))}]
    header = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Test Device"}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": job.world, "pg_config": groups},
        "traceEvents": events,
    }
    path.write_text(json.dumps(header), encoding="utf-8")
    return path


def _step(job: Job, number: int, start_us: int, events: list[dict[str, Any]]) -> int:
    """Append one step and return when it ends."""
    base = 10_000 * (number + 1)
    device_us = start_us + 500  # where the device begins the backward pass
    ready = job.ready_us()
    sizes = [job.gradient_bytes] * job.gradients
    buckets = fill_buckets([float(one) for one in ready], sizes, job.cap_bytes, job.first_cap_bytes)
    ends = [sum(bucket.gradients for bucket in buckets[: place + 1]) for place in range(len(buckets))]
    free_us = 0
    for place, moment in enumerate(ready):
        host_us = start_us + 100 + 8 * place  # the host runs far ahead
        _operator(events, "autograd::engine::evaluate_function: MmBackward0", host_us, 3)
        _launch(events, base + place, host_us + 1)
        begun = ready[place - 1] if place else 0
        _kernel(events, base + place, device_us + begun, moment - begun, stream=7, name="gemm_kernel")
        span = 5 if place + 1 in ends else 2
        _operator(events, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", host_us + 3, span)
        shape = {"Input Dims": [[job.gradient_bytes // 4]]} if job.shapes else {}
        _operator(events, "torch::autograd::AccumulateGrad", host_us + 3, 1, args=shape)
        if place + 1 in ends:
            bucket = buckets[ends.index(place + 1)]
            correlation = base + 5_000 + place
            _operator(events, "c10d::allreduce_", host_us + 5, 2)
            _operator(events, "nccl:all_reduce", host_us + 5, 2, category="user_annotation")
            _launch(events, correlation, host_us + 6)
            begin = max(free_us, moment)
            free_us = begin + job.took_us(bucket.bytes)
            _kernel(
                events,
                correlation,
                device_us + begin,
                free_us - begin,
                stream=13,
                name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
                args=_collective(job, bucket.bytes) if job.bytes_written else {},
            )
    end_us = device_us + max(free_us, ready[-1]) + job.tail_us
    _event(events, f"ProfilerStep#{number}", "user_annotation", start_us, end_us - start_us, _MAIN)
    _event(events, "cudaDeviceSynchronize", "cuda_runtime", end_us - 10, 9, _MAIN)
    return end_us + 1


def _collective(job: Job, size_bytes: float) -> dict[str, Any]:
    elements = int(size_bytes) // 4
    return {
        "Collective name": "allreduce",
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": job.world,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(job.world))),
    }


def _operator(
    events: list[dict[str, Any]],
    name: str,
    start_us: int,
    length_us: int,
    *,
    category: str = "cpu_op",
    args: dict[str, Any] | None = None,
) -> None:
    _event(events, name, category, start_us, length_us, _ENGINE, args=args)


def _launch(events: list[dict[str, Any]], correlation: int, start_us: int) -> None:
    _event(events, "cudaLaunchKernel", "cuda_runtime", start_us, 1, _ENGINE, args={"correlation": correlation})


def _kernel(
    events: list[dict[str, Any]],
    correlation: int,
    start_us: int,
    length_us: int,
    *,
    stream: int,
    name: str,
    args: dict[str, Any] | None = None,
) -> None:
    said = {"device": 0, "stream": stream, "correlation": correlation, **(args or {})}
    events.append(
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "pid": 0,
            "tid": stream,
            "ts": start_us,
            "dur": length_us,
            "args": said,
        }
    )


def _event(
    events: list[dict[str, Any]],
    name: str,
    category: str,
    start_us: int,
    length_us: int,
    thread: int,
    *,
    args: dict[str, Any] | None = None,
) -> None:
    events.append(
        {"ph": "X", "cat": category, "name": name, "pid": _PID, "tid": thread, "ts": start_us, "dur": length_us,
         "args": args or {}}
    )  # fmt: skip
