"""The page of a plan, against the one that is kept, at every width."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from longpole.report.text.layout import columns_of
from longpole.report.text.plan import render_plan
from tests.plan_samples import SAMPLES, asked, memory, training

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_is_the_one_that_is_kept(root: Path, name: str) -> None:
    build, explain = SAMPLES[name]

    page = render_plan(build(), width=80, color=False, explain=explain)

    assert page == (root / f"tests/golden/plan-{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_wider_than_asked(name: str, width: int) -> None:
    build, explain = SAMPLES[name]

    page = render_plan(build(), width=width, color=False, explain=explain)

    assert max(columns_of(line) for line in page.splitlines()) <= max(width, 60)


def test_colour_adds_nothing_but_colour() -> None:
    plain = render_plan(asked(), width=80, color=False)
    painted = render_plan(asked(), width=80, color=True)

    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == plain
    assert painted != plain


@pytest.mark.parametrize(("limit_gb", "verdict"), [(80, "FITS"), (65, "TIGHT"), (60, "DOES NOT FIT")])
def test_the_verdict_stands_first(limit_gb: float, verdict: str) -> None:
    page = render_plan(training(memory=memory(limit_gb)), width=80, color=False)

    assert page.split("\n\n")[1].startswith(f"{verdict}  ")


def test_a_part_that_takes_nothing_and_hides_nothing_is_left_out() -> None:
    page = render_plan(training(), width=80, color=False)

    assert "expert parallel" not in page
    assert "pipeline transfers              0      0.0 %    12.3 ms" in page


def test_an_hfu_that_does_not_apply_is_left_out_unless_it_is_asked_for() -> None:
    plan = training()
    assert "sc21_hw" not in render_plan(plan, width=80, color=False)

    for one in plan.utilisation:
        one.asked = one.convention == "sc21_hw"

    assert "> HFU sc21_hw" in render_plan(plan, width=80, color=False)
