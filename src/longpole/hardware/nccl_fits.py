"""What collectives were measured to take on one node of well-known systems, as fits: `nccl_fits.csv`.

    seconds = alpha_s + gamma_s · sqrt(bytes) + bytes / bytes_per_s

The square root is what splitting a message into the best pieces costs. Bytes are the full buffer's, as nccl-tests
counts: the input of a reduce-scatter, the output of an all-gather.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).with_name("nccl_fits.csv")
MEASURED_BYTES: Final = (512, 1 << 29)  # the sizes that the fits rest on
_US: Final = 1e-6
_G: Final = 1e9
_PERCENT: Final = 100
# Words of a device's name -> the system that was measured; the first that fits. PCIe parts were not measured.
_SYSTEMS: Final = (
    (("GB200",), "gb200"),
    (("B200",), "b200_sxm"),
    (("H200",), "h200_sxm"),
    (("H100", "HBM3"), "h100_sxm"),
    (("H100", "SXM5"), "h100_sxm"),
    (("A100", "SXM4"), "a100_sxm"),
    (("L40S",), "l40s"),
)


@dataclass(frozen=True, slots=True)
class Fit:
    """What a kind takes among so many ranks of one node.

    Attributes:
        alpha_s: What an operation of no size takes.
        gamma_s: Per square root of a byte.
        bytes_per_s: The rate that large operations approach: bytes of the full buffer over time.
        error_share: |fitted / measured - 1|, the median over the sizes.
        error_max_share: The largest.
    """

    alpha_s: float
    gamma_s: float
    bytes_per_s: float
    error_share: float | None = None
    error_max_share: float | None = None

    def seconds(self, size_bytes: float) -> float:
        """Return what an operation of a size takes."""
        return self.alpha_s + self.gamma_s * sqrt(size_bytes) + size_bytes / self.bytes_per_s


def system_of(device_name: str) -> str | None:
    """Return the measured system that a device's name means, None where none was.

    >>> system_of("NVIDIA H100 80GB HBM3"), system_of("A100-SXM4-80GB"), system_of("NVIDIA H100 PCIe")
    ('h100_sxm', 'a100_sxm', None)
    """
    words = device_name.upper().replace("-", " ").split()
    return next((system for needed, system in _SYSTEMS if all(word in words for word in needed)), None)


@cache
def all_fits() -> dict[tuple[str, str, int], Fit]:
    """Return the table: (system, kind, ranks) -> fit."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines if line and not line.startswith("#")]
    return {
        (row[0], row[1], int(row[2])): Fit(
            alpha_s=float(row[3]) * _US,
            gamma_s=float(row[4]) * _US,
            bytes_per_s=float(row[5]) * _G,
            error_share=float(row[6]) / _PERCENT,
            error_max_share=float(row[7]) / _PERCENT,
        )
        for row in rows[1:]
    }


def measured_ranks(system: str, kind: str) -> tuple[int, ...]:
    """Return the numbers of ranks that were measured, ascending."""
    return tuple(sorted(ranks for name, what, ranks in all_fits() if (name, what) == (system, kind)))
