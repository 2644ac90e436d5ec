"""Figures of one page in one unit of measure, rounded so that what is shown adds up to the sum that is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from longpole.analyses.sums import round_shares
from longpole.units import NS_PER_MS, NS_PER_S, NS_PER_US

_UNITS: Final = ((10 * NS_PER_S, NS_PER_S, "s"), (NS_PER_MS, NS_PER_MS, "ms"), (0, NS_PER_US, "µs"))
_FIGURES: Final = 4
_TENTHS_BELOW: Final = 100


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit of measure with a number of decimals.

    Attributes:
        unit: `s`, `ms` or `µs`.
        decimals: Digits behind the point.
        tick_ns: The last digit's worth.
    """

    unit: str
    decimals: int
    tick_ns: int

    def spread(self, parts_ns: list[int]) -> list[str]:
        """Write parts so that the figures shown add up to that of their sum (largest remainder)."""
        return [self._write(ticks) for ticks in round_shares(parts_ns, self.tick_ns)]

    def write(self, dur_ns: int) -> str:
        """Write a duration, rounded half up."""
        return self._write((2 * dur_ns + self.tick_ns) // (2 * self.tick_ns))

    def _write(self, ticks: int) -> str:
        return f"{ticks / 10**self.decimals:,.{self.decimals}f}"


def scale_for(total_ns: int) -> Scale:
    """Return the scale in which a total has about four figures.

    >>> scale_for(255_100_000).write(255_100_000), scale_for(1_234_567).write(4_000)
    ('255.1', '0.004')
    """
    unit_ns, unit = next((unit_ns, unit) for least_ns, unit_ns, unit in _UNITS if total_ns >= least_ns)
    decimals = max(min(_FIGURES - len(str(total_ns // unit_ns)), 3), 1)
    return Scale(unit, decimals, unit_ns // 10**decimals)


def spread_percent(parts_ns: list[int], whole_ns: int) -> list[str]:
    """Write parts of a whole in percent; where they make up the whole, the figures shown add up to 100.0 %.

    >>> spread_percent([1, 1, 1], 3)
    ['33.4 %', '33.3 %', '33.3 %']
    """
    if whole_ns <= 0:
        return ["" for _ in parts_ns]
    return [f"{tenths / 10:.1f} %" for tenths in round_shares([part * 1000 for part in parts_ns], whole_ns)]


def percent(part_ns: int, whole_ns: int) -> str:
    """Write one part of a whole in percent with two figures; empty where there is no whole.

    >>> percent(61, 255), percent(1, 200)
    ('24 %', '0.5 %')
    """
    if whole_ns <= 0:
        return ""
    tenths = round(1000 * part_ns / whole_ns)
    return f"{tenths / 10:.{int(0 < tenths < _TENTHS_BELOW)}f} %"
