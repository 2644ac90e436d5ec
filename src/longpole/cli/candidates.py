"""`longpole candidates`: which changes are worth trying on a run, and what each must prove."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.reading_options import reading_options
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice, parse_if_given

if TYPE_CHECKING:
    from longpole.report.candidates import Candidates

EXAMPLES: Final = """\b
Examples:
  longpole candidates traces/
  longpole candidates traces/ --explain input.prefetch
  longpole candidates traces/ --catalogue ours.toml --json candidates.json"""

_Explain = Annotated[
    str | None,
    typer.Option("--explain", metavar="ID", help="The whole contract of one row, and why it applies here or not."),
]
_Catalogue = Annotated[
    str | None,
    typer.Option("--catalogue", metavar="FILE", help="Your own rows (TOML), over the shipped ones."),
]
_JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the candidates as JSON; - for standard output.")
]


def candidates(
    paths: option.Paths,
    *,
    explain: _Explain = None,
    catalogue: _Catalogue = None,
    json: _JsonFile = None,
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
    """Say which changes are worth trying, what each would gain, and what it must prove."""
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
    from longpole.pipeline.candidates import find_candidates

    with Progress(wanted=not output.quiet) as progress:
        document = find_candidates(
            paths,
            options,
            catalogue=parse_if_given(Path, catalogue),
            explain=explain,
            progress=progress.update,
        )
    _write(document, output)
    progress.say_done()


def _write(document: Candidates, output: DocumentOutput) -> None:
    from longpole.records.strict_json import encode_document
    from longpole.report.text.candidates import render_candidates

    output.write(
        lambda: encode_document(document),
        lambda width, color: render_candidates(document, width=width, color=color),
        sources=[source.path for source in document.run.sources],
    )
