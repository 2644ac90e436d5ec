"""What the value of a key may be, and what is said of one that it may not be."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.readers.plan_file.keys import PlanKey

POLICIES: Final = ("none", "selective", "full", "fit")
"""`fit` is the least recomputation that fits, layer by layer."""
_OF_LAYERS: Final = POLICIES[:3]
PEAK_TYPES: Final = ("bf16", "fp16", "fp8", "fp32")
_MOST_COUNT: Final = 1 << 40
_SHOWN: Final = 60
_LAYERS: Final = re.compile(r"\s*\d{1,6}(\s*-\s*\d{1,6})?(\s*,\s*\d{1,6}(\s*-\s*\d{1,6})?)*\s*", re.ASCII)


def find_complaint(key: PlanKey, value: object) -> str:
    """Return what is wrong with a value, empty where nothing is."""
    return _CHECKS[key.holds](key, value)


def show_value(value: object) -> str:
    """Write a value so that it fits into a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def parse_layers(text: str) -> list[int]:
    """Read numbers of layers, counted from 0.

    >>> parse_layers("0-2, 7")
    [0, 1, 2, 7]
    """
    layers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        layers += range(int(first), int(last or first) + 1)
    return layers


_EXPECTED: Final = {
    "text": "a text",
    "flag": "true or false",
    "count": "a whole number of at least 1",
    "size": "a whole number of at least 0",
    "number": "a finite number above 0",
    "share": "a share above 0 and at most 1",
    "counts": "a list of whole numbers of at least 1",
    "peaks": f"TFLOP/s above 0, or a table of them by {', '.join(PEAK_TYPES)}",
    "policies": f'one of {", ".join(POLICIES)}, or by policy the layers that have it: {{ full = "0-7" }}',
}


def _of_text(key: PlanKey, value: object) -> str:
    return (
        ""
        if isinstance(value, str) and value.strip()
        else f"expected {_EXPECTED[key.holds]}; found {show_value(value)}"
    )


def _of_flag(key: PlanKey, value: object) -> str:
    return "" if isinstance(value, bool) else f"expected {_EXPECTED[key.holds]}; found {show_value(value)}"


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _of_count(key: PlanKey, value: object) -> str:
    least = 1 if key.holds == "count" else 0
    if not _is_whole(value, least):
        return f"expected {_EXPECTED[key.holds]}; found {show_value(value)}"
    most = key.most if key.most is not None else _MOST_COUNT
    return _too_much(value, most)


def _of_number(key: PlanKey, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        return f"expected {_EXPECTED['number']}; found {show_value(value)}"
    return _too_much(value, key.most if key.most is not None else math.inf)


def _of_share(_key: PlanKey, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        return f"expected {_EXPECTED['share']}; found {show_value(value)}"
    return ""


def _too_much(value: Any, most: float) -> str:
    return f"expected at most {most:,.0f}; found {show_value(value)}" if value > most else ""


def _of_counts(key: PlanKey, value: object) -> str:
    least = 0 if key.name == "zero" else 1
    if not isinstance(value, list) or not value or not all(_is_whole(one, least) for one in value):
        return f"expected {_EXPECTED['counts']}; found {show_value(value)}"
    return next((says for one in value if (says := _too_much(one, key.most or _MOST_COUNT))), "")


def _of_peaks(key: PlanKey, value: object) -> str:
    if not isinstance(value, dict):
        return _of_number(key, value) and f"expected {_EXPECTED['peaks']}; found {show_value(value)}"
    strange = [name for name in value if name not in PEAK_TYPES]
    if strange or not value:
        return f"expected {_EXPECTED['peaks']}; found {show_value(value)}"
    return next((f"{name}: {says}" for name, one in value.items() if (says := _of_number(key, one))), "")


def _of_policies(_key: PlanKey, value: object) -> str:
    complaint = f"expected {_EXPECTED['policies']}; found {show_value(value)}"
    if isinstance(value, str):
        return "" if value in POLICIES else complaint
    if isinstance(value, list):
        return "" if value and all(isinstance(one, str) and one in POLICIES for one in value) else complaint
    if not isinstance(value, dict) or not value:
        return complaint
    for policy, layers in value.items():
        if policy not in _OF_LAYERS or not isinstance(layers, str) or not _LAYERS.fullmatch(layers):
            return complaint
    return ""


_CHECKS: Final[dict[str, Callable[[PlanKey, object], str]]] = {
    "text": _of_text,
    "flag": _of_flag,
    "count": _of_count,
    "size": _of_count,
    "number": _of_number,
    "share": _of_share,
    "counts": _of_counts,
    "peaks": _of_peaks,
    "policies": _of_policies,
}
