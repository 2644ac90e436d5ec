"""A loop that waits for its loader: each sample takes 8 ms to load, a batch has two, and a step computes for 4.

    python loader_bound.py FOLDER [WORKERS]

With 0 workers the main process loads; with 2 their loading goes on beside the step, and the loop waits for the rest.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from stopwatch import Stopwatch
from torch.utils.data import DataLoader, Dataset

from longpole import record

STEPS = 20
BATCH = 2
LOAD_S = 0.008
COMPUTE_S = 0.004


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
    loader = record.loader(DataLoader(Samples(watch), batch_size=BATCH, num_workers=workers), items=BATCH)
    batches = iter(loader)
    for step in range(STEPS):
        with watch.time("unit"), record.unit(step, items=BATCH):
            with watch.time("next"):
                batch = next(batches)
            with watch.time("compute"), record.stage("train", object="compute", stage="forward"):
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
