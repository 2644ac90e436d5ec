"""Measured steps as CSV: what each took, and what of a plan's layout, batch or training was other than the plan's.

    step_ms,tp,pp,dp,micro_batch,global_batch,recompute
    3710,8,1,8,2,256,none
    5122,8,2,4,1,256,full

Columns are keys of a plan (`docs/reference/plan-file.md`), and `devices`; `#` begins a comment line. A row that cannot
be used is left out, and said.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

from longpole.errors import InputError
from longpole.readers.plan_file.keys import key_of
from longpole.readers.plan_file.values import find_complaint, show_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TIME: Final = "step_ms"
_SECTIONS: Final = ("layout", "batch", "training")
_DEVICES: Final = "devices"
_HINT: Final = f"A header with {TIME} and keys of [layout], [batch] or [training], then a line for each measured step"
_BYTES_MAX: Final = 16 << 20
_MS_PER_S: Final = 1e3


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """One measured step.

    Attributes:
        line: Of the file, counted from 1.
        step_s: How long it took.
        keys: (section, key) -> value, what it has of its own.
    """

    line: int
    step_s: float
    keys: Mapping[tuple[str, str], object]


@dataclass(frozen=True, slots=True)
class StepLog:
    """Measured steps, and what was left out.

    Attributes:
        steps: In their order.
        complaints: What is wrong with a line, each with its number.
    """

    steps: tuple[LoggedStep, ...]
    complaints: tuple[str, ...]


def read_step_log(path: Path) -> StepLog:
    """Read measured steps.

    Raises:
        InputError: It cannot be read, has no column of times, or a column that is no key.
    """
    lines = [(at, line) for at, line in enumerate(_read_text(path).splitlines(), 1) if line.strip()]
    lines = [(at, line) for at, line in lines if not line.lstrip().startswith("#")]
    if not lines:
        raise InputError.at(path, None, "expected measured steps, found nothing", _HINT)
    rows = [(at, next(csv.reader([line]))) for at, line in lines]
    header = [cell.strip() for cell in rows[0][1]]
    places = _places(header, path)
    steps: list[LoggedStep] = []
    complaints: list[str] = []
    for line, cells in rows[1:]:
        step, complaint = _step(line, header, cells, places)
        if step is not None:
            steps.append(step)
        else:
            complaints.append(f"line {line}: {complaint}")
    return StepLog(tuple(steps), tuple(complaints))


def _places(header: list[str], path: Path) -> dict[str, tuple[str, str]]:
    """Return where each column belongs in a plan."""
    if TIME not in header:
        raise InputError.at(path, None, f"no column {TIME}: found {', '.join(header)[:200]}", _HINT)
    twice = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if twice:
        raise InputError.at(path, None, f"column {twice[0]} is there twice", _HINT)
    places = {}
    for name in header:
        section = next((one for one in _SECTIONS if key_of(one, name) is not None), "")
        if name == _DEVICES:
            section = "hardware"
        if not section and name != TIME:
            raise InputError.at(path, None, f"column {name[:80]!r} is no key of [layout], [batch] or [training]", _HINT)
        places[name] = (section, name)
    return places


def _step(
    line: int, header: list[str], cells: list[str], places: Mapping[str, tuple[str, str]]
) -> tuple[LoggedStep | None, str]:
    if len(cells) != len(header):
        return None, f"expected {len(header)} values, found {len(cells)}"
    given = {name: cell.strip() for name, cell in zip(header, cells, strict=True) if cell.strip()}
    step_ms = _number(given.pop(TIME, ""))
    if step_ms is None:
        return None, f"{TIME}: expected milliseconds above 0"
    keys = {places[name]: _value(text) for name, text in given.items()}
    complaint = next(_complaints(keys), "")
    if complaint:
        return None, complaint
    return LoggedStep(line, step_ms / _MS_PER_S, keys), ""


def _complaints(keys: Mapping[tuple[str, str], object]) -> Iterator[str]:
    for (section, name), value in keys.items():
        key = key_of(section, name)
        complaint = find_complaint(key, value) if key is not None else f"found {show_value(value)}"
        if complaint:
            yield f"{name}: {complaint}"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value > 0 else None


def _value(text: str) -> object:
    """Read a cell as TOML would: a number, true or false, else a text."""
    try:
        value: object = json.loads(text.lower())
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", _HINT) from None
    if len(data) > _BYTES_MAX:
        raise InputError.at(path, None, f"more than {_BYTES_MAX >> 20} MiB, which is no list of steps", _HINT)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.at(path, error.start, "no text in UTF-8", _HINT) from None
