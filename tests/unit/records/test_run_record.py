"""A record says what is wrong with it by file and field, and comes back as it was written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from longpole.errors import InputError
from longpole.records import run_record
from longpole.records.ledger import Unknown
from longpole.records.run_record import RecordTime, RecordUnit, RunRecord
from longpole.records.run_record_file import decode_record, encode_record, looks_like_record
from tests.verify_runs import Job

if TYPE_CHECKING:
    from pathlib import Path

LEAST: dict[str, Any] = {"schema": "longpole.record/1", "units": [{"period_ns": 5}]}


def read(document: Any) -> RunRecord:
    return decode_record(json.dumps(document).encode(), "runs/a.json")


def test_two_keys_are_enough() -> None:
    record = read(LEAST)
    assert [unit.period_ns for unit in record.counted()] == [5]
    assert record.run_id, "an id is made from the content"
    assert isinstance(record.items_per_unit, Unknown)


def test_what_is_written_is_read_back() -> None:
    record = Job(collectives={"all_reduce": (3, 1)}, stages={"input": 4}, limits={"peak_bytes": Unknown("why")}).runs(
        1, 1
    )[0]
    assert decode_record(encode_record(record), "a.json") == record


def test_a_lone_surrogate_in_a_path_does_not_keep_a_record_from_being_written() -> None:
    record = read(LEAST)
    record.label = "bad\udcff"
    assert "bad" in decode_record(encode_record(record), "a.json").label


@pytest.mark.parametrize(
    ("change", "field", "found"),
    [
        ({"schema": "longpole.record/2"}, "$.schema", "longpole.record/2"),
        ({"schema": 1}, "$.schema", "int"),
        ({"units": []}, "$.units", "length"),
        ({"units": [{}]}, "$.units[0]", "period_ns"),
        ({"units": [{"period_ns": "5"}]}, "$.units[0].period_ns", "str"),
        ({"units": [{"period_ns": -5}]}, "$.units[0].period_ns", ">= 0"),
        ({"units": [{"period_ns": 5.5}]}, "$.units[0].period_ns", "float"),
        ({"units": [{"period_ns": 0}]}, "$.units", "not 0"),
        ({"units": [{"period_ns": 5, "items": 0}]}, "$.units[0].items", ">= 1"),
        ({"units": [{"period_ns": 5, "item": 1}]}, "$.units[0]", "`item`"),
        ({"units": [{"period_ns": 5, "objects": {"inputs": {"exposed_ns": 1}}}]}, "$.units[0].objects", "'inputs'"),
        ({"units": [{"period_ns": 5, "idle_ns": {"host": 1}}]}, "$.units[0].idle_ns", "'host'"),
        (
            {"units": [{"period_ns": 5, "wall_ns": 5, "objects": {"input": {"exposed_ns": 6}}}]},
            "$.units[0].objects",
            "more than wall_ns",
        ),
        ({"rows": [{"rank": 0}, {"rank": 0}]}, "$.rows[1]", "already"),
        ({"correctness": {"checks": [{"name": "a", "status": "ok"}]}}, "$.correctness.checks[0].status", "'ok'"),
        ({"correctness": {"metrics": [{"name": "a", "values": []}]}}, "$.correctness.metrics[0].values", "length"),
        ({"world_size": 0}, "$.world_size", ">= 1"),
        ({"lable": "x"}, "$", "`lable`"),
    ],
)
def test_a_mistake_is_named_by_file_and_field(change: dict[str, Any], field: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        read({**LEAST, **change})
    message = str(caught.value)
    assert message.startswith(f"runs/a.json: {field}: ")
    assert found in message


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"units": []}', b"[" * 100_000, b"1e999"])
def test_what_is_no_record_is_refused_without_a_traceback(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^a\.json: \$"):
        decode_record(data, "a.json")


def test_every_cut_of_a_record_is_refused_with_its_name() -> None:
    data = encode_record(Job(units=2).runs(1, 1)[0]).rstrip()
    for end in range(0, len(data), 37):
        with pytest.raises(InputError, match=r"^cut\.json: "):
            decode_record(data[:end], "cut.json")


def test_numbers_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(InputError, match=r"\$"):
        decode_record(b'{"schema":"longpole.record/1","units":[{"period_ns":5}],"limits":{"a":NaN}}', "a.json")


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        (b'{"schema":"longpole.record/1"', True),
        (b' \n{ "label": "x", "schema" : "longpole.record/7"', True),
        (b'\xef\xbb\xbf{"schema":"longpole.record/1"', True),
        (b'{"schemaVersion": 1, "traceEvents": []', False),
        (b'{"schema":"longpole.report/1"', False),
        (b"PK\x03\x04", False),
    ],
)
def test_a_record_is_told_by_its_first_bytes(head: bytes, is_one: bool) -> None:
    assert looks_like_record(head) is is_one


def test_keys_stand_in_any_order_and_a_byte_order_mark_is_passed_over() -> None:
    late = json.dumps({"units": LEAST["units"], "schema": LEAST["schema"]}).encode()
    assert decode_record(b"\xef\xbb\xbf" + late, "a.json").counted()
    assert looks_like_record(late[:20], late[-30:])
    assert not looks_like_record(b"[" + late, b"")


def test_units_that_are_left_out_do_not_count() -> None:
    record = read({**LEAST, "units": [{"period_ns": 5, "left_out": "cold_start"}, {"period_ns": 7}]})
    assert [unit.period_ns for unit in record.counted()] == [7]


def test_items_are_the_units_own_else_the_records() -> None:
    record = read({**LEAST, "items_per_unit": 32, "units": [{"period_ns": 5, "items": 8}, {"period_ns": 5}]})
    assert [record.items_of(unit) for unit in record.units] == [8, 32]


def test_devices_are_scaled_to_the_ranks_that_are_missing() -> None:
    rows = [{"rank": 0, "device": "cuda:0"}, {"rank": 0, "device": "cuda:1"}]
    assert read({**LEAST, "world_size": 4, "rows": rows}).devices() == 8
    assert isinstance(read(LEAST).devices(), Unknown)


def test_parts_of_a_unit_are_typed() -> None:
    unit = RecordUnit(period_ns=5, objects={"input": RecordTime(3)})
    assert unit.objects["input"].exposed_ns == 3


def test_the_reference_page_names_every_key(root: Path) -> None:
    page = (root / "docs" / "reference" / "run-record.md").read_text(encoding="utf-8")
    parts = [getattr(run_record, name) for name in dir(run_record) if name.startswith(("Record", "RunRecord"))]
    missing = [
        f"{part.__name__}.{field}" for part in parts for field in part.__struct_fields__ if f"`{field}`" not in page
    ]
    assert not missing
