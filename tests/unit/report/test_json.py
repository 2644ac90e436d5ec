"""The JSON document and its schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from longpole.errors import UsageError
from longpole.records.ledger import Unknown
from longpole.report.document import SCHEMA, Report
from longpole.report.json import render_json, report_schema, written_type
from longpole.report.schema import read_schema, schema_names
from tests.report_builder import SAMPLES, make_ledger, make_report, make_row, make_top

if TYPE_CHECKING:
    from pathlib import Path

# The keys that the design promises under these names.
PROMISED = {
    "schema",
    "longpole",
    "run",
    "headline",
    "unit",
    "ledger",
    "ranks",
    "integrity",
    "unknown",
    "clock",
    "collectives",
    "overlap",
    "critical_path",
    "replay",
    "findings",
    "long_pole",
    "candidates",
}
ADDED = {"stragglers", "links", "pipeline", "memory", "never_entered", "resources"}


def parse(report: Report, detail: str = "unit") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(render_json(report, detail))
    return loaded


@pytest.mark.parametrize("name", SAMPLES)
def test_a_document_decodes_into_the_type_that_its_schema_is_made_from(name: str) -> None:
    report = SAMPLES[name]()

    decoded = msgspec.json.decode(render_json(report, "unit"), type=written_type())

    assert msgspec.json.encode(decoded) == msgspec.json.encode(report)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_document_has_the_promised_keys(name: str) -> None:
    assert set(parse(SAMPLES[name]())) == PROMISED | ADDED


def test_a_document_is_indented_by_one_space_and_ends_in_a_line_end() -> None:
    text = render_json(SAMPLES["typical"]()).decode()

    assert text.startswith('{\n "schema": "longpole.report/1",\n')
    assert text.endswith("}\n")


def test_what_is_not_known_is_an_object_with_its_reason() -> None:
    document = parse(SAMPLES["no-verdict"]())

    assert set(document["headline"]) == {"unknown", "missing"}
    assert document["unit"]["period_ns"]["median"] == {"unknown": "no unit has a period"}


def test_host_and_unknown_have_no_service() -> None:
    document = parse(SAMPLES["typical"]())

    assert set(document["ledger"]["objects"]["host"]) == {"exposed_ns"}
    assert set(document["ledger"]["objects"]["unknown"]) == {"exposed_ns"}


def test_the_detail_run_has_no_ranks() -> None:
    assert parse(SAMPLES["typical"](), "run")["ranks"] == []


def test_another_detail_is_refused() -> None:
    with pytest.raises(UsageError, match="--detail"):
        render_json(SAMPLES["typical"](), "everything")


@pytest.mark.parametrize("name", ["\x1b[2J", "\u202e", 'quote"\\', "nul\x00"])
def test_a_hostile_name_survives_as_data_and_holds_no_raw_control_byte(name: str) -> None:
    report = make_report([make_row(0, [make_ledger({"compute": 5}, {})], top=make_top(names=[name]))])

    data = render_json(report)

    assert json.loads(data)["ranks"][0]["top"]["kernels"][0]["name"] == name
    assert not [byte for byte in data if byte < 0x20 and byte != 0x0A]


def test_a_path_that_is_not_utf_8_is_written_with_escapes() -> None:
    path = b"traces/caf\xe9.json".decode("utf-8", "surrogateescape")
    report = make_report([make_row(0, [make_ledger({"compute": 5}, {})])], path=path)

    assert parse(report)["run"]["sources"][0]["path"] == "traces/caf\\udce9.json"


def test_the_shipped_schema_is_current() -> None:
    """Write it anew with `python -m tools.write_generated`."""
    assert read_schema("report") == report_schema()


def test_the_shipped_schemas_are_listed() -> None:
    assert {"report", "scaling", "whatif"} <= set(schema_names())


def test_an_unknown_schema_is_refused() -> None:
    with pytest.raises(UsageError, match=r"expected one of .*report.*; found 'nothing'"):
        read_schema("nothing")


def test_a_schema_name_is_no_path() -> None:
    with pytest.raises(UsageError, match="expected one of"):
        read_schema("../document")


def test_the_schema_resolves_within_itself() -> None:
    schema = json.loads(report_schema())

    for reference in _references(schema):
        assert reference.startswith("#/$defs/")
        assert reference.removeprefix("#/$defs/") in schema["$defs"]


def test_the_schema_allows_a_headline_and_its_absence() -> None:
    headline = json.loads(report_schema())["$defs"]["Report"]["properties"]["headline"]

    assert headline == {"anyOf": [{"$ref": "#/$defs/Headline"}, {"$ref": "#/$defs/Unknown"}]}


def test_the_schema_names_the_document() -> None:
    schema = json.loads(report_schema())

    assert schema["$defs"]["Report"]["properties"]["schema"] == {"const": SCHEMA}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_document_is_valid_by_its_schema(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")

    jsonschema.validate(parse(SAMPLES[name]()), json.loads(report_schema()))


def test_the_reference_page_names_every_top_level_key(root: Path) -> None:
    page = (root / "docs" / "reference" / "report-json.md").read_text(encoding="utf-8")

    assert not [key for key in PROMISED if f"`{key}`" not in page]


def test_unknown_is_the_same_in_the_schema_and_in_the_code() -> None:
    parts = json.loads(report_schema())["$defs"]["Unknown"]

    assert set(parts["properties"]) == set(Unknown.__struct_fields__)


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [found for inner in value.values() for found in _references(inner)]
    if isinstance(value, list):
        return [found for inner in value for found in _references(inner)]
    return []
