"""A step of pure Python whose length is known to scale: `workload.py [FACTOR] [STEPS]`; two stages, about 5 ms a step.

FACTOR lengthens both stages by counting further, so that the true ratio of two runs is the ratio of their factors. It
writes a span file (`longpole.spans/1`) with the standard library alone, where a benchmark asks for one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

STAGES = (("input", 12_000), ("forward", 28_000))


def main() -> int:
    """Run the steps."""
    factor = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    thread = threading.get_native_id()
    lines: list[dict[str, object]] = []
    for step in range(steps):
        begins_ns = time.perf_counter_ns()
        for name, count in STAGES:
            start_ns = time.perf_counter_ns()
            spin(round(count * factor))
            took_ns = time.perf_counter_ns() - start_ns
            lines.append({"k": "span", "n": name, "s": start_ns, "d": took_ns, "t": thread, "stage": name})
        ends_ns = time.perf_counter_ns()
        lines.append({"k": "unit", "n": f"step {step}", "s": begins_ns, "d": ends_ns - begins_ns, "t": thread})
    folder = os.environ.get("LONGPOLE_RECORD")
    if folder:
        write(Path(folder), lines, thread)
    return 0


def spin(count: int) -> int:
    """Count, in steps that each take as long."""
    total = 0
    for value in range(count):
        total += value & 3
    return total


def write(folder: Path, lines: list[dict[str, object]], thread: int) -> None:
    """Write the span file."""
    header = {
        "k": "header",
        "schema": "longpole.spans/1",
        "clock_ns": time.perf_counter_ns(),
        "epoch_ns": time.time_ns(),
        "pid": os.getpid(),
        "main_thread": thread,
    }
    text = "\n".join(json.dumps(line) for line in (header, *lines)) + "\n"
    (folder / f"workload-{os.getpid()}.spans.jsonl").write_text(text)


if __name__ == "__main__":
    sys.exit(main())
