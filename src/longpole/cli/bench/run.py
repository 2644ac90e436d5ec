"""`longpole bench run`: measure a command, or a step of your own, in fresh processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.bench.durations import parse_duration_s
from longpole.cli.documents import DocumentOutput
from longpole.cli.terminal import COLORS, tell
from longpole.cli.values import parse_choice, parse_count, parse_if_given, parse_items
from longpole.cli.verify_options import parse_share

if TYPE_CHECKING:
    from longpole.bench.make_record import Measured

EXAMPLES: Final = """\b
Examples:
  longpole bench run --label before -- python train.py --steps 50
  longpole bench run bench_step.py::step
  longpole bench run --processes 20 --target 1% -- ./solver input.bin
  longpole bench run --items 16384:token --input data.bin -- python train.py

\b
Exit codes: 0 measured, 2 the command cannot be started, 6 it failed, its
  result is wrong, or no unit of it counts."""
INVALID: Final = 6
INTERRUPTED: Final = 130  # what a shell reports for a program that SIGINT ended: 128 + 2
PROCESSES: Final = 10
MOST: Final = 40
TARGET: Final = 0.02
_WARMUP_PROCESSES: Final = 1

Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="[--] CMD… | FILE.py::STEP", help="What to run: a command, or a function of a Python file."),
]
Label = Annotated[str | None, typer.Option("--label", metavar="TEXT", help="What to call the record; else the time.")]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="TEXT", help="What is measured, where the command changes from run to run."),
]
Processes = Annotated[
    str | None,
    typer.Option("--processes", metavar="N", help="Exactly so many processes; else 10 to 40, until --target is met."),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="SHARE", help="Stop when half the interval of the median is this small.  [default: 2%]"
    ),
]
Budget = Annotated[str, typer.Option("--budget", metavar="TIME", help="Begin no process after so long.")]
Timeout = Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="End a process after so long.")]
Warmup = Annotated[
    str | None, typer.Option("--warmup", metavar="N", help="Units of each process to leave out.  [default: 3]")
]
WarmupProcesses = Annotated[
    int, typer.Option("--warmup-processes", metavar="N", min=0, help="Processes to run first and leave out.")
]
Units = Annotated[
    str | None,
    typer.Option("--units", metavar="N", help="Units of each process that count, at most; samples of a step."),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="For a step's generators; LONGPOLE_SEED for a command.")
]
Items = Annotated[
    str | None, typer.Option("--items", metavar="N[:KIND]", help="What a unit processes, such as 16384:token.")
]
Input = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="FILE", help="A file that the result depends on: its hash is kept; repeatable."),
]
Out = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR|FILE.json", help="Where the record goes.  [default: benchmarks/results]"),
]
ShowOutput = Annotated[bool, typer.Option("--show-output", help="Let the command's output through to standard error.")]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the record here too; - for standard output.")
]


def run(
    command: Command = None,
    *,
    label: Label = None,
    name: Name = None,
    processes: Processes = None,
    target: Target = None,
    budget: Budget = "10min",
    timeout: Timeout = None,
    warmup: Warmup = None,
    warmup_processes: WarmupProcesses = _WARMUP_PROCESSES,
    units: Units = None,
    seed: Seed = 42,
    items: Items = None,
    inputs: Input = None,
    out: Out = None,
    show_output: ShowOutput = False,
    json: JsonFile = None,
    settings: option.SettingsFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Measure a command or a marked step in fresh processes, and keep every sample in a record."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    exactly, share = parse_count("--processes", processes), parse_share("--target", target)
    from longpole.bench.repeat import INTERRUPTED as BY_USER
    from longpole.bench.repeat import RepeatPlan
    from longpole.pipeline.bench_run import BenchRunOptions, bench_run
    from longpole.records.run_record_file import encode_record
    from longpole.report.text.bench_run import render_bench_run

    plan = RepeatPlan(
        processes=exactly or PROCESSES,
        most=max(exactly or 0, MOST),
        target_share=share or (TARGET if exactly is None else None),
        budget_s=parse_duration_s("--budget", budget),
        warmup_processes=warmup_processes,
    )
    options = BenchRunOptions(
        label=label or "",
        name=name or "",
        plan=plan,
        warmup_units=0 if warmup == "0" else parse_count("--warmup", warmup),
        units=parse_count("--units", units),
        seed=seed,
        items=parse_items("--items", items) if items is not None else None,
        inputs=[Path(path) for path in inputs or []],
        timeout_s=parse_duration_s("--timeout", timeout),
        out=parse_if_given(Path, out),
        show_output=show_output,
        settings=parse_if_given(Path, settings),
    )
    counter = Counter(wanted=not quiet, plan_processes=plan.processes + plan.warmup_processes)
    answer = bench_run(command or [], options, counter.update)
    counter.clear()
    output.write(
        lambda: encode_record(answer.record),
        lambda width, color: render_bench_run(answer, width=width, color=color),
        sources=[str(path) for path in options.inputs],
    )
    if answer.record.extra.get("stopped") == BY_USER:
        raise typer.Exit(INTERRUPTED)
    if answer.record.failure or not answer.spread.units:
        if quiet:
            tell(f"longpole: {answer.record.failure or 'no unit counts'}")
        raise typer.Exit(INVALID)


class Counter:
    """Says on a terminal how many processes are done; one line that goes away at the end."""

    def __init__(self, *, wanted: bool, plan_processes: int) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._plan = plan_processes

    def update(self, measured: Measured) -> None:
        """Hear of a process that has ended."""
        if self._wanted:
            print(f"\r\x1b[Kprocess {len(measured.results)} of {self._plan}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._wanted:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
