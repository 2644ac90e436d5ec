"""The JSON Schema of comparisons of benchmarks."""

from __future__ import annotations

from longpole.records.compare import SCHEMA, Compare
from longpole.report.schema_of import document_schema


def compare_schema() -> bytes:
    """Return the JSON Schema of comparisons."""
    return document_schema(Compare, SCHEMA)
