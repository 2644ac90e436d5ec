"""Microseconds as exporters write them, to exact integer nanoseconds.

A double holds microseconds to the nanosecond only below 2**43 µs (101 days): above, half a unit in its last place
is more than half a nanosecond. Epoch microseconds are far beyond that, so those with a fraction are read as text.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.timeline.columns import NONE_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_EXACT_BELOW_US: Final = float(1 << 43)
_INTEGER_BELOW: Final = float(1 << 53)
_ABSURD_US: Final = 1e17  # 3,000 years: clipped whatever its digits
_LONGEST_NS: Final = 1 << 61  # 73 years; a longer duration is impossible, and sums must not overflow
_EARLIEST_NS: Final = -(1 << 61)


class InexactTimesError(Exception):
    """The times carry more digits than a double holds; decode them as text."""


def parse_us(values: Sequence[Any]) -> NDArray[np.int64]:
    """Return `[N]` int64 ns of decoded microsecond values; NONE_NS where a value is no time.

    Args:
        values: Floats, ints, strings or anything else that the exporter wrote.

    Raises:
        InexactTimesError: A float is too large for its fraction to be exact.
    """
    if set(map(type, values)) <= {float, int}:
        return _from_floats(np.fromiter(values, np.float64, len(values)))
    return np.fromiter((_parse_one(value) for value in values), np.int64, len(values))


def parse_text(texts: Sequence[bytes]) -> NDArray[np.int64]:
    """Return `[N]` int64 ns of microseconds written as JSON text, exact to half a nanosecond; NONE_NS for no time.

    Plain decimals of at most 18 + 4 digits are read in bulk; anything else one by one.
    """
    if not texts:
        return np.empty(0, np.int64)
    field = np.array(texts, dtype=np.bytes_)
    width = field.dtype.itemsize
    if width > _BULK_WIDTH:
        return np.fromiter((_parse_one(_unquote(text)) for text in texts), np.int64, len(texts))
    digits = field.view(np.uint8).reshape(len(texts), width).astype(np.int64) - ord("0")
    return _from_digits(digits, texts)


_BULK_WIDTH: Final = 22


def _from_digits(digits: NDArray[np.int64], texts: Sequence[bytes]) -> NDArray[np.int64]:
    """Read `[N, W]` digit values column by column: whole microseconds, then up to three decimals."""
    dot, end, quote = ord(".") - ord("0"), -ord("0"), ord('"') - ord("0")
    total = np.zeros(len(digits), np.int64)
    decimals = np.full(len(digits), -1, np.int64)
    odd = np.zeros(len(digits), np.bool_)
    for column in digits.T:
        is_digit = (column >= 0) & (column <= 9)
        take = is_digit & (decimals < 3)
        total = np.where(take, total * 10 + column, total)
        # A fourth decimal rounds: to even on an exact half, which only the slow reading can tell.
        odd |= is_digit & (decimals >= 3) & (column > 0)
        decimals += take & (decimals >= 0)
        odd |= (column == dot) & (decimals >= 0)
        decimals = np.where(column == dot, 0, decimals)
        odd |= ~(is_digit | (column == dot) | (column == end) | (column == quote))
    total *= 10 ** np.clip(3 - np.maximum(decimals, 0), 0, 3)
    odd |= (digits[:, 0] == end) | (digits[:, 0] == dot)
    odd |= (digits >= 0).sum(axis=1) > 18
    for row in np.flatnonzero(odd).tolist():
        total[row] = _parse_one(_unquote(texts[row]))
    return total


def _from_floats(value_us: NDArray[np.float64]) -> NDArray[np.int64]:
    finite = np.isfinite(value_us)
    whole_us = np.floor(np.where(finite, value_us, 0.0))
    part_us = np.where(finite, value_us, 0.0) - whole_us
    size_us = np.abs(whole_us)
    if (((size_us >= _EXACT_BELOW_US) & (part_us != 0)) | ((size_us >= _INTEGER_BELOW) & (size_us < _ABSURD_US))).any():
        raise InexactTimesError
    bounded_us = np.clip(whole_us, _EARLIEST_NS / 1000, _LONGEST_NS / 1000)
    time_ns = bounded_us.astype(np.int64) * 1000 + np.rint(part_us * 1000).astype(np.int64)
    return np.where(finite, time_ns, NONE_NS)


def _parse_one(value: Any) -> int:
    """Read one value exactly; half a nanosecond rounds to even."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return NONE_NS
    if isinstance(value, str) and len(value) > 64:
        return NONE_NS
    try:
        time_ns = Decimal(repr(value) if isinstance(value, float) else value) * 1000
    except (InvalidOperation, ValueError):
        return NONE_NS
    if not time_ns.is_finite():
        return NONE_NS
    if abs(time_ns) > _LONGEST_NS:
        return _LONGEST_NS if time_ns > 0 else _EARLIEST_NS
    return int(time_ns.to_integral_value())


def _unquote(text: bytes) -> str | None:
    """Return the text of a JSON scalar without its quotes, None for null and the like."""
    plain = text.strip().strip(b'"').strip().decode("ascii", "replace")
    return plain if plain not in ("", "null", "true", "false") else None
