"""Digests on disk, so that a second look at a trace costs no reading.

An entry is keyed by the file's size, modification time and a hash of its first and last MiB and of 64 blocks in
between, by the rules, settings and selection, and by the versions of the digest and the package. Entries are written
to a temporary name and renamed, so two processes that race both leave a whole one. The least recently used entries
go when the folder grows beyond its bound.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from longpole.digest.rank_digest import DIGEST_VERSION, RankDigest
from longpole.records.critical_path import PathAnswer

_MAX_BYTES: Final = 4 << 30  # graphs take some 100 MB for a million events
_EDGE_BYTES: Final = 1 << 20
_SAMPLES: Final = 64
_SAMPLE_BYTES: Final = 4096
_SUFFIX: Final = ".digest"
_ANSWER: Final = ".answer"
_SUFFIXES: Final = (_SUFFIX, ".graph", ".answer", ".part")


@dataclass(frozen=True, slots=True)
class CacheSize:
    """How much the cache holds, and where."""

    n_entries: int
    size_bytes: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of digests."""

    folder: Path
    max_bytes: int = _MAX_BYTES

    @classmethod
    def default(cls) -> Cache:
        """Return the user's cache: `$LONGPOLE_CACHE`, else `longpole` under `$XDG_CACHE_HOME` or `~/.cache`."""
        own = os.environ.get("LONGPOLE_CACHE")
        if own:
            return cls(Path(own))
        base = os.environ.get("XDG_CACHE_HOME")
        try:
            return cls((Path(base) if base else Path.home() / ".cache") / "longpole")
        except RuntimeError:
            return cls(Path(tempfile.gettempdir()) / f"longpole-cache-{os.getuid()}")

    def read(self, key: str) -> list[RankDigest] | None:
        """Return the digests of an entry, None where there is none or it cannot be read."""
        path = self.folder / (key + _SUFFIX)
        try:
            stored = path.read_bytes()
            digests = _DECODER.decode(stored)
        except (OSError, msgspec.DecodeError):
            return None
        if any(digest.version != DIGEST_VERSION for digest in digests):
            return None
        with suppress(OSError):
            os.utime(path)
        return digests

    def write(self, key: str, digests: list[RankDigest]) -> None:
        """Store an entry; a cache that cannot be written is no error."""
        self._store(key + _SUFFIX, _ENCODER.encode(digests))

    def _store(self, file_name: str, data: bytes) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).replace(self.folder / file_name)
            self._trim()
        except OSError:
            return

    def read_answer(self, key: str) -> PathAnswer | None:
        """Return what a run's graph said, None where that is not stored or cannot be read."""
        path = self.folder / (key + _ANSWER)
        try:
            answer = msgspec.msgpack.decode(path.read_bytes(), type=PathAnswer)
        except (OSError, msgspec.DecodeError):
            return None
        with suppress(OSError):
            os.utime(path)
        return answer

    def write_answer(self, key: str, answer: PathAnswer) -> None:
        """Store what a run's graph said; a cache that cannot be written is no error."""
        self._store(key + _ANSWER, msgspec.msgpack.encode(answer))

    def size(self) -> CacheSize:
        """Count the files whose digests are kept, and the bytes of all that is kept of them."""
        entries = self._entries()
        n_digests = sum(path.suffix == _SUFFIX for path, _ in entries)
        return CacheSize(n_digests, sum(stat.st_size for _, stat in entries), self.folder)

    def clear(self) -> int:
        """Remove all entries; return the bytes freed."""
        freed_bytes = 0
        for path, stat in self._entries():
            try:
                path.unlink()
            except OSError:
                continue
            freed_bytes += stat.st_size
        return freed_bytes

    def _entries(self) -> list[tuple[Path, os.stat_result]]:
        try:
            with os.scandir(self.folder) as entries:
                return [(Path(e.path), e.stat()) for e in entries if e.name.endswith(_SUFFIXES)]
        except OSError:
            return []

    def _trim(self) -> None:
        entries = sorted(self._entries(), key=lambda entry: entry[1].st_mtime)
        total_bytes = sum(stat.st_size for _, stat in entries)
        for path, stat in entries:
            if total_bytes <= self.max_bytes:
                break
            try:
                path.unlink()
                total_bytes -= stat.st_size
            except OSError:
                continue


_DECODER: Final = msgspec.msgpack.Decoder(list[RankDigest])
_ENCODER: Final = msgspec.msgpack.Encoder()


def entry_key(path: Path, member: str, context: str, *, whole_file: bool) -> str | None:
    """Return the key of a file's entry, None for what has no stable content (a pipe).

    Args:
        path: The file.
        member: The member of an archive, empty for the file itself.
        context: All else that the digest depends on: rules, settings, selection, version of the package.
        whole_file: Hash every byte instead of samples.

    Raises:
        OSError: The file cannot be read.
    """
    stat = path.stat()
    if not path.is_file():
        return None
    digest = hashlib.blake2b(digest_size=20)
    digest.update(f"{DIGEST_VERSION}|{stat.st_size}|{stat.st_mtime_ns}|{path.absolute()}|{member}|{context}".encode())
    with path.open("rb") as file:
        if whole_file:
            for block in iter(lambda: file.read(_EDGE_BYTES), b""):
                digest.update(block)
        else:
            for offset, length in _samples(stat.st_size):
                file.seek(offset)
                digest.update(file.read(length))
    return digest.hexdigest()


def _samples(size_bytes: int) -> list[tuple[int, int]]:
    """Return which parts of a file are hashed: (offset, length)."""
    if size_bytes <= 2 * _EDGE_BYTES + _SAMPLES * _SAMPLE_BYTES:
        return [(0, size_bytes)]
    inner = size_bytes - 2 * _EDGE_BYTES - _SAMPLE_BYTES
    places = [_EDGE_BYTES + inner * i // (_SAMPLES - 1) for i in range(_SAMPLES)]
    return [(0, _EDGE_BYTES), *((place, _SAMPLE_BYTES) for place in places), (size_bytes - _EDGE_BYTES, _EDGE_BYTES)]
