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
