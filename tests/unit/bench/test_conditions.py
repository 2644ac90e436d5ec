"""Conditions from copies of the kernel's files: figures where there are files, nothing where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.bench.conditions import Reading, conditions_between, flags_of, read_now, watched_files
from longpole.bench.machine_files import MachineFiles
from longpole.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000


def psi(total_us: int) -> str:
    return f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total_us}\nfull avg10=0.00 total=7\n"


def stat(user: int, idle: int, steal: int) -> str:
    return f"cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 1 0 0 0\ncpu1 1 0 0 0\nintr 5\n"


def between(before: dict[str, str], after: dict[str, str], **known: int) -> dict[str, float]:
    return conditions_between(Reading(0, before), Reading(SECOND, after), **known)


def test_pressure_is_the_share_of_time_that_some_task_waited() -> None:
    found = between({"/proc/pressure/cpu": psi(1_000_000)}, {"/proc/pressure/cpu": psi(1_250_000)})

    assert found == {"psi_cpu_share": 0.25}


def test_stolen_and_others_time_come_from_the_sums_over_all_cpus() -> None:
    """Of 200 ticks on two CPUs 100 were busy and 20 stolen; what was measured used half a second of the one second."""
    found = between({"/proc/stat": stat(0, 0, 0)}, {"/proc/stat": stat(100, 80, 20)}, cpu_ns=SECOND // 2)

    assert found == {"steal_share": 0.1, "other_cpus": 0.5}


def test_few_ticks_say_nothing() -> None:
    assert between({"/proc/stat": stat(0, 0, 0)}, {"/proc/stat": stat(1, 0, 1)}) == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [("throttled_usec 0\n", "throttled_usec 50000\n"), ("throttled_time 0\n", "throttled_time 50000000\n")],
)
def test_both_versions_of_control_groups_tell_throttling(before: str, after: str) -> None:
    assert between({"/g/cpu.stat": before}, {"/g/cpu.stat": after}) == {"throttled_share": 0.05}


def test_a_file_that_is_missing_or_odd_gives_no_figure_and_no_zero() -> None:
    odd = {"/proc/stat": "", "/proc/pressure/io": "nothing", "/g/cpu.stat": "usage_usec 5", "/proc/loadavg": "?"}

    assert between(odd, odd) == {}
    assert between({}, {"/proc/pressure/cpu": psi(9)}) == {}


def test_no_time_between_readings_gives_nothing() -> None:
    reading = Reading(5, {"/proc/pressure/cpu": psi(1)})

    assert conditions_between(reading, reading) == {}


def test_switches_are_counted_a_second_and_clocks_are_a_mean() -> None:
    clocks = {f"/sys/cpu{cpu}/scaling_cur_freq": khz for cpu, khz in enumerate(("2000000\n", "3000000\n"))}

    assert between({}, clocks, involuntary=40) == {"involuntary_per_s": 40.0, "cpu_mhz": 2500.0}


def test_flags_name_what_exceeds_its_setting() -> None:
    settings = Settings()
    conditions = {
        "psi_cpu_share": settings.bench_pressure_max_share + 0.01,
        "psi_io_share": settings.bench_pressure_max_share,
        "steal_share": 1.0,
        "gpu_throttled": 1.0,
    }

    assert flags_of(conditions, settings) == ["cpu-pressure", "stolen-time", "gpu-throttled"]
    assert flags_of({}, settings) == []


def test_only_files_that_are_there_are_watched(tmp_path: Path) -> None:
    (tmp_path / "proc/pressure").mkdir(parents=True)
    (tmp_path / "proc/pressure/cpu").write_text(psi(3))
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/self/cgroup").write_text("0::/job/part\n")
    group = tmp_path / "sys/fs/cgroup/job"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("throttled_usec 4\n")

    paths = watched_files(MachineFiles(tmp_path))

    assert [path.removeprefix(str(tmp_path)) for path in paths] == [
        "/proc/pressure/cpu",
        "/sys/fs/cgroup/job/cpu.stat",
    ]
    assert set(read_now([*paths, str(tmp_path / "gone")]).texts) == set(paths)
    assert watched_files(MachineFiles(tmp_path / "nothing")) == []
