"""`longpole whatif` on operation tables: told by content, before anything is taken for a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from longpole.cli.progress import Progress
from longpole.cli.values import parse_if_given
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.cli.documents import DocumentOutput

INCONCLUSIVE: Final = 5


def what_if_of_tables(
    paths: Sequence[str],
    given: Sequence[tuple[str, str]],
    output: DocumentOutput,
    settings: str | None,
    of_traces: Mapping[str, str | None],
) -> bool:
    """Answer a what-if of paths that hold operation tables.

    Args:
        paths: As the user gave them.
        given: (option, value) of each change, in order.
        output: Where the answer goes.
        settings: The user's own thresholds.
        of_traces: Options that mean something for traces only, with what was given.

    Returns:
        False where the paths hold no such table, and nothing was done.

    Raises:
        UsageError: The paths mix tables with other files, an option means nothing for tables, or a change is none.
        typer.Exit: The prediction is refused; with exit code 5.
    """
    from longpole.pipeline.operation_tables import find_operation_tables

    tables = find_operation_tables(paths)
    if not tables:
        return False
    refused = [name for name, value in of_traces.items() if value is not None]
    if refused:
        msg = f"{', '.join(refused)}: {tables[0]} is an operation table, and there this means nothing; leave it out"
        raise UsageError(msg)
    from longpole.pipeline.operations import whatif_operations
    from longpole.records.strict_json import encode_document
    from longpole.report.text.operations_whatif import render_operations_whatif
    from longpole.whatif.operation_changes import parse_operation_change

    changes = [parse_operation_change(option, value) for option, value in given]
    with Progress(wanted=not output.quiet) as progress:
        document = whatif_operations([str(table) for table in tables], changes, parse_if_given(Path, settings))
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_operations_whatif(document, width=width, color=color),
        sources=[str(table) for table in tables],
    )
    progress.say_done()
    if document.refused:
        raise typer.Exit(INCONCLUSIVE)
    return True
