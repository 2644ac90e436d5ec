"""A journal as a file: finding it, reading it, adding a line so that nothing that stands in it can change.

Two writers take turns (`flock`), a line reaches the disk before its writer returns (`fsync`), and where writing fails
midway the file is cut back to what it was. A line that was cut off by a crash keeps its own number: the next one
starts behind it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, Final

from longpole.advice.journal.lines import Journal, read_lines, write_line
from longpole.errors import InputError, UsageError
from longpole.records.journal import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longpole.records.journal import Entry

_CHUNK_BYTES: Final = 1 << 20
_MAKE_ONE: Final = "`longpole journal add` makes one"


def find_journal(named: Path | None, start: Path) -> Path | None:
    """Return the journal to read: the named one, else the nearest in a folder or one above it; None where none is.

    Raises:
        UsageError: The named one does not exist.
    """
    if named is not None:
        if not named.exists():
            msg = f"--file {named}: there is no such journal; {_MAKE_ONE}"
            raise UsageError(msg)
        return named
    folder = start.absolute()
    found = next((above / FILE_NAME for above in (folder, *folder.parents) if (above / FILE_NAME).is_file()), None)
    return found and start / os.path.relpath(found, folder)


def need_journal(named: Path | None, start: Path) -> Path:
    """Return the journal to read.

    Raises:
        UsageError: There is none.
    """
    found = find_journal(named, start)
    if found is None:
        msg = f"expected {FILE_NAME} in this folder or one above it; found none. {_MAKE_ONE}, --file names another"
        raise UsageError(msg)
    return found


def read_journal(path: Path) -> Journal:
    """Read a journal.

    Raises:
        InputError: It cannot be read, or not one of its lines is an entry.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", "Name the journal with --file") from None
    return _checked(path, read_lines(data))


def _checked(path: Path, journal: Journal) -> Journal:
    if journal.damaged and not journal.entries:
        first = journal.damaged[0]
        found = f"none of its lines is an entry of a journal (line {first.line}: {first.why})"
        raise InputError.at(path, None, found, "Name a journal with --file")
    return journal


def append_entry(path: Path, make: Callable[[Journal], Entry]) -> Entry:
    """Add an entry behind all others.

    Args:
        path: The journal; it is created where there is none.
        make: Makes the entry, given what the journal holds; called while no other writer can add one, and once more
            before where the file does not exist yet.

    Raises:
        UsageError: The file cannot be written.
        InputError: It holds lines, and none of them is an entry.
    """
    import fcntl

    created = not path.exists()
    if created:
        # What is wrong with the entry itself is found before there is a file.
        make(Journal())
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _not_writable(path, error) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            msg = f"--file {path}: expected a file, found something else; name another"
            raise UsageError(msg)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        data = _read_all(descriptor)
        entry = make(_checked(path, read_lines(data)))
        # What a crash cut off has no line end: close its line, so that this one stands alone.
        separator = b"\n" if data and not data.endswith(b"\n") else b""
        _write_all(descriptor, separator + write_line(entry), len(data))
        if created:
            _sync_folder(path.parent)
    except OSError as error:
        raise _not_writable(path, error) from None
    finally:
        os.close(descriptor)
    return entry


def _not_writable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"--file {path}: cannot be written: {error.strerror or error}; name another place")


def _read_all(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    chunks = []
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        chunks.append(chunk)
    return b"".join(chunks)


def _write_all(descriptor: int, data: bytes, length: int) -> None:
    """Write at the end; where that fails, cut the file back to its old length."""
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, length)
        raise


def _sync_folder(folder: Path) -> None:
    """Make a new file's name last; a file system that cannot do so keeps the file all the same."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def hash_record(path: Path) -> str:
    """Return the SHA-256 of a file's bytes; of a folder, of the sorted list of its files with theirs.

    Hidden files and folders do not count. Empty for what is not there or is neither.

    Raises:
        InputError: It cannot be read.
    """
    try:
        if path.is_dir():
            return _hash_folder(path)
        return _hash_file(path) if path.is_file() else ""
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", "Ask for read permission") from None


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash_folder(folder: Path) -> str:
    whole = hashlib.sha256()
    files = (file for file in folder.rglob("*") if file.is_file())
    named = ((file.relative_to(folder), file) for file in files)
    visible = ((name, file) for name, file in named if not any(part.startswith(".") for part in name.parts))
    for name, file in sorted(visible):
        # The form of `sha256sum`, so that anybody can make it without us.
        whole.update(f"{_hash_file(file)}  {name.as_posix()}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
