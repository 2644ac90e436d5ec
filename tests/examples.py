"""How many examples a costly law is tried with."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

FULL: Final = 50
"""Examples of a law that names no number, in the profile `full`."""


def examples(count: int) -> settings:
    """Return settings for a law: `count` examples in the profile `full`, in others in proportion."""
    profile = settings()
    return settings(max_examples=max(count * profile.max_examples // FULL, 1))
