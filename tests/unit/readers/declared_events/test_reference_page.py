"""The reference page of declared events lists what the code knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from longpole.costs.declared_fields import EVENT_FIELDS, LIFECYCLE_FIELDS
from longpole.report.declared_ledger import LedgerFigures, LedgerSaving

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_has_every_key_of_an_event_with_its_meaning(root: Path) -> None:
    page = (root / "docs/reference/declared-events.md").read_text(encoding="utf-8")
    page = page.partition("\nBeside the events")[0]

    listed = re.findall(r"^\| `(\w+)` \|(?:[^|]*\|){2} (.*) \|$", page, re.MULTILINE)

    meanings = dict(listed)
    assert [field.name for field in EVENT_FIELDS] == [name for name, _ in listed]
    assert not [
        field.name for field in EVENT_FIELDS if field.meaning.split(",")[0].rstrip(".") not in meanings[field.name]
    ]


def test_the_page_has_every_figure_of_the_answer(root: Path) -> None:
    page = (root / "docs/reference/declared-events.md").read_text(encoding="utf-8")

    names = {*LedgerFigures.__struct_fields__, *LedgerSaving.__struct_fields__, *LIFECYCLE_FIELDS}
    assert not [name for name in names if f"`{name}`" not in page]
