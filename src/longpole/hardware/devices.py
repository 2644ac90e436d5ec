"""The device table: dense peaks, memory and links of accelerators, each row with its source.

Uni- and bidirectional link rates are columns of their own: 900 GB/s of an H100 are both directions together, and a
model that divides bytes by them is wrong by a factor of two. Peaks are dense; data sheets that print sparse figures
print twice these. A device that is not in the table has no peak here: nothing is guessed from a similar name.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final

from longpole.errors import UsageError

TABLE: Final = Path(__file__).with_name("devices.csv")
DTYPES: Final = ("bf16", "fp16", "fp8", "int8")
_T: Final = 10**12
_G: Final = 10**9
_NOT_NAME: Final = re.compile(r"[^a-z0-9]+")
# What tools and drivers call the same part; the vendor's prefix is left out before.
ALIASES: Final[dict[str, str]] = {
    "a100": "A100-SXM4-80GB",
    "a100 40gb": "A100-SXM4-40GB",
    "a100 80gb": "A100-SXM4-80GB",
    # A variant of the SXM4 part of 40 GB: the driver lists both under device id 20B0 (open-gpu-kernel-modules, README).
    "a100 pg509 200": "A100-SXM4-40GB",
    "a100 sxm": "A100-SXM4-80GB",
    "a100 sxm4": "A100-SXM4-80GB",
    "h100": "H100-SXM5-80GB",
    "h100 80gb hbm3": "H100-SXM5-80GB",
    "h100 sxm": "H100-SXM5-80GB",
    "h100 pcie": "H100-PCIe-80GB",
    "h200": "H200-SXM-141GB",
    "h800": "H800-SXM-80GB",
    "b200": "B200-SXM-180GB",
    "gb200": "GB200-per-GPU",
    "v100": "V100-SXM2-32GB",
    # A virtual function is the whole part: one for each (amd/MxGPU-Virtualization, README).
    "mi300x vf": "MI300X",
    "tesla v100 dgxs 32gb": "V100-DGXS-32GB",
    "tesla v100 sxm2 16gb": "V100-SXM2-16GB",
    "tesla v100 sxm2 32gb": "V100-SXM2-32GB",
    "tpu v4": "TPUv4",
    "tpu v5e": "TPUv5e",
    "tpu v5p": "TPUv5p",
    "tpu v6e": "TPUv6e",
}
# Least "total capacity" of a part in public out-of-memory reports of PyTorch: the GB of data sheets are GiB, less what
# firmware, driver and, on GDDR, error correction keep. Parts that no report was found of are left out.
REPORTED_GIB: Final = {
    "V100-SXM2-16GB": 15.78,
    "V100-SXM2-32GB": 31.73,
    "A100-SXM4-40GB": 39.38,
    "A100-SXM4-80GB": 79.14,
    "H100-SXM5-80GB": 79.14,
    "H200-SXM-141GB": 139.72,
    "B200-SXM-180GB": 178.35,
    "GB200-per-GPU": 184.31,
    "L40S": 44.40,
    "A10": 22.05,
    "MI300X": 191.69,
    "MI325X": 255.69,
}
_GIB: Final = 2**30
_VENDORS: Final = ("nvidia ", "amd instinct ", "amd ", "google ", "huawei ", "instinct ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator, as a framework sees it unless its notes say otherwise; None for what no source states.

    Attributes:
        name, vendor, arch: What it is called.
        peak_flops: Data type -> dense peak in FLOP/s (operations for int8).
        memory_bytes: Decimal bytes, as data sheets count.
        reported_memory_bytes: What the part itself reports, where that is known (`REPORTED_GIB`): 6 to 8 % more for
            high-bandwidth memory, less for GDDR.
        memory_bytes_per_s: Peak rate of its memory.
        fabric: The scale-up link.
        scaleup_bytes_per_s: Sum over its scale-up links, one direction.
        scaleup_both_bytes_per_s: Both directions together, which data sheets like to print.
        pair_bytes_per_s: What one pair of devices gets, one direction: on a full mesh far less than the sum.
        scaleup_domain: How many devices the scale-up link joins.
        ring_bytes_per_s: Bus bandwidth that NCCL's model gives a ring on it.
        pcie_bytes_per_s: One direction.
        power_w: Thermal design power.
        confidence: `high`, `medium` or `low`.
        source, notes: Where the row comes from, and what to know about it.
    """

    name: str
    vendor: str
    arch: str
    peak_flops: dict[str, float]
    memory_bytes: float | None
    memory_bytes_per_s: float | None
    fabric: str
    scaleup_bytes_per_s: float | None
    scaleup_both_bytes_per_s: float | None
    pair_bytes_per_s: float | None
    scaleup_domain: int | None
    ring_bytes_per_s: float | None
    pcie_bytes_per_s: float | None
    power_w: float | None
    confidence: str
    source: str
    notes: str
    reported_memory_bytes: float | None = None

    @property
    def usable_memory_bytes(self) -> float | None:
        """What a program can have at most: what the part reports, else what its data sheet says."""
        return self.memory_bytes if self.reported_memory_bytes is None else self.reported_memory_bytes

    def peak(self, dtype: str) -> float:
        """Return the dense peak of a data type in FLOP/s.

        Raises:
            UsageError: The device has none for it, or no source states one.
        """
        if dtype not in self.peak_flops:
            known = ", ".join(self.peak_flops) or "none"
            msg = f"{self.name} has no {dtype} peak in the table: it has {known}. Name one of these, or state the peak"
            raise UsageError(msg)
        return self.peak_flops[dtype]


@cache
def all_devices() -> tuple[Device, ...]:
    """Return the table, in its order."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return tuple(_device(row) for row in rows)


def find_device(name: str) -> Device:
    """Return a device by its name in the table, or by what drivers and people call it.

    >>> find_device("NVIDIA A100-SXM4-80GB").peak("bf16") / 1e12
    312.0

    Raises:
        UsageError: It is not in the table; the closest names are listed.
    """
    found = match_device(name)
    if found is None:
        names = [device.name for device in all_devices()]
        close = get_close_matches(name.upper(), [one.upper() for one in names], n=3, cutoff=0.4)
        near = [one for one in names if one.upper() in close]
        listed = ", ".join(near or names)
        msg = f"{name!r} is not in the device table, and no peak is guessed; known are {listed}. Or state its peak"
        raise UsageError(msg)
    return found


def match_device(name: str) -> Device | None:
    """Return the device that a name means without doubt, None where there is doubt."""
    plain = _plain(name)
    by_name = {_plain(device.name): device for device in all_devices()}
    if plain in by_name:
        return by_name[plain]
    return by_name.get(_plain(ALIASES[plain])) if plain in ALIASES else None


def _plain(name: str) -> str:
    text = _NOT_NAME.sub(" ", name.lower()).strip()
    for vendor in _VENDORS:
        text = text.removeprefix(vendor)
    return text


def _device(row: dict[str, str]) -> Device:
    peaks = {dtype: _number(row, f"{dtype}_dense_{'tops' if dtype == 'int8' else 'tflops'}", _T) for dtype in DTYPES}
    domain = _number(row, "scaleup_domain", 1)
    return Device(
        name=row["name"],
        vendor=row["vendor"],
        arch=row["arch"],
        peak_flops={dtype: peak for dtype, peak in peaks.items() if peak is not None},
        memory_bytes=_number(row, "mem_gb", _G),
        memory_bytes_per_s=_number(row, "mem_bw_tbps", _T),
        fabric=row["scaleup_fabric"],
        scaleup_bytes_per_s=_number(row, "scaleup_uni_gbps", _G),
        scaleup_both_bytes_per_s=_number(row, "scaleup_bidir_gbps", _G),
        pair_bytes_per_s=_number(row, "p2p_uni_gbps", _G),
        scaleup_domain=int(domain) if domain is not None else None,
        ring_bytes_per_s=_number(row, "nccl_graph_busbw_gbps", _G),
        pcie_bytes_per_s=_number(row, "pcie_uni_gbps", _G),
        power_w=_number(row, "tdp_w", 1),
        confidence=row["confidence"],
        source=row["source"],
        notes=row["notes"],
        reported_memory_bytes=REPORTED_GIB[row["name"]] * _GIB if row["name"] in REPORTED_GIB else None,
    )


def _number(row: dict[str, str], column: str, scale: float) -> float | None:
    text = row[column].strip()
    return float(text) * scale if text else None
