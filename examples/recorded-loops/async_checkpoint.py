"""A loop that hands checkpoints to a writer beside it: hidden until its queue is full, then it holds the loop up.

    python async_checkpoint.py FOLDER [WRITE_MS]

A step computes for 8 ms. What takes 5 ms to write stays hidden; what takes 16 ms fills the queue of two.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
from stopwatch import Stopwatch

from longpole import record

STEPS = 16
COMPUTE_S = 0.008


def main(folder: Path, write_s: float) -> None:
    """Train for some steps, recorded and stamped."""
    torch.set_num_threads(1)
    watch = Stopwatch(folder / "stamps.txt")
    model = torch.nn.Linear(256, 256)

    def save(state: dict[str, Any]) -> None:
        with watch.time("write"):
            torch.save(state, folder / "model.pt")
            time.sleep(write_s)

    batch = torch.randn(64, 256)
    with record.writer(save, capacity=2, name="checkpoint writer") as writer:
        for step in range(STEPS):
            with watch.time("unit", record.unit(step)):
                with watch.time("compute", record.stage("train", object="compute")):
                    until = time.perf_counter() + COMPUTE_S
                    while time.perf_counter() < until:
                        with torch.no_grad():
                            model(batch)
                        time.sleep(0.0005)  # the writer gets its turns of the interpreter
                state = {name: value.clone() for name, value in model.state_dict().items()}
                with watch.time("put"):
                    writer.put(state)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    record.start(target)
    main(target, float(sys.argv[2]) / 1e3 if len(sys.argv) > 2 else 0.016)
    record.stop()
