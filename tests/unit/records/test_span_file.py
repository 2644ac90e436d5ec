"""A span file is read as far as it is whole, and says what of it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec
import pytest

from longpole.errors import InputError, NotATraceError
from longpole.records.span_file import CollectiveLine, Header, Line, RankLine, SpanLine, UnitLine
from longpole.records.span_file_read import decode_span_file, looks_like_span_file, read_span_file

if TYPE_CHECKING:
    from pathlib import Path

HEADER = Header("longpole.spans/1", 5, 6, 7, rank=0)
SPAN = SpanLine("forward", 1, 2, 3, o="compute")
UNIT = UnitLine("step 0", 1, 2, 3)


def encode(*lines: Line) -> bytes:
    return msgspec.json.Encoder().encode_lines(lines)


def test_lines_are_read_back_by_kind() -> None:
    file = decode_span_file(encode(HEADER, SPAN, UNIT), "a")

    assert (file.header, file.spans, file.units) == (HEADER, [SPAN], [UNIT])
    assert (file.damaged_lines, file.cut_at_byte, file.unknown_lines) == (0, None, {})


def test_a_file_that_is_cut_anywhere_gives_every_whole_line() -> None:
    head = encode(HEADER)
    data = head + encode(*[SPAN] * 5)
    each = len(encode(SPAN))
    for end in range(len(head), len(data) + 1):
        file = decode_span_file(data[:end], "a")
        whole, rest = divmod(end - len(head), each)
        assert len(file.spans) == whole
        assert file.cut_at_byte == (len(head) + whole * each if rest else None)
        assert file.damaged_lines == 0


def test_damage_costs_what_is_damaged_and_is_placed() -> None:
    head = encode(HEADER, SPAN)
    bad = b'{"k":"span","n":5}\n\xff\xfe\nnull\n{"k":"span"\n' + b"[" * 5000 + b"\n"

    file = decode_span_file(head + bad + encode(UNIT), "a")

    assert (file.spans, file.units) == ([SPAN], [UNIT])
    assert (file.damaged_lines, file.damaged_at_byte) == (5, len(head))
    assert "$.n" in file.damaged_why


def test_kinds_and_keys_of_later_versions_are_left_alone() -> None:
    later = b'{"k":"power","watts":5}\n{"k":"power"}\n{"k":"unit","n":"step 0","s":1,"d":2,"t":3,"later":[1]}\n'

    file = decode_span_file(encode(HEADER) + later, "a")

    assert (file.units, file.unknown_lines, file.damaged_lines) == ([UNIT], {"power": 2}, 0)


def test_a_second_header_is_damage() -> None:
    file = decode_span_file(encode(HEADER, SPAN, HEADER, UNIT), "a")

    assert (file.damaged_lines, file.spans, file.units) == (1, [SPAN], [UNIT])
    assert file.damaged_at_byte == len(encode(HEADER, SPAN))


def test_the_last_line_that_says_who_it_is_holds() -> None:
    file = decode_span_file(encode(HEADER, RankLine(3, 8), RankLine(4)), "a")

    assert (file.rank, file.world_size, file.local_rank) == (4, 8, None)


def test_an_operation_without_a_leave_is_open() -> None:
    def mark(what: str, seq: int, kind: str = "all_reduce", peer: int | None = None) -> CollectiveLine:
        return CollectiveLine(what, kind, "0", seq, 1, 2, peer=peer)  # type: ignore[arg-type]

    left = [mark("enter", 0), mark("leave", 0), mark("enter", 0, "send", 1), mark("leave", 0, "send", 1)]
    open_ones = [mark("enter", 1), mark("enter", 0, "recv", 1), mark("enter", 0, "send", 2)]
    file = decode_span_file(encode(HEADER, *left, *open_ones), "a")

    assert file.open_collectives() == open_ones


@pytest.mark.parametrize("data", [b"", b"\n", b"{}\n", b"PK\x03\x04", b'{"k":"header","schema":"long', b"[" * 5000])
def test_what_has_no_header_is_no_span_file(data: bytes) -> None:
    with pytest.raises(NotATraceError, match=r"^a\.spans\.jsonl, byte 0: .*docs/reference/span-file\.md"):
        decode_span_file(data, "a.spans.jsonl")


def test_another_version_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"longpole\.spans/2"):
        decode_span_file(b'{"k":"header","schema":"longpole.spans/2"}\n', "a")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.spans\.jsonl"):
        read_span_file(tmp_path / "gone.spans.jsonl")


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        (encode(HEADER), True),
        (b'{"schema" : "longpole.spans/9", "k": "header"', True),
        (b'{"schema":"longpole.record/1"}', False),
        (b'{"k":"span"}\n{"schema":"longpole.spans/1"}', False),
        (b"", False),
    ],
)
def test_a_span_file_is_told_by_its_first_line(head: bytes, is_one: bool) -> None:
    assert looks_like_span_file(head) is is_one


def test_the_reference_page_names_every_kind_and_key(root: Path) -> None:
    page = (root / "docs" / "reference" / "span-file.md").read_text(encoding="utf-8")
    kinds = get_args(Line)
    assert len(kinds) == 11
    missing = [
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name in (*kind.__struct_fields__, kind.__struct_config__.tag)
        if f"`{name}`" not in page
    ]
    assert not missing
