"""How many bytes a batch holds: cheap enough for every batch, and None rather than a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

# A batch is a few tensors in a dict; a list of more parts than this holds numbers, or samples not yet collated.
_PARTS_LIMIT: Final = 256


def count_bytes(batch: Any) -> int | None:
    """Return the bytes of the arrays, tensors and byte strings in a batch, however nested; None where there are none.

    Text and numbers of the language have no size on any bus and count as nothing. More than 256 parts are not counted
    through: None.

    >>> count_bytes({"image": b"1234", "label": [b"12", "x"]}), count_bytes("text")
    (6, None)
    """
    found = False
    total = 0
    waiting = [batch]
    for _ in range(_PARTS_LIMIT):
        if not waiting:
            return total if found else None
        size, parts = _measure(waiting.pop())
        if size is not None:
            found, total = True, total + size
        waiting.extend(parts)
        if len(waiting) > _PARTS_LIMIT:
            return None
    return None


def _measure(part: Any) -> tuple[int | None, list[Any]]:
    """Return the bytes of a part, or what it consists of."""
    if isinstance(part, bytes | bytearray):
        return len(part), []
    if part is None or isinstance(part, str | int | float):
        return None, []
    size = getattr(part, "nbytes", None)  # tensors, arrays, memory views
    if isinstance(size, int):
        return size, []
    return None, _parts_of(part)


def _parts_of(part: Any) -> list[Any]:
    if isinstance(part, Mapping):
        parts: Any = part.values()
    elif isinstance(part, list | tuple):
        parts = part
    elif is_dataclass(part) and not isinstance(part, type):
        parts = [getattr(part, field.name, None) for field in fields(part)]
    else:
        return []
    return list(parts) if len(parts) <= _PARTS_LIMIT else [None] * (_PARTS_LIMIT + 1)
