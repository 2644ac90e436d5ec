"""`longpole bench calibrate`: the noise floor of a command on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.bench.durations import parse_duration_s
from longpole.cli.documents import DocumentOutput
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice, parse_count, parse_if_given
from longpole.cli.verify_options import parse_share
from longpole.errors import InputError, LongpoleError

EXAMPLES: Final = """\b
Examples:
  longpole bench calibrate
  longpole bench calibrate -- python train.py --steps 50
  longpole bench calibrate --pairs 40 --out noise.json bench_step.py::step

\b
Exit codes: 0 calibrated, 2 the command cannot be started, 6 it failed or
  there were too few pairs."""
INVALID: Final = 6
THRESHOLD: Final = 0.03
_WARMUP_PROCESSES: Final = 1

Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="[--] CMD… | FILE.py::STEP", help="What to run; a fixed loop where nothing is named."),
]
Pairs = Annotated[str, typer.Option("--pairs", metavar="N", help="How many pairs of equal processes.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of the random order, and of a step.")]
Budget = Annotated[str, typer.Option("--budget", metavar="TIME", help="Begin no pair after so long.")]
Timeout = Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="End a process after so long.")]
Warmup = Annotated[
    str | None, typer.Option("--warmup", metavar="N", help="Units of each process to leave out.  [default: 3]")
]
Units = Annotated[
    str | None,
    typer.Option("--units", metavar="N", help="Units of each process that count, at most; samples of a step."),
]
Threshold = Annotated[
    str | None, typer.Option("--threshold", metavar="SHARE", help="The change that must be seen.  [default: 3%]")
]
Out = Annotated[
    str | None,
    typer.Option("--out", metavar="FILE", help="Where to keep it.  [default: benchmarks/calibration/ID.json]"),
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write it here too; - for standard output.")
]


def calibrate(
    command: Command = None,
    *,
    pairs: Pairs = "20",
    seed: Seed = 42,
    budget: Budget = "10min",
    timeout: Timeout = None,
    warmup: Warmup = None,
    units: Units = None,
    threshold: Threshold = None,
    out: Out = None,
    json: JsonFile = None,
    settings: option.SettingsFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Run a command against itself: the noise floor, and the smallest change that pairs can see."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    count, share = parse_count("--pairs", pairs), parse_share("--threshold", threshold)
    from longpole.bench.repeat import RepeatPlan
    from longpole.pipeline.bench_calibrate import CalibrateOptions, bench_calibrate
    from longpole.pipeline.bench_run import BenchRunOptions
    from longpole.records.strict_json import encode_document
    from longpole.report.text.bench_calibrate import render_calibration

    measured = BenchRunOptions(
        label="calibration",
        plan=RepeatPlan(warmup_processes=_WARMUP_PROCESSES),
        warmup_units=0 if warmup == "0" else parse_count("--warmup", warmup),
        units=parse_count("--units", units),
        seed=seed,
        timeout_s=parse_duration_s("--timeout", timeout),
        settings=parse_if_given(Path, settings),
    )
    options = CalibrateOptions(
        run=measured,
        pairs=count or 1,
        order_seed=seed,
        budget_s=parse_duration_s("--budget", budget),
        threshold=share or THRESHOLD,
        out=parse_if_given(Path, out),
    )
    on_terminal = sys.stderr.isatty() and not quiet

    def show(done: int) -> None:
        if on_terminal:
            print(f"\r\x1b[Kpair {done} of {count}", end="", file=sys.stderr, flush=True)

    try:
        found, path = bench_calibrate(command or [], options, show)
    except InputError as error:
        raise NotCalibratedError(str(error)) from None
    finally:
        if on_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    output.write(
        lambda: encode_document(found),
        lambda width, color: render_calibration(found, path, width=width, color=color),
        sources=[],
    )


class NotCalibratedError(LongpoleError):
    """There is no noise floor: a process failed, or too few pairs were run."""

    exit_code = INVALID
