"""Read what the kernel says of the machine, from /proc and /sys or from a copy of them; what is not there is absent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHOSEN: Final = re.compile(r"\[([^\]]+)\]")  # of `always [madvise] never`
_CGROUP_V1_CPU: Final = ("cpu", "cpuacct")


@dataclass(frozen=True, slots=True)
class MachineFiles:
    """The files of one machine.

    Attributes:
        root: What stands for `/`.
    """

    root: Path = Path("/")

    def path(self, name: str) -> Path:
        """Return where a file lies whose name begins below `/`."""
        return self.root / name

    def text(self, name: str) -> str | None:
        """Return a file's text without the space around it; None where it cannot be read."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return None

    def number(self, name: str) -> float | None:
        """Return the number that a file holds; None where it holds none."""
        text = self.text(name)
        try:
            return float(text) if text else None
        except ValueError:
            return None

    def chosen(self, name: str) -> str | None:
        """Return the choice in brackets of a file that lists choices, else its text."""
        text = self.text(name)
        if not text:
            return None
        found = _CHOSEN.search(text)
        return found[1] if found else text

    def names(self, folder: str, pattern: str) -> list[str]:
        """Return what matches in a folder, as names below `/`, in order; none where the folder is missing."""
        try:
            return sorted(str(path.relative_to(self.root)) for path in self.path(folder).glob(pattern))
        except OSError:
            return []

    def key_values(self, name: str, separator: str = ":") -> dict[str, str]:
        """Return the lines `key: value` of a file, the first of each key."""
        found: dict[str, str] = {}
        for line in (self.text(name) or "").splitlines():
            key, parted, value = line.partition(separator)
            if parted:
                found.setdefault(key.strip(), value.strip())
        return found

    def cgroup_folders(self) -> Iterator[str]:
        """Return the folders of this process's CPU control groups, the innermost first: limits hold from each."""
        for line in (self.text("proc/self/cgroup") or "").splitlines():
            number, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if number == "0" and not controllers:
                bases = ["sys/fs/cgroup", "sys/fs/cgroup/unified"]
            elif set(controllers.split(",")) & set(_CGROUP_V1_CPU):
                bases = [f"sys/fs/cgroup/{controllers}", "sys/fs/cgroup/cpu"]
            else:
                continue
            inner = PurePosixPath(path)
            for base in bases:
                for folder in (inner, *inner.parents):
                    yield f"{base}/{str(folder).strip('/')}".rstrip("/")
