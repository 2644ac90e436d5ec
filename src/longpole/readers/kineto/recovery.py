"""Read a stretch of a damaged event list: keep every element that can be read, say what is wrong and where.

    text ──► blanks and commas ──► element ──accepted──────────────────────────────► events
                                      │ refused ──mend──► valid ──────────────────► events, damage
                                      │ broken ──► next place that looks like an event ──► damage
                                      └ ends with the text ──► rest, or a cut

Time is linear in the text: each byte is looked at by a bounded number of searches, and no pattern backtracks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from longpole.readers.kineto.mending import (
    BACKSLASH,
    BLANK,
    CONTROL,
    ENCODING,
    JSON,
    LIST_CUT,
    LOOSE,
    NOT_FINITE,
    SYNTAX,
    Dialect,
    Mended,
    is_valid,
    mend,
    walk,
)
from longpole.readers.kineto.rewriting import EVENT_BORDER, EVENT_KEYS, guess_event

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

UNREADABLE: Final = "json.element.unreadable"
CUT: Final = "json.cut"

_QUICK_MAX_BYTES: Final = 1 << 16  # most events have 300 bytes, the longest in the corpus 25 kB
_ELEMENT_MAX_BYTES: Final = 64 << 20
_WALKS_PER_BYTE: Final = 4  # beyond, a restart is taken unproved, so that time stays linear in hostile text
_WALK_BYTES: Final = 64  # what the start of a walk costs, in bytes of walking
_SCANS_PER_WALK: Final = 16  # a search passes at least so many bytes in the time in which a walk passes one
_BORDERS_MAX: Final = 3  # a name may hold what looks like the start of an event, but not often
_ROW_MAX: Final = 1000
_BROKEN_MIN_BYTES: Final = 64  # no event is shorter; after `_ROW_MAX` of them in a row, the smaller ones are hostile

_EVENT_REST: Final = BLANK + rb'"(?:' + EVENT_KEYS + rb')"' + BLANK + rb":"
_OBJECT_REST: Final = BLANK + rb'"'
_SEPARATORS: Final = re.compile(rb"[\s\x00,]*+")
_ELEMENT_END: Final = re.compile(rb"\}(?=[\s\x00,]*+\{" + _OBJECT_REST + rb")")
_EVENT_START: Final = re.compile(rb"\{" + _EVENT_REST)
_STRAY: Final = re.compile(rb'[^{}\[\]"]{1,8}?(?=' + BLANK + rb"\{" + _OBJECT_REST + rb")")
_STRAY_BRACKET: Final = re.compile(
    rb"\](?=" + BLANK + rb'(?:"|,?+' + BLANK + rb"\{" + _EVENT_REST + rb"))"
    rb"|\}(?:" + BLANK + rb"\}){0,7}+(?=" + BLANK + rb"(?:,?+" + BLANK + rb"\{" + _EVENT_REST + rb"|\]))"
    rb"|\[(?=[\s\x00,]*+\{" + _OBJECT_REST + rb")"
)
_UNDECIDED_BRACKET: Final = re.compile(rb"[}\]][\s\x00,]*+\Z")
_FIELD_BEHIND: Final = re.compile(rb"\]" + BLANK + rb"," + BLANK + rb'"(?!(?:ph|cat|pid|tid|ts|dur|args)")')
_NEXT_LIST: Final = rb"\[" + BLANK + rb"(?:\{|\Z)"
_NEXT_DOCUMENT: Final = re.compile(
    rb"\]" + BLANK + rb"(?:" + _NEXT_LIST + rb"|\}" + BLANK + rb"(?:" + _NEXT_LIST + rb"|\{(?!" + _EVENT_REST + rb")))"
)
_END_OF_TEXT: Final = re.compile(rb"\]" + BLANK + rb",?+" + BLANK + rb"\}?+" + BLANK + rb"\Z")
_BEHIND_DOCUMENT: Final = re.compile(BLANK + rb"(?:[\[{]|\Z)")
_TRAILER_MAX_BYTES: Final = 1 << 20
_CLOSERS_TO_END: Final = re.compile(rb"[\s\x00}\]]*+\Z")
_OBJECT_START: Final = re.compile(rb"\{" + _OBJECT_REST)
_LIST_END: Final = re.compile(rb"\}" + BLANK + rb"(?=\])")
_BEHIND_SCALAR: Final = re.compile(BLANK + rb"(?:[,\]]|\Z)")
_BEHIND_EVENT: Final = re.compile(BLANK + rb"(?:[,\]{]|\Z)")
_MARKS: Final = b",:{}[]"
_LOOK_BACK_BYTES: Final = 256

_REPAIRS: Final = {
    BACKSLASH: "a quote or backslash that JSON would have escaped is read as itself",
    CONTROL: "a raw control character in a string is kept as an escape",
    ENCODING: "what is not UTF-8 is replaced by U+FFFD",
    NOT_FINITE: "a value that is no finite number is read as missing",
    LIST_CUT: "a list ends in bare dots; the entries behind them were not written",
    SYNTAX: "commas, blanks or values that JSON does not allow are put right, or read as missing",
}


@dataclass(frozen=True, slots=True)
class Damage:
    """Something wrong in the text.

    Attributes:
        code: A stable code (`json.…`, `container.…`).
        byte: Offset in the decoded text; of the element for `json.list.cut`, else of the place itself.
        line: Line number from 1, None where it is not known.
        message: What was found and what was done, without the place.
        count: How many of the kind in this element: strings, values, lists or places.
        element_byte: Offset of the element that was kept, None where none was.
        end_byte: Offset behind an unreadable stretch.
        is_interrupted: The stretch breaks off inside a word or string, and a whole event follows there.
    """

    code: str
    byte: int
    line: int | None
    message: str
    count: int = 1
    element_byte: int | None = None
    end_byte: int | None = None
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a damaged stretch holds.

    Attributes:
        events: The elements, each valid JSON, in the order of the text.
        starts: Offset of each in the original text, ascending.
        damages: What is wrong, about in the order of the text.
        rest_start: Offset from which the caller reads on, with more text: the start of an element that has no end
            yet, else the end of the text, or the closing bracket.
        closed_at: Offset of the bracket that closes the list, None while it is open.
    """

    events: list[bytes]
    starts: list[int]
    damages: list[Damage]
    rest_start: int
    closed_at: int | None = None


def recover(text: bytes, first_byte: int, *, final: bool) -> Recovered:
    """Read a stretch of the inside of an event list that the strict decoder refused.

    Args:
        text: Elements with commas between, from the border of an element on, without the list's own opening bracket.
        first_byte: Offset of `text` in the decoded file; every offset that is returned counts from there.
        final: No more text follows, so an element without an end is cut off.
    """
    return _Reader(text, first_byte, final=final).read()


class _Reader:
    def __init__(self, text: bytes, first_byte: int, *, final: bool) -> None:
        self.text = text
        self.first_byte = first_byte
        self.final = final
        self.events: list[bytes] = []
        self.starts: list[int] = []
        self.damages: list[Damage] = []
        self.closed_at: int | None = None
        self.quick_from = 0
        self.is_behind_event = False
        self.unbroken: dict[str, int] = {}
        self.row = self.row_start = 0
        self.walked_bytes = 0

    def read(self) -> Recovered:
        """Read elements until the text, or the list, ends."""
        at, end = 0, len(self.text)
        rest: int | None = None
        while rest is None:
            at = self._separators(at)
            if at == end:
                break
            at, rest = self._bracket(at) if self.text[at] in b"]}" else self._element(at)
        rest_start = self.first_byte + (end if rest is None else rest)
        damages = [_with_size(damage) for damage in self.damages]
        return Recovered(self.events, self.starts, damages, rest_start, self.closed_at)

    # Every step below takes the offset at which it reads, and returns the one behind what it has dealt with and,
    # if reading ends there, the offset of the rest.

    def _separators(self, at: int) -> int:
        found = _SEPARATORS.match(self.text, at)
        end = found.end() if found else at
        between = self.text[at:end]
        if b"\0" in between:
            first = at + between.index(b"\0")
            self._note(SYNTAX, first, f"{between.count(0):,} NUL bytes between events are left out")
        n_commas = between.count(b",")
        following = self.text[end : end + 1]
        if n_commas > 1:
            self._note(SYNTAX, at + between.index(b","), f"{n_commas} commas in a row count as one")
        elif n_commas == 1 and following == b"]":
            self._note(SYNTAX, at + between.index(b","), "a comma before the end of the list is left out")
        elif n_commas == 0 and self.is_behind_event and following in (b"{", b"["):
            self._note(SYNTAX, end, "a missing comma between two events is put in")
        self.is_behind_event = False
        return end

    def _bracket(self, at: int) -> tuple[int, int | None]:
        """Leave a stray closing bracket out, or end the list at it."""
        stray = _STRAY_BRACKET.match(self.text, at)
        if stray:
            return self._leave_out(at, stray.end())
        if not self.final and _UNDECIDED_BRACKET.match(self.text, at):
            return at, at
        is_end = self._is_list_end(at) if self.text[at] in b"]" else bool(_CLOSERS_TO_END.match(self.text, at))
        if is_end is None:
            return at, at
        if is_end:
            self.closed_at = self.first_byte + at
            return at, at
        return self._give_up(at, at)

    def _is_list_end(self, at: int) -> bool | None:
        """Tell the list's bracket from one that is left of a broken event; None where more text must decide."""
        if self._is_thrifty() or self._looks_like_end(at):
            return True
        if self._find_restart(at)[1]:
            return False
        return True if self.final else None

    def _looks_like_end(self, at: int) -> bool:
        """Tell whether what follows a bracket is what follows the list: fields, the text's end, another document."""
        if _NEXT_DOCUMENT.match(self.text, at) or (self.final and _END_OF_TEXT.match(self.text, at)):
            return True
        return bool(_FIELD_BEHIND.match(self.text, at)) and self._is_trailer(self.text.index(b",", at) + 1)

    def _is_trailer(self, at: int) -> bool:
        """Tell whether fields and the end of the document begin here."""
        text = b"{" + self.text[at : at + _TRAILER_MAX_BYTES]
        fields = walk(text, 0)
        self.walked_bytes += fields.end + _WALK_BYTES + len(text) // _SCANS_PER_WALK
        if fields.outcome == "unfinished":
            return self.final or at + _TRAILER_MAX_BYTES < len(self.text)
        return fields.outcome == "complete" and bool(_BEHIND_DOCUMENT.match(text, fields.end))

    def _element(self, at: int) -> tuple[int, int | None]:
        stray = _STRAY_BRACKET.match(self.text, at)
        if stray:
            return self._leave_out(at, stray.end())
        quick = self._quick(at)
        if quick is not None:
            return quick, None
        outcome, end = self._walk(at)
        if outcome == "complete" and self._stands_alone(at, end) and self._keep(at, end):
            return end, None
        return self._odd_element(at, outcome, end)

    def _odd_element(self, at: int, outcome: str, end: int) -> tuple[int, int | None]:
        """Deal with what is no element by the rules: stray bytes, paths, a cut, or worse."""
        stray = _STRAY.match(self.text, at)
        if stray:
            return self._leave_out(at, stray.end())
        loose_end = self._keep_loose(at, outcome, end)
        if loose_end is not None:
            return loose_end, None
        guessed_end = self._keep_guessed(at)
        if guessed_end is not None:
            return guessed_end, None
        # An event inside an event means that this one was never closed.
        if outcome == "unfinished" and end - at < _ELEMENT_MAX_BYTES and not self._find_restart(at)[1]:
            return self._end_inside(at)
        return self._give_up(at, end)

    def _quick(self, at: int) -> int | None:
        """Take an element of usual size up to where the next one seems to begin; None if that is not one."""
        if at < self.quick_from or self.text[at] not in b"{":
            return None
        limit = at + _QUICK_MAX_BYTES
        found = _ELEMENT_END.search(self.text, at, limit)
        if found is None:
            self.quick_from = limit
            return None
        end = found.end()
        if self._keep(at, end):
            return end
        self.quick_from = end
        return None

    def _keep(self, start: int, end: int, dialect: Dialect = JSON) -> bool:
        """Keep an element as it is, or mended; False if neither gives valid JSON."""
        element = self.text[start:end]
        if not is_valid(element):
            mended = mend(element, dialect)
            if mended is None:
                return False
            self._note_repairs(start, mended)
            element = mended.text
        self._take(element, start)
        return True

    def _take(self, element: bytes, start: int) -> None:
        self.events.append(element)
        self.starts.append(self.first_byte + start)
        self.is_behind_event = True
        self.unbroken.clear()
        self.row = 0

    def _keep_loose(self, at: int, outcome: str, end: int) -> int | None:
        """Keep an element whose writer did not escape quotes or backslashes; return its end."""
        is_hopeless = outcome == "unfinished" and self.text.find(b'\\"', at, end) < 0
        if is_hopeless or self.text[at] not in b"{[" or self._is_thrifty():
            return None
        # A string without an end would be searched to the end of the text for each element anew.
        walked = walk(self.text[at : at + _QUICK_MAX_BYTES], 0, LOOSE)
        self.walked_bytes += walked.end + _WALK_BYTES
        end = at + walked.end
        return end if walked.outcome == "complete" and self._keep(at, end, LOOSE) else None

    def _keep_guessed(self, at: int) -> int | None:
        """Keep an element as it was meant, if that can be guessed; return its end."""
        if self._is_thrifty() or self.text[at] not in b"{":
            return None
        for border in islice(EVENT_BORDER.finditer(self.text, at, at + _QUICK_MAX_BYTES), _BORDERS_MAX):
            element = self.text[at : border.end()]
            self.walked_bytes += len(element) + _WALK_BYTES
            guessed = guess_event(element)
            if guessed is not None:
                text, code = guessed
                self.damages.append(
                    Damage(code, self.first_byte + at, None, _REPAIRS[code], element_byte=self.first_byte + at)
                )
                self._take(text, at)
                return border.end()
        return None

    def _stands_alone(self, start: int, end: int) -> bool:
        """Tell a string, number or word that is an element from one that is a remnant of an event."""
        return self.text[start] in b"{[" or bool(_BEHIND_SCALAR.match(self.text, end))

    def _walk(self, at: int) -> tuple[str, int]:
        walked = walk(self.text, at)
        self.walked_bytes += walked.end - at + _WALK_BYTES
        return walked.outcome, walked.end

    # ---------------------------------------------------------------------------------------- what is lost

    def _end_inside(self, at: int) -> tuple[int, int | None]:
        if not self.final:
            return at, at
        end = len(self.text)
        self._note(CUT, end, f"the text ends inside the event that begins at byte {self.first_byte + at:,}")
        return end, None

    def _leave_out(self, start: int, end: int) -> tuple[int, int | None]:
        self._note(SYNTAX, start, f"{self.text[start:end]!r} between events is left out")
        return end, None

    def _give_up(self, start: int, broken_at: int) -> tuple[int, int | None]:
        """Skip from a broken element to the next one, to the end of the list, or to the end of the text."""
        self.row_start, self.row = (start, 1) if self.row == 0 else (self.row_start, self.row + 1)
        look_from = start
        if self.row > _ROW_MAX:
            look_from = min(max(start, self.row_start + self.row * _BROKEN_MIN_BYTES), len(self.text))
        found = self._find_next(look_from, max(look_from, broken_at))
        if found is None and not self.final and len(self.text) - start < _ELEMENT_MAX_BYTES:
            return start, start
        end = len(self.text) if found is None else found
        message = f"cannot be read as an event; the text breaks off at byte {self.first_byte + broken_at:,}"
        is_interrupted = found is not None and self._is_interrupted(start, found)
        damage = Damage(UNREADABLE, self.first_byte + start, None, message, end_byte=self.first_byte + end)
        self._add(replace(damage, is_interrupted=is_interrupted) if is_interrupted else damage)
        return end, None

    def _find_next(self, start: int, broken_at: int) -> int | None:
        """Find where to read on: the next event, or the bracket that ends the list; None if neither is in the text."""
        restart, is_sure = self._find_restart(broken_at if self._is_thrifty() else start)
        limit = len(self.text) if restart is None else restart
        for found in _LIST_END.finditer(self.text, start, limit):
            # A list inside an event ends alike; another document, or no further event, tells them apart.
            at = found.end()
            if self._is_thrifty():
                break
            if _NEXT_DOCUMENT.match(self.text, at) or (not is_sure and self._looks_like_end(at)):
                return at
        return restart

    def _find_restart(self, start: int) -> tuple[int | None, bool]:
        """Find the next place that looks like an event, and whether a whole event with a phase stands there."""
        scanned = start
        for found in _OBJECT_START.finditer(self.text, start + 1):
            at = found.start()
            self.walked_bytes += (at - scanned) // _SCANS_PER_WALK
            scanned = at
            is_event = bool(_EVENT_START.match(self.text, at))
            before = self._byte_before(at)
            if before not in (b",", b"}") and (not is_event or before in (b":", b"[")):
                continue
            if self._is_thrifty():
                return at, False
            outcome, end = self._walk(at)
            if outcome == "complete":
                if _BEHIND_EVENT.match(self.text, end):
                    return at, b'"ph"' in self.text[at:end]
            elif outcome == "unfinished" or is_event:
                return at, False
        self.walked_bytes += (len(self.text) - scanned) // _SCANS_PER_WALK
        return None, False

    def _is_thrifty(self) -> bool:
        return self.walked_bytes > _WALKS_PER_BYTE * len(self.text) + _QUICK_MAX_BYTES

    def _is_interrupted(self, start: int, restart: int) -> bool:
        """Tell whether an event breaks off inside a word or string, and a whole event follows right there."""
        if self.text[start] not in b"{" or self._byte_before(restart) in _MARKS:
            return False
        outcome, end = self._walk(restart)
        # A comma that became a brace makes an event of the rest of this one; with the comma back, it is whole.
        with_comma = walk(self.text[start:restart] + b"," + self.text[restart + 1 : end], 0)
        return outcome == "complete" and b'"ph"' in self.text[restart:end] and with_comma.outcome == "broken"

    def _byte_before(self, at: int) -> bytes:
        """Return the last byte before an offset that is not blank; none where there is none nearby."""
        return self.text[max(at - _LOOK_BACK_BYTES, 0) : at].rstrip(b" \t\r\n\0")[-1:]

    # ---------------------------------------------------------------------------------------------- notes

    def _note(self, code: str, at: int, message: str) -> None:
        self._add(Damage(code, self.first_byte + at, None, message))

    def _note_repairs(self, start: int, mended: Mended) -> None:
        for code, (first, count) in mended.repairs.items():
            byte = start if code == LIST_CUT else start + first
            element_byte = self.first_byte + start
            self.damages.append(Damage(code, self.first_byte + byte, None, _REPAIRS[code], count, element_byte))

    def _add(self, damage: Damage) -> None:
        """Add a damage between events, or count it with one of its kind if no event was kept since."""
        index = self.unbroken.setdefault(damage.code, len(self.damages))
        if index == len(self.damages):
            self.damages.append(damage)
            return
        first = self.damages[index]
        self.damages[index] = replace(
            first,
            count=first.count + damage.count,
            end_byte=damage.end_byte,
            is_interrupted=first.is_interrupted or damage.is_interrupted,
        )


def _with_size(damage: Damage) -> Damage:
    if damage.code != UNREADABLE or damage.end_byte is None:
        return damage
    size_bytes = damage.end_byte - damage.byte
    return replace(damage, message=f"{size_bytes:,} bytes (up to byte {damage.end_byte:,}) {damage.message}")


def looks_like_two_writers(
    damages: Sequence[Damage], host_pids_before: AbstractSet[str], host_pids_after: AbstractSet[str]
) -> bool:
    """Tell whether two processes seem to have written into one file at once.

    *Rule:* an unreadable stretch, and either of two signs. The events right before it and right behind it come from
    different host processes; or an event breaks off inside a word or string, and a whole event stands right there.
    A flipped, lost or added byte gives neither: the same process goes on behind it, and at least a comma or
    brace stays between two events.

        writer 0   {"ph": "s", "pid": 4200, "cat": "ac2g"
        writer 1                                          8837000020.000, ...}, {"ph": "X", "pid": 4201, ...
        pids       4200            unreadable                                            4201

    *Does not see:* an overlap that leaves valid JSON at both of its ends.

    Args:
        damages: The damage of one place.
        host_pids_before: Process ids of the host rows in a short run of events before it (a few hundred, and none
            from before an earlier unreadable stretch). Of the whole file they say little: late in a sound file
            there are processes that early in it were none.
        host_pids_after: The same behind it, up to the next unreadable stretch.
    """
    lost = [damage for damage in damages if damage.code == UNREADABLE]
    if any(damage.is_interrupted for damage in lost):
        return True
    return bool(lost and host_pids_before and host_pids_after) and host_pids_before.isdisjoint(host_pids_after)
