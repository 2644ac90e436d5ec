"""Where a trace is kept: `rank0.pt.trace.json.gz`, whole or not at all, and never over another file."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LEVEL = 3  # the program waits: on profiler traces level 6 takes twice as long for files a tenth smaller
_TAIL_BYTES = 64
_NAMES = 1000  # so many traces of one rank in a folder, and something is wrong


def keep_trace(export: Callable[[str], object], folder: str, rank: int, unfinished: str | None) -> Path:
    """Write a trace.

    Args:
        export: Writes the trace as JSON to a path.
        folder: The folder; it is made where it is missing.
        rank: The rank, for the file's name.
        unfinished: Name of the annotation of a step that did not end, which must not be taken for a whole one.

    Returns:
        The file.

    Raises:
        OSError: It could not be written whole; nothing of it is left.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    raw, packed = (home / f".rank{rank}.{os.getpid()}.{kind}" for kind in ("json", "gz"))
    try:
        export(str(raw))
        _check_whole(raw)
        with raw.open("rb") as source, gzip.open(packed, "wb", compresslevel=_LEVEL) as sink:
            _copy(source, sink, unfinished)
        return _name(packed, home, rank)
    finally:
        for path in (raw, raw.with_name(f"{raw.name}.tmp"), packed):  # the profiler writes the second one first
            with contextlib.suppress(OSError):
                path.unlink()


def _check_whole(path: Path) -> None:
    """Refuse a file that ends too early: the profiler does not say that the disk was full."""
    with path.open("rb") as file:
        size_bytes = file.seek(0, os.SEEK_END)
        file.seek(max(0, size_bytes - _TAIL_BYTES))
        if not file.read().rstrip().endswith(b"}"):
            message = f"the profiler wrote {size_bytes:,} bytes, and the trace does not end there; is the disk full?"
            raise OSError(errno.EIO, message)


def _copy(source: IO[bytes], sink: gzip.GzipFile, unfinished: str | None) -> None:
    if unfinished is None:
        shutil.copyfileobj(source, sink, 1 << 20)
        return
    name = f'"{unfinished}"'.encode()
    other = f'"unfinished {unfinished}"'.encode()
    for line in source:
        sink.write(line.replace(name, other))


def _name(packed: Path, home: Path, rank: int) -> Path:
    for number in range(1, _NAMES):
        path = home / (f"rank{rank}.pt.trace.json.gz" if number == 1 else f"rank{rank}-{number}.pt.trace.json.gz")
        try:
            os.link(packed, path)  # fails where the name is taken, and appears whole
        except FileExistsError:
            continue
        except OSError:  # a file system without links
            if path.exists():
                continue
            packed.replace(path)
        return path
    message = f"{home} holds {_NAMES} traces of rank {rank}"
    raise FileExistsError(errno.EEXIST, message)
