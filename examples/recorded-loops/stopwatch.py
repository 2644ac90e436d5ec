"""Time stamps of the loops' own, to compare a report with: what was measured where, by nothing of Longpole.

Each stamp is one line `what outer_start inner_start inner_end outer_end` (ns) of a file that all processes append to.
The recorder's span lies between the outer and the inner times, whatever the machine is busy with meanwhile.

    python stopwatch.py FOLDER/stamps.txt
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Stopwatch:
    """Appends stamps to a file; each is one write, so that threads and processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def time(self, what: str, span: AbstractContextManager[Any] | None = None) -> Iterator[None]:
        """Stamp a piece of the program outside and inside a span of the recorder; without one both are alike."""
        outer_ns = time.perf_counter_ns()
        with span or nullcontext():
            start_ns = time.perf_counter_ns()
            yield
            end_ns = time.perf_counter_ns()
        self.note(what, outer_ns, start_ns, end_ns, time.perf_counter_ns())

    def note(self, what: str, *times_ns: int) -> None:
        """Write one stamp."""
        line = f"{what} {' '.join(map(str, times_ns))}\n"
        with self.path.open("ab", buffering=0) as file:
            file.write(line.encode())


if __name__ == "__main__":
    total_ns: dict[str, list[int]] = {}
    for line in Path(sys.argv[1]).read_text().splitlines():
        what, outer, start, end, last = line.split()
        sums = total_ns.setdefault(what, [0, 0, 0])
        sums[0] += 1
        sums[1] += int(end) - int(start)
        sums[2] += int(last) - int(outer)
    for what, (times, inner_ns, outer_ns) in sorted(total_ns.items()):
        print(f"{what:<10} {times:>4} times {inner_ns / 1e6:>10.3f} ms, with the recorder {outer_ns / 1e6:>10.3f} ms")
