"""What every case works with: the folder, the content, and the instruments, which tests replace."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.bench.io import contents, eviction, residency
from longpole.bench.io.disk import Disk
from longpole.bench.io.formats import FORMATS
from longpole.bench.machine_files import MachineFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from longpole.bench.io.contents import Content, Tensors
    from longpole.bench.io.formats import Format
    from longpole.bench.io.residency import Residency

PARTIAL: Final = ".partial"
_CACHE_SIZE: Final = re.compile(r"(\d+)K")
_SWEEP_MAX_BYTES: Final = 64 << 20
_SWEEP_DEFAULT_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class Instruments:
    """How time is read, and how the page cache is filled, emptied and asked.

    Attributes:
        clock_ns: A monotonic clock.
        touch: Reads every byte of loaded tensors.
        make_warm: Puts a file into the page cache.
        make_cold: Takes it out.
        read_residency: Says what of it is there.
    """

    clock_ns: Callable[[], int] = time.perf_counter_ns
    touch: Callable[[Tensors], int] = contents.touch
    make_warm: Callable[[Path], Residency] = eviction.make_warm
    make_cold: Callable[[Path], Residency] = eviction.make_cold
    read_residency: Callable[[Path], Residency] = residency.read_residency


@dataclass
class Workbench:
    """One run's folder, content and instruments.

    Attributes:
        folder: Where files are written; it is empty at first and removed at the end.
        content: What is moved.
        many_total_bytes: About what all files of a path of many files hold together.
        instruments: How time and the page cache are read.
        disk: The calls that make files durable.
        formats: By name, one of each.
    """

    folder: Path
    content: Content
    many_total_bytes: int
    instruments: Instruments = field(default_factory=Instruments)
    disk: Disk = field(default_factory=Disk)
    formats: dict[str, Format] = field(default_factory=lambda: {name: make() for name, make in FORMATS.items()})


class Sweep:
    """Reads memory as large as the last CPU cache, so that no sample finds its own bytes there.

    In a program other work lies between two loads. Without it the same 1 MiB was read at twice the rate whenever it
    came twice in a row.
    """

    def __init__(self, size_bytes: int | None = None) -> None:
        self.size_bytes = last_cache_bytes() if size_bytes is None else size_bytes
        self._memory: NDArray[np.uint64] = np.ones(self.size_bytes // 8, dtype=np.uint64)

    def run(self) -> int:
        """Read it all."""
        return int(self._memory.sum(dtype=np.uint64))


def last_cache_bytes(machine: MachineFiles | None = None) -> int:
    """Return the size of the largest cache that the first CPU has, at most 64 MiB; 32 MiB where none is named."""
    machine = machine or MachineFiles()
    found = []
    for name in machine.names("sys/devices/system/cpu/cpu0/cache", "index*/size"):
        match = _CACHE_SIZE.fullmatch(machine.text(name) or "")
        found += [int(match[1]) << 10] if match else []
    return min(max(found, default=_SWEEP_DEFAULT_BYTES), _SWEEP_MAX_BYTES)


def expected_mode(machine: MachineFiles | None = None) -> int:
    """Return the permissions that a new file gets from open(2) with 0666: those that the umask leaves."""
    status = (machine or MachineFiles()).key_values("proc/self/status")
    text = status.get("Umask", "0022")
    return 0o666 & ~int(text, 8)


def settle_writeback(limit_bytes: int, timeout_s: float, machine: MachineFiles | None = None) -> int:
    """Wait until little is left to be written to devices, so that a sample does not pay for the one before.

    Args:
        limit_bytes: What may be left.
        timeout_s: How long to wait at most; other programs may write all the time.
        machine: Where the kernel's files are.

    Returns:
        What is left, in bytes.
    """
    machine = machine or MachineFiles()
    end_s = time.monotonic() + timeout_s
    while True:
        table = machine.key_values("proc/meminfo")
        left = sum(_kib(table.get(key, "")) for key in ("Dirty", "Writeback")) << 10
        if left <= limit_bytes or time.monotonic() >= end_s:
            return left
        time.sleep(0.01)


def _kib(text: str) -> int:
    number = text.partition(" ")[0]
    return int(number) if number.isdigit() else 0
