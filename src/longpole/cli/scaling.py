"""`longpole scaling`: what is lost as a job grows, and to what."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.reading_options import reading_options
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice, parse_count, parse_items_of

EXAMPLES: Final = """\b
Examples:
  longpole scaling runs/n1 runs/n2 runs/n8
  longpole scaling runs/ --items 16384
  longpole scaling n1/ n8/ --items-of n1=256 --items-of n8=32
  longpole scaling runs/ --strong --json scaling.json"""
NOT_COMPARABLE: Final = 6

Runs = Annotated[
    list[str],
    typer.Argument(metavar="RUN", help="One run each; or one folder with a sub-folder for each run."),
]
Items = Annotated[
    str | None, typer.Option("--items", metavar="N", help="Items that a rank processes in a unit, in every run.")
]
ItemsOf = Annotated[
    list[str] | None,
    typer.Option("--items-of", metavar="RUN=N", help="The same of one run, as it is named here; may be repeated."),
]
Strong = Annotated[
    bool,
    typer.Option("--strong", help="Items are not known: assume the same ones in every run, spread over its ranks."),
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - for standard output.")
]


def scaling(
    runs: Runs,
    *,
    items: Items = None,
    items_of: ItemsOf = None,
    strong: Strong = False,
    json: JsonFile = None,
    step: option.Step = None,
    units: option.Units = None,
    rules: option.Rules = None,
    settings: option.SettingsFile = None,
    no_cache: option.NoCache = False,
    verify_cache: option.VerifyCache = False,
    jobs: option.Jobs = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say how efficient a job is on more ranks, and what the loss is made of."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    report = reading_options(
        step=step,
        units=units,
        rules=rules,
        settings=settings,
        no_cache=no_cache,
        verify_cache=verify_cache,
        jobs=jobs,
    )
    per_rank, of_runs = parse_count("--items", items), parse_items_of(items_of or [])
    from longpole.pipeline.scaling import ScalingOptions, measure_scaling
    from longpole.records.strict_json import encode_document
    from longpole.report.text.scaling import render_scaling

    mode = "strong" if strong else "weak"
    options = ScalingOptions(report=report, items=per_rank, items_of=of_runs, mode=mode)
    with Progress(wanted=not quiet) as progress:
        document = measure_scaling(runs, options, progress.update)
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_scaling(document, width=width, color=color),
        sources=[source for run in document.runs for source in run.sources],
    )
    progress.say_done()
    if not document.comparable:
        raise typer.Exit(NOT_COMPARABLE)
