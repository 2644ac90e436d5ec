"""Plans for tests: small, and whole in what they state, so that little is taken for granted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.pipeline.plan import PlanOptions, build_plan
from longpole.pipeline.plan_config import read_planned
from longpole.readers.plan_file.read import check_plan

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.pipeline.plan_config import Planned
    from longpole.report.plan import Plan

PLAN: Final = """\
convention = "mcore"

[model]
preset = "llama3-8b"

[hardware]
device = "H100-SXM5-80GB"
devices = 16
network_gb_per_s = 50

[layout]
tp = 4
pp = 2
zero = 1

[batch]
sequence = 8192
micro_batch = 1
global_batch = 32
"""

TABLES: Final[dict[str, Any]] = {
    "convention": "mcore",
    "model": {"preset": "llama3-8b"},
    "hardware": {"device": "H100-SXM5-80GB", "devices": 16, "network_gb_per_s": 50},
    "layout": {"tp": 4, "pp": 2, "zero": 1},
    "batch": {"sequence": 8192, "micro_batch": 1, "global_batch": 32},
}
"""The same as TOML decodes it."""


def tables(**changes: Any) -> dict[str, Any]:
    """The plan with keys by section: `tables(layout={"tp": 8})`; None takes a key or a section out."""
    found: dict[str, Any] = {name: dict(part) if isinstance(part, dict) else part for name, part in TABLES.items()}
    for section, change in changes.items():
        if change is None:
            del found[section]
        elif isinstance(change, dict):
            merged = {**found.get(section, {}), **change}
            found[section] = {key: value for key, value in merged.items() if value is not None}
        else:
            found[section] = change
    return found


def planned(**changes: Any) -> Planned:
    """What the plan with changes describes."""
    return read_planned(check_plan(tables(**changes), "plan.toml"))


def write_plan(folder: Path, text: str = PLAN) -> str:
    file = folder / "plan.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def plan_of(folder: Path, text: str = PLAN, **options: Any) -> Plan:
    """The document of a plan."""
    return build_plan(write_plan(folder, text), PlanOptions(**options))
