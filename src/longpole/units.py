"""Parse and format times, bytes, rates and counts; the only place that knows 1e3, 1e6 and 1e9.

Rates are decimal: 1 GB/s is 10**9 bytes a second. Times are integer nanoseconds everywhere else.
"""

from __future__ import annotations

import re
from decimal import Decimal

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
BYTES_PER_GB = 1_000_000_000

_TIME_STEPS = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs"))
_BYTE_STEPS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_NS_OF = {"ns": 1, "us": NS_PER_US, "µs": NS_PER_US, "μs": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S}
_BYTES_OF = {unit.lower(): step for step, unit in _BYTE_STEPS} | {
    "b": 1,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_QUANTITY = re.compile(r"(\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})\s*([a-zA-Zµμ]+)")


def to_ms(dur_ns: float) -> float:
    """Return a duration in milliseconds."""
    return dur_ns / NS_PER_MS


def format_ns(dur_ns: float, digits: int = 3) -> str:
    """Write a duration with `digits` significant figures and the unit that suits it.

    >>> format_ns(61_300_000), format_ns(850), format_ns(0)
    ('61.3 ms', '850 ns', '0 ns')
    """
    for step_ns, unit in _TIME_STEPS:
        if abs(dur_ns) >= step_ns:
            return f"{_significant(dur_ns / step_ns, digits)} {unit}"
    return f"{dur_ns:.0f} ns"


def parse_ns(text: str) -> int | None:
    """Read a duration with its unit (ns, us, µs, ms or s), to the nearest nanosecond; None for anything else.

    >>> parse_ns("2ms"), parse_ns("0.5 us"), parse_ns("2")
    (2000000, 500, None)
    """
    return _parse_quantity(text, _NS_OF)


def parse_bytes(text: str) -> int | None:
    """Read a size with its unit: B, kB, MB, GB, TB (decimal) or KiB, MiB, GiB, TiB; None for anything else.

    >>> parse_bytes("25MB"), parse_bytes("25 MiB"), parse_bytes("25")
    (25000000, 26214400, None)
    """
    return _parse_quantity(text.lower(), _BYTES_OF)


def write_ns_exactly(dur_ns: int) -> str:
    """Write a duration as a whole number of the largest unit that divides it, as `parse_ns` reads it.

    >>> write_ns_exactly(2_000_000), write_ns_exactly(1_500)
    ('2ms', '1500ns')
    """
    step_ns, unit = next(((step, unit) for step, unit in _TIME_STEPS if dur_ns % step == 0), (1, "ns"))
    return f"{dur_ns // step_ns}{unit.replace('µ', 'u')}"


def write_bytes_exactly(size_bytes: int) -> str:
    """Write a size as a whole number of the largest decimal unit that divides it, as `parse_bytes` reads it.

    >>> write_bytes_exactly(25_000_000), write_bytes_exactly(26_214_400)
    ('25MB', '26214400B')
    """
    step, unit = next(((step, unit) for step, unit in _BYTE_STEPS if size_bytes % step == 0), (1, "B"))
    return f"{size_bytes // step}{unit}"


def format_bytes(size_bytes: float, digits: int = 3) -> str:
    """Write a size in decimal units.

    >>> format_bytes(30_000_000), format_bytes(12)
    ('30.0 MB', '12 B')
    """
    for step_bytes, unit in _BYTE_STEPS:
        if abs(size_bytes) >= step_bytes:
            return f"{_significant(size_bytes / step_bytes, digits)} {unit}"
    return f"{size_bytes:.0f} B"


def write_binary_bytes(size_bytes: int) -> str:
    """Write a size as a whole number of the largest binary unit that divides it, as `parse_bytes` reads it.

    >>> write_binary_bytes(67_108_864), write_binary_bytes(4096), write_binary_bytes(1000)
    ('64 MiB', '4 KiB', '1000 B')
    """
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size_bytes and size_bytes % (1 << power) == 0:
            return f"{size_bytes >> power} {unit}"
    return f"{size_bytes} B"


def format_count(n: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun; `plural` where it is not the noun with an s.

    >>> format_count(1, "launch", "launches"), format_count(1200, "span")
    ('1 launch', '1,200 spans')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def gb_per_s(size_bytes: int, dur_ns: int) -> float | None:
    """Return the rate in decimal gigabytes per second, None where no time passed.

    bytes / 10**9 divided by ns / 10**9 is bytes per nanosecond.
    """
    return size_bytes / dur_ns if dur_ns > 0 else None


def _significant(value: float, digits: int) -> str:
    whole = len(str(int(abs(value))))
    return f"{value:,.{max(digits - whole, 0)}f}"


def _parse_quantity(text: str, units: dict[str, int]) -> int | None:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or not match[1].isascii() or match[2] not in units:
        return None
    return round(Decimal(match[1]) * units[match[2]])
