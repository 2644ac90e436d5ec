"""A pipeline of four processes that times its own operations and writes them as a table for `longpole report`.

Two pipeline stages, two data-parallel ranks, three micro-batches a step, one forward one backward. Work is sleeping, so
that it needs no cores; rank 1 sleeps twice as long, which is what the report has to find.

    python examples/jobs/pipeline_timers.py operations.csv
"""

from __future__ import annotations

import csv
import multiprocessing
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS, MICRO_BATCHES = 5, 3
FORWARD_S, BACKWARD_S, OPTIMIZER_S = 0.010, 0.020, 0.003
SLOW_RANK, SLOW_FACTOR = 1, 2.0
COLUMNS = ["step", "rank", "dp_rank", "stage", "optype", "start_ns", "duration_ns"]


@dataclass
class Timers:
    """The operations of one rank, as rows of the table."""

    rank: int
    dp_rank: int
    stage: int
    step: int = 0
    rows: list[list[Any]] = field(default_factory=list)

    @contextmanager
    def operation(self, optype: str) -> Iterator[None]:
        """Time what is done inside: on a GPU, synchronise or use device events at both ends."""
        start_ns = time.time_ns()
        yield
        duration_ns = time.time_ns() - start_ns
        self.rows.append([self.step, self.rank, self.dp_rank, self.stage, optype, start_ns, duration_ns])


class Worker:
    """One rank: its timers, its connection to the other stage, its group of data-parallel ranks."""

    def __init__(self, timers: Timers, other_stage: Any, group: Any, everyone: Any) -> None:
        self.timers, self.other_stage, self.group, self.everyone = timers, other_stage, group, everyone
        self.factor = SLOW_FACTOR if timers.rank == SLOW_RANK else 1.0

    def run(self, rows: Any) -> None:
        """Train; hand the timed rows over at the end."""
        for self.timers.step in range(STEPS):
            self.everyone.wait()
            self.first_stage() if self.timers.stage == 0 else self.last_stage()
            with self.timers.operation("grads-reduce-scatter"):
                self.group.wait()
            self.work("optimizer", OPTIMIZER_S)
        rows.put(self.timers.rows)

    def first_stage(self) -> None:
        """Run one forward pass ahead of the last stage, then one forward and one backward in turn."""
        self.work("forward-compute", FORWARD_S * self.factor)
        self.send("forward-send")
        for micro_batch in range(MICRO_BATCHES):
            if micro_batch + 1 < MICRO_BATCHES:
                self.work("forward-compute", FORWARD_S * self.factor)
                self.send("forward-send")
            self.receive("backward-recv")
            self.work("backward-compute", BACKWARD_S * self.factor)

    def last_stage(self) -> None:
        """Turn every micro-batch around as it comes."""
        for _ in range(MICRO_BATCHES):
            self.receive("forward-recv")
            self.work("forward-compute", FORWARD_S * self.factor)
            self.work("backward-compute", BACKWARD_S * self.factor)
            self.send("backward-send")

    def work(self, optype: str, work_s: float) -> None:
        """Stand for some computation."""
        with self.timers.operation(optype):
            time.sleep(work_s)

    def send(self, optype: str) -> None:
        """Hand something to the other stage."""
        with self.timers.operation(optype):
            self.other_stage.send(b"activations or gradients")

    def receive(self, optype: str) -> None:
        """Take something from the other stage; waiting for it is part of the time."""
        with self.timers.operation(optype):
            self.other_stage.recv()


def main(path: Path) -> None:
    """Run all ranks, and write what they timed into one file."""
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(2)]
    groups = [context.Barrier(2) for _ in range(2)]
    everyone, rows = context.Barrier(4), context.Queue()
    workers = [
        Worker(Timers(2 * stage + dp, dp, stage), pipes[dp][stage], groups[stage], everyone)
        for stage in range(2)
        for dp in range(2)
    ]
    processes = [context.Process(target=worker.run, args=(rows,)) for worker in workers]
    for process in processes:
        process.start()
    timed = sorted(row for _ in processes for row in rows.get())
    for process in processes:
        process.join()
    first_ns = min(row[5] for row in timed)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([*row[:5], row[5] - first_ns, row[6]] for row in timed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
