"""Undo gzip, deflate and zstd piece by piece; knows no files and no traces.

Each function here turns a `StoredBytes` into a generator of decompressed pieces. Everything that decodes
before a damage is yielded; then `DamagedError` says what is wrong and where. `container.py` goes on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import zstandard
from isal import igzip_lib

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

CUT = "container.cut"
CORRUPT = "container.corrupt"

GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_SKIPPABLE_TAIL = b"\x2a\x4d\x18"  # behind one byte 0x50..0x5f; RFC 8878 3.1.2
_ZSTD_STARTS = frozenset({b"\x28\xb5\x2f\xfd"} | {bytes((low,)) + _ZSTD_SKIPPABLE_TAIL for low in range(0x50, 0x60)})

CHUNK_BYTES = 1 << 18
STEP_BYTES = 1 << 12
"""Deflate is fed in steps of this size: a decoder that meets an error drops what the same call had produced,
so this bounds the loss to what 4 kB of stored bytes hold (about 60 kB of a trace, ahead of a place behind which
nothing can be decoded anyway). Steps of 512 bytes take 1.6 times as long."""

_InflateError = cast("type[Exception]", igzip_lib.IsalError)  # the stubs declare an instance
_HEADER_MAX_BYTES = 1 << 20
_DEFLATE_METHOD = 8
_FLAG_HEADER_CRC, _FLAG_EXTRA, _FLAG_NAME, _FLAG_COMMENT = 2, 4, 8, 16  # RFC 1952 2.3.1
_ZSTD_HEADER_MAX_BYTES = 18  # magic and frame header, RFC 8878 3.1.1.1
_ZSTD_RLE_BLOCK = 1  # stores one byte, whatever its size; RFC 8878 3.1.1.2.2


class DamagedError(Exception):
    """A compressed stream is cut or corrupt; everything before the damage has been yielded.

    Attributes:
        code: `CUT` or `CORRUPT`.
        stored_byte: Position in the stored bytes at which the damage was noticed.
        source: The stored bytes that position refers to.
    """

    def __init__(self, code: str, message: str, source: StoredBytes) -> None:
        """Remember what happened, and where `source` stands now."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.source = source
        self.stored_byte = source.position


class NotUnpackableError(Exception):
    """A compressed stream is of a kind that is not read here; the message says which."""


class StoredBytes:
    """Bytes as they are stored, read forwards only, with a look ahead and a position.

    Attributes:
        position: Offset of the next byte, counted from `first_byte`.
    """

    def __init__(self, more: Callable[[int], bytes], first_byte: int = 0) -> None:
        """Read from `more(n)`, which gives some bytes, about n of them, and none at the end."""
        self._more = more
        self._held = b""
        self._at = 0
        self._damage: DamagedError | None = None
        self._first_byte = first_byte
        self.position = first_byte

    @property
    def taken_bytes(self) -> int:
        """How many bytes have been taken so far."""
        return self.position - self._first_byte

    @classmethod
    def of(cls, pieces: Iterator[bytes]) -> StoredBytes:
        """Read from pieces that another layer yields."""
        solid = filter(None, pieces)
        return cls(lambda _: next(solid, b""))

    def peek(self, size_bytes: int) -> bytes:
        """Return the next bytes without taking them; fewer only at the end or at a damage."""
        while len(self._held) - self._at < size_bytes:
            more = self._fetch(size_bytes - (len(self._held) - self._at))
            if not more:
                break
            self._held, self._at = self._held[self._at :] + more, 0
        return self._held[self._at : self._at + size_bytes]

    def take(self, size_bytes: int) -> bytes:
        """Return the next bytes; fewer only at the end or at a damage."""
        taken = self.peek(size_bytes)
        self._at += len(taken)
        self.position += len(taken)
        return taken

    def need(self, size_bytes: int, what: str) -> bytes:
        """Return exactly `size_bytes`.

        Raises:
            DamagedError: The bytes end before.
        """
        taken = self.take(size_bytes)
        if len(taken) < size_bytes:
            raise self._damage or DamagedError(CUT, f"the data stops inside {what}", self)
        return taken

    def chunk(self, size_bytes: int = CHUNK_BYTES) -> bytes:
        """Return what is at hand, about `size_bytes` of it, none only at the end.

        Raises:
            DamagedError: All before the damage of a layer below has been returned.
        """
        chunk, self._held, self._at = self._held[self._at :], b"", 0
        if len(chunk) < size_bytes:
            more = self._fetch(size_bytes - len(chunk))
            chunk = chunk + more if chunk else more
        if not chunk and self._damage is not None:
            raise self._damage
        self.position += len(chunk)
        return chunk

    def _fetch(self, size_bytes: int) -> bytes:
        """Get more, or keep the damage of a layer below until what came before it has been returned."""
        if self._damage is None:
            try:
                return self._more(size_bytes)
            except DamagedError as damage:
                self._damage = damage
        return b""

    def give_back(self, unused: bytes) -> None:
        """Put bytes that were taken last in front again."""
        self._held, self._at = unused + self._held[self._at :], 0
        self.position -= len(unused)


def store(source: StoredBytes, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield bytes that are not compressed, in chunks that all but the last are full where the source allows."""
    while chunk := source.chunk(chunk_bytes):
        yield chunk


def inflate(source: StoredBytes) -> Generator[bytes, None, tuple[int, int]]:
    """Undo one raw deflate stream (RFC 1951) and leave `source` right behind it.

    One call of the decoder gives at most 1032 * `STEP_BYTES`, the format's limit, so memory is bounded.

    Returns:
        CRC-32 and size in bytes of what was yielded.

    Raises:
        DamagedError: The stream is cut or corrupt.
    """
    decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP_NO_HDR)
    size_bytes = 0
    while chunk := source.chunk():
        view = memoryview(chunk)
        for at in range(0, len(chunk), STEP_BYTES):
            try:
                piece = decoder.decompress(view[at : at + STEP_BYTES])
            except _InflateError as error:
                source.give_back(bytes(view[at:]))
                raise DamagedError(CORRUPT, f"the deflate data is corrupt ({error})", source) from None
            size_bytes += len(piece)
            if piece:
                yield piece
            if decoder.eof:
                source.give_back(decoder.unused_data + bytes(view[at + STEP_BYTES :]))
                return decoder.crc, size_bytes
    raise DamagedError(CUT, "the deflate data stops in the middle", source)


def gunzip(source: StoredBytes) -> Iterator[bytes]:
    """Undo gzip (RFC 1952): members one behind the other, zero padding behind the last.

    A member whose checksum is wrong is yielded all the same, and so are the members behind it.

    Raises:
        DamagedError: A member is cut or corrupt; at the end, where only a checksum is wrong.
    """
    damage: DamagedError | None = None
    while True:
        _skip_gzip_header(source)
        found_crc, found_bytes = yield from inflate(source)
        crc = int.from_bytes(source.need(4, "a gzip checksum"), "little")
        size_bytes = int.from_bytes(source.need(4, "a gzip checksum"), "little")
        if (crc, size_bytes) != (found_crc, found_bytes & 0xFFFFFFFF):
            damage = damage or DamagedError(CORRUPT, "the gzip checksum does not match the content", source)
        if source.peek(2) != GZIP_MAGIC:
            break
    _expect_end(source, damage)


def unzstd(source: StoredBytes) -> Iterator[bytes]:
    """Undo zstd (RFC 8878): frames one behind the other, skippable ones left out.

    The decoder is fed one block a call, so a call gives at most 128 kB and an error costs one block.

    Raises:
        DamagedError: A frame is cut or corrupt, at the end for what only a checksum shows.
        NotUnpackableError: A frame needs a dictionary, or a window of more than the decoder's 128 MB.
    """
    damage: DamagedError | None = None
    while True:
        if source.peek(4)[1:] == _ZSTD_SKIPPABLE_TAIL:
            _skip_zstd_frame(source)
        else:
            wrong = yield from _zstd_frame(source)
            damage = damage or wrong
        if not is_zstd(source.peek(4)):
            break
    _expect_end(source, damage)


def is_zstd(head: bytes) -> bool:
    """Tell whether bytes start a zstd frame, skippable or not."""
    return head[:4] in _ZSTD_STARTS


def _expect_end(source: StoredBytes, damage: DamagedError | None) -> None:
    """Skip zero padding; complain about anything else behind the last member."""
    if damage is not None:
        raise damage
    while chunk := source.chunk():
        padding = len(chunk) - len(chunk.lstrip(b"\0"))
        if padding < len(chunk):
            source.give_back(chunk[padding:])
            raise DamagedError(CORRUPT, "other bytes follow the compressed data and are ignored", source)


def _skip_gzip_header(source: StoredBytes) -> None:
    head = source.need(10, "a gzip header")
    if not head.startswith(GZIP_MAGIC) or head[2] != _DEFLATE_METHOD:
        raise DamagedError(CORRUPT, "the gzip header names an unknown method", source)
    flags = head[3]
    if flags & _FLAG_EXTRA:
        source.need(int.from_bytes(source.need(2, "a gzip header"), "little"), "a gzip header")
    for flag in (_FLAG_NAME, _FLAG_COMMENT):
        if flags & flag:
            _skip_to_zero(source)
    if flags & _FLAG_HEADER_CRC:
        source.need(2, "a gzip header")


def _skip_to_zero(source: StoredBytes) -> None:
    for _ in range(0, _HEADER_MAX_BYTES, 64):
        part = source.take(64)
        text, zero, behind = part.partition(b"\0")
        if zero:
            source.give_back(behind)
            return
        if not text:
            raise DamagedError(CUT, "the data stops inside a gzip header", source)
    raise DamagedError(CORRUPT, "the gzip header holds a name without an end", source)


def _skip_zstd_frame(source: StoredBytes) -> None:
    left_bytes = int.from_bytes(source.need(8, "a zstd frame header")[4:], "little")
    while left_bytes > 0:
        left_bytes -= len(source.need(min(left_bytes, CHUNK_BYTES), "a skippable zstd frame"))


def _zstd_frame(source: StoredBytes) -> Generator[bytes, None, DamagedError | None]:
    decoder, has_checksum = _start_zstd_frame(source)
    last = False
    while not last:
        head = source.need(3, "a zstd block")
        block = int.from_bytes(head, "little")
        last, kind, size_bytes = bool(block & 1), block >> 1 & 3, block >> 3
        body = source.need(1 if kind == _ZSTD_RLE_BLOCK else size_bytes, "a zstd block")
        try:
            piece = decoder.decompress(head + body)
        except zstandard.ZstdError as error:
            raise DamagedError(CORRUPT, f"the zstd data is corrupt ({error})", source) from None
        if piece:
            yield piece
    if not has_checksum:
        return None
    try:
        decoder.decompress(source.need(4, "a zstd checksum"))
    except zstandard.ZstdError:
        return DamagedError(CORRUPT, "the zstd checksum does not match the content", source)
    return None


def _start_zstd_frame(source: StoredBytes) -> tuple[zstandard.ZstdDecompressionObj, bool]:
    """Feed the frame's header to a new decoder; also tell whether a checksum ends the frame."""
    decoder = zstandard.ZstdDecompressor().decompressobj()
    start = source.peek(_ZSTD_HEADER_MAX_BYTES)
    try:
        header_bytes = zstandard.frame_header_size(start)
        frame = zstandard.get_frame_parameters(start)
    except zstandard.ZstdError as error:
        code = CUT if len(start) < _ZSTD_HEADER_MAX_BYTES else CORRUPT
        raise DamagedError(code, f"the zstd frame header cannot be read ({error})", source) from None
    if frame.dict_id:
        msg = f"zstd data that needs dictionary {frame.dict_id}"
        raise NotUnpackableError(msg)
    try:
        decoder.decompress(source.take(header_bytes))
    except zstandard.ZstdError as error:
        msg = f"zstd data that needs a window of {frame.window_size:,} bytes ({error})"
        raise NotUnpackableError(msg) from None
    return decoder, frame.has_checksum
