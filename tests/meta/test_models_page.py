"""The page of models and conventions is made from the code, and current."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.costs.flops import CONVENTIONS, counts
from longpole.costs.presets import preset, preset_names
from tools import render_models

if TYPE_CHECKING:
    from pathlib import Path


def test_the_models_page_is_current(root: Path) -> None:
    page = (root / render_models.PAGE).read_text(encoding="utf-8")

    assert render_models.render_page(page) == page, "run python -m tools.render_models"


def test_the_models_page_lists_every_model_convention_and_count(root: Path) -> None:
    page = (root / render_models.PAGE).read_text(encoding="utf-8")

    for name in (*preset_names(), *CONVENTIONS, *counts(preset("gpt2"), 8).inputs()):
        assert f"\n| `{name}` | " in page, name
