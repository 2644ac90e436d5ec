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


_ENDINGS: Final = re.compile(r"(?:\.(?:gz|zst|json|pickle|pkl|pt|trace|log|txt))+$", re.IGNORECASE)
_NUMBERS: Final = re.compile(r"\d{1,9}")


def last_number_in_name(path: str) -> int | None:
    """Return the last number in a file's name without its endings, None where there is none.

    >>> last_number_in_name("dumps/nccl_trace_rank_node02_5"), last_number_in_name("_dump_12.json.gz")
    (5, 12)
    """
    name = _ENDINGS.sub("", path.replace("\\", "/").rpartition("/")[2])
    numbers = _NUMBERS.findall(name)
    return int(numbers[-1]) if numbers else None
