"""What the machine was like while something ran: pressure, stolen time, throttling, clocks.

Texts of /proc and /sys are taken before and after, as they are, so that taking them costs microseconds and nothing is
parsed beside what is measured; `conditions_between` makes figures of two such readings. A file that is missing gives no
figure, never 0.

    psi_cpu_share        of the time, some task waited for a CPU; psi_io_share, psi_memory_share likewise
    steal_share          of all CPUs' time, the hypervisor ran somebody else
    other_cpus           CPUs that other processes kept busy, where the CPU time of what was measured is known
    throttled_share      of the time, the control group's quota held it still
    involuntary_per_s    times that it was taken off a CPU, a second
    cpu_mhz              mean clock of the CPUs at the end
    load_1min            load average at the start
    gpu_*                see `longpole.bench.gpu`
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole.bench.machine_files import MachineFiles
from longpole.units import NS_PER_S, NS_PER_US

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.settings import Settings

_PRESSURES: Final = ("cpu", "io", "memory")
_PSI_TOTAL_US: Final = re.compile(r"^some .*\btotal=(\d+)", re.MULTILINE)
_STEAL: Final = 7  # of the fields of /proc/stat's first line behind its name
_IDLE: Final = (3, 4)  # idle and waiting for I/O
_JIFFIES: Final = 8  # the fields from there on are counted in user and nice already
_TICKS_MIN: Final = 20  # of all CPUs; the kernel counts hundredths of a second, and fewer of them are no share
_FREQUENCIES_MAX: Final = 64  # files; a mean needs no more of them


@dataclass(frozen=True, slots=True)
class Reading:
    """Files as they were at one moment.

    Attributes:
        clock_ns: When, on a monotonic clock.
        texts: Path -> text, for those that could be read.
    """

    clock_ns: int
    texts: Mapping[str, str] = field(default_factory=dict)


def watched_files(machine: MachineFiles | None = None) -> list[str]:
    """Return the files whose texts make a reading, as paths; those that are there now."""
    machine = machine or MachineFiles()
    names = [f"proc/pressure/{kind}" for kind in _PRESSURES]
    names += ["proc/stat", "proc/loadavg"]
    stats = (f"{folder}/cpu.stat" for folder in machine.cgroup_folders())
    names += [name for name in stats if _throttled_ns(machine.text(name) or "") is not None][:1]
    clocks = machine.names("sys/devices/system/cpu", "cpu[0-9]*/cpufreq/scaling_cur_freq")
    names += clocks[:_FREQUENCIES_MAX]
    return [str(machine.path(name)) for name in names if machine.path(name).is_file()]


def read_now(paths: Sequence[str]) -> Reading:
    """Take the texts of files; one that cannot be read is left out."""
    texts: dict[str, str] = {}
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - half the time of pathlib's
                texts[path] = file.read()
        except OSError:
            continue
    return Reading(time.perf_counter_ns(), texts)


def conditions_between(
    before: Reading, after: Reading, *, cpu_ns: int | None = None, involuntary: int | None = None
) -> dict[str, float]:
    """Return what the machine was like between two readings: name -> figure.

    Args:
        before: The first reading.
        after: The second one, of the same files.
        cpu_ns: CPU time that what was measured used meanwhile, None where it is not known.
        involuntary: How often it was taken off a CPU.
    """
    elapsed_ns = after.clock_ns - before.clock_ns
    if elapsed_ns <= 0:
        return {}
    found: dict[str, float] = {}
    for path in after.texts:
        one, other = before.texts.get(path), after.texts[path]
        if one is not None:
            found |= _figures(path, one, other, elapsed_ns)
    busy_cpus = found.pop("_busy_cpus", None)
    if busy_cpus is not None and cpu_ns is not None:
        found["other_cpus"] = max(busy_cpus - cpu_ns / elapsed_ns, 0.0)
    if involuntary is not None:
        found["involuntary_per_s"] = involuntary * NS_PER_S / elapsed_ns
    clocks = [_khz(text) for path, text in after.texts.items() if path.endswith("scaling_cur_freq")]
    known = [khz for khz in clocks if khz is not None]
    if known:
        found["cpu_mhz"] = sum(known) / len(known) / 1000
    return {name: round(figure, 6) for name, figure in found.items()}


def flags_of(conditions: Mapping[str, float], settings: Settings) -> list[str]:
    """Name the conditions that make a sample suspect; it is counted all the same (bench-io A2: tag, do not trim).

    Args:
        conditions: As `conditions_between` returns them.
        settings: `bench_pressure_max_share`, `bench_steal_max_share`, `bench_throttled_max_share`,
            `bench_involuntary_max_per_s`.
    """
    limits = {
        "cpu-pressure": ("psi_cpu_share", settings.bench_pressure_max_share),
        "io-pressure": ("psi_io_share", settings.bench_pressure_max_share),
        "memory-pressure": ("psi_memory_share", settings.bench_pressure_max_share),
        "stolen-time": ("steal_share", settings.bench_steal_max_share),
        "quota-throttled": ("throttled_share", settings.bench_throttled_max_share),
        "preempted": ("involuntary_per_s", settings.bench_involuntary_max_per_s),
        "gpu-throttled": ("gpu_throttled", 0.0),
        "other-gpu-processes": ("gpu_other_processes", 0.0),
    }
    return [flag for flag, (name, most) in limits.items() if conditions.get(name, 0.0) > most]


def _figures(path: str, before: str, after: str, elapsed_ns: int) -> dict[str, float]:
    """Return what one file says of the time between two of its texts."""
    parts = path.split("/")
    if parts[-2:-1] == ["pressure"]:
        return _pressure(parts[-1], before, after, elapsed_ns)
    if parts[-1] == "stat":
        return _cpu_time(before, after)
    if parts[-1] == "cpu.stat":
        one, other = _throttled_ns(before), _throttled_ns(after)
        return {} if one is None or other is None else {"throttled_share": max(other - one, 0) / elapsed_ns}
    if parts[-1] == "loadavg":
        return _load(before)
    return {}


def _pressure(kind: str, before: str, after: str, elapsed_ns: int) -> dict[str, float]:
    """Return the share of the time that some task waited: the kernel's total is in microseconds."""
    one, other = _PSI_TOTAL_US.search(before), _PSI_TOTAL_US.search(after)
    if one is None or other is None:
        return {}
    return {f"psi_{kind}_share": min(max(int(other[1]) - int(one[1]), 0) * NS_PER_US / elapsed_ns, 1.0)}


def _cpu_time(before: str, after: str) -> dict[str, float]:
    """Return stolen and busy time from the sums over all CPUs; nothing where few ticks passed."""
    one, other = _jiffies(before), _jiffies(after)
    if len(one) != _JIFFIES or len(other) != _JIFFIES:
        return {}
    spent = [max(b - a, 0) for a, b in zip(one, other, strict=True)]
    total, stolen = sum(spent), spent[_STEAL]
    if total < _TICKS_MIN:
        return {}
    cpus = len(re.findall(r"^cpu\d+ ", after, re.MULTILINE)) or 1
    busy = total - stolen - sum(spent[place] for place in _IDLE)
    return {"steal_share": stolen / total, "_busy_cpus": busy / total * cpus}


def _jiffies(text: str) -> list[int]:
    head = text.split("\n", 1)[0].split()
    numbers = head[1 : 1 + _JIFFIES]
    return [int(number) for number in numbers] if head[:1] == ["cpu"] and all(map(str.isdigit, numbers)) else []


def _throttled_ns(text: str) -> int | None:
    """Return how long a control group was held still: version 2 counts microseconds, version 1 nanoseconds."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "throttled_usec" and value.isdigit():
            return int(value) * NS_PER_US
        if name == "throttled_time" and value.isdigit():
            return int(value)
    return None


def _load(text: str) -> dict[str, float]:
    first = text.split(" ", 1)[0]
    try:
        return {"load_1min": float(first)}
    except ValueError:
        return {}


def _khz(text: str) -> float | None:
    return float(text) if text.strip().isdigit() else None
