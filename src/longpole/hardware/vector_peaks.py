"""Peaks of arithmetic that the device table does not hold: 32-bit numbers, on vector units and as tf32 on matrix units.

Element-wise kernels compute in 32 bits whatever they load, so their peak is this one for all narrower floats.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).with_name("vector_peaks.csv")
_T: Final = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPeak:
    """FLOP/s of one device.

    Attributes:
        fp32_flops_per_s: On vector units.
        tf32_flops_per_s: On matrix units, None where it has no such mode or no source states it.
        source: Where both come from.
    """

    fp32_flops_per_s: float
    tf32_flops_per_s: float | None
    source: str


@cache
def vector_peaks() -> dict[str, VectorPeak]:
    """Return the table: name in the device table -> its peaks."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return {
        row["device"]: VectorPeak(
            fp32_flops_per_s=float(row["fp32_tflops"]) * _T,
            tf32_flops_per_s=float(row["tf32_tflops"]) * _T if row["tf32_tflops"] else None,
            source=row["source"],
        )
        for row in rows
    }
