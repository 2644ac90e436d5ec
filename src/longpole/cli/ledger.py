"""`longpole ledger`: what declared operations take of a unit of work."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_amount, parse_choice

EXAMPLES: Final = """\b
Examples:
  longpole ledger events.toml
  longpole ledger events.csv --requests-per-unit 32 --units-per-run 1000
  longpole ledger events.json --json ledger.json
  longpole ledger events.toml --paths benchmarks/results/ID/LABEL.json"""

Events = Annotated[
    str, typer.Argument(metavar="EVENTS", help="Declared events: JSON, TOML or CSV; - for standard input.")
]
PerRequest = Annotated[
    str | None,
    typer.Option("--requests-per-unit", metavar="N", help="Requests of a unit, for events that count by request."),
]
PerToken = Annotated[
    str | None, typer.Option("--tokens-per-unit", metavar="N", help="Tokens of a unit, for events that count by token.")
]
PerRun = Annotated[
    str | None, typer.Option("--units-per-run", metavar="N", help="Units of a run, for events that count by run.")
]
Paths = Annotated[
    str | None,
    typer.Option("--paths", metavar="RECORD", help="A record of longpole bench io, whose paths events may name."),
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the ledger as JSON; - for standard output.")
]


def ledger(
    events: Events,
    *,
    requests_per_unit: PerRequest = None,
    tokens_per_unit: PerToken = None,
    units_per_run: PerRun = None,
    paths: Paths = None,
    json: JsonFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say what declared I/O costs a unit of work: service, hidden and exposed time, by what is moved."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    per_unit = {
        "requests_per_unit": parse_amount("--requests-per-unit", requests_per_unit),
        "tokens_per_unit": parse_amount("--tokens-per-unit", tokens_per_unit),
        "units_per_run": parse_amount("--units-per-run", units_per_run),
    }
    from longpole.costs.declared_events import Lifecycle
    from longpole.pipeline.declared_ledger import LedgerOptions, build_ledger
    from longpole.records.strict_json import encode_document
    from longpole.report.text.declared_ledger import render_declared_ledger

    document = build_ledger(events, LedgerOptions(lifecycle=Lifecycle(**per_unit), paths=paths))
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_declared_ledger(document, width=width, color=color),
        sources=[source for source in (events, paths) if source is not None],
    )
