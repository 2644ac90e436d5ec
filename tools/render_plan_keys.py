"""Write the tables of `docs/reference/plan-file.md` from the keys of a plan.

`python -m tools.render_plan_keys` rewrites what lies between the two marks on the page; a test checks that the page is
current.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from longpole.readers.plan_file.keys import REQUIRED, SECTIONS, PlanKey
from tools.generated_part import replace_part

PAGE: Final = Path("docs/reference/plan-file.md")
_HOLDS: Final = {
    "text": "text",
    "flag": "true or false",
    "count": "whole, ≥ 1",
    "size": "whole, ≥ 0",
    "number": "number > 0",
    "share": "share, > 0, ≤ 1",
    "counts": "list of whole numbers",
    "peaks": "number > 0, or a table by data type",
    "policies": "policy, or layers by policy",
}


def render_tables() -> str:
    """Return a table for each section, in the order of the code."""
    return "\n\n\n".join(_table(section, keys) for section, keys in SECTIONS.items())


def render_page(page: str) -> str:
    """Return the page with the current tables."""
    return replace_part(page, "keys", render_tables())


def _table(section: str, keys: tuple[PlanKey, ...]) -> str:
    title = f"### `[{section}]`" if section else "### Before the first section"
    head = "| key | holds | where it is left out | what it is |\n| --- | --- | --- | --- |"
    return "\n".join([title, "", head, *map(_row, keys)])


def _row(key: PlanKey) -> str:
    most = f", ≤ {key.most:,.0f}" if key.most is not None else ""
    default = "**required**" if key.default == REQUIRED else key.default
    return f"| `{key.name}` | {_HOLDS[key.holds]}{most} | {default} | {key.meaning} |"


def main() -> None:
    """Rewrite the page in place."""
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
