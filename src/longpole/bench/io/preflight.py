"""Look before long work is done in vain: what is missing, and what cannot be measured because of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.bench.io.catalogue import CACHE, GUEST_COLD
from longpole.bench.io.formats import is_installed
from longpole.bench.machine_files import MachineFiles
from longpole.errors import UsageError
from longpole.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.bench.io.catalogue import PathRow
    from longpole.bench.io.device import Device
    from longpole.bench.io.plan import Plan
    from longpole.bench.io.storage import Storage

_SPARE: Final = 1.2  # of disk and memory: file systems and libraries need some of their own
_KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found.

    Attributes:
        paths: What can be measured.
        skipped: (path, why not) of the others.
        notes: What else a reader should know before the run.
    """

    paths: tuple[PathRow, ...]
    skipped: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def check_paths(rows: Sequence[PathRow], storage: Storage, device: Device | None, *, named: bool) -> Preflight:
    """Divide paths into those that can be measured here and those that cannot.

    Args:
        rows: The paths that are wanted.
        storage: What the folder lies on.
        device: The device, None for none.
        named: The paths were asked for by name. What a memory file system cannot be is then tried all the same, and
            found invalid, instead of being left out.
    """
    kept: list[PathRow] = []
    skipped: list[tuple[str, str]] = []
    for row in rows:
        why = _why_not(row, storage, device, named=named)
        if why:
            skipped.append((row.name, why))
        else:
            kept.append(row)
    return Preflight(tuple(kept), tuple(skipped), tuple(_notes(storage)))


def check_room(plan: Plan, folder: Path, storage: Storage, machine: MachineFiles | None = None) -> None:
    """See that files can be written, and that disk and memory are large enough.

    Raises:
        UsageError: They cannot, or are not.
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        msg = f"{folder}: no permission to write there; name another folder with --in"
        raise UsageError(msg)
    needed = round(plan.disk_bytes() * _SPARE)
    if storage.free_bytes < needed:
        msg = (
            f"{folder}: {format_bytes(needed)} are needed on the disk, {format_bytes(storage.free_bytes)} are free; "
            "measure smaller sizes with --sizes, fewer --paths, or another folder with --in"
        )
        raise UsageError(msg)
    available = memory_available_bytes(machine)
    memory = round(plan.memory_bytes() * _SPARE)
    if available is not None and available < memory:
        msg = (
            f"{format_bytes(memory)} of memory are needed, {format_bytes(available)} are available; "
            "measure smaller sizes with --sizes"
        )
        raise UsageError(msg)


def memory_available_bytes(machine: MachineFiles | None = None) -> int | None:
    """Return what programs may still take before the machine swaps; None where the kernel does not say."""
    words = (machine or MachineFiles()).key_values("proc/meminfo").get("MemAvailable", "").split()
    return int(words[0]) * _KIB if words[:1] and words[0].isdigit() else None


def _why_not(row: PathRow, storage: Storage, device: Device | None, *, named: bool) -> str:
    missing = [library for library in row.libraries() if not is_installed(library)]
    if missing:
        return f"{missing[0]} is not installed; pip install 'longpole[torch]'"
    if row.device and device is None:
        return "no device: torch finds no GPU here"
    if named or not storage.is_memory():
        return ""
    if row.cache == GUEST_COLD:
        return f"{storage.filesystem} keeps files in memory: a file there cannot be cold"
    if row.durability not in ("", CACHE):
        return f"{storage.filesystem} keeps files in memory: nothing there is durable"
    return ""


def _notes(storage: Storage) -> list[str]:
    notes = [storage.cache_scope()] if storage.is_memory() else [f"what is cold is cold in {storage.cache_scope()}"]
    huge = next((option for option in storage.options if option.startswith("huge=") and option != "huge=never"), "")
    if huge:
        notes.append(f"the page cache holds huge pages ({huge}): residency is counted in whole ones")
    return notes
