"""The report as a JSON document, and the JSON Schema of such documents."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from longpole.report.detail import select_detail
from longpole.report.document import SCHEMA, Headline, Report

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def render_json(report: Report, detail: str = "rank") -> bytes:
    """Write a report as UTF-8 JSON, indented by one space, with a line end.

    Args:
        report: The whole report.
        detail: `run`, `rank` or `unit`; see `longpole.report.detail.select_detail`.

    Raises:
        UsageError: There is no such level of detail.
    """
    return msgspec.json.format(_encode(select_detail(report, detail)), indent=1) + b"\n"


def report_schema() -> bytes:
    """Return the JSON Schema of a report, made from the types of `longpole.report.document`."""
    (reference, headline_reference), parts = msgspec.json.schema_components([written_type(), Headline])
    unknown_reference = {"$ref": headline_reference["$ref"].replace("Headline", "Unknown")}
    properties = parts["Report"]["properties"]
    properties["schema"] = {"const": SCHEMA}
    properties["headline"] = {"anyOf": [headline_reference, unknown_reference]}
    schema = {**reference, "$defs": parts}
    return msgspec.json.format(msgspec.json.encode({"$schema": _DIALECT, "title": SCHEMA, **schema}), indent=1) + b"\n"


def written_type() -> type[msgspec.Struct]:
    """Return the type that a document of this schema decodes into.

    It is `Report`, but for the headline: msgspec tells apart two structs by a tag only, and the document has none.
    """
    fields = [
        (field.name, dict[str, Any] if field.name == "headline" else field.type)
        for field in msgspec.structs.fields(Report)
    ]
    return msgspec.defstruct("Report", fields, namespace={"__doc__": Report.__doc__})


def _encode(report: Report) -> bytes:
    try:
        return msgspec.json.encode(report)
    except UnicodeEncodeError:
        # A path that is not UTF-8, or a lone surrogate in a name.
        return msgspec.json.encode(_encodable(msgspec.to_builtins(report)))


def _encodable(value: Any) -> Any:
    """Return a value of lists, dicts and scalars in which no text holds a lone surrogate."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value
