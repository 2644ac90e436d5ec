"""What the benchmarks read: the largest real trace at hand, one large generated trace, and a job of several ranks."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]
GENERATOR = BENCHMARKS / "generate_trace.py"
CHUNK_BYTES = 1 << 20
SPARE_DISK_BYTES = 2 * 10**9


class WorkloadError(Exception):
    """A workload that cannot be had here."""


@dataclass(frozen=True)
class DeviceTruth:
    """What must come out for one rank's device, in ns; known without the program under test."""

    span_ns: int
    busy_ns: int


@dataclass(frozen=True)
class Workload:
    """Something to report on."""

    name: str
    says: str
    path: Path
    files: tuple[Path, ...]
    size_bytes: int
    truths: tuple[DeviceTruth, ...] = ()
    cache_limit_s: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def unpacked_bytes(path: Path) -> int:
    """Measure a file after decompression, in constant memory."""
    if path.suffix != ".gz":
        return path.stat().st_size
    total_bytes = 0
    with gzip.open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            total_bytes += len(chunk)
    return total_bytes


def claimed_bytes(path: Path) -> int:
    """Read from the end of a gzip file how large it says to be, modulo 2^32; enough to put files in order."""
    with path.open("rb") as file:
        file.seek(-4, 2)
        return int.from_bytes(file.read(4), "little")


def holds_events(path: Path) -> bool:
    """Look for `traceEvents` in a gzip file."""
    before = b""
    with gzip.open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            if b'"traceEvents"' in before + chunk:
                return True
            before = chunk[-16:]
    return False


def find_corpus_trace(shared: Path) -> Workload:
    """Find the trace of the corpus that is largest once unpacked.

    Args:
        shared: the folder that holds `corpus` and `oracles`.

    Returns:
        The workload, with the device's span and busy time where the oracles know them.

    Raises:
        WorkloadError: there is no trace.
    """
    corpus = shared / "corpus"
    candidates = sorted(corpus.rglob("*.json.gz"), key=claimed_bytes, reverse=True)
    path = next((candidate for candidate in candidates if holds_events(candidate)), None)
    if path is None:
        message = f"expected *.json.gz traces in the folder corpus of {shared.name!r}, found none"
        raise WorkloadError(message)
    truths: tuple[DeviceTruth, ...] = ()
    oracle = shared / "oracles" / "device_golden.json"
    if oracle.exists():
        known = json.loads(oracle.read_text()).get(path.relative_to(corpus).as_posix(), {}).get("devices", {})
        truths = tuple(DeviceTruth(device["span_ns"], device["busy_ns"]) for device in known.values())
    says = f"largest corpus trace, {path.relative_to(corpus)}"
    return Workload("corpus", says, path, (path,), unpacked_bytes(path), truths)


def generator_version() -> str:
    """Give a number that changes with the generator's code."""
    digest = hashlib.sha256(GENERATOR.read_bytes())
    for source in sorted((BENCHMARKS / "synthetic").glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:10]


def prepare_generated(name: str, data: Path, size_bytes: int, n_ranks: int) -> Workload:
    """Make a generated job, or take the one that was made before.

    Args:
        name: of the workload.
        data: the folder that keeps generated files from run to run.
        size_bytes: of each rank.
        n_ranks: how many.

    Returns:
        The workload, with its truth.

    Raises:
        WorkloadError: the disk is too full, or the generator failed.
    """
    folder = data / f"{name}-{n_ranks}x{size_bytes}-{generator_version()}"
    truth = folder / "truth.json"
    traces = folder / "traces"
    if not truth.exists():
        for stale in data.glob(f"{name}-*"):
            shutil.rmtree(stale)
        traces.mkdir(parents=True)
        needed_bytes = size_bytes * n_ranks + SPARE_DISK_BYTES
        if shutil.disk_usage(folder).free < needed_bytes:
            message = f"{name}: expected {needed_bytes / 1e9:.1f} GB of free disk at {data.name}"
            raise WorkloadError(message)
        command = [sys.executable, str(GENERATOR), "--bytes", str(size_bytes), "--ranks", str(n_ranks)]
        done = subprocess.run([*command, "--out", str(traces), "--truth"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            message = f"{name}: the generator failed: {done.stderr[-1_000:]}"
            raise WorkloadError(message)
        truth.write_text(done.stdout)
    facts = json.loads(truth.read_text())["files"]
    files = tuple(traces / fact["file"] for fact in facts)
    return Workload(
        name=name,
        says=f"generated, {n_ranks} rank{'s' if n_ranks > 1 else ''} of {size_bytes / 1e6:.0f} MB",
        path=traces if n_ranks > 1 else files[0],
        files=files,
        size_bytes=sum(fact["bytes"] for fact in facts),
        truths=tuple(DeviceTruth(fact["span_ns"], fact["busy_ns"]) for fact in facts),
        cache_limit_s=0.5 if n_ranks == 1 else 1.5,
        facts={"events": sum(fact["events"] for fact in facts), "steps": facts[0]["steps"]},
    )
