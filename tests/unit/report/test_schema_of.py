"""Schemas of documents in which a figure may be one of two structs, at the top or inside."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from longpole.records.ledger import Unknown
from longpole.records.strict_json import encode_document
from longpole.report.schema_of import document_schema, written_type


class Model(msgspec.Struct):
    """A fit."""

    rate: float


class Row(msgspec.Struct, omit_defaults=True):
    """A row."""

    name: str
    model: Model | Unknown
    count: int | Unknown = 0


class Document(msgspec.Struct):
    """The whole."""

    schema: str
    best: Model | Unknown
    rows: list[Row]
    by_name: dict[str, Row]
    plain: int = 3
    more: list[Row] = []


def sample() -> Document:
    rows = [Row("a", Model(2.0)), Row("b", Unknown("not fitted", ["sizes"]), Unknown("not counted"))]
    return Document("longpole.sample/1", Unknown("no row"), rows, {"a": rows[0]})


def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(document_schema(Document, "longpole.sample/1"))
    return loaded


def test_a_document_decodes_into_its_written_type() -> None:
    decoded = msgspec.json.decode(encode_document(sample()), type=written_type(Document))

    assert msgspec.json.encode(decoded) == msgspec.json.encode(sample())


def test_both_forms_stand_in_the_schema_where_they_may_be() -> None:
    parts = schema()["$defs"]

    both = {"anyOf": [{"$ref": "#/$defs/Model"}, {"$ref": "#/$defs/Unknown"}]}
    assert parts["Document"]["properties"]["best"] == both
    assert parts["Row"]["properties"]["model"] == both


def test_what_is_not_ambiguous_stays() -> None:
    parts = schema()["$defs"]

    assert parts["Row"]["properties"]["name"] == {"type": "string"}
    assert parts["Row"]["required"] == ["name", "model"]
    assert parts["Row"]["description"] == "A row."
    assert parts["Document"]["properties"]["rows"]["items"] == {"$ref": "#/$defs/Row"}
    assert parts["Document"]["properties"]["schema"] == {"const": "longpole.sample/1"}
    assert parts["Document"]["required"] == ["schema", "best", "rows", "by_name"]


def test_every_reference_resolves() -> None:
    text = json.dumps(schema())
    named = {part.split('"')[0] for part in text.split("#/$defs/")[1:]}

    assert named == {"Document", "Row", "Model", "Unknown"}
    assert named == set(schema()["$defs"])


def test_a_lone_surrogate_is_written_escaped() -> None:
    document = sample()
    document.rows[0].name = "a\udcff"

    assert json.loads(encode_document(document))["rows"][0]["name"] == "a\\udcff"
