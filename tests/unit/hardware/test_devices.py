"""The device table: what its columns mean, and names that are found or refused."""

from __future__ import annotations

import pytest

from longpole.errors import UsageError
from longpole.hardware.devices import all_devices, find_device, match_device


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
