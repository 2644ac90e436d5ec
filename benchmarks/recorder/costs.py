"""Print what a span, a unit, a mark and a range cost: median and P99 of single calls, recording off and on.

    python -m benchmarks.recorder.costs [--calls 20000] [--pause-us 20]

Each call is timed by itself, less what reading the clock twice costs, with a pause between calls as a real loop has
one; the flush thread runs beside it as it would in a program. P99 is the nearest rank. PyTorch's ranges and marks on
collectives are measured where PyTorch is installed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from longpole import record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def time_calls(call: Callable[[], None], calls: int, pause_ns: int) -> list[int]:
    """Return the time of each of so many calls in ns, less the median cost of reading the clock twice."""
    clock = time.perf_counter_ns
    empty_ns = statistics.median_low([-clock() + clock() for _ in range(2000)])
    times = []
    for _ in range(calls):
        start_ns = clock()
        call()
        end_ns = clock()
        times.append(max(end_ns - start_ns - empty_ns, 0))
        while clock() - end_ns < pause_ns:
            pass
    return times


def describe(name: str, times: Sequence[int]) -> str:
    """Format one row of the table."""
    ordered = sorted(times)
    p99 = ordered[-(-99 * len(ordered) // 100) - 1]
    return f"{name:44} {statistics.median(ordered) / 1e3:9.2f} {p99 / 1e3:9.2f} {ordered[-1] / 1e3:10.1f}"


def nothing() -> None:
    """Do nothing: what the machine adds to every row."""


def span() -> None:
    """Open and end a stage."""
    with record.stage("forward", object="compute"):
        pass


def span_with_bytes() -> None:
    """Open a stage whose size is known later."""
    with record.stage("input", object="input") as opened:
        opened.bytes = 4096


def unit() -> None:
    """Open and end a unit."""
    with record.unit(7, items=32):
        pass


def do_nothing() -> None:
    """Do nothing; decorated below."""


decorated = record.stage("decorated")(do_nothing)


def depth() -> None:
    """Note how full a queue is."""
    record.queue("writer", 3, 4)


CALLS = {
    "an empty call": nothing,
    "stage": span,
    "stage, bytes set inside": span_with_bytes,
    "unit": unit,
    "decorated function": decorated,
    "queue": depth,
}


def measure(title: str, calls: int, pause_ns: int, names: Sequence[str] = tuple(CALLS)) -> None:
    """Print the rows of one state of recording."""
    for name in names:
        time_calls(CALLS[name], calls // 10, pause_ns)
        print(describe(f"{title}: {name}", time_calls(CALLS[name], calls, pause_ns)))


def measure_ranges(folder: str, calls: int, pause_ns: int) -> None:
    """Print what `annotate` costs."""
    with suppress(ImportError):
        import torch  # noqa: F401

        record.start(folder, annotate=True)
        measure("on, annotate", calls, pause_ns, ("stage", "unit"))
        record.stop()


def measure_marks(folder: str, calls: int, pause_ns: int) -> None:
    """Print what a collective of one process takes: without marks, with them, and with each on disk first."""
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        return
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(4)

    def reduce() -> None:
        dist.all_reduce(tensor)

    CALLS["all_reduce"] = reduce
    measure("no marks", calls, pause_ns, ("all_reduce",))
    for write_through in (False, True):
        record.start(folder)
        with record.collectives(write_through=write_through):
            measure("marks, written first" if write_through else "marks", calls, pause_ns, ("all_reduce",))
        record.stop()
    dist.destroy_process_group()


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--pause-us", type=float, default=20.0)
    options = parser.parse_args()
    pause_ns = round(options.pause_us * 1e3)
    print(f"{options.calls} calls each, {options.pause_us:g} µs apart; load average {os.getloadavg()[0]:.1f}")
    print(f"{'':44} {'median µs':>9} {'P99 µs':>9} {'largest µs':>10}")
    with tempfile.TemporaryDirectory() as folder:
        measure("off", options.calls, pause_ns)
        record.start(folder)
        measure("on", options.calls, pause_ns)
        record.stop()
        measure_ranges(folder, options.calls, pause_ns)
        measure_marks(folder, options.calls // 10, pause_ns)


if __name__ == "__main__":
    main()
