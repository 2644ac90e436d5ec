"""The colours of objects, the same on every page, figure and track.

Okabe and Ito's eight colours, which most colour-blind people tell apart; the host, which is no object of its own, and
what is unknown are greys, so that the colours are left to what one can act on.
"""

from __future__ import annotations

from typing import Final

OBJECT_COLORS: Final = {
    "compute": "#0072b2",
    "collective": "#d55e00",
    "input": "#009e73",
    "artifact": "#cc79a7",
    "state": "#e69f00",
    "output": "#56b4e9",
    "host": "#8a8f98",
    "unknown": "#c9ccd1",
}
"""Object -> colour on white or on black."""

PATH_COLOR: Final = "#b5179e"
"""Of the critical path, which runs over all the others."""

INK: Final = "#14171c"
"""Of text on a light colour."""


def text_color_on(color: str) -> str:
    """Return white or ink, whichever is read more easily on a colour.

    The relative luminance of WCAG 2 tells: white has the higher contrast with colours below 0.179.

    >>> text_color_on("#0072b2"), text_color_on("#e69f00")
    ('#ffffff', '#14171c')
    """
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if luminance < 0.179 else INK
