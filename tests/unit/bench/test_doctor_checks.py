"""What disturbs measurements on a machine, told from a copy of its files: each thing once quiet and once not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.bench.doctor_checks import CHECKS, Seen
from longpole.bench.machine_files import MachineFiles
from longpole.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.doctor import DoctorCheck

CPU = "sys/devices/system/cpu"
QUIET = {"other_cpus": 0.01, "psi_cpu_share": 0.0, "psi_io_share": 0.0, "psi_memory_share": 0.0, "steal_share": 0.0}


def look(
    root: Path,
    files: dict[str, str] | None = None,
    conditions: dict[str, float] | None = None,
    **seen: object,
) -> dict[str, DoctorCheck]:
    """Return what every check says of a machine with these files alone."""
    for name, text in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    given = Seen(machine=MachineFiles(root), conditions=conditions or {}, settings=Settings(), **seen)  # type: ignore[arg-type]
    return {found.name: found for check in CHECKS if (found := check(given)) is not None}


@pytest.mark.parametrize(
    ("name", "files", "quiet"),
    [
        ("clock governor", {f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n"}, True),
        ("clock governor", {f"{CPU}/cpu0/cpufreq/scaling_governor": "schedutil\n"}, False),
        ("turbo", {f"{CPU}/intel_pstate/no_turbo": "1\n"}, True),
        ("turbo", {f"{CPU}/intel_pstate/no_turbo": "0\n"}, False),
        ("turbo", {f"{CPU}/cpufreq/boost": "0\n"}, True),
        ("turbo", {f"{CPU}/cpufreq/boost": "1\n"}, False),
        ("SMT", {f"{CPU}/smt/active": "0\n"}, True),
        ("SMT", {f"{CPU}/smt/active": "1\n"}, False),
        ("huge pages", {"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n"}, True),
        ("huge pages", {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"}, False),
        ("swap", {"proc/meminfo": "SwapTotal: 2048 kB\nSwapFree: 2048 kB\n"}, True),
        ("swap", {"proc/meminfo": "SwapTotal: 2048 kB\nSwapFree: 1024 kB\n"}, False),
        ("heat", {"sys/class/thermal/thermal_zone0/temp": "45000\n"}, True),
        ("heat", {"sys/class/thermal/thermal_zone0/temp": "97000\n"}, False),
        ("heat", {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n"}, False),
        ("address layout", {"proc/sys/kernel/randomize_va_space": "2\n"}, True),
        ("address layout", {"proc/sys/kernel/randomize_va_space": "0\n"}, False),
    ],
)
def test_a_setting_is_quiet_or_comes_with_a_reason_and_a_remedy(
    tmp_path: Path, name: str, files: dict[str, str], quiet: bool
) -> None:
    found = look(tmp_path, files)[name]

    assert (found.status == "quiet") is quiet
    assert bool(found.why and found.remedy) is not quiet


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("other load", "other_cpus"),
        ("CPU pressure", "psi_cpu_share"),
        ("IO pressure", "psi_io_share"),
        ("memory pressure", "psi_memory_share"),
        ("stolen time", "steal_share"),
        ("CPU quota", "throttled_share"),
    ],
)
def test_what_disturbs_at_rest_is_noisy(tmp_path: Path, name: str, key: str) -> None:
    assert look(tmp_path, conditions=QUIET)[name].status == "quiet"
    assert look(tmp_path, conditions=QUIET | {key: 0.6})[name].status == "noisy"


def test_a_machine_that_shows_nothing_is_not_called_quiet(tmp_path: Path) -> None:
    found = look(tmp_path)

    levels = {name: check.status for name, check in found.items()}
    assert levels == {
        "other load": "not known",
        "CPU pressure": "not known",
        "IO pressure": "not known",
        "memory pressure": "not known",
        "CPU quota": "quiet",
        "clock governor": "not known",
        "threads": "may matter",
    }


def test_memory_of_two_nodes_may_be_far(tmp_path: Path) -> None:
    nodes = {f"sys/devices/system/node/node{node}/meminfo": "" for node in range(2)}

    assert "2 memory nodes" in look(tmp_path, nodes)["NUMA"].found


def test_a_scheduler_of_a_fast_disk_is_named_and_that_of_a_slow_one_is_not(tmp_path: Path) -> None:
    found = look(
        tmp_path,
        {
            "sys/block/nvme0n1/queue/scheduler": "none [mq-deadline] kyber\n",
            "sys/block/nvme0n1/queue/rotational": "0\n",
            "sys/block/sda/queue/scheduler": "[mq-deadline] none\n",
            "sys/block/sda/queue/rotational": "1\n",
            "sys/block/loop0/queue/scheduler": "[mq-deadline] none\n",
            "sys/block/loop0/queue/rotational": "0\n",
        },
    )["disk scheduler"]

    assert found.found == "nvme0n1: mq-deadline"


def test_a_virtual_machine_says_that_it_is_one(tmp_path: Path) -> None:
    assert "virtual machine" in look(tmp_path, {"proc/cpuinfo": "flags : fpu hypervisor sse\n"})
    assert "virtual machine" not in look(tmp_path, {"proc/cpuinfo": "flags : fpu sse\n"})


def test_threads_that_are_set_are_quiet(tmp_path: Path) -> None:
    assert look(tmp_path, variables={"OMP_NUM_THREADS": "1"})["threads"].status == "quiet"


@pytest.mark.parametrize(
    ("gpu", "name", "level"),
    [
        ({"sm_mhz": "1980", "sm_max_mhz": "1980", "persistence": "Enabled"}, "GPU clocks", "quiet"),
        ({"sm_mhz": "345", "sm_max_mhz": "1980", "persistence": "Enabled"}, "GPU clocks", "may matter"),
        ({"sm_mhz": "345", "sm_max_mhz": "1980", "persistence": "Disabled"}, "GPU persistence", "may matter"),
    ],
)
def test_gpus_that_change_their_clocks_or_fall_asleep_are_named(
    tmp_path: Path, gpu: dict[str, str], name: str, level: str
) -> None:
    assert look(tmp_path, gpus=[gpu])[name].status == level


def test_a_gpu_without_its_tool_is_not_known(tmp_path: Path) -> None:
    assert look(tmp_path, {"dev/nvidia0": ""})["GPU clocks"].status == "not known"
