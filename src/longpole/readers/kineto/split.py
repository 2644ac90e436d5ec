"""Cut the text of a trace file into its header, stretches of the event list, and what follows the list.

The cut goes where an event seems to end and the next one to begin. Within a string or a nested list it can be
wrong; the strict decoder then refuses the stretch, and recovery finds the true borders.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_WHITE: Final = b" \t\r\n"
_BORDER: Final = re.compile(rb"\}\s*,\s*\{\s*\"")
_SEARCH_BACK: Final = (1 << 14, 1 << 18, 1 << 22)
_TRAILER_TRIES: Final = 64


def last_border(text: bytes) -> int:
    """Return the offset behind the last comma that seems to part two events, 0 where there is none."""
    for reach in _SEARCH_BACK:
        low = max(len(text) - reach, 0)
        starts = [found.start() for found in _BORDER.finditer(text, low)]
        if starts:
            return text.index(b",", starts[-1]) + 1
        if low == 0:
            break
    return 0


def first_bracket(text: bytes) -> int | None:
    """Return the offset of a bracket that opens the array form, None where the text begins otherwise."""
    start = len(text) - len(text.lstrip(_WHITE))
    return start if text[start : start + 1] == b"[" else None


def split_trailer(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Propose places where the event list ends: `(events, text behind the closing bracket)`, the last one first."""
    end = len(text)
    for _ in range(_TRAILER_TRIES):
        end = text.rfind(b"]", 0, end)
        if end < 0:
            return
        yield text[:end], text[end + 1 :]


def parse_object_rest(text: bytes) -> dict[str, Any] | None:
    """Read what follows the event list in an object: `, "key": value, ... }`; None where it is not that."""
    rest = text.strip(_WHITE)
    if rest == b"}":
        return {}
    if not rest.startswith(b","):
        return None
    return _decode_object(b"{" + rest[1:])


def _decode_object(text: bytes) -> dict[str, Any] | None:
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return fields if isinstance(fields, dict) else None


def parse_object_start(text: bytes) -> dict[str, Any]:
    """Read what precedes the event list in an object: `{ "key": value, ...,`; what cannot be read is left out."""
    body = text.strip(_WHITE).rstrip(_WHITE + b",")
    fields = _decode_object(body + b"}") if body else {}
    return _salvage_fields(body) if fields is None else fields


def find_events_key(text: bytes) -> re.Match[bytes] | None:
    """Return the key of the event list with its bracket, None where there is none.

    The first one on the top level of the document counts; in a damaged header, where levels cannot be told, the
    first one.
    """
    first = None
    for found, _ in zip(EVENTS_KEY.finditer(text), range(_KEY_TRIES), strict=False):
        first = first or found
        if _decode_object(text[: found.start()].strip(_WHITE).rstrip(_WHITE + b",") + b"}") is not None:
            return found
    return first


_KEY_TRIES: Final = 16


def parse_trailer(text: bytes) -> dict[str, Any]:
    """Read the fields behind the event list where more text follows the object's end."""
    fields = text.lstrip(_WHITE + b",")[:_TRAILER_MAX_BYTES]
    following = EVENTS_KEY.search(fields)
    fields = fields[: following.start()] if following else fields
    try:
        found, _ = json.JSONDecoder().raw_decode("{" + fields.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return _salvage_fields(fields)
    return found if isinstance(found, dict) else {}


_TRAILER_MAX_BYTES: Final = 1 << 20

_SIMPLE_FIELD: Final = re.compile(
    rb'"(baseTimeNanoseconds|schemaVersion|displayTimeUnit|traceName)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)'
)
_DISTRIBUTED: Final = re.compile(rb'"distributedInfo"\s*:\s*\{')


def _salvage_fields(body: bytes) -> dict[str, Any]:
    """Read single fields out of a header that is not valid JSON."""
    fields: dict[str, Any] = {}
    for found in _SIMPLE_FIELD.finditer(body):
        try:
            fields[found[1].decode()] = msgspec.json.decode(found[2])
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    rank = re.search(rb'"rank"\s*:\s*"?(\d+)', body)
    world = re.search(rb'"world_size"\s*:\s*"?(\d+)', body)
    if _DISTRIBUTED.search(body) and rank:
        fields["distributedInfo"] = {"rank": int(rank[1])} | ({"world_size": int(world[1])} if world else {})
    return fields
