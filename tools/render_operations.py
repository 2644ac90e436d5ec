"""Write the tables of `docs/reference/operation-tables.md` from the columns and names in `records/operations.py`.

`python -m tools.render_operations` rewrites what lies between the marks on the page; a test checks that it is current.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from longpole.records.operations import (
    OPTIONAL_COLUMNS,
    REQUIRED_COLUMNS,
    TYPE_RULES,
    Members,
    OperationKind,
    TypeRule,
    WrittenColumn,
)
from tools.generated_part import replace_part

PAGE: Final = Path("docs/reference/operation-tables.md")
_NEEDED: Final = {
    OperationKind.COMPUTE: "its own worker's earlier operations",
    OperationKind.SEND: "the same, and its receive (unless sends return before they are received)",
    OperationKind.RECV: "the same, and its send",
    OperationKind.COLLECTIVE: "the same, and all other members",
}


def render_columns() -> str:
    """Return the columns as a table: the required ones first."""
    head = "| column | | values | meaning |\n| --- | --- | --- | --- |"
    rows = [_render_column(column, "required") for column in REQUIRED_COLUMNS]
    rows += [_render_column(column, "") for column in OPTIONAL_COLUMNS]
    return "\n".join([head, *rows])


def render_names() -> str:
    """Return the known names as a table."""
    head = "| `optype` | is | who takes part | waits for |\n| --- | --- | --- | --- |"
    other = "| any other name | compute | computation of one worker | its own worker's earlier operations |"
    return "\n".join([head, *(_render_rule(rule) for rule in TYPE_RULES), other])


def render_page(page: str) -> str:
    """Return the page with current tables."""
    return replace_part(replace_part(page, "columns", render_columns()), "names", render_names())


def _render_column(column: WrittenColumn, needed: str) -> str:
    return f"| `{column.name}` | {needed} | {column.values} | {column.meaning} |"


def _render_rule(rule: TypeRule) -> str:
    needed = _NEEDED[rule.kind]
    if rule.members is Members.TENSOR:
        needed += "; alone where the table has one tensor-parallel rank"
    pattern = rule.pattern.replace("|", "\\|")
    return f"| `{pattern}` | {rule.kind.name.lower()} | {rule.meaning} | {needed} |"


def main() -> None:
    """Rewrite the page in place."""
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
