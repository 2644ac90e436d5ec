"""The page of collectives: the verdict first, every line in bounds, nothing of a file unescaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.records.bench_collectives_file import decode_collectives, encode_collectives
from longpole.report.text.bench_collectives import render_collectives
from longpole.report.text.layout import columns_of
from tests.collective_samples import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_is_the_golden_one(name: str, root: Path) -> None:
    golden = (root / "tests" / "golden" / f"collectives-{name}.txt").read_text(encoding="utf-8")

    assert render_collectives(SAMPLES[name](), width=80, color=False) == golden


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("width", [20, 60, 72, 100])
def test_no_line_is_wider_than_the_page(name: str, width: int) -> None:
    page = render_collectives(SAMPLES[name](), width=width, color=False, written="x" * 300 + ".json")

    assert max(columns_of(line) for line in page.splitlines()) <= max(width, 60)
    assert "\x1b" not in page


def test_colour_adds_no_meaning() -> None:
    plain, painted = (render_collectives(SAMPLES["log"](), width=80, color=color) for color in (False, True))

    assert painted != plain
    assert (
        painted.replace("\x1b[0m", "").replace("\x1b[1;31m", "").replace("\x1b[1m", "").replace("\x1b[2m", "") == plain
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_a_record_is_read_back_as_it_was_written(name: str) -> None:
    record = SAMPLES[name]()

    assert decode_collectives(encode_collectives(record), "x") == record
