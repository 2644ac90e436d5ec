"""Ways from rows to tables, graphs and documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.graph.operations.build import build_operation_graph
from longpole.pipeline.operation_tables import find_operation_tables
from longpole.pipeline.operations import build_operations_report
from longpole.readers.operations.check import read_operations
from longpole.settings import Settings
from tests.operation_tables import write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from longpole.graph.operations.build import OperationGraph
    from longpole.readers.operations.check import OperationRecords
    from longpole.report.operations import Operations
    from tests.operation_tables import Row


@pytest.fixture
def read(tmp_path: Path) -> Callable[[Iterable[Row]], OperationRecords]:
    """Rows → what the reader makes of them."""

    def read_rows(rows: Iterable[Row]) -> OperationRecords:
        return read_operations([write_table(tmp_path / "job.parquet", rows)], ["job.parquet"], Settings())

    return read_rows


@pytest.fixture
def build(read: Callable[[Iterable[Row]], OperationRecords]) -> Callable[[Iterable[Row]], OperationGraph]:
    """Rows → graph."""
    return lambda rows: build_operation_graph(read(rows).table, Settings())


@pytest.fixture
def report(tmp_path: Path) -> Callable[[Iterable[Row]], Operations]:
    """Rows → the document about them."""

    def report_rows(rows: Iterable[Row]) -> Operations:
        path = write_table(tmp_path / "job.parquet", rows)
        return build_operations_report(find_operation_tables([str(path)]))

    return report_rows
