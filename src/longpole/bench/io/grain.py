"""What sizes are multiples of; by itself, for the command line asks before anything is loaded."""

from __future__ import annotations

from typing import Final

GRAIN_BYTES: Final = 4096
"""16 tensors of whole 8-byte words, whole pages."""
