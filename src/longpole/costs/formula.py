"""Formulas as text that is also what is computed, and ranges that go through them.

A `Formula` is written once, as an expression over named inputs. It is called with numbers and gives a number; called
with a `Range` among them it gives a range; and `explain` prints it with the values put in. So what a report prints is
what was computed.

Ranges are taken through a formula corner by corner: every combination of ends is computed, and the least and the
greatest result are the range. That is exact for a formula that grows or falls with each of its inputs, which all of
ours do over the values that they are meant for; interval arithmetic would widen a range by every repeated name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

_FUNCTIONS: Final[dict[str, Any]] = {
    "__builtins__": {},
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}
_CORNERS_MAX: Final = 12  # ranges in one call: 4096 corners


@dataclass(frozen=True, slots=True)
class Range:
    """A value that is known to lie between two ends; `value` is what would be said without them.

    >>> Range.of_rounded("400").low, Range.of_rounded("0.45").high
    (399.5, 0.455)
    """

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse ends that do not hold the value."""
        if not self.low <= self.value <= self.high:
            msg = f"expected {self.low} <= {self.value} <= {self.high}"
            raise ValueError(msg)

    @classmethod
    def exactly(cls, value: float) -> Range:
        """Return a value without any doubt."""
        return cls(value, value, value)

    @classmethod
    def of_rounded(cls, text: str) -> Range:
        """Return what a printed number may have been before it was rounded: half of its last digit either way."""
        value = float(text)
        mantissa, _, exponent = text.lower().strip().lstrip("+-").partition("e")
        places = len(mantissa.partition(".")[2])
        half = 0.5 * 10.0 ** (int(exponent or 0) - places)
        return cls(value, value - half, value + half)

    def overlaps(self, other: Range) -> bool:
        """Tell whether both can be the same value."""
        return self.low <= other.high and other.low <= self.high

    def scaled(self, factor: float) -> Range:
        """Return the range times a factor."""
        ends = sorted((self.low * factor, self.high * factor))
        return Range(self.value * factor, ends[0], ends[1])


Number: TypeAlias = float | Range


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression over named inputs.

    Attributes:
        text: In Python's notation, over the inputs, `ceil`, `floor`, `log2`, `max`, `min` and `sqrt`.
        unit: Of the result.
        source: Paper, table or file that it is taken from, or how it follows from others.
    """

    text: str
    unit: str
    source: str
    _code: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the expression once."""
        object.__setattr__(self, "_code", compile(self.text, f"<formula {self.text}>", "eval"))

    def __call__(self, **inputs: float) -> float:
        """Compute it from plain numbers."""
        return float(eval(self._code, _FUNCTIONS, inputs))

    def over(self, **inputs: Number) -> Range:
        """Compute it where some inputs are ranges.

        Raises:
            ValueError: More inputs are ranges than can be combined.
        """
        ranges = {name: value for name, value in inputs.items() if isinstance(value, Range) and value.low < value.high}
        if len(ranges) > _CORNERS_MAX:
            msg = f"{len(ranges)} ranges in one formula; {_CORNERS_MAX} can be combined"
            raise ValueError(msg)
        plain = {name: value.value if isinstance(value, Range) else value for name, value in inputs.items()}
        results = [
            self(**{**plain, **dict(zip(ranges, corner, strict=True))})
            for corner in product(*((value.low, value.high) for value in ranges.values()))
        ]
        value = self(**plain)
        return Range(value, min(*results, value), max(*results, value))

    def explain(self, **inputs: Number) -> str:
        """Write the formula with its values, and what comes out.

        >>> Formula("6*N*tokens", "FLOP", "")(N=13e9, tokens=16384)
        1277952000000000.0
        >>> Formula("6*N*tokens", "FLOP", "").explain(N=13e9, tokens=16384)
        '6*N*tokens = 6*1.3e+10*16,384 = 1.278e+15 FLOP'
        """
        plain = {name: value.value if isinstance(value, Range) else value for name, value in inputs.items()}
        substituted = self.text
        for name in sorted(plain, key=len, reverse=True):
            substituted = _substitute(substituted, name, _write(plain[name]))
        return f"{self.text} = {substituted} = {_write(self(**plain))} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A figure with where it comes from.

    Attributes:
        name: What it is.
        value: With its range, in `unit`.
        unit: Its unit.
        formula: The formula, empty for what was given.
        inputs: What went into it.
        source: Of the formula, or of the given value.
    """

    name: str
    value: Range
    unit: str
    formula: str = ""
    inputs: Mapping[str, float] = field(default_factory=dict)
    source: str = ""


def quantity(name: str, formula: Formula, **inputs: Number) -> Quantity:
    """Compute a figure and keep how."""
    plain = {key: value.value if isinstance(value, Range) else float(value) for key, value in inputs.items()}
    return Quantity(
        name=name,
        value=formula.over(**inputs),
        unit=formula.unit,
        formula=formula.explain(**inputs),
        inputs=plain,
        source=formula.source,
    )


def _substitute(text: str, name: str, value: str) -> str:
    """Put a value where a name stands alone."""
    import re

    return re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w(])", value, text)


def _write(value: float) -> str:
    """Write a number so that it can be read: whole numbers as such, others with four figures."""
    if float(value).is_integer() and abs(value) < 10**7:
        return f"{int(value):,}"
    return f"{value:.4g}"
