"""Figures of claims in words: with their unit, as many digits as they carry, and what they are called."""

from __future__ import annotations

import math
import re
from typing import Final

from longpole.claims.fields import FIELDS, UNIT

_SI: Final = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BEYOND: Final = 1e21
_COUNTS: Final = ((1e12, "T"), (1e9, "B"), (1e6, "M"))
_UNIT: Final = re.compile(r"%|[A-Za-zµ]{2}|\d\s+[a-z]\b|\dh\b")
_PREFIXED: Final = re.compile(r"\d\s*[kKMBGT]$")
_DIGITS: Final = 3
_PSEUDO: Final = {
    "counted_flops_token": "counted FLOPs per token", "counted_hw_flops_token": "counted hardware FLOPs per token",
    "hw_flops_token": "hardware FLOPs per token", "device_peak": "the device's peak", "bus_factor": "ring factor",
}  # fmt: skip


def title_of(field: str) -> str:
    """Return what a figure is called."""
    return FIELDS[field].what if field in FIELDS else _PSEUDO.get(field, field)


def unit_of_field(field: str) -> str:
    """Return the unit that its values are in."""
    if field in FIELDS:
        return UNIT[FIELDS[field].kind]
    return "FLOP/s" if field == "device_peak" else "FLOP" if "flops" in field else ""


def shown(field: str, text: str, value: float) -> str:
    """Return a figure as it was written where that says its unit, else with its unit.

    >>> shown("step_s", "0.51 ms", 0.00051), shown("step_s", "6.3", 0.0063), shown("params", "13e9", 13e9)
    ('0.51 ms', '6.300 ms', '13.00B')
    """
    counted = field in FIELDS and FIELDS[field].kind in ("count", "amount", "share", "factor", "money")
    written = _UNIT.search(text) is not None or (counted and _PREFIXED.search(text) is not None)
    return text if written else write(field, value, 4)


def write(field: str, value: float, digits: int = _DIGITS) -> str:
    """Write a figure with the unit that suits it.

    >>> write("mfu", 0.020192), write("ideal_step_s", 0.51202), write("gpus", 16), write("link", 300e9)
    ('2.02 %', '512 ms', '16', '300 GB/s')
    """
    if not math.isfinite(value):
        return "any"
    kind = FIELDS[field].kind if field in FIELDS else "flops"
    writer = {
        "count": _count, "amount": _amount, "time": _time, "share": _share, "factor": _factor, "money": _money,
    }.get(kind)  # fmt: skip
    writer = _device_time if field == "gpu_s" else writer
    if writer is not None:
        return writer(value, digits)
    if field == "bus_factor":
        return f"{value:.4g}"
    unit = unit_of_field(field)
    if unit == "tokens/s":
        return f"{_plain(value, max(digits, 4))} {'sequences/s' if field == 'seq_s' else unit}"
    return _with_prefix(value, unit, digits)


def _with_prefix(value: float, unit: str, digits: int) -> str:
    """Write a value with the prefix that suits it; beyond them all, with its power of ten."""
    if abs(value) >= _BEYOND:
        return f"{value:.{digits}g} {unit}"
    step, prefix = next(((step, prefix) for step, prefix in _SI if abs(value) >= step), (1.0, ""))
    return f"{_plain(value / step, digits)} {prefix}{unit}"


def _plain(value: float, digits: int) -> str:
    whole = len(str(int(abs(value))))
    if abs(value) < 1:
        return f"{value:.{digits}g}"
    return f"{value:,.{max(digits - whole, 0)}f}"


def _count(value: float, digits: int) -> str:
    if abs(value - round(value)) < 1e-9 * max(abs(value), 1):
        return f"{round(value):,}"
    return f"{value:.{digits}g}"


def _amount(value: float, digits: int) -> str:
    for step, letter in _COUNTS:
        if abs(value) >= step:
            return f"{_plain(value / step, digits)}{letter}"
    return _count(value, digits)


def _time(value: float, digits: int) -> str:
    if value >= 2 * 86400:
        return f"{_plain(value / 86400, digits)} days ({_plain(value / 3600, digits)} h)"
    if value >= 2 * 3600:
        return f"{_plain(value / 3600, digits)} h"
    for step, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= step:
            return f"{_plain(value / step, digits)} {unit}"
    return f"{value * 1e9:.{digits}g} ns"


def _device_time(value: float, digits: int) -> str:
    return f"{_plain(value / 3600, digits)} device hours"


def _share(value: float, digits: int) -> str:
    return f"{_plain(100 * value, digits)} %"


def _factor(value: float, digits: int) -> str:
    return f"{value:.{digits}g}×"


def _money(value: float, digits: int) -> str:
    return f"${_amount(value, digits)}"


def times(factor: float) -> str:
    """Write how many times one figure is another.

    >>> times(1.5), times(17.31), times(0.5)
    ('1.50', '17.3', '0.500')
    """
    return _plain(factor, _DIGITS) if factor >= 1 else f"{factor:.{_DIGITS}f}"
