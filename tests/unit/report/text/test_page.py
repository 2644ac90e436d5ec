"""The page as a whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from longpole.report.text import render_text
from longpole.report.text.layout import columns_of
from tests.report_builder import SAMPLES, make_gap, make_ledger, make_report, make_row, make_top

if TYPE_CHECKING:
    from pathlib import Path

_SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_as_it_was_agreed_on(name: str, root: Path) -> None:
    """After an intended change: `python -m tools.write_generated`, and read the difference."""
    golden = (root / "tests" / "golden" / f"report-{name}.txt").read_text(encoding="utf-8")

    assert render_text(SAMPLES[name](), width=80, color=False) == golden


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_adds_nothing_but_colour(name: str) -> None:
    report = SAMPLES[name]()

    painted = render_text(report, width=80, color=True)

    assert "\x1b[" in painted
    assert _SGR.sub("", painted) == render_text(report, width=80, color=False)


@pytest.mark.parametrize("width", [60, 72, 80, 100, 140])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_keeps_to_its_width(name: str, width: int) -> None:
    assert (
        max(columns_of(line) for line in render_text(SAMPLES[name](), width=width, color=False).splitlines()) <= width
    )


def test_a_narrower_page_than_the_tables_need_is_as_wide_as_they_need() -> None:
    report = SAMPLES["typical"]()

    assert render_text(report, width=20, color=False) == render_text(report, width=60, color=False)


def test_the_typical_page_fits_on_a_tall_screen() -> None:
    assert len(render_text(SAMPLES["typical"](), width=80, color=False).splitlines()) <= 61


def test_names_of_a_megabyte_make_no_large_page() -> None:
    name = "k" * 1_000_000
    gap = make_gap(name, "host.python", 50, unit=name, stack=[name, name])
    report = make_report([make_row(0, [make_ledger({"compute": 50}, {"host.python": 50})], top=make_top(gap))])

    assert len(render_text(report, width=80, color=False)) < 4000


def test_a_report_without_a_nanosecond_has_a_page() -> None:
    report = make_report([make_row(0, [make_ledger({}, {})])])

    assert "WHERE A STEP GOES" in render_text(report, width=80, color=False)
