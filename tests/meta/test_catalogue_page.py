"""The page of the catalogue is current, and what it shows of a user's file is one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from longpole.advice.catalogue import load_catalogue
from tools import render_catalogue

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_is_current(root: Path) -> None:
    page = (root / render_catalogue.PAGE).read_text(encoding="utf-8")

    assert render_catalogue.render_page(page) == page, "run python -m tools.render_catalogue"


def test_every_row_has_a_heading_and_a_line_in_the_list(root: Path) -> None:
    page = (root / render_catalogue.PAGE).read_text(encoding="utf-8")
    ids = [row.id for row in load_catalogue()]

    assert sorted(re.findall(r"^#### (\S+)$", page, re.MULTILINE)) == sorted(ids)
    assert re.findall(r"^\| \[`([^`]+)`\]", page, re.MULTILINE) == ids


def test_the_users_file_on_the_page_is_read(root: Path, tmp_path: Path) -> None:
    page = (root / render_catalogue.PAGE).read_text(encoding="utf-8")
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    mine = tmp_path / "ours.toml"
    mine.write_text(shown, encoding="utf-8")

    rows = {row.id: row for row in load_catalogue(mine)}

    assert rows["input.add_workers"].effort == "high"
    assert "output.async_log" not in rows
    assert "input.use_our_cache" in rows
