"""The report as a JSON document, and the JSON Schema of such documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.records.strict_json import encode_document
from longpole.report.detail import select_detail
from longpole.report.document import SCHEMA, Report
from longpole.report.schema_of import document_schema
from longpole.report.schema_of import written_type as written_type_of

if TYPE_CHECKING:
    import msgspec


def render_json(report: Report, detail: str = "rank") -> bytes:
    """Write a report as UTF-8 JSON, indented by one space, with a line end.

    Args:
        report: The whole report.
        detail: `run`, `rank` or `unit`; see `longpole.report.detail.select_detail`.

    Raises:
        UsageError: There is no such level of detail.
    """
    return encode_document(select_detail(report, detail))


def report_schema() -> bytes:
    """Return the JSON Schema of a report, made from the types of `longpole.report.document`."""
    return document_schema(Report, SCHEMA)


def written_type() -> type[msgspec.Struct]:
    """Return the type that a written report decodes into."""
    return written_type_of(Report)
