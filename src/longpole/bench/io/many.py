"""How many files a path of many files moves."""

from __future__ import annotations

from typing import Final

MOST_FILES: Final = 64
FEWEST_FILES: Final = 4


def files_of_path(size_bytes: int, total_bytes: int) -> int:
    """Return how many files of one size hold about as much as asked for together: 4 to 64.

    >>> files_of_path(4096, 1 << 24), files_of_path(1 << 20, 1 << 24), files_of_path(1 << 24, 1 << 24)
    (64, 16, 4)
    """
    return max(min(MOST_FILES, total_bytes // size_bytes), FEWEST_FILES)
