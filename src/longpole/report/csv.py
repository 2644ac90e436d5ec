"""The report as tables for a spreadsheet or a data frame, one file a table.

A figure that is not known is an empty cell, and the column beside it says why. Texts are escaped, and one that a
spreadsheet would take for a formula begins with an apostrophe.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from longpole.records.ledger import Unknown
from longpole.report.csv_collectives import cross_rank_tables
from longpole.report.csv_memory import memory_tables
from longpole.report.csv_resources import resource_tables
from longpole.report.escape import escape
from longpole.vocabulary.objects import OBJECTS, charged_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.records.tables import Where
    from longpole.report.document import RankEntry, Report

Cell: TypeAlias = str | int | float | bool | None
T = TypeVar("T")

_FORMULA: Final = ("=", "+", "-", "@")
_ROW: Final = ("rank", "device")
_WHERE: Final = ("start_ns", "event", "track")

_LEDGER: Final = (
    *_ROW,
    "object",
    "exposed_ns",
    "service_ns",
    "service_unknown",
    "hidden_ns",
    "hidden_unknown",
    "waiting_ns",
    "waiting_unknown",
)
_IDLE: Final = (*_ROW, "reason", "charged_to", "idle_ns")
_ACTIVITIES: Final = (*_ROW, "name", "idle_ns", "count")
_UNITS: Final = (
    *_ROW,
    "unit",
    "kind",
    "steady",
    "start_ns",
    "wall_ns",
    "between_ns",
    "completion_ns",
    "period_ns",
    "period_unknown",
    "lag_ns",
    "items",
    "items_unknown",
    "device_by_time_ns",
    "device_by_launch_ns",
    *(f"exposed_{name}_ns" for name in OBJECTS),
)
_STAGES: Final = (*_ROW, "unit", "kind", "steady", "stage", "wall_ns", "busy_ns")
_MODULES: Final = (*_ROW, "stage", "module", "wall_ns", "busy_ns")
_KERNELS: Final = (*_ROW, "name", "object", "count", "sum_ns", "mean_ns", "union_ns", "share", *_WHERE)
_OPERATORS: Final = (
    *_ROW,
    "name",
    "count",
    "sum_ns",
    "union_ns",
    "device_ns",
    "share",
    "shapes",
    *_WHERE,
)
_COPIES: Final = (
    *_ROW,
    "name",
    "direction",
    "object",
    "count",
    "size_bytes",
    "sum_ns",
    "gb_per_s",
    "gb_per_s_unknown",
)
_GAPS: Final = (
    *_ROW,
    "name",
    "reason",
    "dur_ns",
    "unit",
    "idle_ns",
    "thread",
    "stack",
    "other_threads",
    "closed_by",
    "start_ns",
    "event",
)
_INTEGRITY: Final = ("code", "severity", "rank", "count", "file", "event", "byte", "line", "message", "voids")
_UNKNOWN: Final = ("at", "why", "missing")


def render_csv(report: Report) -> dict[str, str]:
    """Write a report as CSV tables.

    Returns:
        File name -> text with a header line. A table without rows has its header.
    """
    return {f"{name}.csv": text for name, text in report_tables(report, _table).items()}


def report_tables(report: Report, table: Callable[[tuple[str, ...], Iterator[tuple[Cell, ...]]], T]) -> dict[str, T]:
    """Make the tables of a report, in whatever form.

    Args:
        report: The report.
        table: Makes a table of its columns and its rows.

    Returns:
        Name -> table.
    """
    return {
        "ledger": table(_LEDGER, _each_row(report, _ledger_rows)),
        "idle": table(_IDLE, _each_row(report, _idle_rows)),
        "activities": table(_ACTIVITIES, _each_row(report, _activity_rows)),
        "units": table(_UNITS, _each_row(report, _unit_rows)),
        "stages": table(_STAGES, _each_row(report, _stage_rows)),
        "modules": table(_MODULES, _each_row(report, _module_rows)),
        "kernels": table(_KERNELS, _each_row(report, _kernel_rows)),
        "operators": table(_OPERATORS, _each_row(report, _operator_rows)),
        "copies": table(_COPIES, _each_row(report, _copy_rows)),
        "gaps": table(_GAPS, _each_row(report, _gap_rows)),
        **memory_tables(report, table),
        **cross_rank_tables(report, table),
        **resource_tables(report, table),
        "integrity": table(_INTEGRITY, _integrity_rows(report)),
        "unknown": table(_UNKNOWN, ((e.at, e.why, "; ".join(e.missing)) for e in report.unknown)),
    }


def _table(header: tuple[str, ...], rows: Iterator[tuple[Cell, ...]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Cell) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    text = escape(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def _each_row(report: Report, rows_of: Callable[[RankEntry], Iterator[tuple[Cell, ...]]]) -> Iterator[tuple[Cell, ...]]:
    for row in report.ranks:
        for cells in rows_of(row):
            yield row.rank, row.device, *cells


def _known(value: Any, none: str) -> tuple[int | None, str]:
    """Return a figure without a reason, or no figure and the reason; `none` is that of a figure that cannot be."""
    if isinstance(value, int):
        return value, ""
    return None, value.unknown if isinstance(value, Unknown) else none


def _ledger_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for name, time in row.ledger.objects.items():
        own = f"{name} has no operations of its own"
        waiting = "waiting and moving are not told apart" if name == "collective" else "only collectives wait for ranks"
        service, hidden = _known(time.service_ns, own), _known(time.hidden_ns, own)
        yield name, time.exposed_ns, *service, *hidden, *_known(time.waiting_ns, waiting)


def _idle_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for reason, idle_ns in row.ledger.idle_ns.items():
        yield reason, charged_to(reason), idle_ns


def _activity_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for activity in row.gaps_by_activity:
        yield activity.name, activity.idle_ns, activity.count


def _unit_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for unit in row.units:
        period, items = _known(unit.period_ns, "it has none"), _known(unit.items, "not recorded")
        exposed = (unit.exposed_ns.get(name, 0) for name in OBJECTS)
        yield (
            unit.name,
            unit.kind,
            unit.steady,
            unit.start_ns,
            unit.wall_ns,
            unit.between_ns,
            unit.completion_ns,
            *period,
            unit.lag_ns,
            *items,
            unit.device_by_time_ns,
            unit.device_by_launch_ns,
            *exposed,
        )


def _stage_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for unit in row.units:
        for name, stage in unit.stages.items():
            yield unit.name, unit.kind, unit.steady, name, stage.wall_ns, stage.busy_ns


def _module_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for module in row.modules:
        yield module.stage, module.module, module.wall_ns, module.busy_ns


def _where(where: Where) -> tuple[Cell, ...]:
    return where.start_ns, where.event, where.track


def _kernel_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for k in row.top.kernels:
        yield k.name, k.object, k.count, k.sum_ns, k.mean_ns, k.union_ns, k.share, *_where(k.where)


def _operator_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for op in row.top.operators:
        shapes = "; ".join(f"{shape.input_dims} ×{shape.count}" for shape in op.shapes)
        yield op.name, op.count, op.sum_ns, op.union_ns, op.device_ns, op.share, shapes, *_where(op.where)


def _copy_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for copy in row.top.copies:
        why = "" if copy.gb_per_s is not None else "no copy says its size and took time"
        cells = (copy.name, copy.direction, copy.object, copy.count, copy.size_bytes, copy.sum_ns)
        yield *cells, copy.gb_per_s, why


def _gap_rows(row: RankEntry) -> Iterator[tuple[Cell, ...]]:
    for gap in row.top.gaps:
        reasons = "; ".join(f"{reason}={idle_ns}" for reason, idle_ns in gap.idle_ns.items())
        stack, others = " > ".join(gap.stack), "; ".join(gap.other_threads)
        cells = (gap.name, gap.reason, gap.dur_ns, gap.unit, reasons, gap.thread, stack, others, gap.closed_by)
        yield *cells, gap.where.start_ns, gap.where.event


def _integrity_rows(report: Report) -> Iterator[tuple[Cell, ...]]:
    for finding in report.integrity:
        at = finding.example
        cells = (finding.code, finding.severity, finding.rank, finding.count, at.file, at.event, at.byte, at.line)
        yield *cells, finding.message, " ".join(finding.voids)
