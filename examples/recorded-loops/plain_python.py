"""A program without any framework: it reads, works and writes, one request after another.

python plain_python.py FOLDER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from stopwatch import Stopwatch

from longpole import record

REQUESTS = 10


def main(folder: Path) -> None:
    """Serve some requests, recorded and stamped."""
    watch = Stopwatch(folder / "stamps.txt")
    for request in range(REQUESTS):
        with watch.time("unit", record.unit(request, name="request", items=1)):
            with watch.time("read", record.stage("read", object="input")):
                time.sleep(0.009)
            with watch.time("work", record.stage("work", object="compute")):
                until = time.perf_counter() + 0.005
                while time.perf_counter() < until:
                    pass
            with watch.time("answer", record.stage("answer", object="output")):
                time.sleep(0.003)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    record.start(target, items="request")
    main(target)
    record.stop()
