"""Lines of a journal: what was written is what is read, and a damaged line costs no other."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.advice.journal.lines import is_date, read_line, read_lines, write_line
from longpole.records.journal import Entry, RecordLink
from tests.journals import entries, entry

_DAMAGE = [b"{", b"not json", b"\xff\xfe\x00", b"[]", b"1", b'{"v":1}', b"<<<<<<< HEAD", b"=======", b">>>>>>> side"]


@given(st.lists(entries, max_size=4))
def test_what_was_written_is_read(written: list[Entry]) -> None:
    journal = read_lines(b"".join(map(write_line, written)))

    assert journal.entries == written
    assert journal.lines == list(range(1, len(written) + 1))
    assert journal.damaged == []


@given(entries)
def test_an_entry_is_one_line(written: Entry) -> None:
    assert write_line(written).count(b"\n") == 1


@given(
    st.lists(entries, min_size=1, max_size=4), st.data(), st.sampled_from(_DAMAGE), st.sampled_from([b"\n", b"\r\n"])
)
def test_a_damaged_line_anywhere_keeps_the_others_and_is_named_by_its_number(
    written: list[Entry], data: st.DataObject, damage: bytes, ending: bytes
) -> None:
    place = data.draw(st.integers(0, len(written)))
    lines = [write_line(one).rstrip(b"\n") for one in written]
    lines.insert(place, damage)

    journal = read_lines(ending.join(lines) + ending)

    assert journal.entries == written
    assert [line.line for line in journal.damaged] == [place + 1]
    assert place + 1 not in journal.lines


@given(entries, st.data())
def test_a_line_that_was_cut_off_is_damaged_and_not_another_entry(written: Entry, data: st.DataObject) -> None:
    line = write_line(written).rstrip(b"\n")
    length = data.draw(st.integers(1, len(line) - 1))

    assert isinstance(read_line(line[:length]), str)


def test_empty_lines_and_a_byte_order_mark_are_passed_over() -> None:
    journal = read_lines(b"\xef\xbb\xbf\n" + write_line(entry("one")) + b"  \r\n" + write_line(entry("two")) + b"\n")

    assert [one.id for one in journal.entries] == ["one", "two"]
    assert journal.lines == [2, 4]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"v": 2}, "an entry of version 2, and this Longpole reads up to 1; update it"),
        ({"verdict": "good"}, "expected verdict to be accepted or rejected"),
        ({"decision": "maybe"}, "expected decision to be kept or reverted, found 'maybe'"),
        ({"date": "30.11.2026"}, "expected a date such as 2026-11-30"),
        ({"date": "2026-13-01"}, "expected a date"),
        ({"title": " "}, "expected a title"),
        ({"id": ""}, "expected an id"),
        ({"no_record": ""}, "expected records, or a reason under no_record"),
        ({"measured": {"speedup": 0}}, "expected measured.speedup to be above 0"),
        ({"measured": {"speedup": 1.0, "low": 2.0, "high": 1.0}}, "the interval ends at 1.0 before"),
        ({"measured": {"speedup": "fast"}}, "$.measured.speedup"),
        ({"measured": {"speedup": 1.0, "before": -1}}, "expected measured.before to be above 0"),
        ({"measured": {"speedup": 1.0, "better": "yes"}}, "expected measured.better"),
        ({"expected": {"speedup": -1}}, "expected expected.speedup"),
    ],
)
def test_a_line_that_contradicts_the_form_says_where(change: dict[str, object], says: str) -> None:
    line = msgspec.json.encode(msgspec.to_builtins(entry("one")) | change)

    found = read_line(line)

    assert isinstance(found, str)
    assert says in found


def test_a_key_of_a_later_version_is_passed_over() -> None:
    line = json.dumps(msgspec.to_builtins(entry("one")) | {"mood": "good"}).encode()

    assert read_line(line) == entry("one")


def test_a_mark_of_a_merge_says_what_to_do() -> None:
    found = read_line(b"<<<<<<< HEAD")

    assert found == "a mark that a merge left behind; both sides' entries stay, so delete this line"


def test_a_name_that_is_no_text_can_be_written() -> None:
    link = RecordLink("caf\udce9.json", "0" * 64)

    found = read_line(write_line(entry("one", records=[link])))

    assert isinstance(found, Entry)
    assert found.records[0].path == "caf\\udce9.json"


@pytest.mark.parametrize("text", ["2026-1-3", "2026-11-30T12:00", "2026-11-30T12:00:00+01:00", "", "yesterday"])
def test_other_forms_of_dates_are_none(text: str) -> None:
    assert not is_date(text)
