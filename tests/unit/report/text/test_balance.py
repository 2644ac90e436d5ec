"""The page of `longpole balance`: the verdict comes first, it fits, and nothing from a file moves the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.report.text.balance import render_balance
from longpole.report.text.layout import columns_of
from tests.balance_samples import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_is_the_golden_one(name: str, root: Path) -> None:
    golden = root / "tests" / "golden" / f"balance-{name}.txt"

    page = render_balance(SAMPLES[name](), width=80, color=False)

    assert page == golden.read_text(encoding="utf-8"), "run python -m tools.write_generated"


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_wider_than_the_page(name: str, width: int) -> None:
    page = render_balance(SAMPLES[name](), width=width, color=False)

    assert max(columns_of(line) for line in page.splitlines()) <= width


def test_colour_adds_nothing_but_colour() -> None:
    import re

    plain, painted = (render_balance(SAMPLES["small"](), width=80, color=color) for color in (False, True))

    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == plain
    assert painted != plain


def test_names_from_outside_are_escaped() -> None:
    document = SAMPLES["small"]()
    document.source = "evil\x1b[2J.txt"

    assert "\x1b" not in render_balance(document, width=80, color=False)
