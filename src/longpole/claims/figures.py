"""Figures as they are written: their unit, and what they may have been before they were rounded.

A printed number stands for every number that rounds to it. How it was rounded is not printed, so a figure has levels,
each wider than the one before: half of its last digit; zeros at its end that do not count ("400" as 400 ± 5); cut off
instead of rounded ("33" for 33.7). A contradiction is one at every level.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from longpole.errors import UsageError

ROUNDED, COARSE, CUT = 0, 1, 2
LEVELS: Final = (ROUNDED, COARSE, CUT)
_LONGEST: Final = 200  # characters of a figure
_KEPT_DIGITS: Final = 2  # zeros count up to so many digits: 400 is 4.0e2 at the least
_NUMBER: Final = r"[-+−]?(?:\d+(?:[,_ ]\d{3})*(?:\d|_)*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_WRITTEN: Final = re.compile(
    rf"\s*(?P<about>~|≈|about |approx\.? |circa |ca\. )?"
    rf"\s*(?P<bound><=|>=|≤|≥|<|>|up to |at least |at most |over |under )?"
    rf"\s*(?P<first>{_NUMBER})\s*(?P<first_unit>%|[kKMBGTP](?![A-Za-z/]))?"
    rf"(?:\s*(?:\.\.|–|—|-|to\b)\s*(?P<last>{_NUMBER}))?\s*(?P<unit>.*?)\s*",
    re.DOTALL,
)
_UPPER: Final = ("<=", "≤", "<", "up to ", "at most ", "under ")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with what it may have been.

    Attributes:
        text: As it was written, for a reader.
        value: In the unit of its field.
        low, high: Between which it lies where it was rounded to its last digit, by level.
    """

    text: str
    value: float
    low: tuple[float, float, float]
    high: tuple[float, float, float]

    @classmethod
    def exactly(cls, value: float, text: str = "") -> Figure:
        """Return a figure without any doubt."""
        return cls(text or f"{value:.10g}", value, (value,) * 3, (value,) * 3)

    @classmethod
    def between(cls, low: float, high: float, text: str, value: float | None = None) -> Figure:
        """Return a figure that lies anywhere between two ends."""
        middle = math.sqrt(low * high) if value is None and low > 0 and math.isfinite(high) else value
        return cls(text, low if middle is None else middle, (low,) * 3, (high,) * 3)

    def scaled(self, factor: float, text: str = "") -> Figure:
        """Return it times a positive factor."""
        low, high = (tuple(end * factor for end in ends) for ends in (self.low, self.high))
        return Figure(text or self.text, self.value * factor, low, high)  # type: ignore[arg-type]

    def widened(self, share: float) -> Figure:
        """Return it with a relative tolerance either way."""
        low = tuple(end * (1 - share) for end in self.low)
        high = tuple(end * (1 + share) for end in self.high)
        return Figure(self.text, self.value, low, high)  # type: ignore[arg-type]

    def holds(self, value: float, level: int) -> bool:
        """Tell whether it may have been a value."""
        return self.low[level] <= value <= self.high[level]


@dataclass(frozen=True, slots=True)
class Written:
    """What a text says before its unit is known.

    Attributes:
        text: The whole.
        first, last: Decimal numbers; `last` only of a range ("33-39 %").
        prefix: `k`, `M`, `B` … behind the number, or `%`.
        unit: What follows.
        bound: `upper` or `lower` of "up to 57" and "at least 40"; else empty.
        about: Whether it says that it is approximate.
    """

    text: str
    first: Decimal
    last: Decimal | None
    prefix: str
    unit: str
    bound: str
    about: bool


def parse_written(text: str) -> Written:
    """Read a number with its unit.

    >>> written = parse_written("~2.2k tok/s")
    >>> written.first, written.prefix, written.unit, written.about
    (Decimal('2.2'), 'k', 'tok/s', True)

    Raises:
        UsageError: No number begins it.
    """
    match = _WRITTEN.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        msg = f"expected a number with its unit, such as '512 ms'; found {text[:_LONGEST]!r}"
        raise UsageError(msg)
    bound = match["bound"] or ""
    return Written(
        text=text.strip(),
        first=_decimal(match["first"], text),
        last=_decimal(match["last"], text) if match["last"] else None,
        prefix=match["first_unit"] or "",
        unit=match["unit"],
        bound="" if not bound else "upper" if bound in _UPPER else "lower",
        about=bool(match["about"]),
    )


def _decimal(text: str, whole: str) -> Decimal:
    plain = re.sub(r"[,_ ]", "", text).replace("−", "-")
    try:
        value = Decimal(plain)
    except InvalidOperation:
        msg = f"expected a number with its unit, such as '512 ms'; found {whole!r}"
        raise UsageError(msg) from None
    if not math.isfinite(float(value)):
        msg = f"expected a finite number; found {whole!r}"
        raise UsageError(msg)
    return value


def figure_of(written: Written, scale: float, text: str = "") -> Figure:
    """Return what a written number may have been, in the unit of its field.

    >>> figure_of(parse_written("400"), 1).low
    (399.5, 395.0, 395.0)
    >>> figure_of(parse_written("33 %"), 0.01).high[2]
    0.34

    Args:
        written: The number.
        scale: One of what it was written in, in the unit of its field.
        text: For a reader, else as it was written.
    """
    lows, highs, value = _levels(written.first, about=written.about)
    if written.last is not None:
        last_lows, last_highs, last = _levels(written.last, about=written.about)
        lows, highs, value = min(lows, last_lows), max(highs, last_highs), (value + last) / 2
    if written.bound == "upper":
        lows = (0.0,) * 3
    elif written.bound == "lower":
        highs = (math.inf,) * 3
    low, high = (tuple(_times(end, scale) for end in ends) for ends in (lows, highs))
    return Figure(text or written.text, _times(value, scale), low, high)  # type: ignore[arg-type]


def _times(end: float, scale: float) -> float:
    """Multiply without the dust of binary fractions: 34 · 0.01 is 0.34."""
    return end * scale if scale >= 1 or not math.isfinite(end) else end / float(f"{1 / scale:.12g}")


def _levels(number: Decimal, *, about: bool) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    value = float(number)
    quantum, coarse = _quantum(number), _coarse(number)
    if about:
        quantum = coarse = max(coarse, _of_digits(number, _KEPT_DIGITS))
    lows = (value - quantum / 2, value - coarse / 2, value - coarse / 2)
    highs = (value + quantum / 2, value + coarse / 2, max(value + coarse / 2, value + quantum))
    return tuple(max(low, 0.0) if value >= 0 else low for low in lows), highs, value


def _quantum(number: Decimal) -> float:
    """Return the worth of the last digit that was written."""
    exponent = number.as_tuple().exponent
    return float(Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0))


def _coarse(number: Decimal) -> float:
    """Return the worth of the last digit where zeros at the end of a whole number do not count."""
    exponent = number.as_tuple().exponent
    if not number or not isinstance(exponent, int) or exponent < 0:
        return _quantum(number)
    zeros = len(str(int(abs(number)))) - len(str(int(abs(number))).rstrip("0"))
    last = float(Decimal(1).scaleb(max(zeros, exponent)))
    return max(min(last, _of_digits(number, _KEPT_DIGITS)), _quantum(number))


def _of_digits(number: Decimal, digits: int) -> float:
    """Return the worth of the last of so many leading digits."""
    return float(Decimal(1).scaleb(number.adjusted() - digits + 1)) if number else 0.0
