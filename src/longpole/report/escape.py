"""Names from traces made harmless before they are shown: a name may hold anything, control sequences included."""

from __future__ import annotations

import re
from typing import Final

# Printable ASCII needs no look-up; nearly all names are made of it.
_TO_LOOK_AT: Final = re.compile(r"[^\x20-\x7e]")

_NOTATIONS: Final = (("x", 2), ("u", 4), ("U", 8))


def escape(text: str) -> str:
    r"""Return a text in which every character is visible and stays in its place.

    Args:
        text: Any text; lone surrogates are allowed.

    Returns:
        The text with each character that is not printable written as `\xNN`, `\uNNNN` or `\UNNNNNNNN`.

    >>> escape("gemm")
    'gemm'
    >>> print(escape("a\x1b[2Jb"), escape("rtl\u202e"))
    a\x1b[2Jb rtl\u202e
    """
    return _TO_LOOK_AT.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    # Python calls unprintable what moves a cursor, reorders or hides text, or cannot be encoded: control and format
    # characters (bidirectional overrides, tags), lone surrogates, unassigned ones, and every separator but the space.
    char = match[0]
    if char.isprintable():
        return char
    code = f"{ord(char):x}"
    letter, digits = next((letter, digits) for letter, digits in _NOTATIONS if len(code) <= digits)
    return f"\\{letter}{code:0>{digits}}"
