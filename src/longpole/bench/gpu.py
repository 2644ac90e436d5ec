"""What NVIDIA's management tool says of the GPUs: facts that stay, and readings around a process.

`nvidia-smi` takes some tens of milliseconds, so readings are taken around whole processes, never beside a unit. Where
the tool is missing or fails there are no figures.

Source of the query names and of the throttle bits: `nvidia-smi --help-query-gpu` and nvml.h (nvmlClocksEventReasons).
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TIMEOUT_S: Final = 20.0
_FACTS: Final = {
    "name": "name",
    "uuid": "uuid",
    "driver": "driver_version",
    "mig": "mig.mode.current",
    "persistence": "persistence_mode",
    "compute_mode": "compute_mode",
    "power_limit_w": "power.limit",
    "sm_max_mhz": "clocks.max.sm",
    "sm_mhz": "clocks.sm",
}
_READINGS: Final = {
    "sm_mhz": "clocks.sm",
    "memory_mhz": "clocks.mem",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
    "throttle": "clocks_throttle_reasons.active",
}
_HARMLESS: Final = 0x1 | 0x2 | 0x100  # idle, clocks of applications, clocks of the display: no loss while work runs


def gpu_facts() -> list[dict[str, str]]:
    """Return what stays of each GPU: name -> text; empty without GPUs or the tool."""
    return _query(_FACTS)


def read_gpus() -> list[dict[str, str]]:
    """Return each GPU's clocks, temperature, power and throttle reasons now."""
    return _query(_READINGS)


def gpu_conditions(before: Sequence[Mapping[str, str]], after: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Return figures over all GPUs: the lowest clocks, the highest temperature and power, how many are throttled.

    Args:
        before: Readings at the start; those that throttle then count too.
        after: Readings at the end, from which the other figures are.
    """
    found: dict[str, float] = {}
    for name, choose in (("sm_mhz", min), ("memory_mhz", min), ("temperature_c", max), ("power_w", max)):
        values = [value for value in (_number(gpu.get(name, "")) for gpu in after) if value is not None]
        if values:
            found[f"gpu_{name}"] = choose(values)
    reasons = [gpu["throttle"] for gpu in (*before, *after) if gpu.get("throttle")]
    if reasons:
        held = [[_is_held(gpu.get("throttle", "")) for gpu in side] for side in (before, after) if side]
        found["gpu_throttled"] = float(max(sum(side) for side in held))
    return found


def _is_held(mask: str) -> bool:
    try:
        return bool(int(mask, 16) & ~_HARMLESS)
    except ValueError:
        return False


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _query(names: Mapping[str, str]) -> list[dict[str, str]]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    argv = [tool, f"--query-gpu={','.join(names.values())}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_answer(answer.stdout, list(names)) if answer.returncode == 0 else []


def parse_answer(text: str, names: Sequence[str]) -> list[dict[str, str]]:
    """Return the lines of the tool's answer as name -> text, without what a GPU does not support.

    >>> parse_answer("NVIDIA H200, [N/A], 0x0000000000000001", ["name", "mig", "throttle"])
    [{'name': 'NVIDIA H200', 'throttle': '0x0000000000000001'}]
    """
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == len(names):
            known = zip(names, fields, strict=True)
            found.append({name: value for name, value in known if value and not value.startswith(("[", "N/A"))})
    return found
