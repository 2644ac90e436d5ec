"""The page of a scaling comparison."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from longpole.report.text.layout import columns_of
from longpole.report.text.scaling import render_scaling
from tests.scaling_runs import SAMPLES, Job, compare

if TYPE_CHECKING:
    from pathlib import Path

_SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_as_it_was_agreed_on(name: str, root: Path) -> None:
    """After an intended change: `python -m tools.write_generated`, and read the difference."""
    golden = (root / "tests" / "golden" / f"scaling-{name}.txt").read_text(encoding="utf-8")

    assert render_scaling(SAMPLES[name](), width=80, color=False) == golden


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_adds_nothing_but_colour(name: str) -> None:
    painted = render_scaling(SAMPLES[name](), width=80, color=True)

    assert "\x1b[" in painted
    assert _SGR.sub("", painted) == render_scaling(SAMPLES[name](), width=80, color=False)


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_keeps_to_its_width(name: str, width: int) -> None:
    page = render_scaling(SAMPLES[name](), width=width, color=False)

    assert max(columns_of(line) for line in page.splitlines()) <= width


def test_the_figures_of_a_column_add_up() -> None:
    page = render_scaling(SAMPLES["typical"](), width=80, color=False)
    table = page.split("WHERE THE LOSS WENT")[1].split("\n\n")[0].splitlines()

    last = [float(match[-1]) for line in table[2:-1] if (match := re.findall(r"[+−]?(\d+\.\d+) +[\d.]+ %", line))]
    total = re.findall(r"(\d+\.\d+) +\d+ %", table[-1])[-1]
    assert sum(last) == pytest.approx(float(total))


def test_many_runs_show_the_largest_and_say_so() -> None:
    scaling = compare(*(Job(ranks=ranks, transfer=10 * ranks) for ranks in (1, 2, 3, 4, 5)))

    page = render_scaling(scaling, width=80, color=False)

    loss = page.split("WHERE THE LOSS WENT")[1]
    assert "4 ranks           5 ranks" in loss
    assert "and 2 smaller runs; --json has them all" in loss
    assert all(f"n{ranks}  " in page for ranks in (1, 2, 3, 4, 5))
