"""One spelling for what exporters spell in several ways: names with control characters, ids as text."""

from __future__ import annotations

import re
import zlib
from typing import Any, Final

_ID_MAX: Final = 256
_NAME_MAX: Final = 16384  # the longest name in the corpus has 5,160 characters
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def show_controls(name: str) -> str:
    r"""Return a name with its control characters written as escapes, so that none reaches a terminal.

    A name of more than 16,384 characters is cut; its length and a hash keep it apart from others.

    >>> show_controls("C:\new")
    'C:\\new'
    """
    if len(name) > _NAME_MAX:
        name = f"{name[:_NAME_MAX]}… ({len(name):,} characters, {_hash(name):08x})"
    if name.isprintable():
        return name
    return _CONTROL.sub(lambda found: _SHORT.get(found[0], f"\\x{ord(found[0]):02x}"), name)


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def normal_id(value: Any) -> Any:
    """Make a number of an id that is written as text, so that both spellings are one thread."""
    if isinstance(value, str) and value.strip().lstrip("+-").isdigit() and len(value) < 32:
        return int(value)
    if isinstance(value, str) and len(value) > _ID_MAX:
        return f"{value[:_ID_MAX]}… ({_hash(value):08x})"
    return value
