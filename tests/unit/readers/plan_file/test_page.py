"""The page of keys is that of the code, and what it shows of plans are plans."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from longpole.pipeline.plan import PlanOptions, build_plan
from longpole.readers.plan_file.read import check_plan
from longpole.report.plan import Plan
from tools import render_plan_keys

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_of_keys_is_current(root: Path) -> None:
    page = (root / render_plan_keys.PAGE).read_text(encoding="utf-8")

    assert render_plan_keys.render_page(page) == page, "run python -m tools.render_plan_keys"


def test_the_page_names_every_key_of_the_document(root: Path) -> None:
    page = (root / render_plan_keys.PAGE).read_text(encoding="utf-8")

    listed = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE))))

    assert set(Plan.__struct_fields__) - {"schema", "longpole", "source", "name"} <= listed


def test_the_plan_of_the_guide_is_the_shipped_one(root: Path) -> None:
    guide = (root / "docs/guides/plan.md").read_text(encoding="utf-8")
    shown, *_ = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    shipped = tomllib.loads((root / "examples/plans/llama3-70b.toml").read_text(encoding="utf-8"))

    given = check_plan(tomllib.loads(shown), "guide")

    assert dict(given.sections) == {
        name: part for name, part in check_plan(shipped, "example").sections.items() if name != "search"
    }


@pytest.mark.parametrize("name", ["llama3-70b", "serve-llama3-70b"])
def test_shipped_plans_fit(root: Path, name: str) -> None:
    plan = build_plan(str(root / f"examples/plans/{name}.toml"), PlanOptions())

    assert plan.notes == []
    if plan.memory is not None:
        assert plan.memory.verdict == "fits"
    if plan.serving is not None:
        assert plan.serving.fits
