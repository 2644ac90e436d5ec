"""The most memory that this process has held since a moment, by the kernel's own mark (proc(5))."""

from __future__ import annotations

import contextlib
from pathlib import Path

from longpole.bench.machine_files import MachineFiles

_RESET = "5"  # of /proc/self/clear_refs: set the peak resident size to the present one
_KIB = 1024


class PeakMemory:
    """Counts from when it is made."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text(_RESET, encoding="ascii")
        self._began_bytes = _status("VmRSS")
        self._mark_bytes = _status("VmHWM")

    def grown_bytes(self) -> int | None:
        """Return how much more than at first was held at most; None where the kernel does not say.

        Where the mark could not be set back, only what exceeds the old mark is seen: then it is not known.
        """
        peak = _status("VmHWM")
        if peak is None or self._began_bytes is None or self._mark_bytes is None:
            return None
        was_reset = self._mark_bytes <= self._began_bytes * 1.01
        return max(peak - self._began_bytes, 0) if was_reset or peak > self._mark_bytes else None


def _status(key: str) -> int | None:
    words = MachineFiles().key_values("proc/self/status").get(key, "").split()
    return int(words[0]) * _KIB if words[:1] and words[0].isdigit() else None
