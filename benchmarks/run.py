"""Measure how fast and how lean `longpole report` is, as whole processes, beside a plain `json.load` of the same files.

    python benchmarks/run.py
    python benchmarks/run.py --only ranks --repeats 5
    LONGPOLE_SHARED=../shared python benchmarks/run.py --only corpus

Prints the ratios with their targets first. Writes everything measured to `benchmarks/results/<date>-<label>.json`. The
method, and how to read the figures, is in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a script, from any folder

from benchmarks.generate_trace import parse_count, parse_size
from benchmarks.harness.process import CommandError
from benchmarks.harness.tables import render_runs, render_targets
from benchmarks.harness.trial import Bench, Target, Trial, as_record, as_target_record, find_hta, run_trial, time_help
from benchmarks.harness.workloads import BENCHMARKS, Workload, WorkloadError, find_corpus_trace, prepare_generated

NAMES = ("help", "corpus", "generated", "ranks")
BUSY_SHARE = 0.3  # of the cores; above it other work is likely to get in the way
DATA_FOLDER_VARIABLE = "LONGPOLE_SHARED"


def default_longpole() -> str:
    """Name the command beside this interpreter, else the one that the shell finds."""
    beside = Path(sys.executable).with_name("longpole")
    return shlex.quote(str(beside)) if beside.exists() else "longpole"


def default_label() -> str:
    """Describe the machine without naming it."""
    return f"{os.cpu_count()}cpu-{platform.machine()}-py{sys.version_info.major}.{sys.version_info.minor}"


def parse_names(text: str) -> list[str]:
    """Read a list of parts, such as `help,ranks`.

    Args:
        text: names with commas between them.

    Returns:
        The names.

    Raises:
        argparse.ArgumentTypeError: one is not known.
    """
    names = text.split(",")
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        message = f"expected some of {','.join(NAMES)}, found {','.join(unknown)}"
        raise argparse.ArgumentTypeError(message)
    return names


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=parse_names, default=list(NAMES), help=f"parts to run, of {','.join(NAMES)}")
    parser.add_argument("--repeats", type=parse_count, default=3, help="pairs of runs on each workload (default 3)")
    parser.add_argument("--size", type=parse_size, default=parse_size("1GB"), help="of the generated trace (1GB)")
    parser.add_argument("--rank-size", type=parse_size, default=parse_size("120MB"), help="of each rank (120MB)")
    parser.add_argument("--ranks", type=parse_count, default=8, help="of the generated job (8)")
    parser.add_argument("--longpole", default=default_longpole(), metavar="CMD", help="the command to measure")
    parser.add_argument(
        "--hta-python", default=sys.executable, metavar="PYTHON", help="an interpreter that may have HTA"
    )
    parser.add_argument("--no-hta", action="store_true", help="leave HTA out, even where it is installed")
    parser.add_argument("--label", default=default_label(), help="ends the result's name; say what is special")
    parser.add_argument("--data", type=Path, default=BENCHMARKS / ".data", help="keeps generated traces")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results", help="takes the result")
    parser.add_argument("--seed", type=int, default=0, help="decides the order within the pairs")
    parser.add_argument("--gate", action="store_true", help="exit with 1 where a target is missed or a figure is wrong")
    return parser


def prepare(name: str, args: argparse.Namespace) -> Workload:
    """Get the files of one part ready.

    Args:
        name: of the part.
        args: the parsed command line.

    Returns:
        The workload.

    Raises:
        WorkloadError: it cannot be had here.
    """
    if name == "generated":
        return prepare_generated("generated", args.data, args.size, 1)
    if name == "ranks":
        return prepare_generated("ranks", args.data, args.rank_size, args.ranks)
    shared = os.environ.get(DATA_FOLDER_VARIABLE)
    if shared is None:
        message = (
            f"corpus: set {DATA_FOLDER_VARIABLE} to the folder that holds corpus/ to measure the largest real trace"
        )
        raise WorkloadError(message)
    return find_corpus_trace(Path(shared))


def describe_machine() -> dict[str, Any]:
    """Describe what the figures hold for; no name, no path."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        model = found[1] if found is not None else ""
    return {
        "cpus": os.cpu_count(),
        "cpu_model": model or platform.machine(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
    }


@dataclass
class Outcome:
    """All that was measured, the targets outside of the trials, and what is missing and why."""

    trials: list[Trial] = field(default_factory=list)
    others: list[Target] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def targets(self) -> list[Target]:
        """List all targets."""
        return [target for trial in self.trials for target in trial.targets] + self.others

    def exit_code(self, *, gate: bool) -> int:
        """Say how it went: 3 a command failed, 1 a target is missed or a figure wrong (if asked), else 0."""
        if self.failures:
            return 3
        wrong = any(trial.figures not in ("exact", "not checked") for trial in self.trials)
        return int(gate and (wrong or not all(target.met for target in self.targets())))


def measure_all(args: argparse.Namespace, scratch: Path) -> Outcome:
    """Run every part that was asked for.

    Args:
        args: the parsed command line.
        scratch: a folder for outputs that nobody keeps.

    Returns:
        What came of it.
    """
    hta_python = None if args.no_hta else find_hta(args.hta_python, scratch)
    bench = Bench(shlex.split(args.longpole), scratch, args.repeats, args.seed, hta_python)
    outcome = Outcome()
    for name in args.only:
        sys.stderr.write(f"{name} …\n")
        try:
            if name == "help":
                outcome.others.append(time_help(bench))
            else:
                outcome.trials.append(run_trial(bench, prepare(name, args)))
        except WorkloadError as error:
            outcome.missing.append(str(error))
        except CommandError as error:
            outcome.failures.append(f"{name}: {error}")
    return outcome


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and store.

    Args:
        arguments: the command line; that of the process unless given.

    Returns:
        The exit code, see `Outcome.exit_code`.
    """
    args = build_parser().parse_args(arguments)
    machine = describe_machine()
    args.data.mkdir(parents=True, exist_ok=True)
    if machine["load_before"] > BUSY_SHARE * (os.cpu_count() or 1):
        sys.stderr.write(
            f"the machine is busy (load {machine['load_before']:.1f}); ratios will scatter, times mislead\n"
        )
    with tempfile.TemporaryDirectory(dir=args.data) as scratch:
        outcome = measure_all(args, Path(scratch))
    print(render_targets(outcome.targets()), render_runs(outcome.trials), sep="\n\n")
    for why in (*outcome.missing, *outcome.failures):
        print(f"left out: {why}")
    record = {
        "schema": "longpole.speed/1",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "label": args.label,
        "machine": machine,
        "repeats": args.repeats,
        "workloads": [as_record(trial) for trial in outcome.trials],
        "targets": [as_target_record(target) for target in outcome.others],
        "left_out": outcome.missing,
    }
    args.results.mkdir(parents=True, exist_ok=True)
    result = args.results / f"{record['date']}-{args.label}.json"
    result.write_text(json.dumps(record, indent=2) + "\n")
    print(f"\nwrote {result.name}")
    return outcome.exit_code(gate=args.gate)


if __name__ == "__main__":
    sys.exit(main())
