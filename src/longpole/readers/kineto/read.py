"""Read a Kineto trace file of any size into columns: `read_raw`.

bytes ──split──► header │ stretch │ stretch │ … │ trailer
                           │ strict decoder (here or in other processes)
                           ├─ accepted ──────────────► columns ──► joined
                           └─ refused ──► recovery ──► columns ──► joined, with the damage listed
"""

from __future__ import annotations

import bisect
import re
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from longpole.errors import InputError, NotATraceError
from longpole.readers.container import open_stream
from longpole.readers.kineto.chunk import Chunk, decode_chunk, decode_elements
from longpole.readers.kineto.foreign import describe_foreign
from longpole.readers.kineto.raw import Joiner, RawTrace
from longpole.readers.kineto.recovery import Damage, recover
from longpole.readers.kineto.split import (
    EVENTS_KEY,
    find_events_key,
    first_bracket,
    last_border,
    parse_object_rest,
    parse_object_start,
    parse_trailer,
    split_trailer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor
    from pathlib import Path

    from longpole.settings import Settings

_BLOCK_BYTES: Final = 4 << 20
_HEADER_MAX_BYTES: Final = 64 << 20
_STRETCH_MAX_BYTES: Final = 64 << 20
_TRAILER_MAX_BYTES: Final = 512 << 20


class Progress(Protocol):
    """Hears how many bytes of decoded text have been read so far."""

    def __call__(self, done_bytes: int) -> None:
        """Take the figure."""


@dataclass(slots=True)
class _Stretch:
    text: bytes
    byte: int
    is_last: bool
    chunk: Chunk | None = None


@dataclass(slots=True)
class Break:
    """An unreadable stretch, and the number of the first event behind it."""

    damage: Damage
    event: int


def read_raw(
    path: Path,
    settings: Settings,
    *,
    member: str | None = None,
    pool: Executor | None = None,
    progress: Progress | None = None,
) -> tuple[RawTrace, list[Break]]:
    """Read one file.

    Args:
        path: Plain, gzip, zstd or zip; its content decides.
        settings: Bounds of archives.
        member: Which member of an archive; without one, the file itself.
        pool: Other processes to decode in; without one, all is done here.
        progress: Hears of every block.

    Returns:
        The columns and the places where events were lost in the middle of the file.

    Raises:
        InputError: The file cannot be read, or grows beyond the bound of an archive.
        NotATraceError: It holds no event list.
    """
    with open_stream(path, settings, member=member) as stream:
        document = _Document(path, pool)
        document.read(_watched(stream.blocks(_BLOCK_BYTES), progress))
        if stream.damage is not None:
            damage = stream.damage
            document.damages.append(Damage(damage.code, damage.decoded_byte, None, damage.message))
    raw = document.joiner.finish()
    raw.header, raw.n_documents = document.header, document.n_documents
    raw.damages = _with_lines(path, member, settings, document.damages)
    return raw, document.breaks


def _watched(blocks: Iterator[bytes], progress: Progress | None) -> Iterator[bytes]:
    done_bytes = 0
    for block in blocks:
        yield block
        done_bytes += len(block)
        if progress is not None:
            progress(done_bytes)


class _Document:
    """Reads the document, and any that are glued behind it, into one joiner."""

    def __init__(self, path: Path, pool: Executor | None) -> None:
        self.path = path
        self.pool = pool
        self.joiner = Joiner()
        self.header: dict[str, object] = {}
        self.damages: list[Damage] = []
        self.breaks: list[Break] = []
        self.n_documents = 0
        self.exact = False

    def read(self, blocks: Iterator[bytes], first_byte: int = 0) -> None:
        """Read documents until the text ends."""
        rest = self._read_one(blocks, first_byte)
        while rest is not None:
            text, byte = rest
            rest = self._read_one(iter((text,)), byte)

    def _read_one(self, blocks: Iterator[bytes], first_byte: int) -> tuple[bytes, int] | None:
        """Read one document; return the text behind it, and its offset, if another one may follow."""
        head, key_byte, start = self._find_events(blocks)
        self.n_documents += 1
        is_array = key_byte is None
        if key_byte is not None:
            self._take_header(parse_object_start(head[:key_byte]), first_byte)
        stretches = _stretches(head[start:], first_byte + start, blocks)
        behind, byte = self._read_events(stretches)
        if behind is None:
            self._not_closed(byte, is_array=is_array)
            return None
        if not is_array:
            fields = parse_object_rest(behind)
            self._take_header(parse_trailer(behind) if fields is None else fields, byte)
            if fields is not None and "traceEvents" not in fields:
                return None
        return self._next_document(behind, byte)

    def _take_header(self, fields: dict[str, object], byte: int) -> None:
        """Add fields of the header; those that came first stay.

        Raises:
            InputError: Another document of the file has another rank or another clock.
        """
        for key in ("baseTimeNanoseconds", "distributedInfo"):
            if self.n_documents > 1 and key in fields and fields[key] != self.header.get(key, fields[key]):
                found = f"expected one trace, found another one of another rank or recording ({key} differs)"
                raise InputError.at(self.path, byte, found, "Give each recording as a file of its own")
        self.header = fields | self.header
        self.header.pop("traceEvents", None)

    def _not_closed(self, byte: int, *, is_array: bool) -> None:
        """Note a list without its closing bracket: the array form allows that, an object was cut."""
        if any(damage.code == "json.cut" for damage in self.damages):
            return
        code = "json.syntax.repaired" if is_array else "json.cut"
        self.damages.append(Damage(code, byte, None, "the event list is not closed"))

    def _find_events(self, blocks: Iterator[bytes]) -> tuple[bytes, int | None, int]:
        """Collect text until the event list opens.

        Returns:
            The text, the offset of the key in front of the list (None in the array form), and the offset behind the
            bracket.
        """
        head = b""
        for block in blocks:
            head += block
            bracket = first_bracket(head)
            if bracket is not None:
                return head, None, bracket + 1
            found = find_events_key(head)
            if found is not None:
                return head, found.start(), found.end()
            if len(head) > _HEADER_MAX_BYTES:
                break
        raise NotATraceError.at(self.path, None, describe_foreign(head), "Give the JSON trace of a profiler")

    def _next_document(self, behind: bytes, byte: int) -> tuple[bytes, int] | None:
        text = behind.lstrip(b" \t\r\n,}\0")
        offset = byte + len(behind) - len(text)
        if _ARRAY_START.match(text) or EVENTS_KEY.search(text, 0, _HEADER_MAX_BYTES):
            self.damages.append(Damage("json.documents", offset, None, "another JSON document begins"))
            return text, offset
        if text.strip():
            self.damages.append(Damage("json.syntax.repaired", offset, None, "text behind the end of the document"))
        return None

    def _read_events(self, stretches: Iterator[_Stretch]) -> tuple[bytes | None, int]:
        """Read the event list; return the text behind it and its offset, or None and where the list breaks off."""
        carry, carry_byte, end = b"", 0, -1
        for decoded in self._decoded(stretches):
            stretch = decoded
            if carry and stretch.chunk is not None:
                self._recover(_Stretch(carry, carry_byte, is_last=True))
            elif carry:
                stretch = replace(decoded, text=carry + decoded.text, byte=carry_byte)
            carry = b""
            end = stretch.byte + len(stretch.text)
            if stretch.chunk is not None:
                self.joiner.add(stretch.chunk)
                continue
            # Behind a first document there may be hundreds: each would be tried to the end of the text.
            closed = self._close(stretch) if stretch.is_last and self.n_documents == 1 else None
            if closed is not None:
                return closed
            behind, carry_byte = self._recover(stretch)
            if behind is not None:
                return self._gather(behind, stretches), carry_byte
            carry = stretch.text[carry_byte - stretch.byte :]
            if len(carry) > _STRETCH_MAX_BYTES:
                self._lose(carry, carry_byte)
                carry = b""
        return None, end

    def _close(self, stretch: _Stretch) -> tuple[bytes, int] | None:
        """Read the last stretch, which closes the list, if its end can be told without a scan."""
        for events, behind in split_trailer(stretch.text):
            if behind.strip() and parse_object_rest(behind) is None:
                continue
            try:
                chunk = decode_chunk(events, exact=self.exact)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                continue
            self.exact |= chunk.exact
            self.joiner.add(chunk)
            return behind, stretch.byte + len(events) + 1
        return None

    def _recover(self, stretch: _Stretch) -> tuple[bytes | None, int]:
        """Read a refused stretch; return the text behind the list's end, or None, and where the unread text begins."""
        recovered = recover(stretch.text, stretch.byte, final=stretch.is_last)
        first_event = self.joiner.raw.n_events
        for damage in recovered.damages:
            if damage.code == "json.element.unreadable":
                self.breaks.append(Break(damage, first_event + bisect.bisect(recovered.starts, damage.byte)))
        self.damages += recovered.damages
        chunk = decode_elements(recovered.events, exact=self.exact)
        self.exact |= chunk.exact
        self.joiner.add(chunk)
        if recovered.closed_at is not None:
            return stretch.text[recovered.closed_at - stretch.byte + 1 :], recovered.closed_at + 1
        return None, recovered.rest_start

    def _gather(self, behind: bytes, stretches: Iterator[_Stretch]) -> bytes:
        parts = [behind]
        size_bytes = len(behind)
        for stretch in stretches:
            parts.append(stretch.text)
            size_bytes += len(stretch.text)
            if size_bytes > _TRAILER_MAX_BYTES:
                self._lose(stretch.text, stretch.byte)
                break
        return b"".join(parts)

    def _lose(self, text: bytes, byte: int) -> None:
        message = f"{len(text):,} bytes from byte {byte:,} on hold no border between events"
        self.damages.append(Damage("json.element.unreadable", byte, None, message))

    def _decoded(self, stretches: Iterator[_Stretch]) -> Iterator[_Stretch]:
        """Decode stretches strictly, in order, some ahead in other processes where there are any."""
        if self.pool is None:
            for stretch in stretches:
                yield self._settle(stretch, try_chunk(stretch.text, exact=self.exact))
            return
        ahead: deque[tuple[_Stretch, Callable[[], Chunk | None]]] = deque()
        for stretch in stretches:
            ahead.append((stretch, self.pool.submit(try_chunk, stretch.text, exact=self.exact).result))
            if len(ahead) > _AHEAD:
                done, result = ahead.popleft()
                yield self._settle(done, result())
        while ahead:
            done, result = ahead.popleft()
            yield self._settle(done, result())

    def _settle(self, stretch: _Stretch, chunk: Chunk | None) -> _Stretch:
        if chunk is not None:
            self.exact |= chunk.exact
        return replace(stretch, chunk=chunk)


_AHEAD: Final = 5
_ARRAY_START: Final = re.compile(rb"\[\s*+(?:[{\],]|\Z)")  # and not a line of a log, "[INFO] done"


def try_chunk(text: bytes, *, exact: bool) -> Chunk | None:
    """Decode a stretch strictly; None where the decoder refuses it."""
    try:
        return decode_chunk(text, exact=exact)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _stretches(text: bytes, byte: int, blocks: Iterator[bytes]) -> Iterator[_Stretch]:
    """Cut text at borders between events; the last stretch is what remains when the blocks end."""
    for block in blocks:
        text += block
        cut = last_border(text)
        if cut == 0 and len(text) > _STRETCH_MAX_BYTES:
            cut = len(text)
        if cut:
            yield _Stretch(text[:cut], byte, is_last=False)
            text, byte = text[cut:], byte + cut
    yield _Stretch(text, byte, is_last=True)


def _with_lines(path: Path, member: str | None, settings: Settings, damages: list[Damage]) -> list[Damage]:
    """Add line numbers, by reading the text once more as far as the last damage."""
    if not damages or not path.is_file():
        return damages
    wanted = sorted({damage.byte for damage in damages if damage.line is None and damage.byte is not None})
    line_of: dict[int, int] = {}
    line, offset, following = 1, 0, 0
    with open_stream(path, settings, member=member) as stream:
        for block in stream.blocks(_BLOCK_BYTES):
            counted = 0
            while following < len(wanted) and wanted[following] < offset + len(block):
                place = wanted[following] - offset
                line += block.count(b"\n", counted, place)
                line_of[wanted[following]] = line
                counted = place
                following += 1
            if following == len(wanted):
                break
            line, offset = line + block.count(b"\n", counted), offset + len(block)
    line_of.update(dict.fromkeys(wanted[following:], line))  # behind the last byte
    return [replace(d, line=line_of.get(d.byte)) if d.line is None else d for d in damages]
