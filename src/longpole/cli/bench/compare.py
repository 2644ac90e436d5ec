"""`longpole bench compare`: benchmarks of two sides, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice, parse_if_given
from longpole.errors import UsageError

EXAMPLES: Final = """\b
Examples:
  longpole bench compare before.json after.json
  longpole bench compare --base runs/old --new runs/new
  longpole bench compare 0001_main.json 0002_branch.json   (pytest-benchmark)
  longpole bench compare old.json new.json --json -"""

Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="BASE NEW", help="Run records, or JSON of pytest-benchmark, hyperfine or asv."),
]
Base = Annotated[
    list[str] | None, typer.Option("--base", metavar="PATH", help="A file or folder of the one side; may be repeated.")
]
New = Annotated[
    list[str] | None, typer.Option("--new", metavar="PATH", help="A file or folder of the other side; may be repeated.")
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - for standard output.")
]


def compare(
    files: Files = None,
    *,
    base: Base = None,
    new: New = None,
    json: JsonFile = None,
    settings: option.SettingsFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Show benchmarks of two sides side by side, stage by stage; what differs around them comes first."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    sides = _sides(files or [], base or [], new or [])
    from longpole.pipeline.bench_compare import compare_files
    from longpole.records.strict_json import encode_document
    from longpole.report.text.compare import render_compare
    from longpole.settings import read_settings

    document = compare_files(*sides, read_settings(parse_if_given(Path, settings)))
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_compare(document, width=width, color=color),
        sources=[*document.base, *document.new],
    )


def _sides(files: list[str], base: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Return the two sides: two files, or what the options name.

    Raises:
        UsageError: There are not two sides.
    """
    if files and (base or new):
        msg = "name the sides either as BASE NEW or with --base and --new, not both"
        raise UsageError(msg)
    if files:
        if len(files) != 2:
            msg = f"expected two sides, BASE and NEW; found {len(files)}. Several files of a side: --base A --base B"
            raise UsageError(msg)
        return [files[0]], [files[1]]
    if not base or not new:
        msg = "expected two sides: longpole bench compare BASE NEW, or --base PATH --new PATH"
        raise UsageError(msg)
    return base, new
