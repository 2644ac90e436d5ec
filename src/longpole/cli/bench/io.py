"""`longpole bench io`: what loading, saving and copying take on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.bench import io_options as asked
from longpole.cli.bench.durations import parse_duration_s
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.terminal import COLORS, page_width, tell, wants_color, write_text
from longpole.cli.values import parse_choice
from longpole.cli.verify_options import parse_share

if TYPE_CHECKING:
    from longpole.pipeline.bench_io import BenchIoOptions

EXAMPLES: Final = """\b
Examples:
  longpole bench io
  longpole bench io --dry-run --sizes 4KiB..1GiB
  longpole bench io --in /mnt/data --paths 'torch.*' --label nvme
  longpole bench io --paths output --exposed --every 10min
  longpole bench show benchmarks/results/ID/LABEL.json

\b
Exit codes: 0 measured, 6 failed, or a path is not what it says,
  130 interrupted."""
INTERRUPTED_CODE: Final = 130
INVALID_CODE: Final = 6


def io(
    *,
    size: asked.Size = "64MiB",
    sizes: asked.Sizes = None,
    paths: asked.Paths = None,
    repeats: asked.Repeats = "20",
    warmup: asked.Warmup = "5",
    seed: asked.Seed = "42",
    threads: asked.Threads = "1",
    budget: asked.Budget = None,
    folder: asked.Folder = ".",
    exposed: asked.Exposed = False,
    pairs: asked.Pairs = "10",
    every: asked.Every = None,
    io_budget: asked.IoBudget = "2%",
    label: asked.Label = None,
    out: asked.Out = "benchmarks/results",
    dry_run: asked.DryRun = False,
    json: asked.JsonFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Measure what loading, saving and copying take here: cold and warm, durable or not, every byte checked."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    from longpole.bench.io.plan import DEFAULT_SIZES, Workload
    from longpole.pipeline.bench_io import BenchIoOptions

    size_bytes = asked.parse_size("--size", size)
    options = BenchIoOptions(
        workload=Workload(
            size_bytes=size_bytes,
            sizes=asked.parse_sizes(sizes, size_bytes, DEFAULT_SIZES),
            warmups=asked.parse_whole("--warmup", warmup, least=0),
            repeats=asked.parse_whole("--repeats", repeats, least=1),
            seed=asked.parse_whole("--seed", seed, least=0, most=2_147_483_647),
            threads=asked.parse_whole("--threads", threads, least=1, most=1024),
        ),
        paths=[name.strip() for text in paths or [] for name in text.split(",") if name.strip()],
        folder=Path(folder),
        out=Path(out),
        label=label,
        budget_s=parse_duration_s("--budget", budget),
        exposed=exposed,
        pairs=asked.parse_whole("--pairs", pairs, least=1, most=1000),
        every_s=parse_duration_s("--every", every),
        io_budget=parse_share("--io-budget", io_budget) or 0.0,
    )
    if dry_run:
        _print_plan(options, output)
        return
    _measure(options, output)


def _print_plan(options: BenchIoOptions, output: DocumentOutput) -> None:
    from longpole.pipeline.bench_io import prepare_bench_io
    from longpole.report.text.bench_io_plan import render_plan

    found = prepare_bench_io(options)
    color = wants_color(output.color)
    write_text(render_plan(found.plan, found.preflight, found.storage, width=page_width(), color=color))


def _measure(options: BenchIoOptions, output: DocumentOutput) -> None:
    """Measure, write the record and its page.

    Raises:
        typer.Exit: The run failed or was interrupted, or a path is not what it says.
    """
    from longpole.pipeline.bench_io import INTERRUPTED, measure_bench_io
    from longpole.records.bench_io_file import encode_bench_io
    from longpole.report.text.bench_io import render_bench_io

    with Progress(wanted=not output.quiet) as progress:
        record, written, problem = measure_bench_io(options, progress.update)
    if problem:
        tell(f"longpole: {problem}")
    output.write(
        lambda: encode_bench_io(record),
        lambda width, color: render_bench_io(record, width=width, color=color, written=written),
        sources=[written],
    )
    if record.failure.startswith(INTERRUPTED):
        raise typer.Exit(INTERRUPTED_CODE)
    if record.status != "measured":
        raise typer.Exit(INVALID_CODE)
