"""Memory snapshots in few words: segments as lists of sizes in MiB, and what the allocator did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.analyses.allocator import devices_of, measure_device
from longpole.readers.memory_snapshot.decode import decode_snapshot
from longpole.report.memory_snapshot import make_device, make_snapshots, make_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.report.memory_snapshot import MemorySnapshots

MIB: Final = 1 << 20
BASE_US: Final = 1_718_000_000_000_000

LOSS: Final = [
    {"name": "unwind", "filename": "??", "line": 0},
    {
        "name": "cross_entropy",
        "filename": "/home/x/venv/lib/python3.11/site-packages/torch/nn/functional.py",
        "line": 3504,
    },
    {"name": "loss_of", "filename": "/home/x/job/train/loss.py", "line": 21},
    {"name": "main", "filename": "/home/x/job/train/main.py", "line": 90},
]


def block(size_mib: float, state: str = "active_allocated", frames: list[Any] | None = None) -> dict[str, Any]:
    """Return a block, live unless another state is given."""
    size = int(size_mib * MIB)
    return {"size": size, "requested_size": size if state != "inactive" else 0, "state": state, "frames": frames or []}


def segment(*blocks: dict[str, Any], address: int = 1 << 40, **fields: Any) -> dict[str, Any]:
    """Return a segment of blocks without gaps."""
    placed, at = [], address
    for each in blocks:
        placed.append({"address": at, **each})
        at += each["size"]
    usual = {"device": 0, "address": address, "total_size": at - address, "segment_type": "large", "stream": 0}
    return usual | {"is_expandable": False, "segment_pool_id": (0, 0), "blocks": placed} | fields


def entry(action: str, size_mib: float, at_us: int = 0, **fields: Any) -> dict[str, Any]:
    """Return an entry of history."""
    return {"action": action, "size": int(size_mib * MIB), "stream": 0, "time_us": BASE_US + at_us, **fields}


def failed(size_mib: float, device_free_mib: float, at_us: int = 100, **fields: Any) -> dict[str, Any]:
    """Return the entry of a request that could not be served."""
    return entry("oom", size_mib, at_us, device_free=int(device_free_mib * MIB), **fields)


def snapshot(
    segments: list[dict[str, Any]], history: list[dict[str, Any]] | None = None, **fields: Any
) -> dict[str, Any]:
    """Return a snapshot of device 0."""
    return {"segments": segments, "device_traces": [history or []], **fields}


def document_of(fields: dict[str, Any], path: str = "rank0_snapshot.pickle", rank: int | None = 0) -> MemorySnapshots:
    """Return the document of one snapshot."""
    decoded = decode_snapshot(fields, Path(path))
    devices = [make_device(decoded, measure_device(decoded, d), source=0, rank=rank) for d in devices_of(decoded)]
    return make_snapshots([make_source(path, decoded)], devices, [], version="0.1.0")


def in_pieces() -> MemorySnapshots:
    """Return a request that failed among pieces, with stacks, a phase, and another stream's pool."""
    segments = [
        segment(block(768, frames=LOSS), block(256, "inactive"), block(768), block(256, "inactive"), address=n << 40)
        for n in range(1, 5)
    ]
    segments.append(segment(block(64), block(192, "inactive"), address=9 << 40, stream=0x7F00))
    annotations = [
        {"stage": "START", "name": "forward", "device": 0, "time_us": BASE_US + 10},
        {"stage": "END", "name": "forward", "device": 0, "time_us": BASE_US + 200},
    ]
    history = [entry("alloc", 64, 1, addr=9 << 40), failed(512, 100, frames=LOSS)]
    settings = {"expandable_segments": False}
    return document_of(
        snapshot(segments, history, external_annotations=annotations, allocator_settings=settings, device_total=8 << 30)
    )


def too_little() -> MemorySnapshots:
    """Return a request larger than all that is free together."""
    held = [segment(block(4000, frames=LOSS), block(96, "inactive"))]
    return document_of(snapshot(held, [failed(512, 100, frames=LOSS)]))


def healthy() -> MemorySnapshots:
    """Return a snapshot without failure, of which much could go back."""
    return document_of(snapshot([segment(block(512)), segment(block(1024, "inactive"), address=2 << 40)]))


SAMPLES: Final[dict[str, Callable[[], MemorySnapshots]]] = {
    "pieces": in_pieces,
    "too-little": too_little,
    "healthy": healthy,
}
