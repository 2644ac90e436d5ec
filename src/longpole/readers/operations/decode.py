"""From the bytes of operation tables to one frame with the columns that are known, each of one type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.errors import InputError
from longpole.readers.operations.sniff import missing_columns, table_format
from longpole.records.operations import WRITTEN_COLUMNS
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

FILE: Final = "file"  # the column that says which of the files a row comes from
_HINT: Final = "The columns are in docs/reference/operation-tables.md"


def read_frame(paths: Sequence[Path]) -> pl.DataFrame:
    """Read tables, one below the other.

    Args:
        paths: Files that `table_format` knows.

    Returns:
        A frame with every column of WRITTEN_COLUMNS (null where it was not written, or where a value is none of the
        column's) and FILE, the place of the row's file.

    Raises:
        InputError: A file cannot be read, or lacks a column.
    """
    import polars as pl

    return pl.concat([_read_one(path, place) for place, path in enumerate(paths)])


def coarsest_ns(frame: pl.DataFrame) -> int:
    """Return how finely starts are written: the step between neighbouring numbers at the latest one, in ns.

    Args:
        frame: What `read_frame` returned.
    """
    import polars as pl

    coarsest = 0.0
    for is_single in (True, False):
        starts = frame.filter(pl.col("single") == is_single)["start_ts"].to_numpy()
        starts = np.abs(starts[np.isfinite(starts)])
        if len(starts):
            latest = starts.max()
            coarsest = max(coarsest, float(np.spacing(np.float32(latest) if is_single else latest)))
    return round(coarsest * NS_PER_S)


def _read_one(path: Path, place: int) -> pl.DataFrame:
    import polars as pl

    kind = table_format(path)
    try:
        raw = _parquet(path) if kind == "parquet" else pl.read_csv(path, infer_schema=False, truncate_ragged_lines=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first = (str(error).splitlines() or ["no reason given"])[0]
        raise InputError.at(path, None, f"cannot be read as a {kind} table: {first}", "Write it anew") from None
    raw = raw.rename({name: name.strip() for name in raw.columns if name.strip() != name})
    lacking = missing_columns(raw.columns)
    if lacking:
        raise InputError.at(path, None, f"an operation table without the columns {', '.join(lacking)}", _HINT)
    single = raw.schema.get("start_ts") == pl.Float32
    columns = [_column(raw, column.name, column.values) for column in WRITTEN_COLUMNS]
    return raw.select(
        *columns, pl.lit(place, pl.Int32).alias(FILE), pl.lit(single and "start_ns" not in raw.columns).alias("single")
    )


def _parquet(path: Path) -> pl.DataFrame:
    """Read the columns that are known; a table may hold many more."""
    import polars as pl

    known = {column.name for column in WRITTEN_COLUMNS}
    names = [name for name in pl.read_parquet_schema(path) if name.strip() in known]
    if missing_columns({name.strip() for name in names}):
        # Without rows: only the columns' names are of interest, for the message.
        return pl.DataFrame(schema=dict.fromkeys(names, pl.Null))
    return pl.read_parquet(path, columns=names)


def _column(raw: pl.DataFrame, name: str, values: str) -> Any:
    import polars as pl

    to = {"integer": pl.Int64, "number": pl.Float64, "text": pl.String}[values]
    # A list, a date or a length of time is no number: its unit would be guessed.
    if name not in raw.columns or raw.schema[name].is_nested() or raw.schema[name].is_temporal():
        return pl.lit(None, to).alias(name)
    column = pl.col(name)
    if raw.schema[name] == pl.String and values != "text":
        column = column.str.strip_chars()
    if raw.schema[name] == pl.String and values == "integer":
        # Tables that pass through other programs write whole numbers as 3.0.
        exact, float_ = column.cast(pl.Int64, strict=False), column.cast(pl.Float64, strict=False)
        return pl.coalesce(exact, pl.when(float_.floor() == float_).then(float_.cast(pl.Int64, strict=False))).alias(
            name
        )
    return column.cast(to, strict=False).alias(name)
