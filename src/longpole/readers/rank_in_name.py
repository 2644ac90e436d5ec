"""The rank that a file's name tells."""

from __future__ import annotations

import re
from typing import Final

_NAME_PATTERNS: Final = (
    re.compile(r"(?:^|[^a-z])rank[-_. ]?(\d{1,6})(?!\d)", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z])worker[-_]?(\d{1,6})(?=[-_.])(?!\.\d{10})", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z])TP-(\d{1,6})(?!\d)", re.IGNORECASE),
    re.compile(r"(?:^|[-_.])r(\d{1,6})(?=[-_.])"),
)


def rank_in_name(name: str) -> int | None:
    """Return the rank in the name of a file, None where there is none.

    >>> rank_in_name("rank-12.json.gz"), rank_in_name("host_4171.1700000000.pt.trace.json")
    (12, None)
    """
    for pattern in _NAME_PATTERNS:
        match = pattern.search(name)
        if match:
            return int(match[1])
    return None
