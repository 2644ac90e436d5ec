"""A loop that stands still while it saves: every fourth step writes the model with `torch.save`, 20 ms more at least.

python checkpointing.py FOLDER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from stopwatch import Stopwatch

from longpole import record

STEPS = 16
EVERY = 4
EXTRA_S = 0.020
COMPUTE_S = 0.008


def main(folder: Path) -> None:
    """Train for some steps, recorded and stamped."""
    torch.set_num_threads(1)
    watch = Stopwatch(folder / "stamps.txt")
    model = torch.nn.Linear(256, 256)
    batch = torch.randn(64, 256)
    for step in range(STEPS):
        with watch.time("unit", record.unit(step)):
            with watch.time("compute", record.stage("train", object="compute")):
                until = time.perf_counter() + COMPUTE_S
                while time.perf_counter() < until:
                    model(batch).sum().backward()
            if step % EVERY == EVERY - 1:
                with watch.time("save", record.checkpoint()):
                    torch.save(model.state_dict(), folder / "model.pt")
                    time.sleep(EXTRA_S)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    record.start(target)
    main(target)
    record.stop()
