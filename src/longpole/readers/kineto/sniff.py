"""Tell a Kineto trace by its first bytes."""

from __future__ import annotations

import re
from typing import Final

_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_ARRAY: Final = re.compile(rb"\A[\s,]*\[[\s,]*(\{|\])")
_PHASE: Final = re.compile(rb'"ph"\s*:\s*"')


def looks_like_kineto(head: bytes) -> bool:
    """Tell whether decoded text begins like a trace-event file: an object with `traceEvents`, or an array of events."""
    text = head.removeprefix(b"\xef\xbb\xbf")
    return bool(_EVENTS.search(text) or (_ARRAY.match(text) and _PHASE.search(text[: 1 << 16])))
