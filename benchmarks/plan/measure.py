"""How long a plan and a search take on one core, and what the command loads.

    python -m benchmarks.plan.measure

Prints the time of the processor, not of the clock, so that a busy machine says nearly the same; nothing is asserted.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).resolve().parents[2]
PLAN: Final = ROOT / "examples" / "plans" / "llama3-70b.toml"
REPEATS: Final = 9
LAYOUTS: Final = 10_000
WIDE: Final = (
    ("search.tp", [1, 2, 4, 8]),
    ("search.pp", [1, 2, 4, 5, 8, 10, 16]),
    ("search.cp", [1, 2, 4]),
    ("search.zero", [0, 1, 2, 3]),
    ("search.micro_batch", [1, 2, 4, 8]),
    ("search.recompute", ["none", "selective", "full", "fit"]),
    ("search.vp", [1, 2, 4, 5]),
    ("search.devices", [64, 80, 128, 160]),
)
_FIRST: Final = """
import sys, time
started = time.process_time()
from longpole.pipeline.plan import PlanOptions, build_plan
loaded = time.process_time()
build_plan(sys.argv[1], PlanOptions())
print(loaded - started, time.process_time() - loaded, len(sys.modules))
print(sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "polars", "scipy", "rich", "typer"}))
"""


def main() -> None:
    """Measure, and print a table."""
    firsts = [_first() for _ in range(REPEATS)]
    imports_s, plans_s, modules = zip(*firsts, strict=True)
    print(f"import of the pipeline   {1000 * statistics.median(imports_s):8.1f} ms   {modules[0]} modules")
    print(f"first plan of a process  {1000 * statistics.median(plans_s):8.1f} ms")

    from longpole.pipeline.plan import PlanOptions, build_plan

    def timed(**options: object) -> float:
        return _seconds(lambda: build_plan(str(PLAN), PlanOptions(**options)))  # type: ignore[arg-type]

    for name, options in (
        ("a further plan", {}),
        ("with all formulas", {"figures": True}),
        ("with --free-memory", {"free_memory": True}),
    ):
        print(f"{name:<24} {1000 * timed(**options):8.1f} ms")
    started = time.process_time()
    plan = build_plan(str(PLAN), PlanOptions(search=True, changes=WIDE))
    spent = time.process_time() - started
    assert plan.search is not None
    found = plan.search
    print(f"search                   {spent:8.2f} s    {found.considered:,} layouts, {found.divide:,} divide,"
          f" {found.fit:,} fit: {LAYOUTS * spent / found.considered:.2f} s for {LAYOUTS:,}")  # fmt: skip


def _first() -> tuple[float, float, int]:
    run = subprocess.run([sys.executable, "-c", _FIRST, str(PLAN)], check=True, capture_output=True, text=True)
    figures, heavy = run.stdout.splitlines()
    if heavy != "[]":
        print(f"loads {heavy}")
    imported, planned, modules = figures.split()
    return float(imported), float(planned), int(modules)


def _seconds(call: Callable[[], object]) -> float:
    spent = []
    for _ in range(REPEATS):
        started = time.process_time()
        call()
        spent.append(time.process_time() - started)
    return statistics.median(spent)


if __name__ == "__main__":
    main()
