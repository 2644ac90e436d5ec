"""Open a file of any container as one stream of decompressed UTF-8 text; knows nothing of traces.

    stored bytes ──gzip | zstd | zip member | plain──► (again, if compressed twice) ──► UTF-8 text in blocks

The first bytes decide, never the name. Everything is read forwards in bounded memory, pipes included; a zip that
cannot be rewound is put into a temporary file first, for its directory stands at its end.
"""

from __future__ import annotations

import codecs
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Literal, cast

from longpole.errors import InputError
from longpole.readers.unpack import (
    GZIP_MAGIC,
    DamagedError,
    NotUnpackableError,
    StoredBytes,
    gunzip,
    is_zstd,
    store,
    unzstd,
)
from longpole.readers.zipped import open_member, read_directory, visible_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self
    from zipfile import ZipInfo

    from longpole.settings import Settings

    Layer = Callable[[StoredBytes], Iterator[bytes]]

Kind = Literal["plain", "gzip", "zstd", "zip"]

_HEAD_BYTES = 512
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")  # a member; the directory of an empty zip
_FOREIGN = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
    b"Rar!": "RAR",
    b"\x04\x22\x4d\x18": "lz4",
}
_TAR_AT, _TAR_MAGIC = 257, b"ustar"
_LAYERS: dict[Kind, Layer] = {"gzip": gunzip, "zstd": unzstd}
_LAYERS_MAX = 3
_MARKS = (  # longer marks before those that they begin with
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NUL_PATTERNS: dict[tuple[bool, ...], str] = {  # a JSON text begins with two ASCII characters
    (False, True, True, True): "utf-32-le",
    (True, True, True, False): "utf-32-be",
    (False, True, False, True): "utf-16-le",
    (True, False, True, False): "utf-16-be",
}


@dataclass(frozen=True, slots=True)
class Member:
    """One stream that a file holds: the file itself, or a member of a zip.

    Attributes:
        name: The file's name, or the member's name inside the zip; never used as a path.
        kind: The container by content; "plain" for a pipe, which a look would use up.
        size_bytes: Stored size, 0 for a pipe.
    """

    name: str
    kind: Kind
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ContainerDamage:
    """Where an archive breaks off; all that decoded before was yielded.

    Attributes:
        code: "container.cut" or "container.corrupt".
        message: What is wrong, without the place.
        stored_byte: Offset in the file at which it was noticed.
        decoded_byte: How many bytes of text had been yielded by then.
    """

    code: str
    message: str
    stored_byte: int
    decoded_byte: int


class ByteStream:
    """The decompressed UTF-8 text of a file; a context manager, to be read once.

    Attributes:
        path: The file.
        kind: Its outermost container.
        damage: Set once `blocks` is exhausted, if the archive is cut or corrupt.
        mark_bytes: Size of the byte order mark that was left out before the first block.
    """

    def __init__(self, path: Path, kind: Kind, source: StoredBytes, layer: Layer | None, settings: Settings) -> None:
        """Read `source` through `layer`, None for plain text."""
        self.path = path
        self.kind = kind
        self.damage: ContainerDamage | None = None
        self.mark_bytes = 0
        self.held = ExitStack()
        self._source = source
        self._layer = layer
        self._settings = settings

    def __enter__(self) -> Self:
        """Return the stream itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.held.close()

    def blocks(self, block_bytes: int = 8 << 20) -> Iterator[bytes]:
        """Yield the text; every block except the last is exactly `block_bytes` long.

        Raises:
            InputError: There is no text, it grows beyond the bound of `Settings`, or the file cannot be read on.
        """
        try:
            yield from _in_blocks(self._text(block_bytes), block_bytes)
        except NotUnpackableError as error:
            raise _unpackable(self.path, str(error)) from None
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def _text(self, block_bytes: int) -> Iterator[bytes]:
        """Yield decoded text up to its end or the first damage."""
        decoded_bytes = 0
        message = "no text"
        try:
            for piece in self._decoded(block_bytes):
                decoded_bytes += len(piece)
                yield piece
        except DamagedError as damage:
            message = damage.message
            # An archive inside another one counts its own bytes; a user can only look into the file.
            stored_byte = damage.stored_byte if damage.source is self._source else self._source.position
            self.damage = ContainerDamage(damage.code, message, stored_byte, decoded_bytes)
        if decoded_bytes == 0:
            raise InputError.at(self.path, None, f"expected a trace, found nothing in it: {message}", "Record it again")

    def _decoded(self, block_bytes: int) -> Iterator[bytes]:
        """Yield text as UTF-8, whatever its encoding, without a byte order mark."""
        plain = StoredBytes.of(self._bounded(self._unpacked(block_bytes)))
        encoding, self.mark_bytes = _find_encoding(plain.peek(4))
        plain.take(self.mark_bytes)
        pieces = store(plain, block_bytes)
        return pieces if encoding == "utf-8" else _to_utf8(pieces, encoding)

    def _unpacked(self, block_bytes: int) -> Iterator[bytes]:
        """Undo the layers, one inside the other, as the content of each says."""
        if self._layer is None:
            return store(self._source, block_bytes)
        pieces = self._layer(self._source)
        for _ in range(_LAYERS_MAX):
            inner = StoredBytes.of(pieces)
            head = inner.peek(_HEAD_BYTES)
            kind = sniff_kind(head)
            if kind == "zip":
                raise _unpackable(self.path, f"a zip inside a {self.kind}")
            _refuse_foreign(self.path, head)
            if kind == "plain":
                return store(inner)
            pieces = _LAYERS[kind](inner)
        raise _unpackable(self.path, f"more than {_LAYERS_MAX} archives, one inside the other")

    def _bounded(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Pass the pieces on as long as they keep within the bound on expansion."""
        ratio, free_bytes = self._settings.expansion_max_ratio, self._settings.expansion_free_bytes
        decoded_bytes = 0
        for piece in pieces:
            decoded_bytes += len(piece)
            if decoded_bytes > free_bytes + ratio * self._source.taken_bytes:
                found = (
                    f"{self._source.taken_bytes:,} stored bytes grew to {decoded_bytes:,}, beyond the bound of "
                    f"{ratio} times what is stored plus {free_bytes:,} bytes"
                )
                hint = "If it is a trace, raise expansion_max_ratio or expansion_free_bytes in the settings"
                raise InputError.at(self.path, self._source.position, found, hint)
            yield piece


def sniff_kind(head: bytes) -> Kind:
    """Name the container by a file's first four bytes."""
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    if is_zstd(head):
        return "zstd"
    return "zip" if head.startswith(_ZIP_MAGIC) else "plain"


def open_stream(path: Path, settings: Settings, *, member: str | None = None) -> ByteStream:
    """Open a file, a pipe, or standard input (`-`).

    Args:
        path: What to read.
        settings: The bound on expansion.
        member: Which member of a zip; without it, the zip must hold exactly one JSON member.

    Raises:
        InputError: It is missing, empty, a folder, not readable, an archive of a kind that is not read here, an
            encrypted zip, or a zip without exactly one JSON member.
    """
    with ExitStack() as held:
        try:
            file = sys.stdin.buffer if str(path) == "-" else held.enter_context(path.open("rb", buffering=0))
            source = StoredBytes(cast("Callable[[int], bytes]", getattr(file, "read1", file.read)))
            head = source.peek(_HEAD_BYTES)
            if not head:
                raise InputError.at(path, None, "expected a trace, found an empty file", "Record it again")
            _refuse_foreign(path, head)
            kind = sniff_kind(head)
            layer = _LAYERS.get(kind)
            if kind == "zip":
                if not file.seekable():
                    file = _spool(source, held)
                source, layer = _open_zip(path, file, member, settings)
        except OSError as error:
            raise _unreadable(path, error) from None
        stream = ByteStream(path, kind, source, layer, settings)
        stream.held = held.pop_all()
    return stream


def list_members(path: Path, settings: Settings) -> tuple[Member, ...]:
    """List what a file holds: the JSON members of a zip in their order, else the file itself.

    Raises:
        InputError: It is missing, a folder, not readable, an encrypted zip, or a zip without a JSON member.
    """
    if str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
        return (Member(path.name, "plain", 0),)
    try:
        with path.open("rb") as file:
            kind = sniff_kind(file.read(4))
            directory = read_directory(file) if kind == "zip" else None
            if directory is not None:
                members = _json_members(path, file, directory, settings)
                return tuple(Member(info.filename, "zip", info.compress_size) for info in members)
        return (Member(path.name, kind, path.stat().st_size),)
    except OSError as error:
        raise _unreadable(path, error) from None


def _spool(source: StoredBytes, held: ExitStack) -> IO[bytes]:
    copy: IO[bytes] = held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - it lives as long as the stream
    for chunk in store(source):
        copy.write(chunk)
    return copy


def _open_zip(path: Path, file: IO[bytes], member: str | None, settings: Settings) -> tuple[StoredBytes, Layer]:
    directory = read_directory(file)
    info = None
    if directory is not None and member is not None:
        info = next((info for info in directory if info.filename == member), None)
        if info is None:
            raise InputError.at(path, None, f"expected a zip with {member!r}, found none of that name", "List it first")
    elif directory is not None:
        members = _json_members(path, file, directory, settings)
        info = members[0]
        if len(members) > 1:
            names = ", ".join(repr(other.filename) for other in members[:4])
            found = f"expected a zip with one JSON member, found {len(members)} ({names})"
            raise InputError.at(path, None, found, "Unpack it and give the folder")
    return _enter_member(path, file, info)


def _enter_member(path: Path, file: IO[bytes], info: ZipInfo | None) -> tuple[StoredBytes, Layer]:
    try:
        return open_member(file, info)
    except NotUnpackableError as error:
        raise _unpackable(path, str(error)) from None
    except DamagedError as damage:
        raise InputError.at(path, damage.stored_byte, damage.message, "Copy or pack it again") from None


def _json_members(path: Path, file: IO[bytes], directory: Sequence[ZipInfo], settings: Settings) -> list[ZipInfo]:
    """Return the members whose text begins like JSON; a member that is alone needs no proof."""
    members = visible_members(directory)
    if len(members) > 1:
        members = [info for info in members if _begins_like_json(path, file, info, settings)]
    if not members:
        names = ", ".join(repr(info.filename) for info in directory[:4]) or "nothing"
        raise InputError.at(path, None, f"expected a zip with a JSON member, found {names}", "Pack the trace itself")
    return members


def _begins_like_json(path: Path, file: IO[bytes], info: ZipInfo, settings: Settings) -> bool:
    source, layer = _enter_member(path, file, info)
    try:
        start = next(ByteStream(path, "zip", source, layer, settings).blocks(_HEAD_BYTES), b"")
    except InputError:
        return False
    return start.lstrip()[:1] in (b"{", b"[")


def _unreadable(path: Path, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError.at(path, None, "expected a file, found nothing", "Check the path")
    if isinstance(error, IsADirectoryError):
        return InputError.at(path, None, "expected a file, found a folder", "Give the files in it")
    if isinstance(error, PermissionError):
        return InputError.at(path, None, "expected a readable file, found no permission", "Change its mode or owner")
    return InputError.at(path, None, f"expected a readable file, found: {error.strerror}", "Copy it, then retry")


def _unpackable(path: Path, found: str) -> InputError:
    return InputError.at(path, None, f"expected plain text, gzip, zstd or zip, found {found}", "Unpack it first")


def _refuse_foreign(path: Path, head: bytes) -> None:
    for magic, name in _FOREIGN.items():
        if head.startswith(magic):
            raise _unpackable(path, f"an archive of {name}")
    if head.startswith(_TAR_MAGIC, _TAR_AT):
        raise _unpackable(path, "a tar archive")


def _in_blocks(pieces: Iterator[bytes], block_bytes: int) -> Iterator[bytes]:
    """Join and cut pieces so that every block except the last has exactly `block_bytes`."""
    parts: list[bytes] = []
    held_bytes = 0
    for piece in pieces:
        parts.append(piece)
        held_bytes += len(piece)
        if held_bytes < block_bytes:
            continue
        text = parts[0] if len(parts) == 1 else b"".join(parts)
        whole_bytes = held_bytes - held_bytes % block_bytes
        for at in range(0, whole_bytes, block_bytes):
            yield text[at : at + block_bytes]
        held_bytes -= whole_bytes
        parts = [text[whole_bytes:]] if held_bytes else []
    if held_bytes:
        yield b"".join(parts)


def _find_encoding(head: bytes) -> tuple[str, int]:
    """Return a text's encoding by its first four bytes, and the size of its byte order mark."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    return _NUL_PATTERNS.get(tuple(byte == 0 for byte in head), "utf-8"), 0


def _to_utf8(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Recode pieces, with U+FFFD for what the encoding does not allow."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for piece in pieces:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", final=True).encode()
