"""Compare `longpole report` with a plain `json.load` of the same files: fresh processes, in pairs of random order."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.harness.process import CommandError, Measured, run_measured

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.harness.workloads import DeviceTruth, Workload

RATIO_LIMIT = 0.4
MEMORY_BASE_BYTES = 250 * 10**6
MEMORY_BYTES_PER_EVENT = 120
HELP_LIMIT_S = 0.3
HTA_TIME_LIMIT = 1 / 20
HTA_MEMORY_LIMIT = 1 / 3
JSON_LOAD_BYTES_PER_BYTE = 5.5  # measured: 5.5 GB for a trace of 1.03 GB; half as much again for safety below
JSON_LOAD = """
import gzip, json, sys
events = 0
for name in sys.argv[1:]:
    trace = None
    with (gzip.open if name.endswith(".gz") else open)(name, "rb") as file:
        trace = json.load(file)
    events += len(trace["traceEvents"] if isinstance(trace, dict) else trace)
print(events)
"""
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files=dict(enumerate(sys.argv[1:])), trace_dir="")
print(analysis.get_temporal_breakdown(visualize=False))
"""


@dataclass(frozen=True)
class Target:
    """One figure beside what it should be at most."""

    says: str
    value: float
    limit: float
    unit: str
    spread: tuple[float, float] | None = None
    n: int = 1

    @property
    def met(self) -> bool:
        """Say whether the figure is within its limit."""
        return self.value <= self.limit


@dataclass
class Trial:
    """All runs on one workload, and what follows from them."""

    workload: Workload
    ours: list[Measured] = field(default_factory=list)
    plain: list[Measured] = field(default_factory=list)
    cached: list[Measured] = field(default_factory=list)
    hta: Measured | None = None
    n_events: int = 0
    figures: str = "not checked"
    skipped: list[str] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)


@dataclass(frozen=True)
class Bench:
    """How to measure."""

    longpole: list[str]
    scratch: Path
    n_repeats: int
    seed: int
    hta_python: str | None


def compare_figures(report: Path, truths: tuple[DeviceTruth, ...]) -> str:
    """Compare the device times of a report with what is known.

    Args:
        report: the JSON that `longpole report` wrote.
        truths: what is known, in any order.

    Returns:
        `exact`, `not checked`, or what differs.
    """
    if not truths:
        return "not checked"
    try:
        ranks = json.loads(report.read_bytes())["ranks"]
        found = sorted((rank["device_span"]["span_ns"], rank["device_span"]["busy_ns"]) for rank in ranks)
    except (ValueError, KeyError, TypeError) as error:
        return f"no report: {type(error).__name__} {error}"
    expected = sorted((truth.span_ns, truth.busy_ns) for truth in truths)
    if found == expected:
        return "exact"
    return f"differ: expected (span, busy) {expected[:2]}, found {found[:2]}"


def fits_memory(workload: Workload) -> bool:
    """Say whether a plain `json.load` of the largest file would fit into the memory that is free now."""
    largest_bytes = workload.size_bytes / len(workload.files)
    return bool(largest_bytes * JSON_LOAD_BYTES_PER_BYTE * 1.5 < psutil.virtual_memory().available)


def warm_up(files: tuple[Path, ...]) -> None:
    """Read the files once, so that no run has to wait for the disk."""
    for path in files:
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass


def run_pairs(bench: Bench, trial: Trial) -> None:
    """Run the pairs.

    Args:
        bench: how to measure.
        trial: takes the runs.
    """
    workload = trial.workload
    report, counted = bench.scratch / "report.json", bench.scratch / "json-load.txt"
    commands = {"ours": [*bench.longpole, "report", str(workload.path), "--json", "-", "--no-cache"]}
    if fits_memory(workload):
        commands["plain"] = [sys.executable, "-c", JSON_LOAD, *map(str, workload.files)]
    else:
        trial.skipped.append("json.load: not enough free memory")
    random = Random(f"{bench.seed}/{workload.name}")
    for _ in range(bench.n_repeats):
        for side in random.sample(sorted(commands), len(commands)):
            if side == "ours":
                trial.ours.append(run_measured(commands[side], report))
            else:
                trial.plain.append(run_measured(commands[side], counted))
                trial.n_events = int(counted.read_text())
    trial.n_events = trial.n_events or workload.facts.get("events", 0)
    trial.figures = compare_figures(report, workload.truths)


def run_cached(bench: Bench, trial: Trial) -> None:
    """Fill a cache of our own, then measure runs that find everything in it.

    Args:
        bench: how to measure.
        trial: takes the runs.
    """
    cache = bench.scratch / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir()
    command = [*bench.longpole, "report", str(trial.workload.path), "--json", "-"]
    env = {"LONGPOLE_CACHE": str(cache)}
    report = bench.scratch / "cached.json"
    run_measured(command, report, env=env)
    trial.cached = [run_measured(command, report, env=env) for _ in range(bench.n_repeats)]
    shutil.rmtree(cache, ignore_errors=True)


def median_target(says: str, values: list[float], limit: float, unit: str) -> Target:
    """Judge the median of some runs."""
    return Target(says, statistics.median(values), limit, unit, (min(values), max(values)), len(values))


def judge(trial: Trial) -> None:
    """Set the figures of a trial beside their targets.

    Args:
        trial: with all its runs; takes the targets.
    """
    name = trial.workload.name
    if trial.plain:
        ratios = [ours.wall_s / plain.wall_s for ours, plain in zip(trial.ours, trial.plain, strict=True)]
        trial.targets.append(median_target(f"{name}: time / json.load", ratios, RATIO_LIMIT, "x"))
    limit_mb = (MEMORY_BASE_BYTES + MEMORY_BYTES_PER_EVENT * trial.n_events) / 1e6
    peaks_mb = [run.peak_tree_bytes / 1e6 for run in trial.ours]
    trial.targets.append(median_target(f"{name}: peak memory", peaks_mb, limit_mb, "MB"))
    if trial.cached and trial.workload.cache_limit_s is not None:
        walls_s = [run.wall_s for run in trial.cached]
        trial.targets.append(median_target(f"{name}: from the cache", walls_s, trial.workload.cache_limit_s, "s"))
    if trial.hta is not None:
        ours_s = statistics.median(run.wall_s for run in trial.ours)
        ours_bytes = statistics.median(run.peak_tree_bytes for run in trial.ours)
        trial.targets.append(Target(f"{name}: time / HTA", ours_s / trial.hta.wall_s, HTA_TIME_LIMIT, "x"))
        memory = ours_bytes / trial.hta.peak_tree_bytes
        trial.targets.append(Target(f"{name}: memory / HTA", memory, HTA_MEMORY_LIMIT, "x"))


def run_trial(bench: Bench, workload: Workload) -> Trial:
    """Measure everything on one workload.

    Args:
        bench: how to measure.
        workload: what to read.

    Returns:
        The trial, judged.

    Raises:
        CommandError: `longpole report` or `json.load` failed on it.
    """
    trial = Trial(workload)
    warm_up(workload.files)
    run_pairs(bench, trial)
    if workload.cache_limit_s is not None:
        run_cached(bench, trial)
    if bench.hta_python is not None and workload.name != "ranks":
        try:
            command = [bench.hta_python, "-c", HTA, *map(str, workload.files)]
            trial.hta = run_measured(command, bench.scratch / "hta.txt")
        except CommandError as error:
            trial.skipped.append(f"HTA failed: {str(error).splitlines()[-1]}")
    judge(trial)
    return trial


def time_help(bench: Bench) -> Target:
    """Measure how long the command takes to say what it can do.

    Args:
        bench: how to measure.

    Returns:
        The median beside its target.

    Raises:
        CommandError: it failed.
    """
    runs = [
        run_measured([*bench.longpole, "--help"], bench.scratch / "help.txt") for _ in range(2 * bench.n_repeats + 1)
    ]
    return median_target("longpole --help", [run.wall_s for run in runs], HELP_LIMIT_S, "s")


def find_hta(python: str, scratch: Path) -> str | None:
    """Say whether an interpreter can import HTA.

    Args:
        python: the interpreter.
        scratch: where its output goes.

    Returns:
        The interpreter, or None.
    """
    try:
        run_measured([python, "-c", "import hta.trace_analysis"], scratch / "hta.txt")
    except CommandError:
        return None
    return python


def as_record(trial: Trial) -> dict[str, Any]:
    """Give a trial as plain data; no path of the machine is in it."""
    return {
        "name": trial.workload.name,
        "says": trial.workload.says,
        "size_bytes": trial.workload.size_bytes,
        "events": trial.n_events,
        "figures": trial.figures,
        "skipped": trial.skipped,
        "targets": [as_target_record(target) for target in trial.targets],
        "runs": {
            "longpole": [asdict(run) for run in trial.ours],
            "json_load": [asdict(run) for run in trial.plain],
            "cached": [asdict(run) for run in trial.cached],
            "hta": asdict(trial.hta) if trial.hta is not None else None,
        },
    }


def as_target_record(target: Target) -> dict[str, Any]:
    """Give a target as plain data."""
    return {**asdict(target), "met": target.met}
