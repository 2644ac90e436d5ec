"""The shipped fits: they are the published ones, and as good as is said of each."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import pytest

from longpole.hardware.devices import all_devices
from longpole.hardware.nccl_fits import MEASURED_BYTES, all_fits, measured_ranks, system_of
from tests.published_tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {"alltoall": "all_to_all"}


def test_every_fit_is_the_published_one(oracles: Path) -> None:
    rows = read_table(oracles, "nccl_fit_alpha_gamma_beta")
    for row in rows:
        fit = all_fits()[row["system"], KINDS.get(row["collective"], row["collective"]), int(row["gpus"])]
        assert fit.alpha_s == pytest.approx(float(row["alpha_us"]) * 1e-6)
        assert fit.gamma_s == pytest.approx(float(row["gamma_us_per_sqrt_byte"]) * 1e-6)
        assert fit.bytes_per_s == pytest.approx(float(row["algbw_gbps"]) * 1e9)
        assert fit.error_share == pytest.approx(float(row["err_median_pct"]) / 100)
        assert fit.error_max_share == pytest.approx(float(row["err_max_pct"]) / 100)

    assert len(rows) == len(all_fits()) == 68


def test_over_all_measured_points_the_fits_are_off_by_less_than_five_percent(oracles: Path) -> None:
    """1,428 points of one node, 2 to 8 devices: median below 5 %, and 95 of 100 within 25 %."""
    errors = []
    for row in read_table(oracles, "nccl_measured_single_node"):
        fit = all_fits()[row["system"], KINDS.get(row["collective"], row["collective"]), int(row["gpus"])]
        errors.append(abs(fit.seconds(float(row["bytes"])) * 1e6 / float(row["latency_us"]) - 1))

    assert len(errors) == 1428
    assert median(errors) < 0.05
    assert sorted(errors)[int(0.95 * len(errors))] < 0.25


@pytest.mark.parametrize("key", sorted(all_fits()), ids=lambda key: "-".join(map(str, key)))
def test_each_fit_states_its_own_error(oracles: Path, key: tuple[str, str, int]) -> None:
    """Within a point or two: the table's figures are rounded, those of PCIe systems to one digit of the rate."""
    names = {ours: theirs for theirs, ours in KINDS.items()}
    wanted = (key[0], names.get(key[1], key[1]), str(key[2]))
    rows = _rows_of(oracles).get(wanted, [])
    fit = all_fits()[key]
    errors = [abs(fit.seconds(size) / seconds - 1) for size, seconds in rows]

    assert min(size for size, _ in rows) == MEASURED_BYTES[0]
    assert max(size for size, _ in rows) == MEASURED_BYTES[1]
    assert median(errors) == pytest.approx(fit.error_share, abs=0.03 if key[0] == "l40s" else 0.002)


_CACHE: dict[tuple[str, str, str], list[tuple[float, float]]] = {}


def _rows_of(oracles: Path) -> dict[tuple[str, str, str], list[tuple[float, float]]]:
    if not _CACHE:
        for row in read_table(oracles, "nccl_measured_single_node"):
            key = (row["system"], row["collective"], row["gpus"])
            _CACHE.setdefault(key, []).append((float(row["bytes"]), float(row["latency_us"]) * 1e-6))
    return _CACHE


def test_the_device_table_and_drivers_mean_the_same_systems() -> None:
    systems = {device.name: system_of(device.name) for device in all_devices()}

    assert {name: system for name, system in systems.items() if system} == {
        "A100-SXM4-40GB": "a100_sxm",
        "A100-SXM4-80GB": "a100_sxm",
        "H100-SXM5-80GB": "h100_sxm",
        "H200-SXM-141GB": "h200_sxm",
        "B200-SXM-180GB": "b200_sxm",
        "GB200-per-GPU": "gb200",
        "L40S": "l40s",
    }


@pytest.mark.parametrize("name", ["NVIDIA H100 PCIe", "NVIDIA H800", "A100-PCIE-40GB", "Tesla V100-SXM2-16GB", ""])
def test_what_was_not_measured_is_no_system(name: str) -> None:
    assert system_of(name) is None


def test_gb200_was_measured_with_up_to_four_devices() -> None:
    assert measured_ranks("gb200", "all_reduce") == (2, 4)
    assert measured_ranks("h100_sxm", "broadcast") == ()
