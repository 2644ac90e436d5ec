"""`longpole memory`: read snapshots of the caching allocator, and say who holds memory and why a request failed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.analyses.allocator import devices_of, measure_device
from longpole.errors import InputError, NotATraceError, UsageError
from longpole.pipeline.version import package_version
from longpole.readers.memory_snapshot.decode import read_snapshot
from longpole.readers.rank_in_name import rank_in_name
from longpole.report.memory_snapshot import make_device, make_snapshots, make_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.memory_snapshot import MemoryDevice, MemorySnapshots, MemorySource
    from longpole.settings import Settings

_SUFFIXES: Final = (".pickle", ".pkl", ".json", ".snapshot")
_PACKED: Final = (".gz", ".zst")


def build_memory(paths: Sequence[str], settings: Settings) -> MemorySnapshots:
    """Say what snapshots show.

    Args:
        paths: Files, and folders that are searched through.
        settings: Bounds of archives.

    Raises:
        UsageError: A path does not exist.
        InputError: A named file cannot be read, or there is no snapshot at all.
    """
    sources: list[MemorySource] = []
    devices: list[MemoryDevice] = []
    refused: list[str] = []
    for path, is_named in _files(paths):
        try:
            snapshot = read_snapshot(path, settings)
        except NotATraceError as error:
            if is_named:
                raise
            del error
            continue
        except InputError as error:
            if is_named:
                raise
            refused.append(str(error))
            continue
        rank = rank_in_name(path.name)
        found = [
            make_device(snapshot, measure_device(snapshot, device), source=len(sources), rank=rank)
            for device in devices_of(snapshot)
        ]
        sources.append(make_source(str(path), snapshot))
        devices += found
    if not devices:
        raise _nothing(paths, sources, refused)
    return make_snapshots(sources, devices, refused, version=package_version())


def _nothing(paths: Sequence[str], sources: list[MemorySource], refused: list[str]) -> InputError:
    if refused:
        return InputError("\n".join(refused))
    found = "the snapshot is empty: no segment and no history" if sources else "no memory snapshot in this folder"
    hint = "Give what torch.cuda.memory._dump_snapshot wrote"
    return NotATraceError.at(sources[0].path if sources else paths[0], None, found, hint)


def _files(paths: Sequence[str]) -> list[tuple[Path, bool]]:
    """Return files, and whether the user named them."""
    found: list[tuple[Path, bool]] = []
    for shown in paths:
        path = Path(shown)
        if path.is_dir():
            found += [(file, False) for file in _of_folder(path)]
        elif shown == "-" or path.exists():
            found.append((path, True))
        else:
            msg = f"{shown}: there is no such file or folder. Name a memory snapshot, or a folder of them"
            raise UsageError(msg)
    return found


def _of_folder(folder: Path) -> list[Path]:
    files = [Path(parent) / name for parent, _, names in os.walk(folder) for name in names]
    return sorted(file for file in files if _is_named_like_one(file.name) and file.is_file())


def _is_named_like_one(name: str) -> bool:
    low = name.lower()
    for packed in _PACKED:
        low = low.removesuffix(packed)
    return low.endswith(_SUFFIXES)
