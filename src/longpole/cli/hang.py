"""`longpole hang`: which rank holds up a job that does not go on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice, parse_if_given

EXAMPLES: Final = """\b
Examples:
  longpole hang dumps/
  longpole hang ~/.cache/torch/comm_lib_trace_rank_*
  longpole hang dumps/ stacks/ --json hang.json

\b
Exit codes: 0 nothing hangs; 1 the ranks that hold the job up are named;
5 ranks wait, and who holds them up cannot be told."""
_EXIT: Final = {"none": 0, "not_told": 5}

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Dumps of PyTorch's flight recorder, stacks of py-spy or faulthandler, folders of both.",
    ),
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the answer as JSON; - for standard output.")
]


def hang(
    paths: Paths,
    *,
    settings: option.SettingsFile = None,
    json: JsonFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say which rank holds up a job that does not go on, and what it was doing."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    from longpole.pipeline.hang import hang_of
    from longpole.records.strict_json import encode_document
    from longpole.report.text.hang import render_hang

    with Progress(wanted=not output.quiet, counted=True) as progress:
        document = hang_of(paths, parse_if_given(Path, settings), progress.update)
    output.write(
        lambda: encode_document(document),
        lambda width, wants: render_hang(document, width=width, color=wants),
        sources=paths,
    )
    progress.say_done()
    code = _EXIT.get(document.verdict, 1)
    if code:
        raise typer.Exit(code)
