"""`longpole bench history`: whether benchmarks drift, and when they changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.outputs import check_file, write_file
from longpole.cli.terminal import COLORS, tell
from longpole.cli.values import parse_choice
from longpole.cli.verify_options import parse_share
from longpole.errors import UsageError

EXAMPLES: Final = """\b
Examples:
  longpole bench history benchmarks/results
  longpole bench history results/ --threshold 2% --picture history.svg
  longpole bench history results/ --fail-on-drift
  longpole bench history results/ --accept v2.1 --because 'checks every batch'

\b
Exit codes: 0; with --fail-on-drift 1 where a benchmark got slower, 5 where
  none can be judged."""
SLOWER: Final = 1
CANNOT_TELL: Final = 5
_BASELINE: Final = 20

Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="Run records, or results of pytest-benchmark, hyperfine or asv.")
]
Threshold = Annotated[
    str | None, typer.Option("--threshold", metavar="SHARE", help="A change worth an alarm.  [default: 3%]")
]
Baseline = Annotated[
    int,
    typer.Option("--baseline", metavar="N", min=5, help="The first N runs of a series are what the rest must match."),
]
Benchmark = Annotated[
    list[str] | None,
    typer.Option("--benchmark", metavar="TEXT", help="Only benchmarks whose name contains this; may be repeated."),
]
Picture = Annotated[str | None, typer.Option("--picture", metavar="FILE", help="Draw the series into an SVG file.")]
Fail = Annotated[bool, typer.Option("--fail-on-drift", help="Exit with 1 where a benchmark got slower.")]
Accept = Annotated[
    str | None, typer.Option("--accept", metavar="RUN", help="Begin a new baseline at this run, and remember it.")
]
Because = Annotated[str | None, typer.Option("--because", metavar="TEXT", help="Why the new level is right.")]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - for standard output.")
]


def history(
    folder: Folder,
    *,
    threshold: Threshold = None,
    baseline: Baseline = _BASELINE,
    benchmark: Benchmark = None,
    picture: Picture = None,
    fail_on_drift: Fail = False,
    accept: Accept = None,
    because: Because = None,
    json: JsonFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say whether benchmarks drift away from their baseline, and when they changed."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    if picture is not None:
        check_file("--picture", Path(picture))
    share = parse_share("--threshold", threshold)
    if accept is not None:
        _accept(folder, accept, because, benchmark or [])
    from longpole.pipeline.bench_history import measure_history
    from longpole.records.strict_json import encode_document
    from longpole.report.history_picture import render_picture
    from longpole.report.text.history import render_history

    document = measure_history(
        folder, threshold=0.03 if share is None else share, baseline_runs=baseline, benchmarks=benchmark or []
    )
    if picture is not None:
        write_file("--picture", Path(picture), render_picture(document).encode())
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_history(document, width=width, color=color),
        sources=[run.path for series in document.series for run in series.runs],
    )
    if fail_on_drift and document.verdict == "slower":
        raise typer.Exit(SLOWER)
    if fail_on_drift and all(series.verdict == "unknown" for series in document.series):
        raise typer.Exit(CANNOT_TELL)


def _accept(folder: str, run: str, because: str | None, benchmarks: list[str]) -> None:
    if not because or not because.strip():
        msg = f"--accept {run}: say with --because why the new level is right; later readers will ask"
        raise UsageError(msg)
    if len(benchmarks) > 1:
        msg = f"--accept {run}: expected one --benchmark, or none for every benchmark with such a run"
        raise UsageError(msg)
    from longpole.pipeline.bench_history import accept_run
    from longpole.report.escape import escape

    tell(escape(accept_run(folder, run, because.strip(), benchmarks[0] if benchmarks else "")))
