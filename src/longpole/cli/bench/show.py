"""`longpole bench show`: a record of `longpole bench io` as a page."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.bench import io_options as asked
from longpole.cli.documents import DocumentOutput
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice

EXAMPLES: Final = """\b
Example:
  longpole bench show benchmarks/results/ID/LABEL.json"""

Record = Annotated[str, typer.Argument(metavar="RECORD", help="A record of longpole bench io.", show_default=False)]


def show(
    record: Record,
    *,
    json: asked.JsonFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Show what a record of `longpole bench io` says: the decision, every path, the models."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    from longpole.pipeline.bench_io import read_bench_io
    from longpole.records.bench_io_file import encode_bench_io
    from longpole.report.text.bench_io import render_bench_io

    found = read_bench_io(record)
    output.write(
        lambda: encode_bench_io(found),
        lambda width, color: render_bench_io(found, width=width, color=color, written=record),
        sources=[record],
    )
