"""The table of scenarios: read and checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.verify.setting import Setting, parse_setting

if TYPE_CHECKING:
    from collections.abc import Mapping

SCENARIOS = Path(__file__).with_name("scenarios.toml")
SIDES = ("before", "after")
_NEEDED = {"name", "says", "verdict", "part", "pairs", *SIDES}
OTHER_VERDICTS = ("few", "without_items", "limit", "limited", "moved_to")
_KNOWN = _NEEDED | {*OTHER_VERDICTS, "same_outputs"}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One change to the program, and what verify must say of it.

    Attributes:
        name: of the scenario.
        says: what the engineer did.
        verdict: expected of all runs.
        few: expected of the first two runs a side; empty where nothing is.
        without_items: expected where the records after the change say neither items nor batch nor shapes; empty where
            nothing is.
        limit, limited: a limit, and the verdict that is expected under it; empty where nothing is.
        moved_to: where the wait is afterwards; empty where it has not moved.
        same_outputs: the change must leave the loss of every step what it was.
        part: the object that the change was aimed at.
        pairs: of runs to record.
        before, after: of the program.
    """

    name: str
    says: str
    verdict: str
    few: str
    without_items: str
    limit: str
    limited: str
    moved_to: str
    same_outputs: bool
    part: str
    pairs: int
    before: Setting
    after: Setting

    def side(self, name: str) -> Setting:
        """Return the setting of a side, `before` or `after`."""
        return self.before if name == "before" else self.after


def read_scenarios(path: Path = SCENARIOS) -> tuple[Scenario, ...]:
    """Read the table.

    Args:
        path: the table (TOML).

    Returns:
        The scenarios, in the order of the table.

    Raises:
        ValueError: a scenario is not of the form that scenarios.toml describes; the message names it.
    """
    scenarios = [_parse(raw) for raw in tomllib.loads(path.read_text(encoding="utf-8"))["scenario"]]
    names = [one.name for one in scenarios]
    if len(set(names)) < len(names):
        message = f"{path.name}: expected every scenario once, found {sorted({n for n in names if names.count(n) > 1})}"
        raise ValueError(message)
    return tuple(scenarios)


def _parse(raw: Mapping[str, Any]) -> Scenario:
    name = raw.get("name", "a scenario without a name")
    if not _NEEDED <= set(raw) <= _KNOWN:
        message = (
            f"{name}: expected the keys {sorted(_NEEDED)}, perhaps {sorted(_KNOWN - _NEEDED)}; found {sorted(raw)}"
        )
        raise ValueError(message)
    try:
        before, after = (parse_setting(raw[side]) for side in SIDES)
    except ValueError as error:
        message = f"{name}: {error}"
        raise ValueError(message) from error
    return Scenario(
        name=raw["name"],
        says=raw["says"],
        verdict=raw["verdict"],
        same_outputs=raw.get("same_outputs", True),
        **{name: raw.get(name, "") for name in OTHER_VERDICTS},
        part=raw["part"],
        pairs=raw["pairs"],
        before=before,
        after=after,
    )
