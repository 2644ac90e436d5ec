"""Write the generated parts of `docs/reference/catalogue.md` from the catalogue: its rows, figures and placeholders.

`python -m tools.render_catalogue` rewrites what lies between the marks on the page; a test checks that the page is
current.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.advice.catalogue import load_catalogue
from longpole.advice.fields import KNOWN_BY, SEEN_BY
from longpole.advice.figures import FIGURES
from longpole.advice.fillings import PLACEHOLDERS
from tools.generated_part import replace_part
from tools.render_settings import read_meanings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.catalogue import Row
    from longpole.advice.conditions import Condition

PAGE: Final = Path("docs/reference/catalogue.md")
_OBJECTS: Final = ("input", "artifact", "state", "output", "compute", "collective", "host")
_TABLES: Final = {"change": "", "layout": "a layout", "scenario": "a scenario: what to record"}


def render_page(page: str) -> str:
    """Return the page with its current parts."""
    rows = load_catalogue()
    page = replace_part(page, "list", _list(rows))
    page = replace_part(page, "rows", "\n\n".join(_section(name, rows) for name in _OBJECTS))
    page = replace_part(page, "keys", _keys())
    page = replace_part(page, "figures", _figures())
    page = replace_part(page, "placeholders", _placeholders())
    return replace_part(page, "fields", _fields())


def _list(rows: Sequence[Row]) -> str:
    head = "| row | effort | answers |\n| --- | --- | --- |"
    lines = [f"| [`{row.id}`](#{_anchor(row.id)}) | {row.effort} | {_causes(row)} |" for row in rows]
    return "\n".join([head, *lines])


def _causes(row: Row) -> str:
    return ", ".join(f"[`{cause}`](causes/{cause}.md)" for cause in row.answers) or "figures only"


def _anchor(row: str) -> str:
    return row.replace(".", "")


def _section(name: str, rows: Sequence[Row]) -> str:
    mine = [row for row in rows if row.object == name]
    return "\n\n\n".join([f"### {name.capitalize()}", *(_row(row) for row in mine)])


def _row(row: Row) -> str:
    kind = f", {_TABLES[row.table]}" if _TABLES[row.table] else ""
    buys = "; it buys memory, and pays with time" if row.buys == "memory" else ""
    lines = [f"#### {row.id}", "", row.says, "", f"- **Effort**: {row.effort}{kind}{buys}."]
    answers = f"{_causes(row)}, where its conditions hold besides" if row.needs_figures else _causes(row)
    lines += _bullets("Answers", [answers] if row.answers else [])
    lines += _bullets("Applies when", [_condition(condition) for condition in row.applies_when], " and ")
    lines += ["- **Not when**", *(f"  - {_condition(c)}: {c.why}." for c in row.not_when)]
    change = [f"`{text}`" for text in row.change] or [f"none can be replayed: {row.no_change}"]
    lines += _bullets("Change", change)
    lines += _bullets("Assumes", row.assumes)
    lines += _bullets("Spreads", row.spreads) + _bullets("Exposes", row.exposes) + _bullets("Pairs", row.pairs)
    lines += _bullets("Must record", row.must_record) + _bullets("Must shrink", [f"`{row.part}`"])
    lines += _bullets("Proved by", row.proved_by) + _bullets("Nothing replaces", [row.cannot_replace])
    lines += _bullets("Costs", row.costs)
    lines += _bullets("Check with", [f"`{command}`" for command in row.check_with])
    lines += _bullets("Excludes", [f"[`{other}`](#{_anchor(other)})" for other in row.conflicts])
    return "\n".join([*lines, *_bullets("Read on", [f"<{address}>" for address in row.references])])


def _bullets(name: str, texts: Sequence[str], between: str = "; ") -> list[str]:
    return [f"- **{name}**: {between.join(texts)}."] if texts else []


def _condition(condition: Condition) -> str:
    figure, _, rest = condition.says().partition(" ")
    return f"`{figure}` {rest}"


def _keys() -> str:
    from longpole.advice.catalogue import Row

    meanings = read_meanings(Row.__doc__ or "")
    rows = [f"| `{name}` | {meaning} |" for name, meaning in meanings.items() if name != "table"]
    return "\n".join(["| key | what it says |\n| --- | --- |", *rows])


def _figures() -> str:
    rows = [f"| `{name}` | {spec.sort} | {spec.says} |" for name, spec in FIGURES.items()]
    return "\n".join(["| figure | sort | what it is |\n| --- | --- | --- |", *rows])


def _placeholders() -> str:
    rows = [f"| `{{{name}}}` | {place.says} |" for name, place in PLACEHOLDERS.items()]
    return "\n".join(["| placeholder | what it stands for |\n| --- | --- |", *rows])


def _fields() -> str:
    rows = [f"| {name} | `{figure}` is known |" for name, figure in KNOWN_BY.items()]
    rows += [f"| {name} | `{figure}` holds, or is above 0 |" for name, figure in SEEN_BY.items()]
    return "\n".join(["| field | recorded where |\n| --- | --- |", *rows])


def main() -> None:
    """Rewrite the page in place."""
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
