"""How much of a file lies in the page cache, and how much of that is not on its device yet.

`cachestat(2)` (Linux 6.5) counts resident, dirty and written-back pages of an open file. Before it there is
`mincore(2)`, which says no more than what is resident, and only of files that one owns or may write.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

PAGE_BYTES: Final = mmap.PAGESIZE
_CACHESTAT: Final = 451  # the same number on all architectures (Linux, include/uapi/asm-generic/unistd.h)


@dataclass(frozen=True, slots=True)
class Residency:
    """Pages of one file.

    Attributes:
        pages: Those that the file's bytes need.
        resident: Those in the page cache.
        dirty: Those changed and not on their way to the device; None where the kernel does not say.
        writeback: Those on their way; None likewise.
        method: `cachestat` or `mincore`.
    """

    pages: int
    resident: int
    dirty: int | None
    writeback: int | None
    method: str

    @property
    def resident_bytes(self) -> int:
        """Return the resident pages as bytes."""
        return self.resident * PAGE_BYTES

    def is_whole(self) -> bool:
        """Tell whether every page is resident."""
        return self.resident >= self.pages

    def is_empty(self) -> bool:
        """Tell whether no page is resident."""
        return self.resident == 0

    def unwritten(self) -> int | None:
        """Return the pages that a power cut would lose; None where the kernel does not say."""
        return None if self.dirty is None or self.writeback is None else self.dirty + self.writeback


class _Range(ctypes.Structure):
    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _Counts(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted"))


def read_residency(path: Path) -> Residency:
    """Return the pages of a file that are in the page cache.

    Raises:
        InputError: The file cannot be opened, or the kernel answers neither question.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError.at(path, None, f"cannot be opened: {error.strerror}", "Its residency is not known.") from None
    try:
        size_bytes = os.fstat(descriptor).st_size
        pages = -(-size_bytes // PAGE_BYTES)
        counts = _cachestat(descriptor)
        if counts is not None:
            return Residency(pages, int(counts.cache), int(counts.dirty), int(counts.writeback), "cachestat")
        return Residency(pages, _mincore(descriptor, size_bytes, path), None, None, "mincore")
    finally:
        os.close(descriptor)


def _cachestat(descriptor: int) -> _Counts | None:
    """Return the kernel's counts; None where it has no such call or refuses it for this file."""
    libc = ctypes.CDLL(None, use_errno=True)
    whole, counts = _Range(0, 0), _Counts()
    failed = libc.syscall(_CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(counts), 0)
    return None if failed else counts


def _mincore(descriptor: int, size_bytes: int, path: Path) -> int:
    """Return how many pages are resident; mapping a file reads none of it."""
    if size_bytes == 0:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(descriptor, size_bytes, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
        start = ctypes.c_char.from_buffer(mapped)
        vector = (ctypes.c_ubyte * -(-size_bytes // PAGE_BYTES))()
        failed = libc.mincore(
            ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size_bytes), ctypes.byref(vector)
        )
        code = ctypes.get_errno()
        del start
    if failed:
        found = f"the kernel does not say which pages are resident: {errno.errorcode.get(code, code)}"
        raise InputError.at(path, None, found, "Measure in a folder of your own.")
    return sum(entry & 1 for entry in bytes(vector))
