"""Read the JSON file of nccl-tests (`-J FILE`, from 2.17 on), one that was cut off included.

The file holds the whole environment of the program, credentials and all: only variables of NCCL are looked at.
Layout: NVIDIA/nccl-tests src/util.cu (2.19.6). Of several processes `devices` has one entry each, whatever number of
devices a process drives.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from longpole.records.nccl_log import LoggedRow, LoggedSide, LoggedTest

_VARIABLE: Final = re.compile(r"((?:NCCL|RCCL)_[A-Z0-9_]{1,60})=([\w.:,^+-]{1,80})")
_SIGNS: Final = (b'"nccl_version"', b'"results"', b'"minimum_bytes"')
_CLOSINGS: Final = ("", "}", "]}", "}]}", "}}]}", "}}")
_TRIES: Final = 200


def looks_like_nccl_json(head: bytes) -> bool:
    """Tell by its first bytes whether a file is such a JSON file."""
    return head.lstrip().startswith(b"{") and any(sign in head for sign in _SIGNS)


def read_nccl_json(text: str) -> LoggedTest | None:
    """Read the test of a file, None where nothing of it can be used.

    Args:
        text: The file, possibly cut off anywhere.
    """
    document, is_cut = _decode(text)
    if not isinstance(document, dict):
        return None
    config = document.get("config")
    config = config if isinstance(config, dict) else {}
    test = LoggedTest(
        program=_program(document.get("args")),
        repeats=_whole(config.get("iterations")),
        warmup=_whole(config.get("warmup_iters")),
        out_of_bounds=_inner(document, "out_of_bounds", "count", _whole),
        busbw=_inner(document, "average_bus_bandwidth", "bandwidth", _real),
        variables=_variables(document.get("env")),
        version=str(_whole(document.get("nccl_version")) or ""),
    )
    _read_devices(test, config)
    results = document.get("results")
    for place, entry in enumerate(results if isinstance(results, list) else []):
        row = _row(entry)
        if row is not None:
            test.rows.append(row)
        elif len(test.complaints) < _TRIES:
            test.complaints.append(f"results[{place}]: not a row of a size and its figures")
    if is_cut:
        test.complaints.append("the file ends in the middle: the test was ended before its last size")
    return test


def _decode(text: str) -> tuple[Any, bool]:
    """Return the document, and whether it had to be closed for it: cut back to an end of an entry, and closed there."""
    try:
        return json.loads(text), False
    except (ValueError, RecursionError):
        pass
    end = len(text)
    for _ in range(_TRIES):
        end = text.rfind("}", 0, end)
        if end < 0:
            break
        for closing in _CLOSINGS:
            try:
                return json.loads(text[: end + 1] + closing), True
            except (ValueError, RecursionError):
                continue
    return None, True


def _program(args: Any) -> str:
    first = args[0] if isinstance(args, list) and args and isinstance(args[0], str) else ""
    return first.replace("\\", "/").rpartition("/")[2]


def _variables(env: Any) -> dict[str, str]:
    """Return NCCL's own variables; values with odd characters are left out, and all others are never looked at."""
    found = {}
    for entry in env if isinstance(env, list) else []:
        match = _VARIABLE.fullmatch(entry) if isinstance(entry, str) else None
        if match is not None:
            found[match[1]] = match[2]
    return found


def _read_devices(test: LoggedTest, config: dict[str, Any]) -> None:
    devices = config.get("devices")
    entries = [entry for entry in devices if isinstance(entry, dict)] if isinstance(devices, list) else []
    groups: dict[Any, int] = {}
    for entry in entries:
        group = _whole(entry.get("group")) or 0
        groups[group] = groups.get(group, 0) + 1
        name = entry.get("device_info")
        if isinstance(name, str) and name.strip() and name.strip() not in test.devices:
            test.devices.append(name.strip())
    each = (_whole(config.get("nthreads")) or 0) * (_whole(config.get("ngpus")) or 0)
    if entries and each:
        test.ranks = max(groups.values()) * each
        test.nodes = len({str(entry.get("hostname")) for entry in entries})


def _row(entry: Any) -> LoggedRow | None:
    if not isinstance(entry, dict):
        return None
    size, count = _whole(entry.get("size")), _whole(entry.get("count"))
    out_of_place, in_place = _side(entry.get("out_of_place")), _side(entry.get("in_place"))
    if size is None or (out_of_place is None and in_place is None):
        return None
    root = str(entry.get("root", "")).strip()
    return LoggedRow(
        size,
        count or 0,
        str(entry.get("type", "")).strip().lower(),
        str(entry.get("redop", "")).strip(),
        int(root) if re.fullmatch(r"-?\d{1,9}", root) else None,
        out_of_place,
        in_place,
    )


def _side(entry: Any) -> LoggedSide | None:
    if not isinstance(entry, dict):
        return None
    time_us = _real(entry.get("time", entry.get("cpu_time")))
    algbw, busbw = _real(entry.get("alg_bw")), _real(entry.get("bus_bw"))
    if time_us is None or algbw is None or busbw is None:
        return None
    wrong = _real(entry.get("nwrong"))
    return LoggedSide(time_us, algbw, busbw, round(wrong) if wrong is not None else None)


def _inner(document: dict[str, Any], block: str, key: str, read: Any) -> Any:
    inner = document.get(block)
    return read(inner.get(key)) if isinstance(inner, dict) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def _real(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value >= 0 else None
