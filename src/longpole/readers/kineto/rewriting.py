"""Guess what a broken event was meant to be: quotes inside a string, values or commas that were never written.

    "name": "f("a", "b")", "pid": 1     the string ends where the next key follows
    "bandwidth": , "stream": 7          a value that is missing
    "dur": 3 "args": {…}                a comma that is missing
    "ts": 5, tid": 0                    a key without one of its quotes, or without both

Tried on an element that nothing else could read, up to the next event. A guess counts only if it is valid JSON, has a
phase and names no key twice: two writers in one file leave seams that look alike.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from longpole.readers.kineto.mending import BACKSLASH, BLANK, SYNTAX, is_valid, mend

if TYPE_CHECKING:
    from collections.abc import Iterator
    from re import Match

EVENT_KEYS: Final = rb"ph|cat|name|pid|tid|ts|dur|tts|tdur|id|id2|bind_id|bp|args|cname|s|sf|flow_in|flow_out"
_KEY: Final = rb'"[^"\\,:{}\[\]]{1,64}+"\s*+:'
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Of a string that is no list's: what follows its end; and what shows that it had ended before.
_END: Final = rb"\s*+(?:,\s*+" + _KEY + rb"|\}\s*+(?:[,}\]]|\Z))"
_MISSED: Final = rb"(?:" + EVENT_KEYS + rb')"\s*+:'
_VALUE: Final = re.compile(
    rb"(" + _KEY + rb'\s*+")([^"]*+(?:"(?!' + _END + rb"|" + _MISSED + rb')[^"]*+)*+)"(?=' + _END + rb")"
)
_HALF_KEY: Final = re.compile(rb"(?:" + _MISSED + rb")")
_INNER: Final = re.compile(rb'(\\*+)"')
_TAIL: Final = re.compile(rb"\\++\Z")
_NO_VALUE: Final = re.compile(rb"(" + _STRING + rb"\s*+:)(?=\s*+[,}])")
_NO_COMMA: Final = re.compile(
    rb"(" + _STRING + rb"\s*+:\s*+(?:" + _STRING + rb"|[-+.\w]++))\s++(?=" + _KEY + rb")|([}\]])\s*+(?=" + _KEY + rb")"
)
EVENT_BORDER: Final = re.compile(
    rb"\}(?=[\s\x00,]*+\{"
    + BLANK
    + rb'"(?:'
    + EVENT_KEYS
    + rb')"'
    + BLANK
    + rb":|"
    + BLANK
    + rb"\]"
    + BLANK
    + rb"(?:[,}]|\Z))"
)


_HALF_QUOTED: Final = re.compile(rb"([,{]\s*+)(?:(" + EVENT_KEYS + rb')"?+|"(' + EVENT_KEYS + rb"))(\s*+:)")


def guess_event(element: bytes) -> tuple[bytes, str] | None:
    """Return an event as it was meant, and the code of what was wrong; None where nothing makes one of it.

    Args:
        element: From its opening brace to the last one before the next event.
    """
    for text, code in _guesses(element):
        mended = text if is_valid(text) else _mended(text)
        if mended is not None and _is_event(mended):
            return mended, code
    return None


def _guesses(element: bytes) -> Iterator[tuple[bytes, str]]:
    quoted = _VALUE.sub(_escape, element)
    if quoted != element:
        yield quoted, BACKSLASH
    keyed = _HALF_QUOTED.sub(lambda found: found[1] + b'"' + (found[2] or found[3]) + b'"' + found[4], element)
    if keyed != element:
        yield keyed, SYNTAX
    for text in (element, quoted):
        filled = _NO_VALUE.sub(rb"\1 null", text)
        parted = _NO_COMMA.sub(lambda found: (found[1] or found[2]) + b", ", filled)
        if filled != text:
            yield filled, SYNTAX
        if parted != filled:
            yield parted, SYNTAX


def _escape(found: Match[bytes]) -> bytes:
    """Escape the quotes inside a string that are not, and a backslash that would take its end."""
    if _HALF_KEY.search(found[2]):
        return found[0]
    body = _INNER.sub(lambda inner: inner[0] if len(inner[1]) % 2 else inner[1] + rb"\"", found[2])
    tail = _TAIL.search(body)
    return found[1] + body + (b"\\" if tail and len(tail[0]) % 2 else b"") + b'"'


def _mended(text: bytes) -> bytes | None:
    mended = mend(text)
    return None if mended is None else mended.text


def _is_event(text: bytes) -> bool:
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.append("")
        return found

    try:
        event = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and len(str(event.get("ph"))) == 1 and not twice
