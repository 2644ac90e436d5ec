"""Small traces as text, for tests of what a file may hold beside events: headers, names, odd values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

BASE_US: Final = 1_000_000.0
BASE_NS: Final = 1_718_000_000_000_000_000


def kernel(start_us: float, dur_us: float, name: str = "gemm", correlation: int = 1, **args: Any) -> dict[str, Any]:
    """Return a kernel on stream 7 of device 0."""
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": 7,
        "ts": BASE_US + start_us,
        "dur": dur_us,
        "args": {"device": 0, "stream": 7, "correlation": correlation, **args},
    }


def call(start_us: float, dur_us: float, name: str = "cudaLaunchKernel", correlation: int = 1) -> dict[str, Any]:
    """Return a runtime call on the main thread."""
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": name,
        "pid": 4200,
        "tid": 4200,
        "ts": BASE_US + start_us,
        "dur": dur_us,
        "args": {"correlation": correlation},
    }


def annotation(start_us: float, dur_us: float, name: str) -> dict[str, Any]:
    """Return a user annotation on the main thread."""
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": name,
        "pid": 4200,
        "tid": 4200,
        "ts": BASE_US + start_us,
        "dur": dur_us,
        "args": {},
    }


def steps(count: int, period_us: float = 100.0) -> list[dict[str, Any]]:
    """Return steps of one launch and one kernel of half the period each."""
    events = []
    for k in range(count):
        at = k * period_us
        events.append(annotation(at, period_us, f"ProfilerStep#{k}"))
        events.append(call(at + 5, 5, correlation=k + 1))
        events.append(kernel(at + 20, period_us / 2, correlation=k + 1))
    return events


def document(events: list[Any], rank: int | None = 0, world_size: int = 1, **header: Any) -> dict[str, Any]:
    """Return a whole trace; a rank of None leaves `distributedInfo` out."""
    info = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size}}
    return {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, **info, **header, "traceEvents": events}


def write(path: Path, events: list[Any], rank: int | None = 0, world_size: int = 1, **header: Any) -> Path:
    """Write a trace and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(events, rank, world_size, **header)), encoding="utf-8")
    return path
