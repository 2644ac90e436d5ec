"""Tell by its first bytes whether a file is an operation table."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from longpole.records.operations import REQUIRED_COLUMNS, STANDS_IN

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    TableFormat: TypeAlias = Literal["parquet", "csv"]

PARQUET_MAGIC: Final = b"PAR1"
_HEAD_BYTES: Final = 1 << 16
_BOM: Final = "\ufeff"


def table_format(path: Path) -> TableFormat | None:
    """Return what kind of operation table a file is, None where it is none or cannot be read.

    Any Parquet file is taken for one: nothing else that Longpole reads is Parquet, and what it lacks can be named. A
    CSV file is one if its first line names the columns.

    Args:
        path: A file.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    if head[:4] == PARQUET_MAGIC:
        return "parquet"
    first = head.decode("utf-8", "replace").removeprefix(_BOM).splitlines()[:1]
    return "csv" if first and not missing_columns(_header(first[0])) else None


def missing_columns(names: Collection[str]) -> list[str]:
    """Return the required columns that a table with these columns lacks.

    >>> missing_columns(["step", "rank", "dp_rank", "stage", "optype", "start_ns", "duration"])
    []
    >>> missing_columns(["step", "rank", "optype", "start_ts", "duration"])
    ['dp_rank', 'stage']
    """
    required = [column.name for column in REQUIRED_COLUMNS]
    return [name for name in required if name not in names and STANDS_IN.get(name) not in names]


def _header(line: str) -> list[str]:
    try:
        return [name.strip() for name in next(csv.reader([line]), [])]
    except csv.Error:
        return []
