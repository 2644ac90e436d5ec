"""Workbenches of tiny objects for tests of `longpole bench io`, with instruments that can be broken on purpose."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

from longpole.bench.io.case import Checked, Prepared, Timing
from longpole.bench.io.catalogue import PATHS, PathRow
from longpole.bench.io.contents import make_content
from longpole.bench.io.disk import Disk
from longpole.bench.io.load_case import LoadCase
from longpole.bench.io.plan import PlannedCase, Workload, make_plan
from longpole.bench.io.rounds import CaseSamples, RoundOptions, Rounds, Sample, take_rounds
from longpole.bench.io.save_case import SaveCase
from longpole.bench.io.workbench import Instruments, Sweep, Workbench

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from longpole.bench.io.case import Case

SIZE = 64 << 10
ROWS = {row.name: row for row in PATHS}


def make_bench(folder: Path, instruments: Instruments | None = None, disk: Disk | None = None) -> Workbench:
    return Workbench(folder, make_content(4 * SIZE, 7), SIZE, instruments or Instruments(), disk or Disk())


def make_case(name: str, bench: Workbench, size: int = SIZE) -> Case:
    kinds: dict[str, Callable[[PathRow, int, Workbench], Case]] = {"load": LoadCase, "save": SaveCase}
    return kinds[ROWS[name].operation](ROWS[name], size, bench)


def take(case: Case, repeats: int = 3, clock_ns: Callable[[], int] = time.perf_counter_ns) -> CaseSamples:
    """Take a few rounds of one case."""
    one = CaseSamples(PlannedCase(case.row, case.size_bytes, case.objects, 1, repeats), case)
    workload = Workload(size_bytes=SIZE, sizes=(SIZE,), warmups=1, repeats=repeats)
    take_rounds(Rounds([one]), workload, RoundOptions(clock_ns=clock_ns, sweep=Sweep(4096)))
    return one


def ticking(step_ns: int = 1000) -> Callable[[], int]:
    """Return a clock that goes on by so much each time it is read."""
    ticks = itertools.count(0, step_ns)
    return lambda: next(ticks)


def sampled(
    name: str,
    size: int,
    service_ns: Sequence[int],
    *,
    warmups: int = 0,
    returned_ns: int | None = None,
    checked: Checked | None = None,
    rounds: Sequence[int] | None = None,
) -> CaseSamples:
    """Return a case with samples that were never taken."""
    row = ROWS[name]
    case: Any = type("NoCase", (), {"row": row, "size_bytes": size, "objects": 1, "side_effects": {}})()
    one = CaseSamples(PlannedCase(row, size, 1, warmups, len(service_ns) - warmups), case)
    for number, time_ns in zip(rounds or range(len(service_ns)), service_ns, strict=True):
        timing = Timing(service_ns=time_ns, returned_ns=returned_ns)
        one.samples.append(Sample(number, timing, Prepared(), checked or Checked(), {}, ()))
    return one


__all__ = ["ROWS", "SIZE", "make_bench", "make_case", "make_plan", "sampled", "take", "ticking"]
