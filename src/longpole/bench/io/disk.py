"""The calls by which a save makes itself durable, and what was seen of them.

torch.save and safetensors sync nothing; so all that is durable goes through here, and a save's claim can be held
against what was called and against the pages that are not on the device when it returns.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Disk:
    """Makes files and folders durable, and remembers what it synced.

    Attributes:
        synced: (device, inode) of everything that was synced since the last `forget`.
    """

    synced: set[tuple[int, int]] = field(default_factory=set)

    def sync_file(self, path: Path) -> None:
        """Write a file's pages to its device, and wait for that."""
        self._sync(path, os.O_RDONLY)

    def sync_folder(self, path: Path) -> None:
        """Write a folder's entries to its device, and wait for that."""
        self._sync(path, os.O_RDONLY | os.O_DIRECTORY)

    def replace(self, temporary: Path, target: Path) -> None:
        """Give a file its final name; whoever opens that name sees the old file or the new one, never half of one."""
        temporary.replace(target)

    def has_synced(self, path: Path) -> bool:
        """Tell whether a file or folder was synced since the last `forget`."""
        stat = path.stat()
        return (stat.st_dev, stat.st_ino) in self.synced

    def forget(self) -> None:
        """Start anew, before a save."""
        self.synced.clear()

    def _sync(self, path: Path, flags: int) -> None:
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
            stat = os.fstat(descriptor)
            self.synced.add((stat.st_dev, stat.st_ino))
        finally:
            os.close(descriptor)
