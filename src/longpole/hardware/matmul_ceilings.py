"""The best that a matrix product was measured to reach, as a share of a device's peak.

No run can compute faster than its matrix products: a utilisation above the ceiling is implausible, above 1 impossible.
The ceiling of a part that was not measured is not known, and that of a similar part is not taken for it, except where
both have the same processors and only their memory differs.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).with_name("matmul_ceilings.csv")
# The same processors at the same power; memory does not bound large products.
_SAME_PROCESSORS: Final = {
    "A100-SXM4-40GB": "A100-SXM4-80GB",
    "A100-PCIe-40GB": "A100-PCIe-80GB",
    "H200-SXM-141GB": "H100-SXM5-80GB",
    "H800-SXM-80GB": "H100-SXM5-80GB",
}
_SAME_UNITS: Final = {"fp16": "bf16"}  # of one rate on every part in the table


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulCeiling:
    """What the best of many shapes reached.

    Attributes:
        share: Of the peak.
        says: On what, where it is another part or type.
    """

    share: float
    says: str


@cache
def measured_ceilings() -> dict[tuple[str, str], float]:
    """Return the table: (device, data type) -> share of the peak."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return {(row["device"], row["dtype"]): float(row["mamf_tflops"]) / float(row["theory_tflops"]) for row in rows}


@cache
def find_ceiling(device_name: str, dtype: str) -> MatmulCeiling | None:
    """Return the ceiling of a device of the table, None where none was measured.

    >>> round(find_ceiling("A100-SXM4-80GB", "bf16").share, 3), find_ceiling("L40S", "bf16")
    (0.869, None)

    Args:
        device_name: As the device table spells it.
        dtype: `bf16`, `fp16` or `fp8`.
    """
    table = measured_ceilings()
    type_name = _SAME_UNITS.get(dtype, dtype)
    for name in (device_name, _SAME_PROCESSORS.get(device_name, "")):
        share = table.get((name, type_name))
        if share is not None:
            return MatmulCeiling(share=share, says=f"{name}, {type_name}, best of many shapes (mamf-finder)")
    return None
