"""The JSON Schema of histories."""

from __future__ import annotations

from longpole.records.history import SCHEMA, History
from longpole.report.schema_of import document_schema


def history_schema() -> bytes:
    """Return the JSON Schema of history documents."""
    return document_schema(History, SCHEMA)
