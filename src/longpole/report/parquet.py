"""The report's tables as Parquet files: those of `--csv`, with types, and null for what is not known."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final, TypeAlias

from longpole.report.csv import report_tables
from longpole.report.escape import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from longpole.report.csv import Cell
    from longpole.report.document import Report

    Columns: TypeAlias = dict[str, list[Cell]]

# Types go by the columns' names, so that they are the same where a table has no rows or no known figure.
_INT: Final = ("_ns", "bytes", "count", "_units", "rank")
_INTS: Final = ("byte", "calls", "count_split", "event", "items", "kernels", "line")
_FLOAT: Final = ("share", "gb_per_s", "gamma", "drift", "demand", "headroom", "slowdown")
_BOOLS: Final = ("slow", "steady")
_LISTS: Final = (("gaps", "idle_ns"),)  # written as a text: a time for each reason


def render_parquet(report: Report) -> dict[str, bytes]:
    """Write a report as Parquet tables.

    Returns:
        File name -> the file. Times are 64-bit integers in ns; a figure that is not known is null, and the column
        beside it says why; texts are escaped.
    """
    tables = report_tables(report, _columns)
    return {f"{name}.parquet": _encode(_frame(name, columns)) for name, columns in tables.items()}


def _columns(header: tuple[str, ...], rows: Iterator[tuple[Cell, ...]]) -> Columns:
    columns: Columns = {name: [] for name in header}
    for row in rows:
        for name, value in zip(header, row, strict=True):
            columns[name].append(value)
    return columns


def _frame(table: str, columns: Columns) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame([_series(table, name, values) for name, values in columns.items()])


def _series(table: str, name: str, values: Sequence[Cell]) -> pl.Series:
    import polars as pl

    if (table, name) not in _LISTS and not any(isinstance(value, str) for value in values):
        if name in _BOOLS:
            return pl.Series(name, values, pl.Boolean)
        if name.endswith(_FLOAT) or any(isinstance(value, float) for value in values):
            return pl.Series(name, [None if value is None else float(value) for value in values], pl.Float64)
        if name.endswith(_INT) or name in _INTS or any(isinstance(value, int) for value in values):
            return pl.Series(name, values, pl.Int64)
    no_reason = name.endswith("unknown")
    texts = [None if value is None or (no_reason and value == "") else escape(str(value)) for value in values]
    return pl.Series(name, texts, pl.String)


def _encode(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out, compression="zstd")
    return out.getvalue()
