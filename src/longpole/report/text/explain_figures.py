"""The figures of `longpole explain` in words: each value in the unit that its pointer and what is taken of it have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.units import format_ns

if TYPE_CHECKING:
    from longpole.report.explain import FigureEntry

_LARGEST_SHOWN: Final = 4
_NAMES_SHOWN: Final = 6
_WHOLE_FROM: Final = 0.095
_RATIOS: Final = ("spread", "trend")


def value_words(figure: FigureEntry) -> str:
    """Write what a run says of a figure."""
    if figure.take == "names":
        return _names(figure)
    decisive = figure.share if figure.of else figure.value
    if isinstance(decisive, Unknown):
        return f"not known: {escape(decisive.unknown)}"
    if figure.take == "largest":
        return _largest(figure)
    if figure.of and isinstance(decisive, int | float):
        beside = f" ({_plain(figure, figure.value)})" if isinstance(figure.value, int | float) else ""
        return f"{percent(decisive)}{beside}"
    return _plain(figure, figure.value)


def notable_words(figure: FigureEntry) -> str:
    """Say from which value on a figure points at its causes; empty where it only orders others."""
    least = figure.notable_from
    if least is None:
        return ""
    if figure.of or figure.at.endswith("_share"):
        return f"notable from {percent(least)} on"
    return f"notable from {_plain(figure, least)} on"


def percent(share: float) -> str:
    """Write a share in percent; small ones with a decimal."""
    return f"{share:.0%}" if share >= _WHOLE_FROM else f"{share:.1%}"


def _plain(figure: FigureEntry, value: object) -> str:
    """Write a value in its unit."""
    if not isinstance(value, int | float):
        return escape(value) if isinstance(value, str) else "not known"
    if figure.take in _RATIOS:
        return f"{value:.2f} times"
    if figure.take == "count":
        return f"{value:,.0f}"
    if "_ns" in figure.at:
        return format_ns(value)
    return percent(value) if figure.at.endswith("_share") else f"{value:.3g}"


def _largest(figure: FigureEntry) -> str:
    parts = figure.parts if figure.parts is not UNSET else {}
    shown = [f"{escape(name)} {percent(share)}" for name, share in list(parts.items())[:_LARGEST_SHOWN]]
    return ", ".join(shown) or "nothing"


def _names(figure: FigureEntry) -> str:
    parts = figure.parts if figure.parts is not UNSET else {}
    shown = [escape(name) + (f" ×{count:.0f}" if count > 1 else "") for name, count in list(parts.items())]
    more = len(shown) - _NAMES_SHOWN
    return ", ".join(shown[:_NAMES_SHOWN]) + (f", and {more} more" if more > 0 else "") or "none"
