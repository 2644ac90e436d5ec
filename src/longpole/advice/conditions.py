"""Conditions on named figures, as data: true, false, or not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from longpole.advice.figures import FIGURES, FLAG, LIST, NUMBER, TEXT
from longpole.records.ledger import Unknown
from longpole.units import format_bytes, format_ns

if TYPE_CHECKING:
    from longpole.advice.figures import Figures

_ABOUT: Final = {NUMBER: ("at_least", "above", "at_most", "below"), FLAG: ("is",), TEXT: ("is",), LIST: ("has",)}
_SHARE_BELOW: Final = 0.0995  # from here on, percent without decimals have two figures


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What must hold of one figure.

    Attributes:
        figure: One of `figures.FIGURES`.
        at_least, above, at_most, below: A bound of a number; one or two of them.
        is_: What a flag or a text must be; `is` in a file.
        has: What a list must hold.
        why: A clause for a person: why a row is silenced where it holds.
    """

    figure: str
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    is_: bool | str | None = msgspec.field(default=None, name="is")
    has: str | None = None
    why: str = ""

    def mistake(self) -> str:
        """Return what is wrong with the condition in itself, empty for nothing."""
        if self.figure not in FIGURES:
            return f"no figure is called {self.figure!r}"
        sort = FIGURES[self.figure].sort
        given = [name for name in ("at_least", "above", "at_most", "below", "has") if getattr(self, name) is not None]
        given += ["is"] if self.is_ is not None else []
        allowed = _ABOUT[sort]
        if not given or any(name not in allowed for name in given):
            return f"{self.figure} is a {sort}; give {' or '.join(allowed)}"
        if sort == FLAG and not isinstance(self.is_, bool):
            return f"{self.figure} is a flag; give is = true or is = false"
        if sort == TEXT and not isinstance(self.is_, str):
            return f"{self.figure} is a text; give is = '…'"
        return ""

    def holds(self, figures: Figures) -> bool | Unknown:
        """Tell whether the condition holds of a run's figures; `Unknown` where its figure is not known."""
        value = figures[self.figure]
        if isinstance(value, Unknown):
            return value
        if self.has is not None:
            return isinstance(value, list) and self.has in value
        if self.is_ is not None:
            return value == self.is_
        if not isinstance(value, int | float):
            return False
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )

    def says(self) -> str:
        """Return the condition for a person.

        >>> Condition("idle.host.gc", at_least=0.03).says()
        'idle.host.gc at least 3.0%'
        """
        words = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
        parts = [
            f"{text} {write_value(self.figure, getattr(self, name))}"
            for name, text in words.items()
            if getattr(self, name) is not None
        ]
        parts += [f"has {self.has}"] if self.has is not None else []
        if isinstance(self.is_, bool):
            parts.append("holds" if self.is_ else "does not hold")
        elif self.is_ is not None:
            parts.append(f"is {self.is_ or 'none'}")
        return f"{self.figure} {' and '.join(parts)}"

    def found(self, figures: Figures) -> str:
        """Return the figure's value for a person."""
        return f"{self.figure} is {write_value(self.figure, figures[self.figure])}"


def write_value(figure: str, value: object) -> str:
    """Write the value of a figure: shares in percent, times and sizes with their unit."""
    if isinstance(value, Unknown):
        return f"not known: {value.unknown}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _write_number(figure, value)
    return (", ".join(map(str, value)) if isinstance(value, list) else str(value)) or "none"


def _write_number(figure: str, value: float) -> str:
    if figure.endswith("_ns"):
        return format_ns(value)
    if figure.endswith("_bytes"):
        return format_bytes(value)
    if is_share(figure):
        return f"{value:.1%}" if abs(value) < _SHARE_BELOW else f"{value:.0%}"
    return f"{value:,.3g}"


def is_share(figure: str) -> bool:
    """Tell whether a figure is a share of something."""
    return figure.endswith(("_share", "_spread", ".share", ".imbalance")) or figure.startswith(("idle.", "cause."))
