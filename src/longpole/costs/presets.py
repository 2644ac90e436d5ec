"""Models by name, from a table of dimensions with their sources (`presets.toml`)."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final

from longpole.costs.architecture import Architecture, Experts, Latent
from longpole.errors import UsageError

TABLE: Final = Path(__file__).with_name("presets.toml")
_NOT_NAME: Final = re.compile(r"[^a-z0-9.]+")
_EDITIONS: Final = ("instruct", "chat", "base", "hf", "it", "pt")  # of one and the same architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A model of the table.

    Attributes:
        name: As the table spells it.
        aliases: Other names for it.
        model: Its dimensions.
        published: What its source says of the number of parameters, with the digits that it prints; may be empty.
        source: Where the dimensions come from.
        positions_follow: Whether there are as many learned positions as a sequence has tokens.
    """

    name: str
    aliases: tuple[str, ...]
    model: Architecture
    published: str
    source: str
    positions_follow: bool


def preset(name: str, sequence: int | None = None) -> Architecture:
    """Return a model of the table.

    Args:
        name: As the table spells it, or close to it: case, separators, the vendor's name before a slash and editions
            such as `-Instruct` do not matter.
        sequence: Tokens of a sequence, for models whose learned positions are as many.

    >>> preset("meta-llama/Llama-3.1-8B-Instruct").hidden
    4096

    Raises:
        UsageError: It is not in the table; the closest names are listed.
    """
    found = find_preset(name)
    if found.positions_follow and sequence is not None:
        return replace(found.model, positions=sequence)
    return found.model


def preset_names() -> tuple[str, ...]:
    """Return the names of the table, in its order."""
    return tuple(one.name for one in all_presets())


def find_preset(name: str) -> Preset:
    """Return a row of the table, with its source.

    Raises:
        UsageError: It is not in the table; the closest names are listed.
    """
    by_name = _by_name()
    key = _key(name)
    if key in by_name:
        return by_name[key]
    close = get_close_matches(key, list(by_name), n=5, cutoff=0.5)
    names = list(dict.fromkeys(by_name[one].name for one in close))
    hint = f"Closest: {', '.join(names)}" if names else f"Known: {', '.join(preset_names())}"
    msg = f"model {name!r} is not in the table. {hint}. Or name a config.json, or give the model's dimensions"
    raise UsageError(msg)


@cache
def all_presets() -> tuple[Preset, ...]:
    """Return the table, in its order."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return tuple(_preset(name, row) for name, row in rows.items())


@cache
def _by_name() -> dict[str, Preset]:
    return {_key(name): one for one in all_presets() for name in (one.name, *one.aliases)}


def _key(name: str) -> str:
    """Return a name without what does not matter: `meta-llama/Llama-3.1-8B-Instruct` -> `llama3.18b`."""
    words = [word for word in _NOT_NAME.split(name.casefold().rpartition("/")[2]) if word]
    while len(words) > 1 and words[-1] in _EDITIONS:
        words.pop()
    if words and words[0] == "meta":
        del words[0]
    return "".join(words)


def _preset(name: str, row: dict[str, Any]) -> Preset:
    known = {field.name for field in fields(Architecture)}
    dimensions = {key: value for key, value in row.items() if key in known}
    dimensions.setdefault("key_value_heads", row["heads"])
    dimensions.setdefault("head_dim", row["hidden"] // row["heads"])
    if "latent" in row:
        dimensions["latent"] = Latent(**row["latent"])
    if "experts" in row:
        dimensions["experts"] = Experts(**row["experts"])
    return Preset(
        name=name,
        aliases=tuple(row.get("aliases", ())),
        model=Architecture(name=name, **dimensions),
        published=row.get("published", ""),
        source=row["source"],
        positions_follow=row.get("positions_follow", False),
    )
