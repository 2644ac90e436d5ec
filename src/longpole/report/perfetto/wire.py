"""Protocol buffers on the wire: one message at a time, and many messages of one shape at once.

A field is a tag (its number and how its value is written) and the value: a number in groups of seven bits, the lowest
first, each but the last with its top bit set; eight bytes; or a length and as many bytes.
Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Bytes: TypeAlias = NDArray[np.uint8]

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_SMALL: Final = tuple(bytes((value,)) for value in range(0x80))
_CHUNK: Final = 1 << 15  # rows that are scattered at once: an index of eight bytes for each byte written


def varint(value: int) -> bytes:
    r"""Write a number; a negative one as the 64-bit number that has its bits.

    >>> varint(300)
    b'\xac\x02'
    """
    if 0 <= value <= 0x7F:
        return _SMALL[value]
    value &= (1 << 64) - 1
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def number(field: int, value: int) -> bytes:
    """Write a field that holds a number."""
    return varint(field << 3 | _VARINT) + varint(value)


def text(field: int, value: str) -> bytes:
    """Write a field that holds a text."""
    return message(field, value.encode())


def message(field: int, *parts: bytes) -> bytes:
    """Write a field that holds bytes: those of a text, or the fields of a message."""
    return varint(field << 3 | _LENGTH) + varint(sum(map(len, parts))) + b"".join(parts)


def width_of(largest: int) -> int:
    """Return how many bytes every number up to this one fits into.

    >>> width_of(127), width_of(128)
    (1, 2)
    """
    return max(1, -(-largest.bit_length() // 7))


def numbers(field: int, values: Ints, width: int) -> list[bytes | Bytes]:
    """Write a field of many messages, each number in as many bytes as the largest one needs.

    Groups of zeros at the end are allowed, so that all rows are of one width.

    Args:
        field: Number of the field.
        values: `[N]` int64, none negative.
        width: Bytes of a number, from `width_of`.
    """
    shifts = 7 * np.arange(width, dtype=np.int64)
    groups = (values[:, None] >> shifts & 0x7F).astype(np.uint8)
    groups[:, :-1] |= 0x80
    return [varint(field << 3 | _VARINT), groups]


def fixed64s(field: int, values: Ints) -> list[bytes | Bytes]:
    """Write a field of many messages that holds eight bytes: values `[N]` int64, none negative."""
    return [varint(field << 3 | _FIXED64), values.astype("<u8").view(np.uint8).reshape(len(values), 8)]


def messages(field: int, parts: Sequence[bytes | Bytes]) -> list[bytes | Bytes]:
    """Write many messages of one width as a field."""
    return [varint(field << 3 | _LENGTH), varint(sum(map(_width, parts))), *parts]


def rows(count: int, parts: Sequence[bytes | Bytes]) -> Bytes:
    """Put the parts of many messages side by side: `[count, width]` uint8."""
    spread = [
        np.broadcast_to(np.frombuffer(part, np.uint8), (count, len(part))) if isinstance(part, bytes) else part
        for part in parts
    ]
    return np.concatenate(spread, axis=1)


def interleave(parts: Sequence[tuple[Ints, Bytes]]) -> bytes:
    """Write rows of several widths in one order.

    Args:
        parts: (place of each row among all rows, the rows); the places are 0 to one less than the number of rows.
    """
    lengths = np.zeros(sum(len(places) for places, _ in parts), np.int64)
    for places, table in parts:
        lengths[places] = table.shape[1]
    ends = np.cumsum(lengths)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for places, table in parts:
        begins = ends[places] - table.shape[1]
        inside = np.arange(table.shape[1])
        for first in range(0, len(places), _CHUNK):
            part = slice(first, first + _CHUNK)
            out[begins[part, None] + inside] = table[part]
    return out.tobytes()


def _width(part: bytes | Bytes) -> int:
    return len(part) if isinstance(part, bytes) else int(part.shape[1])
