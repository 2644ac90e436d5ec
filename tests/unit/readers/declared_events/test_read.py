"""Files of declared events: three formats with one meaning, and every mistake with its event and key."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from longpole.costs.declared_events import DeclaredEvent
from longpole.costs.declared_fields import EVENT_FIELDS
from longpole.costs.measured_path import MeasuredPath, PathPiece
from longpole.errors import InputError
from longpole.readers.declared_events.check import check_file, read_events
from longpole.readers.declared_events.csv_text import decode_csv
from longpole.readers.declared_events.decode import sniff_format
from longpole.readers.declared_events.json_text import decode_json
from longpole.readers.declared_events.toml_text import decode_toml
from tests.declared_events import event_values

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.readers.declared_events.check import EventFile

GOOD = {"object": "input", "bytes": 10, "bandwidth_gbps": 1.5}
ARTIFACT = DeclaredEvent(object="artifact", bytes=10**9, bandwidth_gbps=1.0, name="weights", fixed_latency_ms=0.5)
STATE = DeclaredEvent(
    object="state", bytes=10**8, bandwidth_gbps=10.0, frequency=4, overlap_window_ms=6.0, blocking_dependency=False
)
AS_JSON = """[
  {"object": "artifact", "bytes": 1000000000, "bandwidth_gbps": 1, "name": "weights", "fixed_latency_ms": 0.5},
  {"object": "state", "bytes": 1e8, "bandwidth_gbps": 10.0, "frequency": 4, "overlap_window_ms": 6,
   "blocking_dependency": false, "name": null}
]"""
AS_TOML = """
[[events]]
name = "weights"
object = "artifact"
bytes = 1_000_000_000
bandwidth_gbps = 1.0
fixed_latency_ms = 0.5

[[events]]
object = "state"
bytes = 1e8
bandwidth_gbps = 10
frequency = 4
overlap_window_ms = 6
blocking_dependency = false
"""
AS_CSV = """object,bytes,bandwidth_gbps,name,fixed_latency_ms,frequency,overlap_window_ms,blocking_dependency
artifact,1000000000,1,weights,0.5,,,
state,1e8,10.0,,,4,6,false
"""


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_text(text: str | bytes, name: str = "events") -> EventFile:
        file = tmp_path / name
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_events(str(file))

    return read_text


@pytest.mark.parametrize("text", [AS_JSON, f'{{"events": {AS_JSON}}}', AS_TOML, AS_CSV])
def test_the_same_events_in_every_format(text: str, read: Any) -> None:
    assert read(text).events == (ARTIFACT, STATE)


@pytest.mark.parametrize("text", [AS_JSON, AS_TOML, AS_CSV])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_changes_nothing(text: str, encoding: str, read: Any) -> None:
    assert read(text.encode(encoding)).events == (ARTIFACT, STATE)


@pytest.mark.parametrize("text", [AS_JSON, AS_TOML, AS_CSV])
def test_line_ends_of_windows_change_nothing(text: str, read: Any) -> None:
    assert read(text.replace("\n", "\r\n")).events == (ARTIFACT, STATE)


@pytest.mark.parametrize("name", ["events.json", "events.toml", "events.csv"])
@pytest.mark.parametrize("text", [AS_JSON, AS_TOML, AS_CSV])
def test_the_content_tells_the_format_and_not_the_name(text: str, name: str, read: Any) -> None:
    assert read(text, name).events == (ARTIFACT, STATE)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters(delimiter: str, read: Any) -> None:
    assert read(AS_CSV.replace(",", delimiter)).events == (ARTIFACT, STATE)


@pytest.mark.parametrize(
    ("cell", "value"), [("true", True), ("Yes", True), ("1", True), ("FALSE", False), ("no", False), ("0", False)]
)
def test_truth_in_csv(cell: str, value: bool, read: Any) -> None:
    found = read(f"object,bytes,bandwidth_gbps,blocking_dependency\ninput,1,1,{cell}\n")

    assert found.events[0].blocking_dependency is value


def test_whole_numbers_that_passed_through_another_program(read: Any) -> None:
    assert read("object,bytes,bandwidth_gbps,frequency\n state , 5.0 ,1, 4.0\n,,,\n").events[0].frequency == 4


@given(event_values())
def test_what_is_written_is_read_in_every_format(values: dict[str, Any]) -> None:
    expected = (DeclaredEvent(**values),)
    columns = io.StringIO()
    writer = csv.DictWriter(columns, values)
    writer.writeheader()
    writer.writerow(values)

    assert check_file(decode_json(json.dumps([values])), "x").events == expected
    if not any(char in values.get("name", "") for char in "\r\n\0") and values.get("name", "x").strip() == values.get(
        "name", "x"
    ):
        assert check_file(decode_csv(columns.getvalue()), "x").events == (
            expected if values.get("name", "x") else (DeclaredEvent(**values | {"name": ""}),)
        )
    lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
    assert check_file(decode_toml("\n".join(["[[events]]", *lines])), "x").events == expected


def _toml(value: object) -> str:
    """Write a value as TOML; a text as a quoted one in which everything but plain characters is escaped."""
    if isinstance(value, str):
        return '"' + "".join(char if char.isalnum() else f"\\U{ord(char):08x}" for char in value) + '"'
    return json.dumps(value)


def test_what_brings_events_to_a_unit_stands_beside_them(read: Any) -> None:
    of_json = read(json.dumps({"requests_per_unit": 32, "events": [GOOD], "units_per_run": None}))
    of_toml = read('tokens_per_unit = 1024\n[[events]]\nobject = "input"\nbytes = 1\nbandwidth_gbps = 1\n')

    assert of_json.lifecycle == {"requests_per_unit": 32}
    assert of_toml.lifecycle == {"tokens_per_unit": 1024}


# ------------------------------------------------------------------ mistakes


def one(**given: object) -> str:
    return json.dumps([GOOD, {**GOOD, **given}])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (one(bandwidth_gbps=0), r"event 2, line 1: bandwidth_gbps: expected a finite number above 0.*; found 0"),
        (one(bandwidth_gbps=-2.5), r"event 2, line 1: bandwidth_gbps: .*; found -2.5"),
        (one(bandwidth_gbps=float("nan")), r"bandwidth_gbps: expected a finite number.*; found nan"),
        (one(bandwidth_gbps=float("inf")), r"bandwidth_gbps: .*; found inf"),
        (one(bandwidth_gbps="fast"), r"bandwidth_gbps: .*; found the text 'fast'"),
        (one(bytes="10"), r"bytes: expected a whole number of bytes, at least 0; found the text '10'"),
        (one(frequency=True), r"frequency: expected a whole number of at least 1; found true"),
        (one(frequency=0, name="kv"), r"event 2 \(kv\), line 1: frequency: .*; found 0"),
        (one(object="weights"), r"object: expected one of input, artifact, state, output; found the text 'weights'"),
        (one(bytes=None), r"event 2, line 1: bytes: missing; expected a whole number of bytes"),
        (one(bandwidth=3), r"bandwidth: no key of an event; did you mean bandwidth_gbps\?"),
        (one(**{"Fixed Latency-MS": 3}), r"Fixed Latency-MS: no key of an event; did you mean fixed_latency_ms\?"),
        (one(colour="red"), r"colour: no key of an event; there are object, bytes, bandwidth_gbps, "),
        (one(bytes=[1]), r"bytes: expected a whole number of bytes, at least 0; found \[1\]"),
        (json.dumps([GOOD, 3]), r"event 2, line 1: expected an object with the keys of an event; found 3"),
        (json.dumps([{"bytes": 1, "bandwidth_gbps": 1}]), r"event 1, line 1: object: missing; expected one of input"),
        ('[{"object":"input","bytes":1,"bytes":2,"bandwidth_gbps":1}]', r"event 1, line 1: bytes: there twice"),
        (json.dumps({"events": [GOOD], "request_per_unit": 3}), r"request_per_unit: .*did you mean requests_per_unit"),
        (json.dumps({"events": [GOOD], "units_per_run": 0}), r"units_per_run: expected a number above 0.*; found 0"),
        (one(path="torch.load.warm", bandwidth_gbps=None), r"path: .*no record of paths is given \(--paths"),
        (one(path="torch.load.warm"), r"bandwidth_gbps: expected this or path, not both"),
        ("[]", r"expected at least one event, found none"),
        ('{"rows": []}', r"expected a list of events, or an object with one as 'events'; found an object with 'rows'"),
        ('{"events": 3}', r"expected a list of events behind 'events'"),
        ('{"events": [], "events": []}', r"the key 'events' is there twice"),
        ('[{"object": "input",\n "bytes": }]', r"line 2: no JSON: Expecting value"),
        (AS_JSON[:-1], r"line 5: no JSON: "),
        (AS_JSON + "]", r"no JSON: expected the end"),
        ("[" * 100_000, r"no JSON"),
        ('[{"bytes": 1' + "0" * 5000 + "}]", r"no JSON that can be read"),
        ("[[events]]\nobject = input\n", r"line 2: no TOML: "),
        ("[[events]]\nobject = 'input'\nbytes = 1\nbandwidth_gbps = nan\n", r"event 1, line 1: bandwidth_gbps: .*nan"),
        (AS_TOML.replace("frequency = 4", "frequency = 4.5"), r"event 2, line 9: frequency: .*; found 4.5"),
        ("units_per_run = 3\n", r"expected events, each below a line \[\[events\]\]; found none"),
        (AS_CSV.replace(",4,", ",four,"), r"event 2, line 3: frequency: .*; found the text 'four'"),
        (AS_CSV.replace("10.0", '"10,5"'), r"event 2, line 3: bandwidth_gbps: .*; found the text '10,5'"),
        (AS_CSV.replace("1000000000,1,", "1000000000,inf,"), r"event 1 \(weights\), line 2: bandwidth_gbps: .*inf"),
        (
            AS_CSV.replace(",6,false", ",6,maybe"),
            r"blocking_dependency: expected true or false; found the text 'maybe'",
        ),
        (AS_CSV.replace(",6,false", ",6,false,7"), r"event 2, line 3: expected a cell for each key; found 9 cells"),
        (AS_CSV.replace("name,", "bytes,"), r"line 1: the column 'bytes' is there twice"),
        (AS_CSV.replace("bytes,", "byte,"), r"byte: no key of an event; did you mean bytes\?"),
        ("object,bytes,bandwidth_gbps\n", r"expected at least one event"),
        ("object,bytes,bandwidth_gbps\ninput,1_000,1\n", r"bytes: .*; found the text '1_000'"),
        ("", r"expected declared events, found an empty file"),
        ("\n  \n", r"expected declared events, found an empty file"),
        ("hello world\n", r"expected declared events: a JSON list, TOML .*; found 'hello world'"),
        (b"\xff\xfe\x00", r"no text in UTF-8"),
        (b'[{"object": "\xe9"}]', r"no text in UTF-8"),
    ],
)
def test_a_mistake_is_named(text: str | bytes, says: str, read: Any) -> None:
    with pytest.raises(InputError, match=says) as caught:
        read(text)

    assert "events" in str(caught.value).splitlines()[0]


def test_all_mistakes_are_listed_and_a_mistyped_key_is_not_missing_too(read: Any) -> None:
    with pytest.raises(InputError) as caught:
        read(json.dumps([{"object": "x", "bytes": -1, "bandwith_gbps": 0}, *[{"object": 1}] * 5]))

    lines = str(caught.value).splitlines()
    assert lines[0].endswith(": 18 mistakes:")
    assert len([line for line in lines if "bandwidth_gbps: missing" in line and "event 1" in line]) == 0
    assert lines[-2:] == ["  and 10 more", "docs/reference/declared-events.md describes the format"]


def test_the_line_of_an_event_is_where_it_begins(read: Any) -> None:
    spread = '{\n "units_per_run": 3,\n "events": [\n\n  ' + json.dumps(GOOD) + ",\n  {}\n ]\n}"

    with pytest.raises(InputError, match="event 2, line 6: object: missing"):
        read(spread)


def test_a_text_that_looks_like_an_event_shifts_no_line(read: Any) -> None:
    text = AS_TOML.replace('"weights"', '"""\n[[events]]\n"""').replace("frequency = 4", "frequency = 0")

    with pytest.raises(InputError, match=r"event 2: frequency: "):
        read(text)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a file, found nothing"):
        read_events(str(tmp_path / "none.json"))
    with pytest.raises(InputError, match="found a folder"):
        read_events(str(tmp_path))
    with pytest.raises(InputError, match="more than 64 MiB"):
        read_events("/dev/zero")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("# a note\n[[events]]", "toml"),
        ("[ [ events ] ]", "toml"),
        ("[events]", "toml"),
        ("[\n{", "json"),
        ("[]", "json"),
        ("[1, 2]", "json"),
        ("  {", "json"),
        ("units_per_run = 3", "toml"),
        ("bytes;object", "csv"),
        ('"object","bytes"', "csv"),
        ("name,size", "csv"),
        ("ts,dur", ""),
        ("x == 3 and more", "toml"),
        ("<html>", ""),
    ],
)
def test_formats_by_their_beginning(text: str, kind: str) -> None:
    assert sniff_format(text) == kind


# ------------------------------------------------------------------ measured paths

LOAD = MeasuredPath(
    name="torch.load.warm",
    pieces=(
        PathPiece(from_bytes=0, latency_ms=1.0, bandwidth_gbps=2.0),
        PathPiece(from_bytes=10**8, latency_ms=4.0, bandwidth_gbps=5.0),
    ),
    least_bytes=4096,
    most_bytes=10**9,
)
COLD = MeasuredPath(name="torch.load.cold", pieces=(), problem="torch.load.cold cannot be used: its model is invalid")


def by_path(path: str, **given: object) -> EventFile:
    values = {"object": "artifact", "bytes": 10**6, "path": path, **given}
    return check_file(decode_json(json.dumps([values])), "x", {"torch.load.warm": LOAD, "torch.load.cold": COLD})


def test_a_path_gives_latency_and_bandwidth_for_the_bytes_that_move() -> None:
    small, large = by_path("torch.load.warm"), by_path("torch.load.warm", bytes=10**9)
    compressed = by_path("torch.load.warm", bytes=10**9, stored_bytes=10**7)

    assert small.paths == ("torch.load.warm",)
    assert [(e.events[0].bandwidth_gbps, e.events[0].fixed_latency_ms) for e in (small, large, compressed)] == [
        (2.0, 1.0),
        (5.0, 4.0),
        (2.0, 1.0),
    ]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("torch.load.wram", r"path: the record has no path 'torch.load.wram'; did you mean torch.load.warm\?"),
        ("torch.load.cold", r"path: torch.load.cold cannot be used: its model is invalid"),
    ],
)
def test_a_path_that_cannot_be_used_is_named(path: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        by_path(path)


def test_every_key_of_an_event_is_a_field() -> None:
    assert {*DeclaredEvent.__dataclass_fields__, "path"} == {field.name for field in EVENT_FIELDS}
