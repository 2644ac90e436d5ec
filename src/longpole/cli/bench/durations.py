"""Spans of time on the command line, from milliseconds to hours."""

from __future__ import annotations

import re
from typing import Final

from longpole.errors import UsageError

_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{0,6})?)\s*(ms|s|min|m|h)", re.ASCII)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


def parse_duration_s(option: str, text: str | None) -> float | None:
    """Read a length of time in seconds; None where the option was not given.

    >>> parse_duration_s("--budget", "10min"), parse_duration_s("--budget", "90 s")
    (600.0, 90.0)

    Raises:
        UsageError: It has no unit, or is not above 0.
    """
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if seconds <= 0:
        msg = f"{option}: expected a length of time such as 90s, 10min or 1h; found {text!r}"
        raise UsageError(msg)
    return seconds
