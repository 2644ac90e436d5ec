"""Lines of bounded width: measuring, shortening, wrapping, bars, and the few colours of the page."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_BOLD, _FAINT, _RED, _YELLOW, _CYAN = "1", "2", "31", "33", "36"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_GAP: Final = "…"


@dataclass(frozen=True, slots=True)
class Style:
    """How wide the page is, and whether it may use colour; no meaning is carried by colour alone.

    Attributes:
        width: Columns of the page.
        color: Whether to write SGR sequences.
    """

    width: int
    color: bool

    def title(self, title: str, rest: str = "") -> str:
        """Return the first line of a section: its title, and behind it what it shows."""
        beside = f"   {rest}" if rest else ""
        return self._painted(title, _BOLD) + shorten(beside, self.width - columns_of(title))

    def verdict(self, text: str) -> str:
        """Return the title that stands above all others."""
        return self._painted(text, f"{_BOLD};{_YELLOW}")

    def faint(self, text: str) -> str:
        """Return something that may be skipped."""
        return self._painted(text, _FAINT)

    def bar(self, text: str) -> str:
        """Return a bar."""
        return self._painted(text, _CYAN)

    def alarm(self, text: str) -> str:
        """Return something that withdraws figures."""
        return self._painted(text, f"{_BOLD};{_RED}")

    def warning(self, text: str) -> str:
        """Return something that limits figures."""
        return self._painted(text, _YELLOW)

    def _painted(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text


def columns_of(text: str) -> int:
    """Return how many columns a text takes: two for a wide character, one for any other.

    A combining mark counts as one although it takes none, so that a line is never wider than it is said to be.

    >>> columns_of("gemm"), columns_of("核")
    (4, 2)
    """
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def shorten(text: str, width: int) -> str:
    """Return a text of at most `width` columns; the middle of a longer one is left out.

    >>> shorten("torch/utils/data/dataloader.py(701): __next__", 24)
    'torch/utils/…): __next__'
    >>> shorten("short", 24)
    'short'
    """
    if columns_of(text) <= width:
        return text
    if width <= 1:
        return _GAP[:width]
    room = width - 1
    head = _longest(text, (room + 1) // 2)
    tail = _longest(text[::-1], room - (room + 1) // 2)[::-1]
    return f"{head}{_GAP}{tail}"


def pad(text: str, width: int) -> str:
    """Return a text of exactly `width` columns, on the left."""
    short = shorten(text, width)
    return short + " " * (width - columns_of(short))


def wrap(text: str, width: int, *, first: str = "", rest: str = "", max_lines: int = 0) -> list[str]:
    """Break a text into lines.

    Args:
        text: Words separated by spaces; one that is longer than a line is shortened in the middle.
        width: Columns of a line, its indent included.
        first: What the first line begins with.
        rest: What every other line begins with.
        max_lines: The most lines, 0 for any number; the last one then ends in "…".
    """
    lines: list[str] = []
    line, empty = first, True
    for word in text.split():
        if not empty and columns_of(line) + 1 + columns_of(word) > width:
            lines.append(line)
            line, empty = rest, True
        room = width - columns_of(line) - (0 if empty else 1)
        line += ("" if empty else " ") + shorten(word, room)
        empty = False
    lines.append(line)
    if max_lines and len(lines) > max_lines:
        lines = lines[:max_lines]
        lines[-1] = _longest(lines[-1], width - 2).rstrip() + " " + _GAP
    return lines


def join_wrapped(parts: Iterable[str], width: int) -> list[str]:
    """Set parts side by side, separated by a dot, and start a new line between two of them."""
    lines: list[str] = []
    for part in parts:
        short = shorten(part, width)
        if lines and columns_of(lines[-1]) + 3 + columns_of(short) <= width:
            lines[-1] += f" · {short}"
        else:
            lines.append(short)
    return lines


def bar(share: float, width: int) -> str:
    """Return a bar of eighths of a column: nothing for nothing or for no room, else one eighth at least.

    Args:
        share: From 0 to 1.
        width: Columns of the longest bar.

    >>> bar(0.5, 5), bar(0.0001, 5), bar(0, 5)
    ('██▌', '▏', '')
    """
    if share <= 0 or width <= 0:
        return ""
    eighths = max(round(min(share, 1.0) * width * 8), 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _longest(text: str, width: int) -> str:
    """Return the longest beginning of a text that fits."""
    if text.isascii():
        return text[:width]
    used = 0
    for place, char in enumerate(text):
        used += columns_of(char)
        if used > width:
            return text[:place]
    return text
