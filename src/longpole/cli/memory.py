"""`longpole memory`: who holds device memory, what is free in which pieces, and why a request failed."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice

EXAMPLES: Final = """\b
Examples:
  longpole memory snapshot.pickle
  longpole memory snapshots/ --json memory.json"""

Snapshots = Annotated[
    list[str],
    typer.Argument(
        metavar="SNAPSHOT",
        help="Memory snapshots (torch.cuda.memory._dump_snapshot), as pickle or JSON, or folders of them.",
    ),
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - for standard output.")
]


def memory(
    snapshots: Snapshots, *, json: JsonFile = None, quiet: option.Quiet = False, color: option.Color = "auto"
) -> None:
    """Say who holds device memory, what is free in which pieces, and why a request failed."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    from longpole.pipeline.memory_snapshots import build_memory
    from longpole.records.strict_json import encode_document
    from longpole.report.text.memory_snapshot import render_memory
    from longpole.settings import Settings

    document = build_memory(snapshots, Settings())
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_memory(document, width=width, color=color),
        sources=[source.path for source in document.sources],
    )
