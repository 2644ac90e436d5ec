"""Ceilings of matrix products are the measured ones, and none is guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.hardware.devices import find_device
from longpole.hardware.matmul_ceilings import find_ceiling, measured_ceilings
from tests.published_steps import read_rows

if TYPE_CHECKING:
    from pathlib import Path

# The source's names of parts that the device table has.
PARTS = {
    "NVIDIA A100 SXM": "A100-SXM4-80GB",
    "NVIDIA A100 PCIe": "A100-PCIe-80GB",
    "NVIDIA H100 SXM": "H100-SXM5-80GB",
    "NVIDIA H200 SXM": "H200-SXM-141GB",
    "NVIDIA B200 SXM": "B200-SXM-180GB",
    "NVIDIA GB200 SXM": "GB200-per-GPU",
    "AMD MI355X": "MI355X",
    "AMD MI325X": "MI325X",
    "AMD MI300X": "MI300X",
}


def test_the_table_is_the_published_one(oracles: Path) -> None:
    published = {
        (PARTS[row["accelerator"]], row["dtype"]): float(row["efficiency_pct"])
        for row in read_rows(oracles / "gemm_mamf.csv")
        if row["accelerator"] in PARTS
    }

    assert {key: round(100 * share, 1) for key, share in measured_ceilings().items()} == published


def test_every_measured_part_is_in_the_device_table() -> None:
    for name, dtype in measured_ceilings():
        assert find_device(name).name == name
        assert find_device(name).peak(dtype) > 0


def test_half_precision_has_the_ceiling_of_bfloat16() -> None:
    assert find_ceiling("A100-SXM4-80GB", "fp16") == find_ceiling("A100-SXM4-80GB", "bf16")


def test_a_part_with_the_same_processors_has_their_ceiling_and_says_so() -> None:
    found = find_ceiling("H200-SXM-141GB", "bf16")

    assert found is not None
    assert found.share == pytest.approx(0.803, abs=1e-3)
    assert "H100-SXM5-80GB" in found.says


@pytest.mark.parametrize(("name", "dtype"), [("L40S", "bf16"), ("A100-SXM4-80GB", "fp8"), ("H100-PCIe-80GB", "bf16")])
def test_the_ceiling_of_a_part_that_was_not_measured_is_not_known(name: str, dtype: str) -> None:
    assert find_ceiling(name, dtype) is None
