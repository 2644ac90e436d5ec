"""Print published and measured steps beside ours: the table of docs/concepts/how-good-are-step-times.md.

python -m benchmarks.plan.steps [--fit]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from longpole.costs.calibration_fit import fit_calibration
from tests.published_steps import bridge, korthikanti, mpt, sc21, simumax, torchtitan, vtrain, whole_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.published_steps import Case

ORACLES = Path(__file__).parents[2] / "tests" / "oracles"
_HEAD = "| steps | rows | mean | median | fastest to slowest |\n| --- | ---: | ---: | ---: | ---: |"
_FITTED_HEAD = "| fitted to | rows | others | shipped | fitted | at bounds |\n| --- | ---: | ---: | ---: | ---: | --- |"


def main() -> int:
    """Print a row for each table; with --fit, what calibration leaves on rows that it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true", help="fit constants to a part of the rows, and predict the rest")
    fits = parser.parse_args().fit
    cases, shown = simumax(ORACLES), bridge(ORACLES)
    tables = {
        "SC21 table 1": sc21(ORACLES),
        "Korthikanti et al. table 5": korthikanti(ORACLES),
        "vTrain, several nodes": vtrain(ORACLES, "multi"),
        "vTrain, one node": vtrain(ORACLES, "single"),
        "llm-foundry, A100, FSDP": mpt(ORACLES, "a100"),
        "llm-foundry, H100, FSDP": mpt(ORACLES, "h100"),
        "torchtitan, H100 of 500 W, BF16": torchtitan(ORACLES),
        "Megatron-Bridge, H100, FP8": [case for case in shown if "H100" in case.step.name],
        "Megatron-Bridge, GB200, FP8": [case for case in shown if "GB200" in case.step.name],
        "SimuMax, B200, dense": [case for case in cases if case.step.model.experts is None],
        "SimuMax, B200, experts": [case for case in cases if case.step.model.experts is not None],
        "whole runs: MT-NLG, BLOOM, Nemotron-4": whole_runs(),
    }
    print(_HEAD)
    for name, rows in tables.items():
        _print_errors(name, rows)
    if fits:
        print(f"\n{_FITTED_HEAD}")
        for name, every in (("vTrain, one node", 24), ("vTrain, several nodes", 4)):
            _print_fit(name, tables[name], every)
        _print_fit("SimuMax, B200", cases, 3)
    return 0


def _print_errors(name: str, cases: Sequence[Case]) -> None:
    errors = sorted(case.error() for case in cases)
    mean = sum(map(abs, errors)) / len(errors)
    print(
        f"| {name} | {len(errors)} | {mean:.1%} | {median(errors):+.1%} | {errors[0]:+.1%} to {errors[-1]:+.1%} |",
        flush=True,
    )


def _print_fit(name: str, cases: Sequence[Case], every: int) -> None:
    fitted = cases[every // 2 :: every]
    others = [case for at, case in enumerate(cases) if at % every != every // 2]
    start = time.perf_counter()
    found = fit_calibration([case.step for case in fitted], cases[0].costs, cases[0].software)
    print(f"{name}: fitted in {time.perf_counter() - start:.1f} s", file=sys.stderr)
    shipped, left = (
        sum(abs(case.error(constants)) for case in others) / len(others) for constants in (None, found.calibration)
    )
    bounds = ", ".join(found.at_bounds) or "–"
    print(f"| {name} | {len(fitted)} | {len(others)} | {shipped:.1%} | {left:.1%} | {bounds} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
