"""The device table: what its columns mean, and names that are found or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.costs.cluster import EFFICIENCY
from longpole.errors import UsageError
from longpole.hardware.devices import Device, all_devices, find_device, match_device
from tests.published_tables import read_table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("device", all_devices(), ids=lambda device: device.name)
def test_every_row_has_a_source_and_its_own_name_finds_it(device: object) -> None:
    assert device.source  # type: ignore[attr-defined]
    assert find_device(device.name) is device  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "dtype", "peak_tflops"),
    [
        ("NVIDIA A100-SXM4-80GB", "bf16", 312),
        ("A100-SXM4-40GB", "fp16", 312),
        ("NVIDIA H100 80GB HBM3", "bf16", 989.4),
        ("h100", "fp8", 1978.9),
        ("NVIDIA B200-SXM-180GB", "bf16", 2250),
        ("TPU v5p", "bf16", 459),
        ("V100-SXM2-32GB", "fp16", 125),
        ("Tesla V100-SXM2-16GB", "fp16", 125),
        ("Tesla V100-DGXS-32GB", "fp16", 125),
        ("NVIDIA A100-PG509-200", "bf16", 312),
        ("AMD Instinct MI210", "bf16", 181),
    ],
)
def test_peaks_are_dense(name: str, dtype: str, peak_tflops: float) -> None:
    """Data sheets print 1,979 and 4,500 with sparsity; those are twice what a training step can have."""
    assert find_device(name).peak(dtype) == peak_tflops * 1e12


@pytest.mark.parametrize("device", all_devices(), ids=lambda device: device.name)
def test_both_directions_of_a_link_are_twice_one(device: object) -> None:
    one, both = device.scaleup_bytes_per_s, device.scaleup_both_bytes_per_s  # type: ignore[attr-defined]
    if one is None or both is None:
        pytest.skip("no scale-up link")
    assert both == pytest.approx(2 * one, rel=0.001)


def test_a_pair_on_a_full_mesh_gets_one_link_and_not_the_sum() -> None:
    device = find_device("MI300X")

    assert device.pair_bytes_per_s == 64e9
    assert device.scaleup_bytes_per_s == 448e9


def test_a_device_without_a_type_says_which_it_has() -> None:
    with pytest.raises(UsageError, match="has no bf16 peak in the table: it has fp16"):
        find_device("V100-SXM2-32GB").peak("bf16")


@pytest.mark.parametrize("name", ["A1000", "H1000", "RTX 4090", "A100-SXM4-96GB", "", "H100 NVL"])
def test_an_unknown_device_is_refused_and_never_guessed(name: str) -> None:
    assert match_device(name) is None
    with pytest.raises(UsageError, match="no peak is guessed"):
        find_device(name)


def test_a_device_without_a_stated_bandwidth_has_none() -> None:
    assert find_device("Ascend-910B").memory_bytes_per_s is None


@pytest.mark.parametrize("row", range(23))
def test_the_table_is_the_published_one(oracles: Path, row: int) -> None:
    """Every figure of every part, and both directions of its links in fields of their own."""
    published = read_table(oracles, "hardware")[row]
    device = find_device(published["name"])
    figures = {
        "bf16_dense_tflops": device.peak_flops.get("bf16", 0) / 1e12,
        "fp16_dense_tflops": device.peak_flops.get("fp16", 0) / 1e12,
        "fp8_dense_tflops": device.peak_flops.get("fp8", 0) / 1e12,
        "int8_dense_tops": device.peak_flops.get("int8", 0) / 1e12,
        "mem_gb": (device.memory_bytes or 0) / 1e9,
        "mem_bw_tbps": (device.memory_bytes_per_s or 0) / 1e12,
        "scaleup_uni_gbps": (device.scaleup_bytes_per_s or 0) / 1e9,
        "scaleup_bidir_gbps": (device.scaleup_both_bytes_per_s or 0) / 1e9,
        "p2p_uni_gbps": (device.pair_bytes_per_s or 0) / 1e9,
        "scaleup_domain": device.scaleup_domain or 0,
        "nccl_graph_busbw_gbps": (device.ring_bytes_per_s or 0) / 1e9,
        "pcie_uni_gbps": (device.pcie_bytes_per_s or 0) / 1e9,
        "tdp_w": device.power_w or 0,
    }

    assert figures == {column: pytest.approx(float(published[column] or 0)) for column in figures}


ADDED = ("V100-SXM2-16GB", "V100-DGXS-32GB", "MI210")
"""Parts of recorded runs that the published table lacks; their rows say where each figure is from."""


def test_the_table_has_every_published_part_and_those_of_recorded_runs(oracles: Path) -> None:
    names = [device.name for device in all_devices()]

    assert [name for name in names if name not in ADDED] == [row["name"] for row in read_table(oracles, "hardware")]
    assert set(ADDED) <= set(names)


def test_rates_of_added_memories_are_clock_times_width() -> None:
    """Twice 877 MHz over 4096 bits; 3.2 Gbit/s a pin over 4096 bits."""
    assert find_device("V100-DGXS-32GB").memory_bytes_per_s == pytest.approx(2 * 877e6 * 4096 / 8, rel=0.001)
    assert find_device("MI210").memory_bytes_per_s == pytest.approx(3.2e9 * 4096 / 8, rel=0.001)


def test_links_that_data_sheets_print_both_ways_are_half_of_that_here() -> None:
    """900 GB/s of an H100 and 400 of an H800 are both directions; TPU v5e's 400 are, too, but v5p's 600 are not."""
    one_way = {name: find_device(name).scaleup_bytes_per_s for name in ("H100", "H800", "TPUv5e", "TPUv5p")}

    assert one_way == {"H100": 450e9, "H800": 200e9, "TPUv5e": 200e9, "TPUv5p": 600e9}


@pytest.mark.parametrize("name", ["A100-PCIe-80GB", "H100-PCIe-80GB"])
def test_a_bridge_joins_two_devices_only(name: str) -> None:
    assert find_device(name).scaleup_domain == 2


@pytest.mark.parametrize(
    "name", ["V100-SXM2-32GB", "A100-SXM4-80GB", "H100-SXM5-80GB", "H200-SXM-141GB", "B200-SXM-180GB"]
)
def test_a_ring_is_modelled_at_four_fifths_of_the_line(name: str) -> None:
    device = find_device(name)

    assert device.ring_bytes_per_s is not None
    assert device.scaleup_bytes_per_s is not None
    assert device.ring_bytes_per_s / device.scaleup_bytes_per_s == pytest.approx(EFFICIENCY["scale_up"])


@pytest.mark.parametrize(
    ("name", "sheet_gb", "reported_gib"),
    [
        ("A100-SXM4-80GB", 80, 79.14),
        ("H200-SXM-141GB", 141, 139.72),
        ("B200-SXM-180GB", 180, 178.35),
        ("L40S", 48, 44.4),
    ],
)
def test_a_part_reports_other_memory_than_its_data_sheet(name: str, sheet_gb: float, reported_gib: float) -> None:
    """The GB of a data sheet are GiB, of which 0.2 to 8 % are kept back."""
    device = find_device(name)

    assert device.memory_bytes == sheet_gb * 1e9
    assert device.usable_memory_bytes == reported_gib * 2**30


@pytest.mark.parametrize("device", all_devices(), ids=lambda device: device.name)
def test_what_is_reported_is_within_the_gib_of_the_data_sheet(device: Device) -> None:
    if device.reported_memory_bytes is None or device.memory_bytes is None:
        assert device.usable_memory_bytes == device.memory_bytes
        return
    assert 0.9 < device.reported_memory_bytes / (device.memory_bytes / 1e9 * 2**30) < 1
