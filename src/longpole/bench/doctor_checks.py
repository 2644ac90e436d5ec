"""What a doctor of machines looks at, one function a thing; each says nothing (None) where the thing is not there."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.environment import cpu_quota
from longpole.bench.gpu import gpu_conditions
from longpole.records.doctor import DoctorCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.bench.machine_files import MachineFiles
    from longpole.settings import Settings

OTHER_CPUS_MIN: Final = 0.1
"""Other programs that keep more than a tenth of a CPU busy at rest are load (our choice: at rest it is less)."""

_HOT_C: Final = 85.0  # most CPUs lower their clocks from 90 to 100 °C on
_THREAD_VARIABLES: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What there is to judge by.

    Attributes:
        machine: The kernel's files.
        conditions: What the machine was like at rest.
        gpus: Facts of the GPUs.
        gpu_readings: Their clocks and temperatures.
        settings: Limits.
        variables: The environment's variables.
    """

    machine: MachineFiles
    conditions: Mapping[str, float]
    settings: Settings
    gpus: Sequence[Mapping[str, str]] = ()
    gpu_readings: Sequence[Mapping[str, str]] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def other_load(seen: Seen) -> DoctorCheck | None:
    """Look for other programs that compute."""
    busy = seen.conditions.get("other_cpus")
    if busy is None:
        return DoctorCheck("other load", "not known", "the kernel's CPU times cannot be read (/proc/stat)")
    found = f"other programs keep {busy:.1f} CPUs busy"
    if busy <= OTHER_CPUS_MIN:
        return DoctorCheck("other load", "quiet", found)
    return DoctorCheck(
        "other load",
        "noisy",
        found,
        "what shares a CPU, a cache or the memory's bandwidth is measured along with it",
        "end them, or measure in pairs (longpole bench gate): both halves of a pair share the load",
    )


def _pressure(kind: str, what: str, remedy: str) -> Callable[[Seen], DoctorCheck | None]:
    def check(seen: Seen) -> DoctorCheck | None:
        name = f"{kind} pressure"
        share = seen.conditions.get(f"psi_{kind.lower()}_share")
        if share is None:
            return DoctorCheck(
                name,
                "not known",
                "the kernel does not tell (no /proc/pressure)",
                "samples cannot be flagged for it",
                "boot with psi=1",
            )
        found = f"some task waited for {what} {100 * share:.1f} % of the time"
        if share <= seen.settings.bench_pressure_max_share:
            return DoctorCheck(name, "quiet", found)
        why = "a save of 64 MiB varied by 5 % below this pressure and by 80 % above it (bench-io A2)"
        return DoctorCheck(name, "noisy", found, why, remedy)

    return check


def stolen(seen: Seen) -> DoctorCheck | None:
    """Look for time that the hypervisor gave to others."""
    share = seen.conditions.get("steal_share")
    if share is None:
        return None
    found = f"the hypervisor ran somebody else {100 * share:.1f} % of the time"
    if share <= seen.settings.bench_steal_max_share:
        return DoctorCheck("stolen time", "quiet", found)
    return DoctorCheck(
        "stolen time", "noisy", found, "it stretches any span without a trace in it", "use a machine of your own"
    )


def quota(seen: Seen) -> DoctorCheck | None:
    """Look for a limit of CPU time, and whether it holds this group still."""
    limit = cpu_quota(seen.machine)
    held = seen.conditions.get("throttled_share", 0.0)
    if held > seen.settings.bench_throttled_max_share:
        return DoctorCheck(
            "CPU quota",
            "noisy",
            f"the control group was held still {100 * held:.1f} % of the time",
            "a process stops for tens of milliseconds once its quota is used up",
            "raise the quota (cpu.max), or use fewer threads than it allows",
        )
    if limit is None:
        return DoctorCheck("CPU quota", "quiet", "none")
    return DoctorCheck(
        "CPU quota",
        "may matter",
        f"{limit:g} CPUs' time",
        "a process with more threads than that is held still in every period",
        f"use at most {max(int(limit), 1)} threads (OMP_NUM_THREADS), or raise cpu.max",
    )


def governor(seen: Seen) -> DoctorCheck | None:
    """Look at how clocks are chosen."""
    name = seen.machine.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if name is None:
        return DoctorCheck(
            "clock governor", "not known", "not shown here (no cpufreq), as in most virtual machines", "clocks may vary"
        )
    if name == "performance":
        return DoctorCheck("clock governor", "quiet", name)
    return DoctorCheck(
        "clock governor",
        "may matter",
        name,
        "clocks rise only once there is work: the first milliseconds of a sample are slower",
        "cpupower frequency-set -g performance",
    )


def turbo(seen: Seen) -> DoctorCheck | None:
    """Look whether clocks go beyond their base."""
    cpu = "sys/devices/system/cpu"
    no_turbo, boost = seen.machine.text(f"{cpu}/intel_pstate/no_turbo"), seen.machine.text(f"{cpu}/cpufreq/boost")
    if no_turbo is None and boost is None:
        return None
    if no_turbo == "1" or boost == "0":
        return DoctorCheck("turbo", "quiet", "off")
    remedy = "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"
    if no_turbo is None:
        remedy = "echo 0 > /sys/devices/system/cpu/cpufreq/boost"
    return DoctorCheck(
        "turbo",
        "may matter",
        "on",
        "clocks depend on heat and on how many cores are busy: a second process slows the first",
        f"{remedy}, if steady times matter more than fast ones",
    )


def smt(seen: Seen) -> DoctorCheck | None:
    """Look whether cores are shared by two threads."""
    active = seen.machine.text("sys/devices/system/cpu/smt/active")
    if active is None:
        return None
    if active == "0":
        return DoctorCheck("SMT", "quiet", "off")
    return DoctorCheck(
        "SMT",
        "may matter",
        "on",
        "two threads of one core share its units: how fast one is depends on what the other does",
        "pin the benchmark to one thread a core (taskset), or echo off > /sys/devices/system/cpu/smt/control",
    )


def huge_pages(seen: Seen) -> DoctorCheck | None:
    """Look at transparent huge pages."""
    chosen = seen.machine.chosen("sys/kernel/mm/transparent_hugepage/enabled")
    if chosen is None:
        return None
    if chosen != "always":
        return DoctorCheck("huge pages", "quiet", f"transparent huge pages: {chosen}")
    return DoctorCheck(
        "huge pages",
        "may matter",
        "transparent huge pages: always",
        "whether a process gets them depends on how broken up memory is, so equal processes differ",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    )


def swap(seen: Seen) -> DoctorCheck | None:
    """Look whether memory was moved out."""
    memory = seen.machine.key_values("proc/meminfo")
    total, free = (_kib(memory.get(name, "")) for name in ("SwapTotal", "SwapFree"))
    if total is None or free is None:
        return None
    if total == free:
        return DoctorCheck("swap", "quiet", "none in use" if total else "none")
    return DoctorCheck(
        "swap",
        "may matter",
        f"{(total - free) / 1024:,.0f} MiB in use",
        "memory that was moved out is read back in the middle of a sample",
        "free memory, or swapoff -a && swapon -a before measuring",
    )


def heat(seen: Seen) -> DoctorCheck | None:
    """Look at temperatures, and at how often cores were throttled since the start."""
    zones = [seen.machine.number(name) for name in seen.machine.names("sys/class/thermal", "thermal_zone*/temp")]
    hottest = max((zone / 1000 for zone in zones if zone is not None), default=None)
    counts = seen.machine.names("sys/devices/system/cpu", "cpu[0-9]*/thermal_throttle/core_throttle_count")
    throttled = sum(seen.machine.number(name) or 0 for name in counts)
    if hottest is None and not counts:
        return None
    found = f"{hottest:.0f} °C at most" if hottest is not None else "temperatures not shown"
    found += f", throttled {throttled:,.0f} times since the start" if throttled else ""
    if (hottest or 0) < _HOT_C and not throttled:
        return DoctorCheck("heat", "quiet", found)
    return DoctorCheck(
        "heat",
        "noisy" if (hottest or 0) >= _HOT_C else "may matter",
        found,
        "a hot CPU lowers its clocks: later samples are slower than earlier ones",
        "let it cool, improve the cooling, or lower the clocks for good",
    )


def address_randomisation(seen: Seen) -> DoctorCheck | None:
    """Look whether each process lies elsewhere in memory."""
    value = seen.machine.text("proc/sys/kernel/randomize_va_space")
    if value is None:
        return None
    if value == "0":
        return DoctorCheck(
            "address layout",
            "may matter",
            "not randomised",
            "every process has the same layout, which may be a lucky or an unlucky one",
            "echo 2 > /proc/sys/kernel/randomize_va_space: several processes then average over layouts",
        )
    return DoctorCheck("address layout", "quiet", "randomised: several processes average over layouts")


def numa(seen: Seen) -> DoctorCheck | None:
    """Look whether memory may be far from the CPU."""
    nodes = seen.machine.names("sys/devices/system/node", "node[0-9]*")
    if len(nodes) < 2:
        return None
    tool = "" if shutil.which("numactl") else " (numactl is not installed)"
    return DoctorCheck(
        "NUMA",
        "may matter",
        f"{len(nodes)} memory nodes",
        "memory of another node is slower, and which one a process gets is chance",
        f"numactl --cpunodebind=0 --membind=0 CMD{tool}",
    )


def disk_scheduler(seen: Seen) -> DoctorCheck | None:
    """Look at the schedulers of disks without moving parts."""
    found = {}
    for name in seen.machine.names("sys/block", "*/queue/scheduler"):
        disk = name.split("/")[2]
        rotational = seen.machine.text(f"sys/block/{disk}/queue/rotational")
        chosen = seen.machine.chosen(name)
        if rotational == "0" and chosen not in (None, "none") and not disk.startswith(("loop", "ram", "zram")):
            found[disk] = chosen
    if not found:
        return None
    return DoctorCheck(
        "disk scheduler",
        "may matter",
        ", ".join(f"{disk}: {chosen}" for disk, chosen in found.items()),
        "requests are held back and reordered for fairness, which a fast disk does not need",
        f"echo none > /sys/block/{next(iter(found))}/queue/scheduler, for benchmarks of storage",
    )


def gpu_clocks(seen: Seen) -> DoctorCheck | None:
    """Look at the GPUs' clocks; nothing tells whether they are locked, but idle ones at their maximum are."""
    if not seen.gpus:
        if seen.machine.path("dev/nvidia0").exists():
            return DoctorCheck(
                "GPU clocks", "not known", "nvidia-smi is missing", "throttling goes unnoticed", "install nvidia-smi"
            )
        return None
    throttled = gpu_conditions(seen.gpu_readings, seen.gpu_readings).get("gpu_throttled", 0.0)
    if throttled:
        return DoctorCheck(
            "GPU clocks",
            "noisy",
            f"{throttled:.0f} GPUs have lowered their clocks",
            "heat or power limits slow kernels down from sample to sample",
            "nvidia-smi -q -d PERFORMANCE says why",
        )
    if all(gpu.get("sm_mhz") and gpu.get("sm_mhz") == gpu.get("sm_max_mhz") for gpu in seen.gpus):
        return DoctorCheck("GPU clocks", "quiet", "at their maximum while idle: locked, as it seems")
    return DoctorCheck(
        "GPU clocks",
        "may matter",
        "not locked, as it seems",
        "they follow load and heat: the first kernels of a sample are slower",
        "nvidia-smi -lgc MHZ before measuring, nvidia-smi -rgc after it",
    )


def gpu_persistence(seen: Seen) -> DoctorCheck | None:
    """Look whether the driver stays loaded between processes."""
    if not any(gpu.get("persistence") == "Disabled" for gpu in seen.gpus):
        return None
    return DoctorCheck(
        "GPU persistence",
        "may matter",
        "off",
        "each fresh process waits for the driver to start the GPU, a second or more",
        "nvidia-smi -pm 1",
    )


def virtual(seen: Seen) -> DoctorCheck | None:
    """Say that a virtual machine does not show everything."""
    if "hypervisor" not in seen.machine.key_values("proc/cpuinfo").get("flags", "").split():
        return None
    return DoctorCheck(
        "virtual machine",
        "may matter",
        "yes",
        "neighbours on the host slow it down, and no counter in here shows all of that",
        "compare in pairs of fresh processes (longpole bench gate), never today's run with yesterday's",
    )


def threads(seen: Seen) -> DoctorCheck | None:
    """Say that the number of threads is left to the libraries."""
    if any(seen.variables.get(name) for name in _THREAD_VARIABLES):
        return DoctorCheck("threads", "quiet", "set by the environment")
    return DoctorCheck(
        "threads",
        "may matter",
        "OMP_NUM_THREADS is not set: libraries start one a CPU",
        "threads on every CPU meet whatever else runs, and wait for the slowest",
        "set OMP_NUM_THREADS, one less than there are CPUs, where the benchmark allows it",
    )


CHECKS: Final[tuple[Callable[[Seen], DoctorCheck | None], ...]] = (
    other_load,
    _pressure("CPU", "a CPU", "end what else runs, or use fewer threads than there are CPUs"),
    _pressure("IO", "storage", "wait until writes are done (sync), and end what else reads and writes"),
    _pressure("memory", "memory", "free memory: pages are being reclaimed"),
    stolen,
    quota,
    heat,
    gpu_clocks,
    gpu_persistence,
    swap,
    governor,
    turbo,
    smt,
    huge_pages,
    numa,
    disk_scheduler,
    address_randomisation,
    virtual,
    threads,
)
"""In the order in which they are shown among equals."""


def _kib(text: str) -> int | None:
    first: Any = text.split()[:1]
    return int(first[0]) if first and first[0].isdigit() else None
