"""The table of changes: read, checked, and turned into pairs and into configurations to record."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.predictions.knobs import Knobs, name_knobs, parse_knobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CHANGES = Path(__file__).with_name("changes.toml")
_CHANGE_KEYS = {"name", "kind", "says", "whatif", "pair"}
_PAIR_KEYS = {"before", "after", "whatif"}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One change at one size: two configurations, and the what-if that leads from the first to the second.

    Attributes:
        change: its name.
        size: 1 for the first pair of the change.
        kind: of what-if.
        says: what the engineer did.
        before, after: of the program.
        whatif: options of `longpole whatif`.
    """

    change: str
    size: int
    kind: str
    says: str
    before: Knobs
    after: Knobs
    whatif: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name the pair."""
        return f"{self.change}.{self.size}"


def read_pairs(path: Path = CHANGES) -> tuple[Pair, ...]:
    """Read the table.

    Args:
        path: the table (TOML).

    Returns:
        The pairs, in the order of the table.

    Raises:
        ValueError: a change or a pair is not of the form that changes.toml describes; the message names it.
    """
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    pairs = [pair for change in table["change"] for pair in _parse_change(change)]
    names = [pair.name for pair in pairs]
    if len(set(names)) < len(names):
        message = f"{path.name}: expected every change once, found {sorted({n for n in names if names.count(n) > 1})}"
        raise ValueError(message)
    return tuple(pairs)


def _parse_change(raw: Mapping[str, Any]) -> list[Pair]:
    name = raw.get("name", "a change without a name")
    _require_keys(name, raw, _CHANGE_KEYS, _CHANGE_KEYS - {"whatif"})
    return [_parse_pair(raw, pair, place) for place, pair in enumerate(raw["pair"], start=1)]


def _parse_pair(change: Mapping[str, Any], raw: Mapping[str, Any], size: int) -> Pair:
    name = f"{change['name']}.{size}"
    _require_keys(name, raw, _PAIR_KEYS, {"before", "after"})
    whatif = raw.get("whatif", change.get("whatif"))
    try:
        before, after = parse_knobs(raw["before"]), parse_knobs(raw["after"])
    except ValueError as error:
        message = f"{name}: {error}"
        raise ValueError(message) from error
    if not whatif or before == after:
        message = f"{name}: expected a what-if, and an `after` that differs from `before`"
        raise ValueError(message)
    return Pair(
        change=change["name"],
        size=size,
        kind=change["kind"],
        says=change["says"],
        before=before,
        after=after,
        whatif=tuple(whatif),
    )


def _require_keys(name: str, raw: Mapping[str, Any], known: set[str], needed: set[str]) -> None:
    if not needed <= set(raw) <= known:
        message = f"{name}: expected the keys {sorted(needed)}, perhaps {sorted(known - needed)}; found {sorted(raw)}"
        raise ValueError(message)


def list_configurations(pairs: Iterable[Pair], *, n_before: int, n_after: int) -> dict[str, tuple[Knobs, int]]:
    """List what to record: a configuration that several pairs share is recorded once for all of them.

    Args:
        pairs: to be recorded.
        n_before: how often a configuration is recorded that changes only lead away from.
        n_after: how often one that a change leads to.

    Returns:
        Name of the configuration -> its knobs, and how often.
    """
    found: dict[str, tuple[Knobs, int]] = {}
    for pair in pairs:
        for knobs, times in ((pair.before, n_before), (pair.after, n_after)):
            name = name_knobs(knobs)
            known = found.get(name, (knobs, 0))
            found[name] = (knobs, max(known[1], times))
    return found
