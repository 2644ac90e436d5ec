"""What a new entry is made of: its id, the difference of two configurations, and effects in one measure."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from longpole.errors import UsageError
from longpole.records.journal import BETTER, SCOPES, ConfigChange, Measured
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from longpole.records.journal import ConfigValue, Entry

_ID_WIDTH: Final = 40
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
TIME_PER_ITEM: Final = "ns/item"
"""The unit of figures that a verdict gives: of items that all devices together process."""
_TIMES: Final = frozenset({"ns", "us", "µs", "ms", "s", "min", "h"})
# A key that names a secret is written with its value hidden: a journal lies in a repository.
_SECRET: Final = re.compile(
    r"(?:^|[._-])(?:password|passwd|secret|credentials?|api_?key|access_?key|private_?key|auth_?token|access_?token"
    r"|hf_?token|authorization)(?:$|[._-])|(?:^|\.)token$",
    re.IGNORECASE,
)
HIDDEN: Final = "(hidden)"


def make_id(date: str, title: str, taken: Collection[str]) -> str:
    """Return an id that a person can read: the day and the title, with a number behind it where it is taken.

    Ids need no counter, so that two branches that each add an entry do not give both the same one.

    >>> make_id("2026-11-30T12:00:00Z", "Prefetch: 4 workers", set())
    '2026-11-30-prefetch-4-workers'
    >>> make_id("2026-11-30", "Prefetch", {"2026-11-30-prefetch"})
    '2026-11-30-prefetch-2'
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = _NO_WORD.sub("-", plain).strip("-")
    if len(words) > _ID_WIDTH:
        words = words[: _ID_WIDTH + 1].rpartition("-")[0] or words[:_ID_WIDTH]
    first = f"{date[:10]}-{words or 'change'}"
    found, number = first, 1
    while found in taken:
        number += 1
        found = f"{first}-{number}"
    return found


def flatten_config(config: Mapping[str, Any], prefix: str = "") -> dict[str, ConfigValue]:
    """Return a configuration without levels: keys with dots between them; lists are written as JSON.

    The value of a key that names a secret is hidden.

    >>> flatten_config({"optimizer": {"name": "adamw", "betas": [0.9, 0.95]}, "batch": 32})
    {'optimizer.name': 'adamw', 'optimizer.betas': '[0.9,0.95]', 'batch': 32}
    """
    flat: dict[str, ConfigValue] = {}
    for name, value in config.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            flat |= flatten_config(value, f"{key}.")
        elif _SECRET.search(key):
            flat[key] = HIDDEN
        elif value is None or isinstance(value, bool | int | str):
            flat[key] = value
        elif isinstance(value, float):
            flat[key] = value if math.isfinite(value) else str(value)
        else:
            flat[key] = json.dumps(value, separators=(",", ":"), default=str, ensure_ascii=False)
    return flat


def compare_configs(before: Mapping[str, ConfigValue], after: Mapping[str, ConfigValue]) -> list[ConfigChange]:
    """Return what differs between two configurations, by key.

    A boolean and the number that it equals are different values: `true` is not `1` in a configuration.
    """
    changes = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key, UNSET), after.get(key, UNSET)
        if old != new or isinstance(old, bool) != isinstance(new, bool):
            changes.append(ConfigChange(key, old, new))
    return changes


def overlay_config(base: Mapping[str, ConfigValue], texts: Iterable[str]) -> dict[str, ConfigValue]:
    """Return a configuration with keys set as `KEY=VALUE`; an empty value takes the key away.

    >>> overlay_config({"workers": 2, "pin": True}, ["workers=8", "pin=", "dtype=bfloat16"])
    {'workers': 8, 'dtype': 'bfloat16'}

    Raises:
        UsageError: One is not of that form.
    """
    config = dict(base)
    for text in texts:
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            msg = f"--config: expected KEY=VALUE, such as num_workers=8; found {text!r}"
            raise UsageError(msg)
        if value:
            config |= flatten_config({key.strip(): _parse_value(value)})
        else:
            config.pop(key.strip(), None)
    return config


def _parse_value(text: str) -> ConfigValue:
    """Read a value as JSON where it is a number, a boolean or null; anything else is text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if value is None or isinstance(value, bool | int | float) else text


def better_of(unit: str) -> str:
    """Say whether a larger figure in a unit is better; empty where the unit does not tell.

    >>> better_of("tokens/s"), better_of("ms/step"), better_of("tokens/s/GPU"), better_of("points")
    ('higher', 'lower', 'higher', '')
    """
    first, *rest = (part.strip() for part in unit.split("/"))
    if first in _TIMES:
        return "lower"
    return "higher" if any(part in _TIMES for part in rest) else ""


def scope_of(unit: str) -> str:
    """Return the scope that a unit names itself, such as `tokens/s/GPU`; empty where it names none."""
    last = unit.rpartition("/")[2].strip().lower()
    return "per_device" if last in ("gpu", "device", "rank", "chip", "accelerator") else ""


def measured_from_figures(before: float, after: float, unit: str, better: str, scope: str) -> Measured:
    """Return an effect from a figure before and one after.

    Args:
        before: In `unit`, above 0.
        after: In `unit`, above 0.
        unit: Such as `tokens/s`.
        better: `higher` or `lower`; empty for what the unit says.
        scope: `total` or `per_device`, of a throughput; empty for what the unit says, or not stated.

    Raises:
        UsageError: A figure is not above 0, the unit is missing, or it does not say what is better.
    """
    for name, figure in (("--before", before), ("--after", after)):
        if not (math.isfinite(figure) and figure > 0):
            msg = f"{name}: expected a figure above 0; found {figure:g}"
            raise UsageError(msg)
    if not unit.strip():
        msg = "--before and --after: expected their --unit, such as tokens/s or ms/step; found none"
        raise UsageError(msg)
    if better not in ("", *BETTER):
        msg = f"--better: expected higher or lower; found {better!r}"
        raise UsageError(msg)
    if scope not in ("", *SCOPES):
        msg = f"--scope: expected total or per_device; found {scope!r}"
        raise UsageError(msg)
    better = better or better_of(unit)
    if not better:
        msg = f"--unit {unit}: expected a time per item or a throughput; found neither. Say --better higher or lower"
        raise UsageError(msg)
    speedup = after / before if better == "higher" else before / after
    return Measured(speedup, before=before, after=after, unit=unit, better=better, scope=scope or scope_of(unit))


def in_throughput(measured: Measured, unit: str) -> Measured | None:
    """Return an effect whose figures are times per item as one in items of all devices together a second.

    Args:
        measured: With figures in `TIME_PER_ITEM`, as a verdict has them.
        unit: Such as `tokens/s`.

    Returns:
        None where the figures are something else, or the unit is no such throughput.
    """
    item, _, time = unit.partition("/")
    if time.strip() != "s" or not item.strip() or item.strip() in _TIMES or measured.unit != TIME_PER_ITEM:
        return None
    before, after = (
        NS_PER_S / value if isinstance(value, float) else value for value in (measured.before, measured.after)
    )
    return msgspec.structs.replace(measured, before=before, after=after, unit=unit, better="higher", scope="total")


def last_config(entries: Sequence[Entry], job: str) -> tuple[dict[str, ConfigValue], str]:
    """Return the configuration that a job had last, and the id of its entry: of the last kept one that has any.

    An entry whose change was taken back later does not count.
    """
    taken_back = {entry.reverts for entry in entries if entry.reverts}
    for entry in reversed(entries):
        if entry.job == job and entry.decision == "kept" and entry.config and entry.id not in taken_back:
            return dict(entry.config), entry.id
    return {}, ""
