"""What a folder's files lie on: file system, mount options, block device; and what its caches can be asked."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.bench.machine_files import MachineFiles

if TYPE_CHECKING:
    from pathlib import Path

_MEMORY: Final = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"})
_ELSEWHERE: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "9p", "virtiofs", "overlay", "glusterfs", "afs", "beegfs"}
)
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What a folder lies on.

    Attributes:
        filesystem: Its type, `ext4`; empty where not known.
        mount: Where it is mounted.
        options: Options of the mount and of the file system, in order.
        source: What is mounted: a device, a server's path.
        device: The disk below, `vda`; empty where there is none.
        model: The disk's model.
        rotational: Whether the disk says that it turns; None where it says nothing.
        free_bytes: What an ordinary user may still write.
    """

    filesystem: str = ""
    mount: str = ""
    options: tuple[str, ...] = ()
    source: str = ""
    device: str = ""
    model: str = ""
    rotational: bool | None = None
    free_bytes: int = 0

    def is_memory(self) -> bool:
        """Tell whether files live in memory only: nothing is ever cold there, and nothing is durable."""
        return self.filesystem in _MEMORY

    def cache_scope(self) -> str:
        """Say which caches an eviction reaches, in a sentence."""
        if self.is_memory():
            return f"{self.filesystem} keeps files in memory: they cannot be cold, and nothing is durable"
        if self.filesystem in _ELSEWHERE or self.filesystem.startswith("fuse"):
            return (
                f"this kernel's page cache only; {self.filesystem} has attribute caches and caches elsewhere, "
                "whose state is not known"
            )
        return "this kernel's page cache only; caches of a host or a controller below it are not reached"


def read_storage(folder: Path, machine: MachineFiles | None = None) -> Storage:
    """Return what a folder lies on; what cannot be found out stays empty."""
    machine = machine or MachineFiles()
    stat = os.stat(folder)  # noqa: PTH116 - the number of the device, of a link's target too
    number = f"{os.major(stat.st_dev)}:{os.minor(stat.st_dev)}"
    free = os.statvfs(folder)
    mounts = [mount for mount in _mounts(machine) if mount["number"] == number]
    inside = [mount for mount in mounts if folder.resolve().is_relative_to(mount["mount"])]
    mount = max(inside or mounts, key=lambda one: len(one["mount"]), default={})
    disk = _disk(machine, number)
    turns = machine.number(f"{disk}/queue/rotational") if disk else None
    return Storage(
        filesystem=mount.get("filesystem", ""),
        mount=mount.get("mount", ""),
        options=tuple(sorted({*mount.get("options", "").split(","), *mount.get("super", "").split(",")} - {""})),
        source=mount.get("source", ""),
        device=disk.rpartition("/")[2] if disk else "",
        model=(machine.text(f"{disk}/device/model") or "") if disk else "",
        rotational=None if turns is None else bool(turns),
        free_bytes=free.f_bavail * free.f_frsize,
    )


def _mounts(machine: MachineFiles) -> list[dict[str, str]]:
    """Return the lines of mountinfo (proc(5)): fields up to a dash, then type, source and options."""
    found = []
    for line in (machine.text("proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if len(before) < 6 or len(after) < 3:
            continue
        found.append(
            {
                "number": before[2],
                "mount": _OCTAL.sub(lambda match: chr(int(match[1], 8)), before[4]),
                "options": before[5],
                "filesystem": after[0],
                "source": after[1],
                "super": after[2],
            }
        )
    return found


def _disk(machine: MachineFiles, number: str) -> str:
    """Return the folder of /sys of the whole disk behind a device number, empty where there is none."""
    entry = machine.path(f"sys/dev/block/{number}")
    if not entry.exists():
        return ""
    real = entry.resolve()
    if (real / "partition").exists():
        real = real.parent
    try:
        return str(real.relative_to(machine.root.resolve()))
    except ValueError:
        return ""
