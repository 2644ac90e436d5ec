"""Time stamps of the loops' own, to compare a report with: what was measured where, by nothing of Longpole.

Each stamp is one line `process what start_ns end_ns` of a file that all processes append to; `truth` reads it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Span = tuple[int, int]


class Stopwatch:
    """Appends stamps to a file; each is one write, so that threads and processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def time(self, what: str) -> Iterator[None]:
        """Stamp a piece of the program."""
        start_ns = time.perf_counter_ns()
        try:
            yield
        finally:
            line = f"{os.getpid()} {what} {start_ns} {time.perf_counter_ns()}\n"
            with self.path.open("ab", buffering=0) as file:
                file.write(line.encode())


def read_stamps(path: Path) -> dict[str, list[Span]]:
    """Return the spans by what was timed."""
    stamps: dict[str, list[Span]] = {}
    for line in path.read_text().splitlines():
        _, what, start, end = line.split()
        stamps.setdefault(what, []).append((int(start), int(end)))
    return stamps


def union(spans: list[Span]) -> list[Span]:
    """Merge spans that touch or overlap."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def common_ns(one: list[Span], other: list[Span]) -> int:
    """Return for how long two things went on at once, in ns."""
    return sum(
        max(min(end, other_end) - max(start, other_start), 0)
        for start, end in union(one)
        for other_start, other_end in union(other)
    )


def total_ns(spans: list[Span]) -> int:
    """Return how long something went on, in ns."""
    return sum(end - start for start, end in union(spans))


if __name__ == "__main__":
    for name, found in sorted(read_stamps(Path(sys.argv[1])).items()):
        print(json.dumps({"what": name, "times": len(found), "ms": total_ns(found) / 1e6}))
