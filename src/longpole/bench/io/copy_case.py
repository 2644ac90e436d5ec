"""Copies of host memory; what there is where there is no device, and the bound of what a load can be."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.bench.io.case import Checked, Prepared, Timing
from longpole.bench.io.contents import POISON, divide, find_difference

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longpole.bench.io.catalogue import PathRow
    from longpole.bench.io.workbench import Workbench

_REFERENCE_SIZES: Final = (1 << 20, 16 << 20, 64 << 20)
_REFERENCE_REPEATS: Final = 7
_FEW: Final = 64


class CopyCase:
    """A copy within host memory, tensor by tensor, as a staging copy of a state goes.

    Attributes:
        row: The path.
        size_bytes: Of one object.
        objects: 1.
        side_effects: None.
    """

    def __init__(self, row: PathRow, size_bytes: int, bench: Workbench) -> None:
        self.row = row
        self.size_bytes = size_bytes
        self.objects = 1
        self.side_effects: dict[str, object] = {}
        self._source = bench.content.tensors(size_bytes)
        self._target: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self._tensors: dict[str, NDArray[Any]] = {}

    def set_up(self) -> None:
        """Allocate the target; poisoning it touches every page before the first sample does."""
        self._target = np.empty(self.size_bytes, dtype=np.uint8)
        self._tensors = divide(self._target)

    def prepare(self) -> Prepared:
        """Poison the target, so that what is not copied cannot look right."""
        self._target.fill(POISON)
        return Prepared()

    def prime(self) -> None:
        """Copy a few other bytes."""
        np.copyto(np.empty(_FEW, dtype=np.uint8), np.empty(_FEW, dtype=np.uint8))

    def run(self, clock_ns: Callable[[], int]) -> Timing:
        """Copy."""
        start_ns = clock_ns()
        for name, tensor in self._source.items():
            np.copyto(self._tensors[name], tensor)
        return Timing(service_ns=clock_ns() - start_ns)

    def check(self) -> Checked:
        """Compare every byte."""
        return Checked(failed=find_difference(self._tensors, self._source))

    def clean_up(self) -> None:
        """Let go of the target."""
        self._tensors = {}
        self._target = np.empty(0, dtype=np.uint8)


def measure_memory_gb_per_s(content: NDArray[np.uint8], clock_ns: Callable[[], int]) -> float:
    """Return the highest median rate of a copy over a few sizes; some may lie in a CPU's cache, so it is generous.

    Args:
        content: At least 4096 bytes.
        clock_ns: A monotonic clock.
    """
    rates = []
    for size in {min(size, len(content)) for size in _REFERENCE_SIZES}:
        target = np.full(size, POISON, dtype=np.uint8)
        times = []
        for _ in range(_REFERENCE_REPEATS):
            start_ns = clock_ns()
            np.copyto(target, content[:size])
            times.append(clock_ns() - start_ns)
        rates.append(size / max(median(times), 1))
    return float(max(rates))
