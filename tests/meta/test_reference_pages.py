"""Reference pages that are made from the code, or list what is in it, are current."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import pytest

from longpole.pipeline.run import Run, open_run
from longpole.settings import Settings
from longpole.timeline.columns import Kind
from tools import render_columns, render_settings
from tools.generated_part import replace_part

if TYPE_CHECKING:
    from pathlib import Path


def test_the_columns_page_is_current(root: Path) -> None:
    page = (root / render_columns.PAGE).read_text(encoding="utf-8")

    assert render_columns.render_page(page) == page, "run python -m tools.render_columns"


def test_the_settings_page_is_current(root: Path) -> None:
    page = (root / render_settings.PAGE).read_text(encoding="utf-8")

    assert render_settings.render_page(page) == page, "run python -m tools.render_settings"


def test_the_columns_page_lists_every_kind_of_row(root: Path) -> None:
    page = (root / render_columns.PAGE).read_text(encoding="utf-8")

    listed = set(re.findall(r"^\| `(\w+)` \| (?:device|host|kept aside)", page, re.MULTILINE))

    assert listed == {kind.name.lower() for kind in Kind}


def test_the_library_page_has_a_heading_for_every_public_method(root: Path) -> None:
    page = (root / "docs/reference/library.md").read_text(encoding="utf-8")

    headings = set(re.findall(r"^### `run\.(\w+)\(", page, re.MULTILINE))

    methods = {name for name, _ in inspect.getmembers(Run, inspect.isfunction) if not name.startswith("_")}
    assert headings == methods


def test_the_library_page_shows_the_signature_of_open(root: Path) -> None:
    page = (root / "docs/reference/library.md").read_text(encoding="utf-8")

    parameters = [str(p.replace(annotation=p.empty)) for p in inspect.signature(open_run).parameters.values()]

    first, *keywords = parameters
    assert f"## `longpole.open({first}, *, {', '.join(keywords)})`" in page


def test_every_setting_is_described_with_its_default() -> None:
    table = render_settings.render_table()

    assert "| `p95_min_count` | `20` | " in table
    assert "| `lost_lead_after_ns` | `20000` (20 µs) | " in table
    assert table.count("\n| `") == len(Settings.__dataclass_fields__)


def test_a_docstring_that_runs_over_lines_is_read_as_one_sentence() -> None:
    docstring = "Limits.\n\n    Attributes:\n        low, high: Both\n            ends.\n        step: One.\n    "

    meanings = render_settings.read_meanings(docstring)

    assert meanings == {"low": "Both ends.", "high": "Both ends.", "step": "One."}


def test_only_what_lies_between_the_marks_is_replaced() -> None:
    page = "before\n<!-- it: by hand -->\nold\n<!-- end of it -->\nafter\n"

    assert replace_part(page, "it", "new") == "before\n<!-- it: by hand -->\n\nnew\n\n<!-- end of it -->\nafter\n"


def test_a_page_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected the marks"):
        replace_part("a page", "it", "new")
