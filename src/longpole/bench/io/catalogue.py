"""The paths that can be measured, as data: one row a path."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from longpole.bench.io.formats import LIBRARIES_OF
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

WARM: Final = "warm"
GUEST_COLD: Final = "guest-cold"
CACHE: Final = "cache"
FSYNC: Final = "fsync"
FSYNC_FOLDER: Final = "fsync+dir"
NEW: Final = "new"
OVERWRITE: Final = "overwrite"
REPLACE: Final = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRow:
    """One way of moving bytes.

    Attributes:
        name: What it is called.
        says: What it does, in a phrase.
        object: What it moves.
        operation: `load`, `save` or `copy`.
        format: Key of `FORMATS`, or `memory` or `device`.
        cache: State of the page cache before a load.
        durability: What a save promises when it returns.
        target: Of a save: `new`, `overwrite` or `replace`.
        many: Whether it moves many files at once; its size is that of one of them.
        device: Which copy between host and device it is; empty for none.
        reference: Whether it shows what storage and kernel can do, and is no format to choose.
    """

    name: str
    says: str
    object: str
    operation: str
    format: str
    cache: str = ""
    durability: str = ""
    target: str = ""
    many: bool = False
    device: str = ""
    reference: bool = False

    def libraries(self) -> tuple[str, ...]:
        """Return the libraries that it needs."""
        return ("torch",) if self.device else LIBRARIES_OF.get(self.format, ())


def _load(name: str, says: str, form: str, *, many: bool = False, reference: bool = False) -> list[PathRow]:
    what = "input" if many else "artifact"
    states = ((WARM, "warm"), (GUEST_COLD, "cold"))
    return [
        PathRow(
            name=f"{name}.{short}",
            says=f"{says}, {'in the page cache' if cache == WARM else 'not in it'}",
            object=what,
            operation="load",
            format=form,
            cache=cache,
            many=many,
            reference=reference,
        )
        for cache, short in states
    ]


def _save(name: str, says: str, form: str, durability: str, target: str = NEW) -> PathRow:
    return PathRow(
        name=name,
        says=says,
        object="output",
        operation="save",
        format=form,
        durability=durability,
        target=target,
        many=name.startswith("files."),
        reference=form == "raw",
    )


def _device(name: str, says: str, copy: str) -> PathRow:
    return PathRow(name=name, says=says, object="state", operation="copy", format="device", device=copy)


PATHS: Final[tuple[PathRow, ...]] = (
    *_load("raw.read", "read a file into a buffer that is reused", "raw", reference=True),
    *_load("torch.load", "torch.load(weights_only=True)", "torch"),
    *_load("torch.mmap", "torch.load(weights_only=True, mmap=True)", "torch-mmap"),
    *_load("safetensors.load", "safetensors.torch.load_file", "safetensors"),
    *_load("files.read", "read many files of one size, one behind the other", "raw", many=True),
    _save("raw.write.cache", "write a new file, nothing synced", "raw", CACHE),
    _save("raw.write.fsync", "write a new file and fsync it", "raw", FSYNC),
    _save("raw.overwrite.fsync", "write over a file and fsync it", "raw", FSYNC, OVERWRITE),
    _save("raw.replace.fsync-dir", "write beside, fsync, rename, fsync the folder", "raw", FSYNC_FOLDER, REPLACE),
    _save("torch.save.cache", "torch.save to a new file, nothing synced", "torch", CACHE),
    _save("torch.save.fsync", "torch.save to a new file, fsync", "torch", FSYNC),
    _save(
        "torch.replace.fsync-dir", "torch.save beside, fsync, rename, fsync the folder", "torch", FSYNC_FOLDER, REPLACE
    ),
    _save("safetensors.save.cache", "safetensors.torch.save_file to a new file, nothing synced", "safetensors", CACHE),
    _save("safetensors.save.fsync", "safetensors.torch.save_file to a new file, fsync", "safetensors", FSYNC),
    _save("files.write.cache", "write many new files of one size, nothing synced", "raw", CACHE),
    _save("files.write.fsync", "write many new files of one size, fsync each", "raw", FSYNC),
    PathRow(
        name="memory.copy",
        says="copy host memory to host memory that was touched before",
        object="state",
        operation="copy",
        format="memory",
    ),
    _device("device.upload.pageable", "host to device from pageable memory", "upload.pageable"),
    _device("device.upload.pinned", "host to device from pinned memory, in a stream", "upload.pinned"),
    _device("device.upload.pin-each", "pin, then host to device: what pinning every time costs", "upload.pin-each"),
    _device("device.download.pageable", "device to host into pageable memory", "download.pageable"),
    _device("device.download.pinned", "device to host into pinned memory, in a stream", "download.pinned"),
    _device("device.write-back.fsync", "device to pinned host memory, write a new file, fsync", "write-back"),
)


def choose_paths(wanted: Sequence[str]) -> list[PathRow]:
    """Return the paths that are named: by name, by a pattern such as `torch.*`, or by the object that they move.

    Args:
        wanted: Names, patterns and objects; empty for all paths.

    Raises:
        UsageError: Nothing is called that.
    """
    if not wanted:
        return list(PATHS)
    chosen: set[str] = set()
    for text in wanted:
        found = {row.name for row in PATHS if fnmatchcase(row.name, text) or row.object == text}
        if not found:
            names = ", ".join(row.name for row in PATHS)
            msg = f"--paths: expected names of paths, patterns or objects; found {text!r}. There are {names}"
            raise UsageError(msg)
        chosen |= found
    return [row for row in PATHS if row.name in chosen]
