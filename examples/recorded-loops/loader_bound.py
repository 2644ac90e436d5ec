"""A loop that waits for its loader: each sample takes 8 ms to load, a batch has two, and a step computes for 4.

    python loader_bound.py FOLDER [WORKERS]

With 0 workers the main process loads; with 2 their loading goes on beside the step, and the loop waits for the rest.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from stopwatch import Stopwatch
from torch.utils.data import DataLoader, Dataset

from longpole import record

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 20
BATCH = 2
LOAD_S = 0.008
COMPUTE_S = 0.004


class WatchedLoader(DataLoader):
    """A loader that stamps how long it is asked for batches, inside of what the recorder times."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        start_ns = time.perf_counter_ns()
        batches = super().__iter__()
        end_ns = time.perf_counter_ns()
        self.dataset.watch.note("asked", start_ns, start_ns, end_ns, end_ns)
        return Asked(batches, self.dataset.watch)


class Asked:
    """The batches, each stamped while it is waited for."""

    def __init__(self, batches: Iterator[torch.Tensor], watch: Stopwatch) -> None:
        self.batches = batches
        self.watch = watch

    def __iter__(self) -> Iterator[torch.Tensor]:
        return self

    def __next__(self) -> torch.Tensor:
        with self.watch.time("asked"):
            return next(self.batches)


class Samples(Dataset):
    """Samples that are slow to load, for a known time."""

    def __init__(self, watch: Stopwatch) -> None:
        self.watch = watch

    def __len__(self) -> int:
        return STEPS * BATCH

    def __getitem__(self, place: int) -> torch.Tensor:
        with self.watch.time("load"):
            time.sleep(LOAD_S)
            return torch.full((64, 64), float(place))


def main(folder: Path, workers: int) -> None:
    """Train for some steps, recorded and stamped."""
    torch.set_num_threads(1)
    watch = Stopwatch(folder / "stamps.txt")
    model = torch.nn.Linear(64, 64)
    loader = record.loader(WatchedLoader(Samples(watch), batch_size=BATCH, num_workers=workers), items=BATCH)
    batches = iter(loader)
    for step in range(STEPS):
        with watch.time("unit", record.unit(step, items=BATCH)):
            with watch.time("next"):
                batch = next(batches)
            with watch.time("compute", record.stage("train", object="compute", stage="forward")):
                compute(model, batch)


def compute(model: torch.nn.Module, batch: torch.Tensor) -> None:
    """Compute for a known time."""
    until = time.perf_counter() + COMPUTE_S
    while time.perf_counter() < until:
        model(batch).sum().backward()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    record.start(target, items="sample")
    main(target, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    record.stop()
