"""`longpole.declared_ledger`: the document, from a file or from a program, with measured paths or declared ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.costs.declared_events import DeclaredEvent
from longpole.errors import InputError
from longpole.pipeline.declared_ledger import declared_ledger
from longpole.records.bench_io import BenchIo, IoModel, IoPath, IoPiece, IoSkipped, IoStorage, IoWorkload
from longpole.records.ledger import Unknown
from longpole.records.strict_json import encode_document
from longpole.report.schema_of import written_type
from tests.declared_events import event_values
from tests.ledger_samples import ORACLE

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = ("bytes", "service_ms", "exposed_ms")


def as_json(events: Any, **given: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(encode_document(declared_ledger(events, **given)))
    return document


def test_the_answer_has_the_agreed_keys() -> None:
    """These names are read by other programs."""
    answer = as_json(ORACLE)

    assert answer["schema"] == "longpole.ledger/1"
    assert answer["total_bytes"] == 1_400_000_000
    assert answer["total_service_ms"] == 1040.0
    assert answer["total_exposed_ms"] == 1016.0
    assert {name: answer["by_object"]["artifact"][name] for name in FIELDS} == {
        "bytes": 10**9,
        "service_ms": 1000.0,
        "exposed_ms": 1000.0,
    }
    assert {name: answer["by_object"]["state"][name] for name in FIELDS} == {
        "bytes": 400_000_000,
        "service_ms": 40.0,
        "exposed_ms": 16.0,
    }
    assert {name: answer["by_object"]["output"][name] for name in FIELDS} == {
        "bytes": 0,
        "service_ms": 0.0,
        "exposed_ms": 0.0,
    }


@given(st.lists(event_values(), min_size=1, max_size=8))
def test_the_document_conserves(values: list[dict[str, Any]]) -> None:
    answer = as_json(values, requests_per_unit=3, tokens_per_unit=2.5, units_per_run=7)

    for name in FIELDS:
        total = pytest.approx(answer[f"total_{name}"], rel=1e-12)
        assert sum(entry[name] for entry in answer["by_object"].values()) == total
        assert sum(event[name] for event in answer["events"]) == total
        assert answer["total"][name] == answer[f"total_{name}"]
    for entry in (*answer["by_object"].values(), *answer["events"], answer["total"]):
        assert entry["exposed_ms"] + entry["hidden_ms"] == pytest.approx(entry["service_ms"], rel=1e-12)


@settings(max_examples=30)
@given(st.lists(event_values(), min_size=1, max_size=4))
def test_the_document_decodes_into_its_written_type(values: list[dict[str, Any]]) -> None:
    ledger = declared_ledger(values, requests_per_unit=3, tokens_per_unit=2, units_per_run=7)

    decoded = msgspec.json.decode(encode_document(ledger), type=written_type(type(ledger)))

    # A whole number stays the same number: 3 is 3.0.
    assert json.loads(msgspec.json.encode(decoded)) == json.loads(msgspec.json.encode(ledger))


def test_a_file_and_a_program_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text(json.dumps(ORACLE))

    of_file, of_values = longpole.declared_ledger(file), longpole.declared_ledger(ORACLE)
    of_events = longpole.declared_ledger([DeclaredEvent(**values) for values in ORACLE])

    assert of_file.source == str(file)
    assert msgspec.structs.replace(of_file, source="") == of_values == of_events


def test_one_event_twice_is_two_events() -> None:
    event = DeclaredEvent(object="input", bytes=10**6, bandwidth_gbps=1.0)

    ledger = declared_ledger([event, event])

    assert ledger.total_service_ms == 2.0
    assert ledger.notes == ["events 1, 2: no fixed_latency_ms: it counts as 0"]


def test_what_is_said_in_the_call_stands_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    event = {"object": "input", "bytes": 10**6, "bandwidth_gbps": 1.0, "per": "request"}
    file.write_text(json.dumps({"requests_per_unit": 10, "events": [event]}))

    assert declared_ledger(file).total_service_ms == 10.0
    assert declared_ledger(file, requests_per_unit=4).total_service_ms == 4.0


def test_a_missing_conversion_names_file_event_and_key(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text(json.dumps([{"object": "input", "bytes": 1, "bandwidth_gbps": 1.0, "per": "token", "name": "kv"}]))

    with pytest.raises(InputError, match=r"events.json: event 1 \(kv\): per: .* give tokens_per_unit"):
        declared_ledger(file)


def test_an_event_of_a_program_is_checked_like_one_of_a_file() -> None:
    with pytest.raises(InputError, match=r"^events: event 2: bandwidth_gbps: .*; found 0"):
        declared_ledger([ORACLE[0], {**ORACLE[1], "bandwidth_gbps": 0}])


def test_what_rules_is_named() -> None:
    ledger = declared_ledger(
        [{"object": "state", "bytes": 0, "bandwidth_gbps": 1, "fixed_latency_ms": 1, "frequency": 9}]
    )

    assert ledger.events[0].dominant_part == "frequency"
    assert ledger.events[0].dominant_share == pytest.approx(8 / 9)
    assert ledger.events[0].largest_saving == "fewer_operations"
    assert ledger.events[0].crossover_bytes == pytest.approx(10**6)
    assert ledger.by_object["state"].wait_share == 1.0
    assert ledger.by_object["input"].dominant_share == Unknown("it takes no time")


def test_no_wait_at_all() -> None:
    ledger = declared_ledger([{"object": "state", "bytes": 0, "bandwidth_gbps": 1}])

    assert ledger.says == "a unit waits for none of it"
    assert ledger.by_object["state"].wait_share == Unknown("it takes no time")
    assert "/by_object/state/wait_share" in [entry.at for entry in ledger.unknown]


# ------------------------------------------------------------------ measured paths


def piece(from_bytes: int, to_bytes: int, latency_ns: float, gb_per_s: float | Unknown) -> IoPiece:
    return IoPiece(from_bytes, to_bytes, latency_ns, (0.0, 1.0), gb_per_s, (0.0, 1.0))


def path(name: str, model: IoModel, **given: Any) -> IoPath:
    return IoPath(name, "", "artifact", "load", "torch", model=model, **given)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    fitted = IoModel(
        "fitted",
        pieces=[piece(4096, 10**7, 2e6, 2.0), piece(10**7, 10**9, 5e6, 4.0)],
        break_bytes=20_000_000,
    )
    paths = [
        path("load.warm", fitted),
        path("load.invalid", IoModel("invalid", "a size is off by 40 %", pieces=[piece(1, 2, 3.0, 4.0)])),
        path("load.unfitted", IoModel("not_fitted", "too few sizes")),
        path("load.endless", IoModel("fitted", pieces=[piece(1, 10, 3.0, Unknown("its bytes take no time"))])),
        path("load.spoilt", fitted, evidence="invalid", reason="a page stayed cached"),
    ]
    written = BenchIo(
        schema="longpole.bench-io/1",
        profile="default",
        semantic_id="0",
        label="x",
        written_by="test",
        started_at="2026-01-01T00:00:00Z",
        status="measured",
        workload=IoWorkload(1, [1], "float32", 1, 0, 1, 0, "random", "", 1, 0),
        storage=IoStorage("/tmp"),
        paths=paths,
        skipped=[IoSkipped("copy.device", "there is no device")],
    )
    file = tmp_path / "record.json"
    file.write_bytes(msgspec.json.encode(written))
    return file


def on(path: str, size: int = 10**6) -> list[dict[str, Any]]:
    return [{"object": "artifact", "bytes": size, "path": path}]


@pytest.mark.parametrize(("size", "service_ms"), [(10**6, 2.5), (19_999_999, 12.0), (20_000_000, 10.0), (10**8, 30.0)])
def test_an_event_may_name_a_measured_path(size: int, service_ms: float, record: Path) -> None:
    """Latency and bandwidth are those of the law for its size: 2 ms and 2 GB/s, from 20 MB on 5 ms and 4 GB/s."""
    ledger = declared_ledger(on("load.warm", size), paths=record)

    assert ledger.total_service_ms == pytest.approx(service_ms)
    assert ledger.events[0].path == "load.warm"
    assert ledger.notes == []


def test_a_size_beyond_what_was_measured_is_said_to_be_extrapolated(record: Path) -> None:
    ledger = declared_ledger(on("load.warm", 10**10), paths=record)

    assert ledger.notes == ["event 1: load.warm was measured from 4.10 kB to 1.00 GB; for this size it is extrapolated"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("load.invalid", "its model is invalid: a size is off by 40 %"),
        ("load.unfitted", "its model is not fitted: too few sizes"),
        ("load.endless", "its bandwidth is not known: its bytes take no time"),
        ("load.spoilt", "its samples are invalid: a page stayed cached"),
        ("copy.device", "copy.device was not measured: there is no device"),
        ("load.wrm", "did you mean load.warm?"),
    ],
)
def test_a_path_that_does_not_hold_is_refused(name: str, says: str, record: Path) -> None:
    with pytest.raises(InputError) as caught:
        declared_ledger(on(name), paths=record)

    assert "event 1: path: " in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["{}", "[", '{"schema": "longpole.bench-io/2"}', '{"schema": "longpole.record/1"}'])
def test_another_file_than_a_record_of_paths_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)

    with pytest.raises(InputError, match=r"other.json: expected a record of longpole bench io"):
        declared_ledger(on("load.warm"), paths=file)
    with pytest.raises(InputError, match="cannot be read"):
        declared_ledger(on("load.warm"), paths=tmp_path / "none.json")
