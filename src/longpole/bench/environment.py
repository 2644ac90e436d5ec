"""What the figures of a benchmark depend on, in three classes (bench-io A11): identity, context and the rest.

identity  (`must_match`)     hardware, versions of what computes, variables that change performance: other values give
                             other figures
context   (`should_match`)   how the machine is set up: may shift figures
the rest  (`informational`)  tells runs apart and shifts nothing

What cannot be found out is left out, never guessed. Of the environment's variables only those with a prefix of
`PREFIXES` are kept, and of those no credential.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.gpu import gpu_facts
from longpole.bench.interpreter import find_interpreter, probe_interpreter
from longpole.bench.machine_files import MachineFiles
from longpole.records.credentials import redact, redact_variable
from longpole.records.run_record import RecordEnvironment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PREFIXES: Final = (
    "NCCL_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "PYTORCH_",
    "CUDA_",
    "CUBLAS_",
    "CUDNN_",
    "OMP_",
    "GOMP_",
    "MKL_",
    "OPENBLAS_",
    "KMP_",
    "MALLOC_",
)
NAMES: Final = ("LD_PRELOAD", "PYTHONHASHSEED", "PYTHONMALLOC", "GLIBC_TUNABLES")
"""Variables that change performance: these, and those that begin with one of `PREFIXES`. No others are looked at."""

_GIT_TIMEOUT_S: Final = 10.0
_IDENTITY_OF_PYTHON: Final = (
    "python",
    "implementation",
    "gil",
    "debug",
    "torch_version",
    "torch_git",
    "cuda_runtime_version",
    "hip_runtime_version",
    "cudnn_version",
    "nccl_version",
    "numpy_version",
    "triton_version",
)
_VERSION: Final = re.compile(r"^(\d+\.\d+)")
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where facts are looked up, so that a test can put others in their place.

    Attributes:
        machine: The files of the kernel.
        variables: The environment's variables.
        git: Whether git is asked about the working folder.
        gpus: Whether the GPUs' tool is asked.
    """

    machine: MachineFiles = field(default_factory=MachineFiles)
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    git: bool = True
    gpus: bool = True


def collect_environment(
    argv: Sequence[str] = (),
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    surroundings: Surroundings | None = None,
) -> RecordEnvironment:
    """Return what the figures of a command depend on.

    It takes some tenths of a second: call it once for a record, outside of what is timed.

    Args:
        argv: The command; its Python is asked for versions. Without one, the Python that runs this.
        cwd: Where it is run.
        env: Variables that are set for it over those of this process.
        surroundings: Where facts are looked up.
    """
    around = surroundings or Surroundings()
    variables = {**around.variables, **(env or {})}
    interpreter = find_interpreter(argv) if argv else sys.executable
    python = probe_interpreter(interpreter, cwd, env) if interpreter is not None else {}
    gpus = gpu_facts() if around.gpus else []
    git = _git_facts(cwd or Path.cwd()) if around.git else {}
    identity: dict[str, Any] = _cpu_facts(around.machine) | _kernel_facts(around.machine)
    identity |= _gpu_identity(gpus)
    identity |= {name: python[name] for name in _IDENTITY_OF_PYTHON if name in python}
    identity |= _thread_facts()
    identity |= {f"env.{name}": value for name, value in kept_variables(variables).items()}
    context = _set_up(around.machine) | _limits(around.machine) | _gpu_context(gpus)
    context |= {"packages_hash": python["packages_hash"]} if "packages_hash" in python else {}
    context |= {"git_dirty": git["dirty"]} if "dirty" in git else {}
    rest: dict[str, Any] = {
        "host": platform.node(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel_release": platform.release(),
    }
    rest |= {f"git_{name}": value for name, value in git.items() if name != "dirty"}
    uuids = [gpu["uuid"] for gpu in gpus if "uuid" in gpu]
    rest |= {"gpu_uuids": uuids} if uuids else {}
    return RecordEnvironment(must_match=identity, should_match=context, informational=rest)


def kept_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that change performance, without credentials.

    >>> kept_variables({"NCCL_ALGO": "Ring", "HOME": "/root", "TORCH_HUB_TOKEN": "x"})
    {'NCCL_ALGO': 'Ring', 'TORCH_HUB_TOKEN': '[redacted]'}
    """
    return {
        name: redact_variable(name, value)
        for name, value in sorted(variables.items())
        if name.startswith(PREFIXES) or name in NAMES
    }


def _cpu_facts(machine: MachineFiles) -> dict[str, Any]:
    info = machine.key_values("proc/cpuinfo")
    model = info.get("model name") or info.get("Processor") or info.get("CPU part") or platform.processor()
    found: dict[str, Any] = {"architecture": platform.machine()}
    found |= {"cpu": model} if model else {}
    found |= {"cpu_count": os.cpu_count() or 0}
    smt = machine.text("sys/devices/system/cpu/smt/active")
    return found | ({"smt": smt == "1"} if smt in ("0", "1") else {})


def _kernel_facts(machine: MachineFiles) -> dict[str, Any]:
    version = _VERSION.match(platform.release())
    found: dict[str, Any] = {"os": platform.system()}
    found |= {"kernel": version[1]} if version else {}
    return found | _container(machine)


def _container(machine: MachineFiles) -> dict[str, Any]:
    """Say whether this is a container; an image tells its own name only through its release file."""
    names = ("/docker/", "/kubepods", "/lxc/", "/containerd")
    groups = machine.text("proc/self/cgroup") or ""
    inside = machine.path(".dockerenv").exists() or machine.path("run/.containerenv").exists()
    found: dict[str, Any] = {"container": inside or any(name in groups for name in names)}
    image = machine.key_values("run/.containerenv", "=").get("image")
    if image:
        found["container_image"] = redact(image.strip('"'))
    release = machine.key_values("etc/os-release", "=").get("PRETTY_NAME")
    return found | ({"os_release": release.strip('"')} if release else {})


def _thread_facts() -> dict[str, Any]:
    """Return how many CPUs the process may use, which is what libraries start threads for."""
    return {"usable_cpus": len(os.sched_getaffinity(0))} if hasattr(os, "sched_getaffinity") else {}


def _gpu_identity(gpus: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    if not gpus:
        return {}
    found: dict[str, Any] = {"gpus": [gpu.get("name", "") for gpu in gpus]}
    for key, name in (("gpu_driver", "driver"), ("gpu_mig", "mig"), ("gpu_persistence", "persistence")):
        values = sorted({gpu[name] for gpu in gpus if name in gpu})
        found |= {key: values[0] if len(values) == 1 else values} if values else {}
    return found


def _gpu_context(gpus: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, name in (("gpu_power_limit_w", "power_limit_w"), ("gpu_compute_mode", "compute_mode")):
        values = sorted({gpu[name] for gpu in gpus if name in gpu})
        found |= {key: values[0] if len(values) == 1 else values} if values else {}
    return found


def _set_up(machine: MachineFiles) -> dict[str, Any]:
    """Return what an administrator sets: clocks, memory, placement."""
    cpu = "sys/devices/system/cpu"
    turbo = machine.text(f"{cpu}/intel_pstate/no_turbo")
    boost = machine.text(f"{cpu}/cpufreq/boost")
    texts = {
        "governor": machine.text(f"{cpu}/cpu0/cpufreq/scaling_governor"),
        "transparent_hugepages": machine.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
        "swappiness": machine.text("proc/sys/vm/swappiness"),
        "dirty_ratio": machine.text("proc/sys/vm/dirty_ratio"),
        "dirty_background_ratio": machine.text("proc/sys/vm/dirty_background_ratio"),
        "address_randomisation": machine.text("proc/sys/kernel/randomize_va_space"),
        "numa_nodes": machine.text("sys/devices/system/node/online"),
        "cpus_allowed": machine.key_values("proc/self/status").get("Cpus_allowed_list"),
        "memory_nodes_allowed": machine.key_values("proc/self/status").get("Mems_allowed_list"),
        "hypervisor": _hypervisor(machine),
    }
    found: dict[str, Any] = {name: text for name, text in texts.items() if text}
    if turbo in ("0", "1"):
        found["turbo"] = turbo == "0"
    elif boost in ("0", "1"):
        found["turbo"] = boost == "1"
    total = machine.key_values("proc/meminfo").get("MemTotal", "").split()
    return found | ({"memory_bytes": int(total[0]) * _KIB} if total[:1] and total[0].isdigit() else {})


def _hypervisor(machine: MachineFiles) -> str | None:
    """Say whose virtual machine this is, as far as it says so; None on bare metal and where nothing tells."""
    flags = machine.key_values("proc/cpuinfo").get("flags", "").split()
    if "hypervisor" not in flags:
        return None
    vendor = machine.text("sys/class/dmi/id/sys_vendor") or machine.text("sys/hypervisor/type")
    return vendor or "yes"


def _limits(machine: MachineFiles) -> dict[str, Any]:
    """Return what the control group allows, where it limits anything."""
    found: dict[str, Any] = {}
    quota = cpu_quota(machine)
    if quota is not None:
        found["cgroup_cpus"] = quota
    for folder in machine.cgroup_folders():
        limit = machine.text(f"{folder}/memory.max")
        if limit and limit.isdigit():
            found["cgroup_memory_bytes"] = int(limit)
            break
    return found


def cpu_quota(machine: MachineFiles) -> float | None:
    """Return how many CPUs' time the control groups allow; None without a limit."""
    found: list[float] = []
    for folder in machine.cgroup_folders():
        words = (machine.text(f"{folder}/cpu.max") or "").split()
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
            found.append(int(words[0]) / int(words[1]))
        quota = machine.number(f"{folder}/cpu.cfs_quota_us")
        period = machine.number(f"{folder}/cpu.cfs_period_us")
        if quota is not None and period and quota > 0:
            found.append(quota / period)
    return min(found, default=None)


def _git_facts(cwd: Path) -> dict[str, Any]:
    """Return the revision of the folder's repository, its branch, and whether files differ from it; else nothing."""
    revision = _git(cwd, "rev-parse", "HEAD")
    if not revision:
        return {}
    found: dict[str, Any] = {"revision": revision}
    branch = _git(cwd, "rev-parse", "--abbrev-ref", "HEAD")
    found |= {"branch": redact(branch)} if branch else {}
    changed = _git(cwd, "status", "--porcelain", "--untracked-files=no")
    return found | ({"dirty": bool(changed)} if changed is not None else {})


def _git(cwd: Path, *words: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", *words], capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False, cwd=cwd
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
