"""A loop as one in JAX or TensorFlow may be: its stages only have names, and Longpole goes by those.

    python names_only.py FOLDER

The step is one call that computes and is waited for (`block_until_ready`), so it alone says what it is.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from stopwatch import Stopwatch

from longpole import record

STEPS = 10


def main(folder: Path) -> None:
    """Train for some steps, recorded and stamped."""
    watch = Stopwatch(folder / "stamps.txt")
    for step in range(STEPS):
        with watch.time("unit", record.unit(step)):
            with watch.time("batch", record.stage("next batch")):
                time.sleep(0.004)
            with watch.time("train", record.stage("train_step", object="compute")):
                time.sleep(0.012)
            if step % 2:
                with watch.time("save", record.stage("save_checkpoint")):
                    time.sleep(0.008)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    record.start(target)
    main(target)
    record.stop()
