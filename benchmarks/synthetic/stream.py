"""Write whole files: head, host rows of all steps, device rows of all steps, metadata, tail; and say what they hold.

Memory does not grow with the file: a few distinct steps are kept as templates and repeated in a random order.
"""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Protocol

from benchmarks.synthetic.render import FIRST_STEP, Block, Counters, Dialect, Identity, StepRenderer
from benchmarks.synthetic.schedule import (
    AUTOGRAD,
    COLLECTIVE_STREAM,
    COMPUTE_STREAM,
    COPY_STREAM,
    MAIN,
    Figures,
    Step,
    figures_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BASE_NS = 1_711_964_646_000_000_000  # what modern traces count from
MODERN_START_US = 4_458_676_416_431  # of a machine that has been up for 51 days
EPOCH_START_US = 1_661_203_462_598_772
FIRST_CORRELATION = 57_532
GZIP_LEVEL = 6  # Kineto's own


@dataclass(frozen=True)
class Layout:
    """How the files are written."""

    modern: bool = True
    metadata_behind: bool = False
    compressed: bool = False


class BinaryFile(Protocol):
    """What takes bytes."""

    def write(self, data: bytes, /) -> int:
        """Write them all."""


class Sink:
    """Takes text, counts its bytes, and passes it on."""

    def __init__(self, file: BinaryFile) -> None:
        """Write to an open file.

        Args:
            file: opened for writing bytes.
        """
        self._file = file
        self.size_bytes = 0

    def write(self, text: str) -> None:
        """Write text; everything generated is ASCII or UTF-8."""
        data = text.encode()
        self.size_bytes += len(data)
        self._file.write(data)


@contextmanager
def open_sink(path: Path, *, compressed: bool) -> Iterator[Sink]:
    """Open a file for writing; compressed ones hold neither name nor time, so that equal text gives equal bytes.

    Args:
        path: the file to make.
        compressed: whether to write gzip.

    Yields:
        The sink.
    """
    with path.open("wb") as raw:
        if not compressed:
            yield Sink(raw)
            return
        with gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0) as packed:
            yield Sink(packed)


@dataclass(frozen=True)
class Variant:
    """One distinct step of a rank: its text, its length and its figures."""

    host: Block
    device: Block
    wall_ns: int
    own_end_ns: int
    n_operators: int
    n_calls: int
    n_sequences: int
    figures: Figures

    @property
    def n_events(self) -> int:
        """How many rows the step has."""
        return self.host.n_events + self.device.n_events

    def size_bytes(self, counters: Counters) -> int:
        """Measure the step's text as it is with these counters."""
        return len(self.host.fill(counters).encode()) + len(self.device.fill(counters).encode())

    def after(self, counters: Counters) -> Counters:
        """Move the counters behind this step."""
        time_us, operator, correlation, sequence, step = counters
        return (
            time_us + self.wall_ns // 1_000,
            operator + self.n_operators,
            correlation + self.n_calls,
            sequence + self.n_sequences,
            step + 1,
        )


class TraceWriter:
    """Writes the trace of one rank."""

    def __init__(self, steps: list[Step], identity: Identity, layout: Layout, seed: int) -> None:
        """Make the templates.

        Args:
            steps: the distinct steps of this rank.
            identity: the rank.
            layout: how to write.
            seed: decides the order of the steps; the same on all ranks.
        """
        renderer = StepRenderer(Dialect(modern=layout.modern), identity)
        self._identity = identity
        self._layout = layout
        self._seed = seed
        self._start_us = MODERN_START_US if layout.modern else EPOCH_START_US
        self._variants = [
            Variant(
                host=renderer.host_block(step),
                device=renderer.device_block(step),
                wall_ns=step.wall_ns,
                own_end_ns=step.host[0].end_ns,
                n_operators=len(step.host),
                n_calls=len(step.calls),
                n_sequences=step.n_sequences,
                figures=figures_of(step),
            )
            for step in steps
        ]

    def steps_for_bytes(self, size_bytes: int) -> int:
        """Say how many steps come closest to a size, uncompressed."""
        known_bytes: dict[tuple[int, ...], int] = {}
        left_bytes = size_bytes - len(self._head())
        n_steps = 0
        for variant, counters in self._run(None):
            alike = (id(variant), *(len(str(counter)) for counter in counters))  # numbers of as many digits
            step_bytes = known_bytes.get(alike) or variant.size_bytes(counters)
            known_bytes[alike] = step_bytes
            if left_bytes < step_bytes / 2:
                break
            left_bytes -= step_bytes
            n_steps += 1
        return max(1, n_steps)

    def steps_for_events(self, n_events: int) -> int:
        """Say how many steps have at least so many rows."""
        fewest = min(variant.n_events for variant in self._variants)
        return max(1, -(-n_events // fewest))

    def write(self, path: Path, n_steps: int) -> dict[str, int | str]:
        """Write the file.

        Args:
            path: where to.
            n_steps: how many steps.

        Returns:
            What the file holds: sizes, counts, and the device's figures in ns.
        """
        with open_sink(path, compressed=self._layout.compressed) as sink:
            sink.write(self._head())
            for variant, counters in self._run(n_steps):
                sink.write(variant.host.fill(counters))
            for variant, counters in self._run(n_steps):
                sink.write(variant.device.fill(counters))
            closing = self._closing_rows(n_steps)
            sink.write(",\n".join(f"  {json.dumps(row)}" for row in closing))
            sink.write(f"\n  ]{self._tail()}\n}}\n")
        known: dict[str, int | str] = {
            "file": path.name,
            "rank": self._identity.rank,
            "bytes": sink.size_bytes,
            "stored_bytes": path.stat().st_size,
        }
        return {**known, **self._figures(n_steps, len(closing))}

    def _run(self, n_steps: int | None) -> Iterator[tuple[Variant, Counters]]:
        """Walk the first steps in their order, or all that there could be; every walk is the same."""
        random = Random(f"{self._seed}/order")
        counters: Counters = (self._start_us, 0, FIRST_CORRELATION, 0, FIRST_STEP)
        for _ in count() if n_steps is None else range(n_steps):
            variant = self._variants[random.randrange(len(self._variants))]
            yield variant, counters
            counters = variant.after(counters)

    def _figures(self, n_steps: int, n_closing: int) -> dict[str, int]:
        totals = dict.fromkeys(("busy", "compute", "collective", "collective_exposed", "copy", "copy_exposed"), 0)
        n_events, first_ns, last_ns, units_end_ns = n_closing, 0, 0, 0
        for place, (variant, counters) in enumerate(self._run(n_steps)):
            begin_ns = (counters[0] - self._start_us) * 1_000
            figures = variant.figures
            if place == 0:
                first_ns = figures.first_ns
            last_ns = begin_ns + figures.last_ns
            units_end_ns = begin_ns + variant.own_end_ns
            n_events += variant.n_events
            for key in totals:
                totals[key] += getattr(figures, f"{key}_ns")
        span_ns = last_ns - first_ns
        return {
            "events": n_events,
            "steps": n_steps,
            "units_wall_ns": units_end_ns,
            "span_ns": span_ns,
            "idle_ns": span_ns - totals["busy"],
            **{f"{key}_ns": value for key, value in totals.items()},
        }

    def _head(self) -> str:
        device = {
            "id": self._identity.rank,
            "name": "NVIDIA A100-SXM4-80GB",
            "totalGlobalMem": 84_974_239_744,
            "computeMajor": 8,
            "computeMinor": 0,
            "maxThreadsPerBlock": 1024,
            "maxThreadsPerMultiprocessor": 2048,
            "regsPerBlock": 65_536,
            "warpSize": 32,
            "sharedMemPerBlock": 49_152,
            "numSms": 108,
        }
        ranks = list(range(self._identity.n_ranks))
        world = {"backend": "nccl", "rank": self._identity.rank, "world_size": self._identity.n_ranks}
        if self._layout.modern:
            group = {
                "pg_name": "0",
                "pg_desc": "default_pg",
                "backend_config": "cuda:nccl",
                "pg_size": len(ranks),
                "ranks": ranks,
            }
            world |= {"pg_count": 1, "pg_config": [group], "nccl_version": "2.21.5"}
        head = ['{\n  "schemaVersion": 1', f'  "deviceProperties": [\n    {json.dumps(device)}\n  ]']
        head += ['  "record_shapes": 1', f'  "distributedInfo": {json.dumps(world)}']
        if not self._layout.metadata_behind:
            head += self._base_fields()
        head.append('  "traceEvents": [\n')
        return ",\n".join(head)

    def _tail(self) -> str:
        fields = self._base_fields() if self._layout.metadata_behind else []
        return "".join(
            f",\n{field}" for field in [*fields, f'  "traceName": "rank{self._identity.rank}.pt.trace.json"']
        )

    def _base_fields(self) -> list[str]:
        if not self._layout.modern:
            return []
        return ['  "displayTimeUnit": "ms"', f'  "baseTimeNanoseconds": {BASE_NS}']

    def _closing_rows(self, n_steps: int) -> list[dict[str, object]]:
        """List the rows that Kineto writes last: names of processes and threads, and the recording itself."""
        process, rank = self._identity.process, self._identity.rank
        end_us = self._start_us
        for variant, counters in self._run(n_steps):
            end_us = variant.after(counters)[0]
        named: list[tuple[str, int, int, dict[str, object]]] = [
            ("process_name", process, 0, {"name": "python3.11"}),
            ("process_labels", process, 0, {"labels": "CPU"}),
            ("process_name", rank, 0, {"name": "python3.11"}),
            ("process_labels", rank, 0, {"labels": f"GPU {rank}"}),
        ]
        threads = {self._identity.thread(MAIN): "pt_main_thread", self._identity.thread(AUTOGRAD): "pt_autograd_0"}
        named += [("thread_name", process, tid, {"name": f"thread {tid} ({name})"}) for tid, name in threads.items()]
        streams = (COMPUTE_STREAM, COLLECTIVE_STREAM, COPY_STREAM)
        named += [("thread_name", rank, stream, {"name": f"stream {stream} "}) for stream in streams]
        rows: list[dict[str, object]] = [
            {"name": name, "ph": "M", "ts": self._start_us, "pid": pid, "tid": tid, "args": args}
            for name, pid, tid, args in named
        ]
        spans = {"pid": "Spans", "tid": "PyTorch Profiler", "ts": self._start_us, "dur": end_us - self._start_us}
        rows.append({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", **spans, "args": {"Op count": 0}})
        started = {"pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": self._start_us}
        rows.append({"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", **started})
        rows.append({"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": end_us})
        return rows
