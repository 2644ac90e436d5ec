"""Parse and format times, bytes, rates and counts; the only place that knows 1e3, 1e6 and 1e9.

Rates are decimal: 1 GB/s is 10**9 bytes a second. Times are integer nanoseconds everywhere else.
"""

from __future__ import annotations

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
BYTES_PER_GB = 1_000_000_000

_TIME_STEPS = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs"))
_BYTE_STEPS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


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


def format_bytes(size_bytes: float, digits: int = 3) -> str:
    """Write a size in decimal units.

    >>> format_bytes(30_000_000), format_bytes(12)
    ('30.0 MB', '12 B')
    """
    for step_bytes, unit in _BYTE_STEPS:
        if abs(size_bytes) >= step_bytes:
            return f"{_significant(size_bytes / step_bytes, digits)} {unit}"
    return f"{size_bytes:.0f} B"


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
