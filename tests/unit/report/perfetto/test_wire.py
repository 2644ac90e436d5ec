"""Protocol buffers on the wire, against the numbers of the specification and rows against messages one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longpole.report.perfetto.wire import (
    fixed64s,
    interleave,
    message,
    messages,
    number,
    numbers,
    rows,
    text,
    varint,
    width_of,
)

COUNTS = st.integers(0, (1 << 63) - 1)


def read_varint(data: bytes) -> tuple[int, int]:
    """Return a number and how many bytes it took, bit by bit."""
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, place + 1
    raise AssertionError(data)


def test_the_examples_of_the_specification() -> None:
    assert varint(150) == b"\x96\x01"
    assert number(1, 150) == b"\x08\x96\x01"
    assert text(2, "testing") == b"\x12\x07testing"
    assert message(3, number(1, 150)) == b"\x1a\x03\x08\x96\x01"
    assert varint(-2) == b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    assert rows(2, fixed64s(1, np.array([1, 258]))).tobytes() == b"\x09\x01" + 7 * b"\0" + b"\x09\x02\x01" + 6 * b"\0"


@given(COUNTS)
def test_a_number_comes_back(value: int) -> None:
    assert read_varint(varint(value)) == (value, len(varint(value)))
    assert width_of(value) == len(varint(value))


@given(st.lists(COUNTS, min_size=1, max_size=5))
def test_numbers_of_one_width_come_back(values: list[int]) -> None:
    width = width_of(max(values))

    table = rows(len(values), numbers(1, np.array(values, np.int64), width))

    for row, value in zip(table, values, strict=True):
        assert row[0] == 1 << 3
        assert read_varint(row[1:].tobytes()) == (value, width)


def test_many_messages_are_as_long_as_they_say() -> None:
    table = rows(3, messages(5, [text(1, "a"), *numbers(2, np.array([1, 200, 3]), 2)]))

    assert [row.tobytes()[:2] for row in table] == [bytes([5 << 3 | 2, 6])] * 3
    assert table.shape == (3, 8)


def test_rows_of_several_widths_are_written_in_one_order() -> None:
    short, long = np.array([[1], [3]], np.uint8), np.array([[2, 2, 2]], np.uint8)

    assert interleave([(np.array([0, 2]), short), (np.array([1]), long)]) == b"\x01\x02\x02\x02\x03"


def test_nothing_is_written_of_nothing() -> None:
    assert interleave([]) == b""
