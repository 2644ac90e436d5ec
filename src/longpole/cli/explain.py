"""`longpole explain`: what decides on a symptom, and what a cause is."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.reading_options import reading_options
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice

EXAMPLES: Final = """\b
Examples:
  longpole explain
  longpole explain "gpu idle"
  longpole explain scaling-worse traces/
  longpole explain data_loader"""

Symptom = Annotated[
    str,
    typer.Argument(metavar="[SYMPTOM]", help="A symptom or a cause, by name or in words; without it, all are listed."),
]
Paths = Annotated[
    list[str] | None, typer.Argument(metavar="[PATH]...", help="The files of a run: what its report says of it.")
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the answer as JSON; - for standard output.")
]


def explain(
    symptom: Symptom = "",
    paths: Paths = None,
    *,
    json: JsonFile = None,
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
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say which figures decide on a symptom and what follows from it, or what a cause is."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
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
        collective_record=collective_record,
    )
    from longpole.pipeline.explain import explain as answer_for
    from longpole.records.strict_json import encode_document
    from longpole.report.text.explain import render_explain

    with Progress(wanted=not quiet) as progress:
        answer = answer_for(symptom, paths or [], options, progress.update)
    output.write(
        lambda: encode_document(answer),
        lambda width, color: render_explain(answer, width=width, color=color),
        sources=[source.path for source in answer.run.sources] if answer.run is not None else [],
    )
    progress.say_done()
