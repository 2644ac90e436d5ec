"""`longpole report` and `longpole whatif` on operation tables: find them, read them, replay the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.errors import InputError, UsageError
from longpole.graph.operations.build import build_operation_graph
from longpole.pipeline.operation_tables import find_operation_tables
from longpole.pipeline.version import package_version
from longpole.readers.operations.check import read_operations
from longpole.readers.operations.sniff import table_format
from longpole.records.ledger import Unknown
from longpole.report.document import SourceEntry
from longpole.report.operations import WHATIF_SCHEMA, OperationChangeEntry, OperationWhatIf, say_error
from longpole.report.operations_build import ReadTables, build_operations_document, graph_findings
from longpole.settings import read_settings
from longpole.whatif.operation_changes import changed_work_ns
from longpole.whatif.operations import measure_stragglers, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.graph.operations.build import OperationGraph
    from longpole.report.operations import Operations
    from longpole.settings import Settings
    from longpole.whatif.operation_changes import OperationChange


def build_operations_report(tables: Sequence[Path], settings_file: Path | None = None) -> Operations:
    """Read the tables of one job, and say what straggling costs it.

    Args:
        tables: What `find_operation_tables` returned.
        settings_file: The user's own thresholds.

    Raises:
        InputError: A table cannot be read, lacks a column, or holds no usable operation.
        UsageError: The settings cannot be read.
    """
    settings = read_settings(settings_file)
    read, graph = _read(tables, settings)
    return build_operations_document(read, graph, measure_stragglers(graph, settings), settings, package_version())


def whatif_operations(
    paths: Sequence[str], changes: Sequence[OperationChange], settings_file: Path | None = None
) -> OperationWhatIf:
    """Predict what steps take after some changes, all replayed together.

    Args:
        paths: As a user gave them; each is an operation table or holds just such.
        changes: At least one; `parse_operation_change` reads them.
        settings_file: The user's own thresholds.

    Raises:
        InputError: The paths hold no usable table.
        UsageError: A change is about no operation, or the settings cannot be read.
    """
    settings = read_settings(settings_file)
    tables = find_operation_tables(paths)
    if not tables:
        hint = "Expected a Parquet or CSV file of operations"
        raise InputError.at(", ".join(paths), None, "no operation table", hint)
    read, graph = _read(tables, settings)
    work_ns, counts = changed_work_ns(graph, list(changes))
    for change, count in zip(changes, counts, strict=True):
        if not count:
            msg = f"{change.text}: there is no such operation; there are {_named(graph)}"
            raise UsageError(msg)
    replayed_ns, measured_ns = graph.replay_steps_ns(graph.work_ns), graph.measured_steps_ns()
    predicted = round(graph.replay_steps_ns(work_ns).mean())
    error = ratio(replayed_ns, measured_ns) - 1
    saving = round(replayed_ns.mean()) - predicted
    refused = ""
    if abs(error) > settings.operation_error_max:
        least = f"{100 * settings.operation_error_max:g} %"
        refused = f"the unchanged replay is off by {say_error(error)}, more than {least}"
    unknown = Unknown(refused, ["operations that fill a step without gaps"])
    return OperationWhatIf(
        schema=WHATIF_SCHEMA,
        longpole=package_version(),
        changes=[OperationChangeEntry(c.text, c.says(), n) for c, n in zip(changes, counts, strict=True)],
        steps=len(graph.steps),
        measured_period_ns=round(measured_ns.mean()),
        replayed_period_ns=round(replayed_ns.mean()),
        predicted_period_ns=unknown if refused else predicted,
        saving_ns=unknown if refused else saving,
        error=error,
        what_if_error=Unknown("no pairs of tables, before and after such a change, were recorded", _PAIRS),
        refused=refused,
        integrity=[*read.findings, *graph_findings(graph, read.sources[0].path)],
    )


_PAIRS: Final = ["the same job with and without the change"]


def _read(tables: Sequence[Path], settings: Settings) -> tuple[ReadTables, OperationGraph]:
    names = [str(path) for path in tables]
    records = read_operations(tables, names, settings)
    sources = [
        SourceEntry(name, f"operations.{table_format(path)}", "1", path.stat().st_size, n_rows, n_rows - n_used, 0)
        for path, name, n_rows, n_used in zip(tables, names, records.rows, records.used, strict=True)
    ]
    read = ReadTables(
        sources=sources,
        left_out=[(step.step, step.why) for step in records.left_out],
        missing=records.missing_workers,
        n_missing=records.n_missing,
        findings=records.findings,
    )
    return read, build_operation_graph(records.table, settings)


def _named(graph: OperationGraph) -> str:
    names = sorted({kind.name for kind in graph.table.types})
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
