"""Write the tables of `docs/reference/columns.md` from the column specifications in `timeline/columns.py`.

`python -m tools.render_columns` rewrites what lies between the two marks on the page; a test checks that the page is
current.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.timeline.tables import DeviceTable, FlowTable, HostTable, MemoryTable, SyncTable
from tools.generated_part import replace_part

if TYPE_CHECKING:
    from longpole.timeline.columns import Column

PAGE: Final = Path("docs/reference/columns.md")
TABLES: Final = (HostTable, DeviceTable, FlowTable, SyncTable, MemoryTable)


def render_tables() -> str:
    """Return one section a table: what it holds and how it is ordered, then its columns."""
    return "\n\n\n".join(_render_table(table) for table in TABLES)


def render_page(page: str) -> str:
    """Return the page with current tables."""
    return replace_part(page, "columns", render_tables())


def _render_table(
    table: type[HostTable] | type[DeviceTable] | type[FlowTable] | type[SyncTable] | type[MemoryTable],
) -> str:
    head = "| column | type | none is | meaning |\n| --- | --- | --- | --- |"
    rows = [_render_row(column) for column in table._columns]  # noqa: SLF001 - the specification is the table's own
    return "\n".join([f"### `{table.__name__}`\n\n{table.__doc__}\n", head, *rows])


def _render_row(column: Column) -> str:
    none = f"`{column.none}`" if column.none else "–"
    return f"| `{column.name}` | {column.dtype} | {none} | {column.meaning} |"


def main() -> None:
    """Rewrite the page in place."""
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
