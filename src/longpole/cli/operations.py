"""`longpole report` on operation tables: told by content, before anything is taken for a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from longpole.cli.outputs import refuse_inputs, write_file
from longpole.cli.progress import Progress
from longpole.cli.values import parse_if_given
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.cli.documents import DocumentOutput


def report_on_tables(
    paths: Sequence[str],
    output: DocumentOutput,
    settings: str | None,
    of_traces: Mapping[str, str | None],
    page: Path | None = None,
) -> bool:
    """Report on paths that hold operation tables.

    Args:
        paths: As the user gave them.
        output: Where the report goes.
        settings: The user's own thresholds.
        of_traces: Options that mean something for traces only, with what was given.
        page: Where the page goes, None for none.

    Returns:
        False where the paths hold no such table, and nothing was done.

    Raises:
        UsageError: The paths mix tables with other files, or an option means nothing for tables.
    """
    from longpole.pipeline.operation_tables import find_operation_tables

    tables = find_operation_tables(paths)
    if not tables:
        return False
    refused = [name for name, value in of_traces.items() if value is not None]
    if refused:
        msg = f"{', '.join(refused)}: {tables[0]} is an operation table, and there this means nothing; leave it out"
        raise UsageError(msg)
    from longpole.pipeline.operations import build_operations_report
    from longpole.records.strict_json import encode_document
    from longpole.report.text.operations import render_operations

    with Progress(wanted=not output.quiet) as progress:
        document = build_operations_report(tables, parse_if_given(Path, settings))
    if page is not None:
        from longpole.report.page.operations import render_operations_page

        refuse_inputs("--html", page, [source.path for source in document.sources], "tables")
        write_file("--html", page, render_operations_page(document))
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_operations(document, width=width, color=color),
        sources=[source.path for source in document.sources],
    )
    progress.say_done()
    return True
