"""`longpole bench doctor`: what makes this machine noisy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.bench.durations import parse_duration_s
from longpole.cli.documents import DocumentOutput
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice, parse_if_given

EXAMPLES: Final = """\b
Examples:
  longpole bench doctor
  longpole bench doctor --watch 30s --json doctor.json
  longpole bench doctor --strict && longpole bench run -- python train.py

\b
Exit codes: 0; with --strict 1 where something disturbs measurements now."""
NOISY: Final = 1

Watch = Annotated[str, typer.Option("--watch", metavar="TIME", help="How long to watch the machine at rest.")]
NoLoop = Annotated[bool, typer.Option("--no-loop", help="Do not time a fixed loop.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 where something disturbs measurements now.")]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - for standard output.")
]


def doctor(
    *,
    watch: Watch = "3s",
    no_loop: NoLoop = False,
    strict: Strict = False,
    json: JsonFile = None,
    settings: option.SettingsFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say what makes this machine noisy, why it matters, and what to do."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    watch_s = parse_duration_s("--watch", watch)
    from longpole.pipeline.bench_doctor import bench_doctor
    from longpole.records.strict_json import encode_document
    from longpole.report.text.bench_doctor import render_doctor

    found = bench_doctor(watch_s=watch_s or 0.0, loop=not no_loop, settings=parse_if_given(Path, settings))
    output.write(
        lambda: encode_document(found),
        lambda width, color: render_doctor(found, width=width, color=color),
        sources=[],
    )
    if strict and found.noisy:
        raise typer.Exit(NOISY)
