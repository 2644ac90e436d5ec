"""`longpole audit`: which stated figures contradict which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice

if TYPE_CHECKING:
    from longpole.records.audit import Audit

EXAMPLES: Final = """\b
Examples:
  longpole audit claims.toml
  longpole audit claims.toml --all
  longpole audit - --json audit.json < claims.toml

\b
Exit codes: 0 consistent, perhaps under a reading that is named;
1 inconsistent, implausible or impossible; 5 nothing can be compared."""
_CORRECTED: Final = ("wording", "wrong model")

Claims = Annotated[str, typer.Argument(metavar="CLAIMS", help="What is stated, in TOML or JSON; - for standard input.")]
All = Annotated[bool, typer.Option("--all", help="Show every relation and every figure that follows.")]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the audit as JSON; - for standard output.")
]


def audit(
    claims: Claims,
    *,
    all_relations: All = False,
    json: JsonFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say which stated figures contradict which, by how much, and what would make them true."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    from longpole.pipeline.audit import audit_file
    from longpole.records.strict_json import encode_document
    from longpole.report.text.audit import render_audit

    with Progress(wanted=not output.quiet, counted=True) as progress:
        document = audit_file(claims, progress.update)
    output.write(
        lambda: encode_document(document),
        lambda width, wants: render_audit(document, width=width, color=wants, everything=all_relations),
        sources=[claims],
    )
    progress.say_done()
    code = exit_code(document)
    if code:
        raise typer.Exit(code)


def exit_code(document: Audit) -> int:
    """Return 0 where everything holds, 1 where something has to be corrected, 5 where nothing could be told."""
    if document.verdict in ("inconsistent", "impossible", "implausible"):
        return 1
    if any(one.qualifier in _CORRECTED for one in document.statements):
        return 1
    return 5 if document.verdict == "underdetermined" else 0
