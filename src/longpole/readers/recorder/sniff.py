"""Tell a span file of the recorder by its first line."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from longpole.records.span_file import SUFFIX, Header

_SCHEMA: Final = re.compile(rb'"schema"\s*:\s*"longpole\.spans/')
_LINE_MAX_BYTES: Final = 1 << 20

_DECODER: Final = msgspec.json.Decoder(Header)


def looks_like_spans(head: bytes) -> bool:
    """Tell whether decoded text begins with the header of a span file, of whatever version."""
    return bool(_SCHEMA.search(_first_line(head)))


def is_named_like_spans(name: str) -> bool:
    """Tell whether a file is called like a span file, packed ones too."""
    return SUFFIX in name


def header_of(head: bytes) -> Header | None:
    """Return the header that decoded text begins with, None where it has none that can be read."""
    try:
        return _DECODER.decode(_first_line(head))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _first_line(head: bytes) -> bytes:
    return head[:_LINE_MAX_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
