"""Look at one element of a damaged event list: where it ends (`walk`), and how to make it valid JSON (`mend`).

Both read tokens with compiled patterns, keep their own stack, and look at each byte a bounded number of times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from re import Match, Pattern

BACKSLASH: Final = "json.string.repaired"
CONTROL: Final = "json.control_character"
ENCODING: Final = "json.utf8.replaced"
NOT_FINITE: Final = "json.number.not_finite"
LIST_CUT: Final = "json.list.cut"
SYNTAX: Final = "json.syntax.repaired"

_DEPTH_MAX: Final = 100  # an event nests 5 deep; msgspec gives up at about 1000

# ---------------------------------------------------------------------------------------------- tokens

BLANK: Final = rb"[\s\x00]*+"
_WORD: Final = rb"[-+.\w#(][-+.\w#()]*+"  # numbers, true, inf, -nan(ind), 1.#QNAN, and bare dots
_WORD_GOES_ON: Final = rb"[-+.\w#()]"
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_CLOSES: Final = rb"[\s\x00]*+[,:}\]]"
_INNER_QUOTE: Final = rb'"(?!' + _CLOSES + rb'|[^"\\]{0,64}+"\s*+:)'  # neither the end of a string, nor that of a key
_LOOSE_STRING: Final = (
    rb'"[^"\\]*+(?:(?:\\(?:[^"]|"(?!' + _CLOSES + rb"))|" + _INNER_QUOTE + rb')[^"\\]*+)*+\\?+"(?=' + _CLOSES + rb")"
)
_PLAIN_STRING: Final = (
    rb'"[^"\\\x00-\x1f\x80-\xff]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f\x80-\xff]*+)*+"(?=' + _CLOSES + rb")"
)
_PLAIN_NUMBER: Final = rb"-?+(?:0|[1-9][0-9]{0,30}+)(?:\.[0-9]++)?+(?!" + _WORD_GOES_ON + rb")"
_HEALTHY_COMMA: Final = rb",(?!" + BLANK + rb"(?:[,}\]]|\.\.))"

_LITERAL: Final = rb"(?:true|false|null)(?!" + _WORD_GOES_ON + rb")"
_MARKS: Final = rb"[ \t\r\n{}\[\]:]*+"

_HEALTHY: Final = re.compile(
    _MARKS + rb"(?:" + _HEALTHY_COMMA + _MARKS + rb")?+(?:"
    rb"(?:" + _PLAIN_STRING + rb"|" + _PLAIN_NUMBER + rb"|" + _LITERAL + rb")" + _MARKS + rb"(?:" + _HEALTHY_COMMA
    + _MARKS + rb")?+)*+"
)  # fmt: skip
_DOTS: Final = BLANK + rb"\.{2,}+" + BLANK


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way of telling where a string ends.

    Attributes:
        token: Any token of damaged text, behind blanks; group 1 a string, 2 a word, 3 punctuation.
        run: By the state of a walk: all the flat pairs or values, with a comma behind each, that begin there.
        damaged: Something that `mend` must look at; groups `string`, `dots`, `commas`, `word`, `blank`.
    """

    token: Pattern[bytes]
    run: dict[str, Pattern[bytes]]
    damaged: Pattern[bytes]


def _dialect(string: bytes) -> Dialect:
    scalar = rb"(?:" + string + rb"|" + _WORD + rb")" + BLANK
    flat_list = rb"\[" + BLANK + rb"(?:" + scalar + rb"(?:,[\s\x00,]*+|(?=\])))*+\]" + BLANK
    comma = rb",[\s\x00,]*+"
    value = rb"(?:" + scalar + rb"|" + flat_list + rb")" + comma
    return Dialect(
        re.compile(BLANK + rb"(?:(" + string + rb")|(" + _WORD + rb")|([{}\[\]:,]))", re.DOTALL),
        {
            "key": re.compile(BLANK + rb"(?:" + string + BLANK + rb":" + BLANK + value + rb")*+", re.DOTALL),
            "value": re.compile(BLANK + rb"(?:" + value + rb")*+", re.DOTALL),
        },
        re.compile(
            rb"(?P<string>" + string + rb")"
            rb"|(?P<dots>,?+" + _DOTS + rb"(?=\])|," + _DOTS + rb"(?=,)|(?<=\[)" + _DOTS + rb",)"
            rb"|(?P<commas>,[\s\x00,]*+)"
            rb"|(?P<word>" + _WORD + rb")"
            rb"|(?P<blank>[\x00\x0b\x0c]++)",
            re.DOTALL,
        ),
    )


JSON: Final = _dialect(_STRING)
LOOSE: Final = _dialect(_LOOSE_STRING)
"""A quote, with or without a backslash, ends a string where punctuation follows it, and only there.

For text whose writer escapes nothing: `"C:\\work\\", "pid": 1` and `"say "hi" to", "pid": 1`.
"""

# ------------------------------------------------------------------------------------------------ walk

Outcome = Literal["complete", "unfinished", "broken"]


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a walk through one element came.

    Attributes:
        outcome: "complete", or "unfinished" where the text ends first, or "broken".
        end: Offset behind the element; the text's end; or where it cannot go on.
    """

    outcome: Outcome
    end: int


_AFTER: Final = {"value": "after", "key": "colon"}
_OPENERS: Final = {b"{": "key", b"[": "value"}
_CLOSERS: Final = {(b"}", "key"): b"{", (b"}", "after"): b"{", (b"]", "value"): b"[", (b"]", "after"): b"["}


def walk(text: bytes, start: int, dialect: Dialect = JSON) -> Walk:
    """Follow one element from its first byte to its end, over all that `mend` can repair.

    More commas than needed, bare dots in lists, any word in place of a value and anything inside strings are let pass.
    """
    stack: list[bytes] = []
    state = "value"
    at = start
    while True:
        found = dialect.token.match(text, at)
        if found is None:
            return _stop(text, at)
        mark = found[3]
        if mark is None:
            state = _behind_atom(found, state, stack)
        elif mark in _OPENERS and state == "value":
            stack.append(mark)
            state = _OPENERS[mark] if len(stack) < _DEPTH_MAX else ""
        elif stack and _CLOSERS.get((mark, state)) == stack[-1]:
            stack.pop()
            state = "after"
        else:
            state = _behind_mark(mark, state, stack)
        if not state:
            return Walk("broken", found.start(found.lastindex or 0))
        at = found.end()
        if not stack:
            return Walk("complete", at)
        if mark is not None and state == _OPENERS[stack[-1]]:
            run = dialect.run[state].match(text, at)
            at = run.end() if run else at


def _behind_atom(found: Match[bytes], state: str, stack: list[bytes]) -> str:
    if found[1] is None and state != "value":
        is_dots = state == "after" and stack[-1] == b"[" and not found[2].strip(b".")
        return "after" if is_dots else ""
    return _AFTER.get(state, "")


def _behind_mark(mark: bytes, state: str, stack: list[bytes]) -> str:
    if mark == b":":
        return "value" if state == "colon" else ""
    if mark != b"," or not stack:
        return ""
    if state == "after":
        return _OPENERS[stack[-1]]
    return state if _OPENERS[stack[-1]] == state else ""


_BLANKS: Final = re.compile(BLANK)


def _stop(text: bytes, at: int) -> Walk:
    """Tell an end of text, which may lie inside a string, from a byte that begins no token."""
    blanks = _BLANKS.match(text, at)
    end = blanks.end() if blanks else at
    if end == len(text) or text[end : end + 1] == b'"':
        return Walk("unfinished", len(text))
    return Walk("broken", end)


# ------------------------------------------------------------------------------------------------ mend


@dataclass(slots=True)
class Mended:
    """A repaired element.

    Attributes:
        text: Valid JSON.
        repairs: By code: offset of the first repair in the original element, and how many there were.
    """

    text: bytes
    repairs: dict[str, tuple[int, int]]


def is_valid(element: bytes) -> bool:
    """Tell whether the strict decoder takes an element."""
    try:
        msgspec.json.decode(element)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def mend(element: bytes, dialect: Dialect = JSON) -> Mended | None:
    """Repair an element token by token; None where the result is still not valid JSON."""
    parts: list[bytes] = []
    mended = Mended(b"", {})
    at = 0
    while True:
        healthy = _HEALTHY.match(element, at)
        end = healthy.end() if healthy else at
        parts.append(element[at:end])
        if end == len(element):
            break
        found = dialect.damaged.match(element, end)
        if found is None:
            return None
        new, codes = _MENDERS[found.lastgroup or ""](found[0], element[found.end() : found.end() + 1])
        for code in codes:
            first, count = mended.repairs.get(code, (end, 0))
            mended.repairs[code] = (first, count + 1)
        parts.append(new)
        at = found.end()
    mended.text = b"".join(parts)
    return mended if is_valid(mended.text) else None


_Mending = tuple[bytes, tuple[str, ...]]

_LEGAL: Final = re.compile(rb'[^\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^\\]*+)*+')
_ESCAPE: Final = re.compile(rb'\\(["\\]?)')
_SURROGATES: Final = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_QUOTES: Final = re.compile(rb'\\.|(")', re.DOTALL)
_RAW_CONTROL: Final = re.compile(rb"[\x00-\x1f]")


def _mend_string(token: bytes, _following: bytes) -> _Mending:
    codes: list[str] = []
    body = token[1:-1]
    try:
        body.decode()
    except UnicodeDecodeError:
        codes.append(ENCODING)
        body = body.decode(errors="replace").encode()
    if not _LEGAL.fullmatch(body):
        codes.append(BACKSLASH)
        body = _ESCAPE.sub(lambda found: found[0] if found[1] else rb"\\", body)
    else:
        paired = _SURROGATES.sub(lambda found: rb"\ufffd" if found[1] else found[0], body) if b"\\u" in body else body
        codes += [ENCODING] if paired != body and ENCODING not in codes else []
        body = paired
    quoted = _QUOTES.sub(lambda found: rb"\"" if found[1] else found[0], body) if b'"' in body else body
    codes += [BACKSLASH] if quoted != body and BACKSLASH not in codes else []
    body = quoted
    if _RAW_CONTROL.search(body):
        codes.append(CONTROL)
        body = _RAW_CONTROL.sub(lambda found: b"\\u%04x" % found[0][0], body)
    return b'"' + body + b'"', tuple(codes)


def _mend_dots(_token: bytes, _following: bytes) -> _Mending:
    return b"", (LIST_CUT,)


def _mend_commas(token: bytes, following: bytes) -> _Mending:
    is_last = following in (b"}", b"]")
    n_spare = token.count(b",") - (0 if is_last else 1)
    return b" " if is_last else b", ", (SYNTAX,) * min(n_spare, 1)


def _mend_blank(_token: bytes, _following: bytes) -> _Mending:
    return b" ", (SYNTAX,)


_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LOOSE_NUMBER: Final = re.compile(rb"([-+]?)0*+([0-9]*)(?:\.([0-9]*))?((?:[eE][+-]?[0-9]+)?)")
_HEX_NUMBER: Final = re.compile(rb"0[xX][0-9a-fA-F]{1,16}")
_NO_NUMBER: Final = re.compile(rb"[-+]?(?:inf(?:inity)?|s?nan(?:\(\w*\))?|1\.#\w+)", re.IGNORECASE)
_JSON_WORDS: Final = (b"true", b"false", b"null")
_FOREIGN_WORDS: Final = {b"true": b"true", b"false": b"false"}  # of Python; any other word means null
_DOTTED: Final = re.compile(rb"(-?[0-9]+(?:\.[0-9]+)?)\.{3,}")


def _mend_word(token: bytes, following: bytes) -> _Mending:
    """Write a value so that JSON allows it; null stands for what has no value, or none that can be read."""
    dotted = _DOTTED.fullmatch(token)
    if token in _JSON_WORDS or (_NUMBER.fullmatch(token) and is_valid(token)):
        return token, ()
    if _NO_NUMBER.fullmatch(token) or _NUMBER.fullmatch(token):
        return b"null", (NOT_FINITE,)
    if not token.strip(b"."):
        return b"null", (LIST_CUT,)
    if dotted and following == b"]":
        return dotted[1], (LIST_CUT,)
    return _loose_number(token) or _FOREIGN_WORDS.get(token.lower(), b"null"), (SYNTAX,)


def _loose_number(token: bytes) -> bytes | None:
    """Rewrite `+1`, `007`, `.5`, `5.`, `0x1F`; None for what is not a number."""
    if _HEX_NUMBER.fullmatch(token):
        return b"%d" % int(token, 16)
    found = _LOOSE_NUMBER.fullmatch(token)
    if found is None or not re.search(rb"[0-9]", token):
        return None
    sign, whole, fraction, exponent = found.groups()
    number = (b"-" if sign == b"-" else b"") + (whole or b"0") + (b"." + fraction if fraction else b"") + exponent
    return number if is_valid(number) else None


_MENDERS: Final = {
    "string": _mend_string,
    "dots": _mend_dots,
    "commas": _mend_commas,
    "word": _mend_word,
    "blank": _mend_blank,
}
