"""The environment of a benchmark: what is kept, in which class, and what never is."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING

import pytest

from longpole.bench.environment import Surroundings, collect_environment, cpu_quota, kept_variables
from longpole.bench.gpu import gpu_conditions, parse_answer
from longpole.bench.interpreter import find_interpreter, probe_interpreter
from longpole.bench.machine_files import MachineFiles

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Imaginary 9000\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\n",
    "proc/self/cgroup": "0::/app.slice\n",
    "proc/meminfo": "MemTotal:       1024 kB\n",
    "sys/devices/system/cpu/smt/active": "1\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/fs/cgroup/cpu.max": "max 100000\n",
    "sys/fs/cgroup/app.slice/cpu.max": "150000 100000\n",
}


def machine(folder: Path, files: dict[str, str]) -> MachineFiles:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return MachineFiles(folder)


def test_facts_are_sorted_by_what_a_difference_means(tmp_path: Path) -> None:
    around = Surroundings(machine=machine(tmp_path, FILES), variables={"OMP_NUM_THREADS": "4"}, git=False, gpus=False)

    found = collect_environment(surroundings=around)

    assert found.must_match["cpu"] == "Imaginary 9000"
    assert found.must_match["smt"] is True
    assert found.must_match["env.OMP_NUM_THREADS"] == "4"
    assert found.must_match["python"] == sys.version.split()[0]
    assert found.should_match["governor"] == "powersave"
    assert found.should_match["turbo"] is True
    assert found.should_match["transparent_hugepages"] == "madvise"
    assert found.should_match["hypervisor"] == "yes"
    assert found.should_match["cgroup_cpus"] == 1.5
    assert found.should_match["memory_bytes"] == 1 << 20
    assert "date" in found.informational


def test_what_cannot_be_found_out_is_left_out(tmp_path: Path) -> None:
    around = Surroundings(machine=MachineFiles(tmp_path), variables={}, git=False, gpus=False)

    found = collect_environment(["/no/such/program"], surroundings=around)

    assert not {"smt", "python", "torch_version", "gpus"} & found.must_match.keys()
    assert found.should_match == {}


def test_variables_are_kept_by_prefix_only_and_never_a_credential() -> None:
    variables = {
        "NCCL_ALGO": "Ring",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "LD_PRELOAD": "/usr/lib/libjemalloc.so",
        "TORCH_HUB_TOKEN": "abc",
        "CUDA_PROXY": "http://me:secret99@proxy:80",
        "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz012345",
        "AWS_SECRET_ACCESS_KEY": "x",
        "HOME": "/root",
        "MYNCCL_ALGO": "Tree",
    }

    assert kept_variables(variables) == {
        "CUDA_PROXY": "http://[redacted]@proxy:80",
        "LD_PRELOAD": "/usr/lib/libjemalloc.so",
        "NCCL_ALGO": "Ring",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "TORCH_HUB_TOKEN": "[redacted]",
    }


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, 0.5),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000",
            },
            2.0,
        ),
        ({"proc/self/cgroup": "4:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"}, None),
        ({}, None),
    ],
)
def test_the_tightest_quota_of_all_groups_holds(tmp_path: Path, files: dict[str, str], cpus: float | None) -> None:
    assert cpu_quota(machine(tmp_path, files)) == cpus


def test_the_interpreter_is_the_program_or_the_one_its_first_line_names(tmp_path: Path) -> None:
    script = tmp_path / "launch"
    script.write_text(f"#!{sys.executable} -u\nprint()\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)

    assert find_interpreter([sys.executable, "train.py"]) == sys.executable
    assert find_interpreter([str(script)]) == sys.executable
    assert find_interpreter(["true"]) is None
    assert find_interpreter([]) is None


def test_a_package_beside_the_command_is_seen_as_the_command_sees_it(tmp_path: Path) -> None:
    """Versions come from torch's version file; torch itself is never imported."""
    torch = tmp_path / "torch"
    torch.mkdir()
    (torch / "__init__.py").write_text("raise SystemExit('imported')\n")
    (torch / "version.py").write_text("__version__ = '9.9.9'\ncuda = '42.0'\nhip = None\n")

    found = probe_interpreter(sys.executable, tmp_path, {"PYTHONPATH": str(tmp_path)})

    assert (found["torch_version"], found["cuda_runtime_version"]) == ("9.9.9", "42.0")
    assert "hip_runtime_version" not in found


def test_an_interpreter_that_does_not_answer_says_nothing() -> None:
    assert probe_interpreter("/bin/false") == {}


def test_gpu_readings_become_figures_over_all_gpus() -> None:
    names = ["sm_mhz", "memory_mhz", "temperature_c", "power_w", "throttle"]
    text = "1980, 2619, 41, 700.5, 0x0000000000000001\n1200, 2619, 84, [N/A], 0x0000000000000024\n"
    after = parse_answer(text, names)

    assert gpu_conditions(after[:1], after) == {
        "gpu_sm_mhz": 1200.0,
        "gpu_memory_mhz": 2619.0,
        "gpu_temperature_c": 84.0,
        "gpu_power_w": 700.5,
        "gpu_throttled": 1.0,
    }
    assert gpu_conditions([], []) == {}
