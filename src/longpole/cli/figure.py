"""`longpole figure`: a figure of a run for a paper or a review."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.outputs import STDOUT, check_file, refuse_traces, write_file
from longpole.cli.progress import Progress
from longpole.cli.reading_options import reading_options
from longpole.cli.terminal import tell, write_bytes
from longpole.cli.values import parse_amount, parse_choice, parse_count
from longpole.errors import Unanswered, UsageError
from longpole.report.escape import escape

if TYPE_CHECKING:
    from longpole.report.document import Report
    from longpole.report.figures.sheet import Drawn

EXAMPLES: Final = """\b
Examples:
  longpole figure gantt traces/ -o step.svg
  longpole figure gantt traces/ --unit 'ProfilerStep#7' --rank 0,5 -o 7.pdf
  longpole figure ledger traces/ --width 3.4 -o ledger.pdf
  longpole figure ledger traces/ --by unit -o units.png --dpi 300
  longpole figure path traces/ -o path.svg
  longpole figure matrix traces/ -o matrix.svg

\b
gantt    threads and streams of one unit, with the critical path through them
ledger   where a unit goes, by object: a bar for each rank, or for each unit
path     the critical path of one unit, piece by piece
matrix   what operators ask of each resource, and the three indicators"""
FIGURES: Final = ("gantt", "ledger", "path", "matrix")
FORMATS: Final = ("svg", "png", "pdf")
LEDGER_BY: Final = ("rank", "unit")
NOT_KNOWN: Final = 5
_DPI: Final = (50, 1200)

Figure = Annotated[
    str, typer.Argument(metavar="FIGURE", help="gantt, ledger, path or matrix.", autocompletion=lambda: list(FIGURES))
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Where to: x.svg, x.png or x.pdf; - for SVG on standard output."
    ),
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="NAME", help="This unit; else that of the critical path, in a ledger the mean."),
]
By = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="WHAT",
        autocompletion=lambda: list(LEDGER_BY),
        help="Bars of a ledger: rank, or unit for those of the rank that the verdict names.",
    ),
]
Width = Annotated[str | None, typer.Option("--width", metavar="INCHES", help="How wide, from 3 to 40; 7.2 by default.")]
Dpi = Annotated[str | None, typer.Option("--dpi", metavar="N", help="Dots per inch of PNG; 200 by default.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on standard error.")]


def figure(
    figure: Figure,
    paths: option.Paths,
    *,
    output: Output = None,
    unit: Unit = None,
    by: By = "rank",
    width: Width = None,
    dpi: Dpi = None,
    step: option.Step = None,
    units: option.Units = None,
    rank: option.Ranks = None,
    rules: option.Rules = None,
    settings: option.SettingsFile = None,
    collective_record: option.CollectiveRecord = None,
    no_cache: option.NoCache = False,
    verify_cache: option.VerifyCache = False,
    job: option.Job = None,
    jobs: option.Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Draw a figure of a run, as SVG, PDF or PNG."""
    parse_choice("figure", figure, FIGURES)
    kind = _format_of(figure, output)
    dots = _dots(parse_count("--dpi", dpi), kind)
    width_in = parse_amount("--width", width)
    options = reading_options(
        step=step,
        units=units,
        rank=rank,
        rules=rules,
        settings=settings,
        no_cache=no_cache,
        verify_cache=verify_cache,
        job=job,
        jobs=jobs,
        unit=unit if figure != "ledger" else None,
        collective_record=collective_record,
    )
    from longpole.pipeline.figure import FigureOptions, make_figure

    asked = FigureOptions(unit=unit, by=parse_choice("--by", by, LEDGER_BY))
    if width_in is not None:
        asked = FigureOptions(unit=asked.unit, by=asked.by, width_in=width_in)
    with Progress(wanted=not quiet) as progress:
        drawn, report = make_figure(figure, paths, options, asked, progress.update)
    if isinstance(drawn, Unanswered):
        tell(_why_not(figure, drawn))
        raise typer.Exit(NOT_KNOWN)
    _write(drawn, str(output), kind, dots, report)
    if not quiet:
        tell(escape(f"{output}: {drawn.says}"))
        for note in drawn.notes:
            tell(escape(f"  {note}"))


def _format_of(figure: str, output: str | None) -> str:
    """Return the format that a file's name asks for, once it is known that it can be written.

    Raises:
        UsageError: No file is named, its ending is none of ours, or it cannot be written.
    """
    if output is None:
        msg = f"figure: expected a file to draw into; found none. Add -o {figure}.svg (or .png, .pdf)"
        raise UsageError(msg)
    if output == STDOUT:
        return "svg"
    kind = Path(output).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        msg = f"-o {output}: expected a name that ends in .svg, .png or .pdf; found {Path(output).suffix or 'none'}"
        raise UsageError(msg)
    check_file("-o", Path(output))
    return kind


def _dots(given: int | None, kind: str) -> int | None:
    low, high = _DPI
    if given is not None and kind != "png":
        msg = f"--dpi is for PNG; {kind.upper()} has no dots, and is as sharp as the printer"
        raise UsageError(msg)
    if given is not None and not low <= given <= high:
        msg = f"--dpi: expected {low} to {high}; found {given}"
        raise UsageError(msg)
    return given


def _write(drawn: Drawn, output: str, kind: str, dots: int | None, report: Report) -> None:
    from longpole.report.figures.sheet import DOTS_PER_INCH, encode_figure

    if output != STDOUT:
        refuse_traces("-o", Path(output), report)
    data = encode_figure(drawn.figure, kind, dots or DOTS_PER_INCH)
    if output == STDOUT:
        write_bytes(data)
    else:
        write_file("-o", Path(output), data)


def _why_not(figure: str, why: Unanswered) -> str:
    missing = f"; record: {', '.join(why.missing)}" if why.missing else ""
    return escape(f"longpole: figure {figure}: not known: {why.reason}{missing}")
