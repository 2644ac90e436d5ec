"""Find and read the members of a zip; sizes that the zip declares are never trusted."""

from __future__ import annotations

import zipfile
from typing import IO, TYPE_CHECKING

from longpole.readers.unpack import (
    CHUNK_BYTES,
    CORRUPT,
    CUT,
    DamagedError,
    NotUnpackableError,
    StoredBytes,
    inflate,
    store,
    unzstd,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_METHOD_STORED, _METHOD_DEFLATE, _METHOD_ZSTD = 0, 8, 93  # APPNOTE.TXT 4.4.5
_FLAG_ENCRYPTED = 1
_LOCAL_MAGIC = b"PK\x03\x04"
_LOCAL_HEADER_BYTES = 30  # APPNOTE.TXT 4.3.7


def read_directory(file: IO[bytes]) -> list[zipfile.ZipInfo] | None:
    """Return what a zip holds; None where its directory, which stands at its end, is cut off or unreadable."""
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return None


def visible_members(directory: Sequence[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Leave out folders and the hidden files that archivers add (`__MACOSX/`, `.DS_Store`)."""
    return [
        info
        for info in directory
        if not info.is_dir()
        and not info.filename.startswith("__MACOSX/")
        and not info.filename.rpartition("/")[2].startswith(".")
    ]


def open_member(
    file: IO[bytes], info: zipfile.ZipInfo | None
) -> tuple[StoredBytes, Callable[[StoredBytes], Iterator[bytes]]]:
    """Return a member's stored bytes, and the function that turns them into its content.

    Args:
        file: The zip, which must be seekable.
        info: The member; None reads the first one of a zip whose directory is lost, and complains of that at its end.

    Raises:
        NotUnpackableError: The member is encrypted, or packed by a method that is not read here.
        DamagedError: There is no member where the directory says.
    """
    start = 0 if info is None else info.header_offset
    file.seek(start)
    header = file.read(_LOCAL_HEADER_BYTES)
    nowhere = StoredBytes(lambda _: b"", start)
    if len(header) < _LOCAL_HEADER_BYTES or not header.startswith(_LOCAL_MAGIC):
        raise DamagedError(CORRUPT, "the zip has no member where one should begin", nowhere)
    flags, method = int.from_bytes(header[6:8], "little"), int.from_bytes(header[8:10], "little")
    if flags & _FLAG_ENCRYPTED:
        msg = "an encrypted zip"
        raise NotUnpackableError(msg)
    names_bytes = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    data = start + _LOCAL_HEADER_BYTES + names_bytes
    file.seek(data)
    left_bytes = None if info is None else info.compress_size
    return StoredBytes(_limited(file, left_bytes), data), _content(method, info)


def _limited(file: IO[bytes], left_bytes: int | None) -> Callable[[int], bytes]:
    """Read no further than a member's stored size, if that is known."""

    def more(size_bytes: int) -> bytes:
        nonlocal left_bytes
        if left_bytes is None:
            return file.read(size_bytes)
        chunk = file.read(min(size_bytes, left_bytes))
        left_bytes -= len(chunk)
        return chunk

    return more


def _content(method: int, info: zipfile.ZipInfo | None) -> Callable[[StoredBytes], Iterator[bytes]]:
    if method == _METHOD_DEFLATE:
        return lambda source: _inflated(source, info)
    if method == _METHOD_ZSTD:
        return unzstd
    if method == _METHOD_STORED and info is not None:
        return lambda source: _stored(source, info)
    msg = f"a zip member packed by method {method}"
    raise NotUnpackableError(msg)


def _inflated(source: StoredBytes, info: zipfile.ZipInfo | None) -> Iterator[bytes]:
    crc, _ = yield from inflate(source)
    if info is None:
        raise DamagedError(CUT, "the zip's directory is lost, only its first member was read", source)
    if crc != info.CRC:
        raise DamagedError(CORRUPT, "the zip's checksum does not match the content", source)


def _stored(source: StoredBytes, info: zipfile.ZipInfo) -> Iterator[bytes]:
    yield from store(source, CHUNK_BYTES)
    if source.taken_bytes < info.compress_size:
        raise DamagedError(CUT, "the zip stops inside the member", source)
