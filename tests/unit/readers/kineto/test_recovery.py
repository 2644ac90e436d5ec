"""A damaged event list gives every event that can be read, and says what is wrong and where."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest

from longpole.readers.kineto.recovery import Damage, Recovered, looks_like_two_writers, recover

if TYPE_CHECKING:
    from pathlib import Path

A = b'{"ph": "X", "name": "a", "ts": 1}'
B = b'{"ph": "X", "name": "b", "args": {"grid": [1, 2, 3], "stream": 7}}'
C = b'{"ph": "i", "name": "c"}'


def read(text: bytes, *, final: bool = True) -> Recovered:
    return recover(text, 0, final=final)


def only(text: bytes) -> tuple[object, Damage | None]:
    """Recover one element between two healthy ones; return its value and its one damage."""
    recovered = read(A + b",\n" + text + b",\n" + C)
    assert recovered.events[0] == A
    assert recovered.events[-1] == C
    assert len(recovered.events) == 3
    assert len(recovered.damages) <= 1
    return msgspec.json.decode(recovered.events[1]), next(iter(recovered.damages), None)


def codes(recovered: Recovered) -> Counter[str]:
    counts: Counter[str] = Counter()
    for damage in recovered.damages:
        counts[damage.code] += damage.count
    return counts


# ------------------------------------------------------------------------------------------- the cases


def recover_case(cases: Path, name: str) -> tuple[bytes, Recovered]:
    text = (cases / name / "input.json").read_bytes()
    key = re.search(rb'"traceEvents"\s*:\s*\[', text)
    start = key.end() if key else text.index(b"[") + 1
    return text, recover(text[start:], start, final=True)


@pytest.mark.parametrize(
    ("name", "n_events", "expected"),
    [
        ("B001", 11, {"json.string.repaired": 2}),
        ("B003", 8, {"json.control_character": 2}),
        ("B004", 8, {"json.utf8.replaced": 2}),
        ("B005", 10, {"json.number.not_finite": 1}),
        ("B007", 9, {"json.list.cut": 1}),
        ("B008", 27, {"json.cut": 1}),
        ("B009", 4, {}),
        ("B011", 25, {"json.element.unreadable": 2}),
        ("B014", 8, {}),
        ("B051", 1, {}),
    ],
)
def test_a_case_keeps_its_events_and_counts_its_damage(
    cases: Path, name: str, n_events: int, expected: dict[str, int]
) -> None:
    text, recovered = recover_case(cases, name)

    assert len(recovered.events) == n_events
    assert codes(recovered) == expected
    for start, event in zip(recovered.starts, recovered.events, strict=True):
        assert text[start : start + 1] == event[:1]
        msgspec.json.decode(event)


def test_names_of_windows_paths_keep_their_letters(cases: Path) -> None:
    _, recovered = recover_case(cases, "B001")
    expected = json.loads((cases / "B001" / "expected.json").read_text(encoding="utf-8"))["values"]["names"]

    events = [msgspec.json.decode(event) for event in recovered.events]
    names = {str(e["args"]["Python id"]): e["name"] for e in events if e.get("cat") == "python_function"}

    assert names == expected


def test_a_cut_is_placed_at_the_end_of_the_text(cases: Path) -> None:
    text, recovered = recover_case(cases, "B008")

    assert [damage.byte for damage in recovered.damages] == [len(text)]
    assert recovered.rest_start == len(text)
    assert recovered.closed_at is None


def test_the_first_of_two_glued_lists_ends_at_its_bracket(cases: Path) -> None:
    text, recovered = recover_case(cases, "B051")

    assert recovered.closed_at == text.index(b"]\n[")
    assert recovered.rest_start == recovered.closed_at


def test_a_list_cut_names_the_event_that_holds_it(cases: Path) -> None:
    text, recovered = recover_case(cases, "B007")
    event = msgspec.json.decode(recovered.events[0])

    assert event["args"]["In split size"] == [7001, 6400, 6512]
    assert recovered.damages[0].byte == recovered.starts[0] == text.index(b'{"ph"')


# --------------------------------------------------------------------------------------------- strings


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (rb"torch\cuda\graphs.py", r"torch\cuda\graphs.py"),
        (rb"C:\new\table\util.py", r"C:\new\table\util.py"),
        (rb"C:\\ok\path", r"C:\ok\path"),
        (rb"say \"x\" in C:\dir", r'say "x" in C:\dir'),
        (rb"\u12g4", r"\u12g4"),
        (rb"\x41", r"\x41"),
        (rb"C:\temp\work\ ", "C:\\temp\\work\\ "),
    ],
)
def test_where_one_escape_is_illegal_every_backslash_is_literal(written: bytes, meant: str) -> None:
    value, damage = only(b'{"name": "' + written + b'"}')

    assert value == {"name": meant}
    assert damage is not None
    assert (damage.code, damage.count) == ("json.string.repaired", 1)


@pytest.mark.parametrize("legal", [rb"tab\there", rb"say \"hi\" C:\\ok\\a.py", rb"\u00e9\/", rb"\ud83d\ude00"])
def test_a_string_without_an_illegal_escape_is_unchanged(legal: bytes) -> None:
    value, damage = only(b'{"name": "' + legal + b'", "bad": inf}')

    assert value == {"name": json.loads(b'"' + legal + b'"'), "bad": None}
    assert damage is not None
    assert damage.code == "json.number.not_finite"


def test_a_path_may_end_in_a_backslash() -> None:
    value, damage = only(rb'{"cwd": "C:\work\", "pid": 4, "tmp": "D:\"}')

    assert value == {"cwd": "C:\\work\\", "pid": 4, "tmp": "D:\\"}
    assert damage is not None
    assert (damage.code, damage.count) == ("json.string.repaired", 2)


def test_quotes_that_are_not_escaped_stay_in_the_name() -> None:
    value, damage = only(b'{"name": "call "f" (1)", "pid": 4}')

    assert value == {"name": 'call "f" (1)', "pid": 4}
    assert damage is not None
    assert damage.code == "json.string.repaired"


def test_raw_control_characters_are_kept_as_escapes() -> None:
    value, damage = only(b'{"name": "a\x01b\tc\nd\x00", "x": "e\x1f"}')

    assert value == {"name": "a\x01b\tc\nd\x00", "x": "e\x1f"}
    assert damage is not None
    assert (damage.code, damage.count) == ("json.control_character", 2)


def test_each_maximal_invalid_sequence_becomes_one_replacement() -> None:
    """F0 alone is cut short by "(", 8C is no start, F0 9F 98 is a cut-off sequence of four, FF is never valid."""
    value, damage = only(b'{"name": "a\xf0(\x8c(\xf0\x9f\x98|\xff|\xc3\xa9"}')

    assert value == {"name": "a\ufffd(\ufffd(\ufffd|\ufffd|é"}
    assert damage is not None
    assert (damage.code, damage.count) == ("json.utf8.replaced", 1)


def test_half_a_surrogate_pair_is_replaced() -> None:
    value, damage = only(rb'{"name": "\ud83d \\ud83d \ud83d\ude00 \ude00"}')

    assert value == {"name": "\ufffd \\ud83d 😀 \ufffd"}
    assert damage is not None
    assert damage.code == "json.utf8.replaced"


def test_one_string_may_need_every_repair() -> None:
    recovered = read(A + b',{"name": "C:\\q\xff\x02"}')

    assert msgspec.json.decode(recovered.events[1]) == {"name": "C:\\q\ufffd\x02"}
    assert codes(recovered) == {"json.string.repaired": 1, "json.utf8.replaced": 1, "json.control_character": 1}


def test_a_repair_is_placed_at_its_string() -> None:
    text = A + b',{"ph": "X", "name": "C:\\q"}'

    damage = recover(text, 1000, final=True).damages[0]

    assert damage.byte == 1000 + text.index(b'"C:')
    assert damage.element_byte == 1000 + text.index(b'{"ph": "X", "name": "C:')


# ---------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("word", ["inf", "-inf", "nan", "NaN", "Infinity", "-Infinity", "-nan(ind)", "1.#INF", "1e999"])
def test_a_value_that_is_not_finite_becomes_null(word: str) -> None:
    value, damage = only(b'{"bw": ' + word.encode() + b', "x": 1}')

    assert value == {"bw": None, "x": 1}
    assert damage is not None
    assert damage.code == "json.number.not_finite"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("007", 7), ("+5", 5), ("-012.50", -12.5), (".5", 0.5), ("3.", 3), ("0x1F", 31), ("True", True), ("None", None)],
)
def test_a_value_in_another_notation_keeps_its_meaning(written: str, meant: object) -> None:
    value, damage = only(b'{"v": ' + written.encode() + b', "x": 1}')

    assert value == {"v": meant, "x": 1}
    assert damage is not None
    assert damage.code == "json.syntax.repaired"


def test_a_value_that_cannot_be_read_costs_only_itself() -> None:
    value, damage = only(b'{"ts": 12x4.5, "dur": 3.5e1}')

    assert value == {"ts": None, "dur": 35.0}
    assert damage is not None
    assert damage.code == "json.syntax.repaired"


@pytest.mark.parametrize(
    "dots", ["1, 2, ...", "1, 2 ...", "1, 2,...", "1, 2...", "1, 2, .....", "..., 1, 2", "1, ..., 2"]
)
def test_bare_dots_are_dropped_from_a_list(dots: str) -> None:
    value, damage = only(b'{"sizes": [' + dots.encode() + b'], "more": [1, 2]}')

    assert value == {"sizes": [1, 2], "more": [1, 2]}
    assert damage is not None
    assert damage.code == "json.list.cut"


@pytest.mark.parametrize(
    "element",
    [b'{"a": 1, "b": [1, 2,],}', b'{"a": 1,, "b": [1,, 2]}', b'{"a": \0\0\0 1, "b": [1,\x0c 2]}'],
)
def test_spare_commas_and_blanks_inside_an_event_are_left_out(element: bytes) -> None:
    value, damage = only(element)

    assert value == {"a": 1, "b": [1, 2]}
    assert damage is not None
    assert damage.code == "json.syntax.repaired"


def test_duplicate_keys_and_elements_that_are_no_objects_are_kept() -> None:
    text = b'{"a": 1, "a": 2}, ["X", "kernel"], 7, "s", null, {}, []'

    recovered = read(text)

    assert b", ".join(recovered.events) == text
    assert recovered.damages == []


# ---------------------------------------------------------------------------------------- between events


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (b",", {}),
        (b" ,\r\n\t", {}),
        (b"", {"json.syntax.repaired": 1}),
        (b"\n", {"json.syntax.repaired": 1}),
        (b",,,", {"json.syntax.repaired": 1}),
        (b",\0\0\0\0", {"json.syntax.repaired": 1}),
        (b", x", {"json.syntax.repaired": 1}),
        (b", \xef\xbb\xbf", {"json.syntax.repaired": 1}),
        (b",]", {"json.syntax.repaired": 2}),
        (b"},", {"json.syntax.repaired": 1}),
        (b"}}\n,", {"json.syntax.repaired": 1}),
        (b",[", {"json.syntax.repaired": 1}),
        (b":", {"json.syntax.repaired": 1}),
        (b', "lost": 5, ', {"json.element.unreadable": 1}),
    ],
)
def test_what_stands_between_two_events_costs_neither(between: bytes, expected: dict[str, int]) -> None:
    recovered = read(A + between + B + b"," + C)

    assert recovered.events == [A, B, C]
    assert codes(recovered) == expected


def test_commas_around_a_stretch_are_no_damage() -> None:
    recovered = read(b",\n" + A + b",\n" + B + b",\n")

    assert recovered.events == [A, B]
    assert recovered.damages == []


@pytest.mark.parametrize(
    "broken",
    [
        b'{"ph": "X", "name": "lost quote, "ts": 1}',
        b'{"ph": "X", "name" "lost colon"}',
        b'"ph": "X", "name": "lost brace"}',
        b'{"ph": "X", "args": {"n": 1}',
        b'{"ph": "X", "args": {"n": [1, 2}}',
        b'{"ph": "X", "args": {"n": [1, 2]]}',
        b'{"ph": "X", "na',
        b'{"ph": "X", "name": "a", "args": {"name": "py',
        b"}{][",
        b"\xff\xfe\x00garbage without any mark",
    ],
)
def test_an_event_beyond_repair_costs_no_other(broken: bytes) -> None:
    recovered = read(A + b",\n" + broken + b",\n" + B + b",\n" + C + b"\n]}")

    assert recovered.events == [A, B, C]
    assert recovered.damages
    assert recovered.closed_at == len(A + broken + B + C) + 3 * 2 + 1


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ('f("a", "b")', '"pid": 1}'),
        ('x["key": 1]', '"pid": 1}'),
        ('op {"a": 1}, {"b": 2}', '"pid": 1, "args": {"stream": 7}}'),
        ('"quoted", "twice"', '"pid": "a"}'),
        ('C:\\\\dir\\\\, "b", c', '"pid": 1}'),
    ],
)
def test_quotes_that_were_not_escaped_stay_in_the_name(name: str, rest: str) -> None:
    """Even where punctuation follows one: the string ends where the next key of an event begins."""
    value, damage = only(f'{{"ph": "X", "name": "{name}", {rest}'.encode())

    assert isinstance(value, dict)
    assert value["name"] == name.replace("\\\\", "\\")
    assert damage is not None
    assert damage.code == "json.string.repaired"


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (b'{"ph": "X", "dur": , "ts": 1}', {"ph": "X", "dur": None, "ts": 1}),
        (b'{"ph": "X", "ts": 1, "args": {"bandwidth": }}', {"ph": "X", "ts": 1, "args": {"bandwidth": None}}),
        (b'{"ph": "X" "name": "lost comma"}', {"ph": "X", "name": "lost comma"}),
        (b'{"ph": "X", name": "lost quote", "ts": 1}', {"ph": "X", "name": "lost quote", "ts": 1}),
        (b'{"ph": "X", "name: "lost quote", "ts": 1}', {"ph": "X", "name": "lost quote", "ts": 1}),
        (b'{"ph": "X",\n\ttid": 0,\n\t"args": {}\n}', {"ph": "X", "tid": 0, "args": {}}),
        (b'{"ph": "X", dur: 5, "ts": 1}', {"ph": "X", "dur": 5, "ts": 1}),
        (b'{"ph": "X", "ts": 1.5 "args": {"n": [1] "m": 2}}', {"ph": "X", "ts": 1.5, "args": {"n": [1], "m": 2}}),
    ],
)
def test_a_value_a_comma_or_a_quote_of_a_key_that_was_never_written_costs_no_event(text: bytes, event: object) -> None:
    value, damage = only(text)

    assert value == event
    assert damage is not None
    assert damage.code == "json.syntax.repaired"


def test_a_seam_of_two_writers_is_not_mended_as_a_lost_comma() -> None:
    """One key twice: the text of another event goes on there."""
    recovered = read(A + b', {"ph": "X", "ts": 8837 "ph": "X", "name": "other", "ts": 2}, ' + B)

    assert recovered.events == [A, B]
    assert codes(recovered) == {"json.element.unreadable": 1}


def test_an_unreadable_stretch_says_from_where_to_where() -> None:
    broken = b'{"ph": "X" _"name": 1}'
    text = A + b"," + broken + b"," + B

    damage = recover(text, 500, final=True).damages[0]

    start = 500 + len(A) + 1
    assert (damage.code, damage.byte, damage.end_byte) == ("json.element.unreadable", start, start + len(broken) + 1)
    assert f"up to byte {damage.end_byte}" in damage.message
    assert f"breaks off at byte {start + broken.index(b'_')}" in damage.message


def test_nested_objects_are_not_taken_for_events() -> None:
    """The arguments begin like an event, but a brace follows them."""
    broken = b'{"ph": "M" x "args": {"name": "python"}}'

    recovered = read(A + b", " + broken + b", " + B)

    assert recovered.events == [A, B]


# --------------------------------------------------------------------------------------- ends of the list


@pytest.mark.parametrize(
    "behind",
    [
        b"]",
        b"]}",
        b"\n],\n",
        b'], "traceName": "x", "deviceProperties": [{"id": 0, "name": "d"}, {"id": 1, "name": "e"}]}',
        b"][",
        b"]\n[" + A + b", " + B + b"]",
        b']}\n{"traceEvents": [' + A + b", " + B + b"]}",
    ],
)
@pytest.mark.parametrize("last", [B, b'{"ph": "X" broken}', b'{"ph": "X", "bad": inf}'])
def test_the_list_ends_at_its_bracket(behind: bytes, last: bytes) -> None:
    text = A + b"," + last

    recovered = read(text + behind)

    assert recovered.closed_at == len(text) + behind.index(b"]")
    assert recovered.events[0] == A
    assert len(recovered.events) == (1 if b"broken" in last else 2)


def test_a_lost_bracket_ends_at_the_brace_behind_it() -> None:
    recovered = read(A + b"," + B + b"\n}\n")

    assert recovered.events == [A, B]
    assert recovered.closed_at == len(A + B) + 2


def test_a_bracket_with_events_behind_it_is_left_out() -> None:
    recovered = read(A + b"]," + B + b"," + C + b"]")

    assert recovered.events == [A, B, C]
    assert recovered.closed_at == len(A + B + C) + 3


# --------------------------------------------------------------------------------------------- pieces


def test_an_event_without_an_end_is_left_for_more_text() -> None:
    text = A + b", " + B[:-10]

    recovered = recover(text, 100, final=False)

    assert recovered.events == [A]
    assert recovered.damages == []
    assert recovered.rest_start == 100 + len(A) + 2


def test_a_broken_event_at_the_end_is_left_for_more_text() -> None:
    recovered = read(A + b', {"ph": "X" "broken', final=False)

    assert recovered.events == [A]
    assert recovered.damages == []
    assert recovered.rest_start == len(A) + 2


def test_a_bracket_at_the_end_is_left_for_more_text() -> None:
    undecided = read(A + b"]\n", final=False)
    decided = read(A + b"]\n", final=True)

    assert (undecided.closed_at, undecided.rest_start) == (None, len(A))
    assert decided.closed_at == len(A)


@pytest.mark.parametrize("text", [b"", b"  \n", b",", b"\0\0"])
def test_nothing_gives_nothing(text: bytes) -> None:
    recovered = read(text)

    assert (recovered.events, recovered.rest_start) == ([], len(text))


# ----------------------------------------------------------------------------------------- hostile text


@pytest.mark.parametrize(
    "unit",
    [
        b"[", b'{"a":', b'{"a":[', b',{"ph":[1', b',{"ph":', b'"', b"\\", b'{"a":"', b',{"a":"\\"', b',{"a', b"}", b"]",
        b'],{"ph":', b"1 ", b"1,", b"\0", b",", b'x "', b'} {"ph":"', b"}]", b'}],"', b'}],"a":1', b"\xff", b'{"x" ',
        b'[1,{"ph":', b".", b"-", b"(", b'{"ph":1},{',
    ],
)  # fmt: skip
@pytest.mark.parametrize("final", [True, False])
def test_hostile_text_ends_soon(unit: bytes, final: bool) -> None:
    """Twice the text takes about twice the time; a search that looked at all of it again and again would take four."""
    head = b'{"ph": "X", !'

    def seconds(n: int) -> float:
        text = head + unit * (n // len(unit))
        start = time.process_time()
        recover(text, 0, final=final)
        return time.process_time() - start

    small, large = min(seconds(20_000), seconds(20_000)), seconds(160_000)

    assert large < max(30 * small, 0.5)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
def test_nesting_without_an_end_is_skipped(opening: bytes) -> None:
    deep = opening * 100_000

    recovered = read(A + b",\n" + deep + b",\n" + B)

    assert recovered.events == [A, B]
    assert codes(recovered)["json.element.unreadable"] >= 1


def test_deep_nesting_within_reason_is_kept() -> None:
    deep = b'{"a":' * 40 + b"inf" + b"}" * 40

    value, damage = only(deep)

    assert json.dumps(value).count("a") == 40
    assert damage is not None
    assert damage.code == "json.number.not_finite"


def test_a_broken_event_among_many_takes_little_time() -> None:
    """The aim is 30 MB/s; a fifth of it leaves room for a busy machine, and fails what works byte by byte."""
    text = b",\n".join([B] * 30_000)
    middle = text.index(b'"name"', len(text) // 2)
    text = text[:middle] + b"@name" + text[middle + 6 :]

    start = time.process_time()
    recovered = read(text)
    taken_s = time.process_time() - start

    assert len(recovered.events) == 29_999
    assert len(text) / 1e6 / taken_s > 6


# ----------------------------------------------------------------------------------------- two writers


def unreadable(*, is_interrupted: bool = False) -> Damage:
    return Damage("json.element.unreadable", 10, None, "", end_byte=20, is_interrupted=is_interrupted)


def test_two_writers_show_by_other_processes_on_the_two_sides() -> None:
    assert looks_like_two_writers([unreadable()], {"4200"}, {"4201"})


@pytest.mark.parametrize(
    ("before", "after"), [({"1"}, {"1"}), ({"1"}, {"1", "2"}), (set(), {"1"}), ({"1"}, set()), (set(), set())]
)
def test_the_same_process_on_both_sides_is_one_writer(before: set[str], after: set[str]) -> None:
    assert not looks_like_two_writers([unreadable()], before, after)


def test_other_processes_without_an_unreadable_stretch_are_one_writer() -> None:
    repaired = Damage("json.string.repaired", 10, None, "")

    assert not looks_like_two_writers([repaired], {"1"}, {"2"})
    assert not looks_like_two_writers([], {"1"}, {"2"})


def test_two_writers_show_by_an_event_that_begins_inside_a_string() -> None:
    recovered = read(A + b', {"ph": "X", "name": "voi' + B + b", " + C)

    assert recovered.events == [A, B, C]
    assert looks_like_two_writers(recovered.damages, {"1"}, {"1"})


def test_the_case_of_two_writers_shows_by_its_processes(cases: Path) -> None:
    _, recovered = recover_case(cases, "B011")
    first, second = recovered.damages
    pids = [
        (start, str(event["pid"]))
        for start, event in zip(recovered.starts, map(msgspec.json.decode, recovered.events), strict=True)
        if event.get("cat") == "cuda_runtime"
    ]

    before = {pid for start, pid in pids if start < first.byte}
    between = {pid for start, pid in pids if first.byte < start < second.byte}

    assert (before, between) == ({"4200"}, {"4201"})
    assert looks_like_two_writers([first], before, between)


@pytest.mark.parametrize("byte", [bytes((value,)) for value in b'{}[]",:\\ x0\0'])
@pytest.mark.parametrize("change", ["flip", "insert", "drop"])
def test_one_wrong_byte_is_never_two_writers(byte: bytes, change: str) -> None:
    """At every place of an event between two others, one byte is changed, added or lost."""
    event = b'{"name": "process_name", "ph": "M", "args": {"name": "python"}, "list": [{"id": 1}, 2]}'
    text = A + b",\n" + event + b",\n" + B
    start = len(A) + 2
    for at in range(start, start + len(event)):
        changed = {
            "flip": text[:at] + byte + text[at + 1 :],
            "insert": text[:at] + byte + text[at:],
            "drop": text[:at] + text[at + 1 :],
        }[change]

        recovered = read(changed)

        assert recovered.events[0] == A, changed
        assert recovered.events[-1] == B, changed
        assert not looks_like_two_writers(recovered.damages, {"1"}, {"1"}), changed
