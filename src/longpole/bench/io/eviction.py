"""Take a file out of the guest's page cache without being root, put it there, and say why it would not go.

    write -> fsync -> close all maps -> posix_fadvise(0, 0, DONTNEED) -> verify

The advice is silently without effect on dirty pages, on mapped pages (this process's or another's) and on memory file
systems; of an unaligned range the ends stay (bench-io B4). So what counts is what is resident afterwards. It says
nothing of the caches of a host, a controller or a file server: what is empty is the *guest's* cache.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.bench.io.residency import read_residency

if TYPE_CHECKING:
    from longpole.bench.io.residency import Residency

_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.005  # pages that a CPU holds in a batch leave within a tick
_CHUNK_BYTES: Final = 1 << 20
_MAPS: Final = Path("/proc/self/maps")


def evict(path: Path) -> None:
    """Write a file's dirty pages to its device, and ask the kernel to drop all of its pages."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def make_cold(path: Path) -> Residency:
    """Evict a file, up to three times, and return what is resident afterwards."""
    found = read_residency(path)
    for attempt in range(_ATTEMPTS):
        evict(path)
        found = read_residency(path)
        if found.is_empty():
            break
        time.sleep(_PAUSE_S * attempt)
    return found


def make_warm(path: Path) -> Residency:
    """Read a file into the page cache where some of it is not there, and return what is resident afterwards."""
    found = read_residency(path)
    if found.is_whole():
        return found
    with path.open("rb", buffering=0) as file:
        buffer = bytearray(_CHUNK_BYTES)
        while file.readinto(buffer):
            pass
    return read_residency(path)


def why_resident(path: Path, found: Residency) -> str:
    """Say why pages of a file may have stayed after an eviction."""
    share = f"{found.resident} of {found.pages} pages stayed in the page cache"
    if is_mapped_here(path):
        return f"{share}: this process still maps the file"
    if found.unwritten():
        return f"{share}: {found.unwritten()} of them are not on the device yet"
    return f"{share}: another process maps the file, or the file system keeps it in memory"


def is_mapped_here(path: Path) -> bool:
    """Tell whether this process maps a file."""
    try:
        text = _MAPS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    return any(line.endswith(f" {path.resolve()}") for line in text.splitlines())
