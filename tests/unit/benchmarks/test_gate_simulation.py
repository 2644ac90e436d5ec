"""What the gate promises, by simulation with its own rule: few false alarms, no guesses, and changes found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.gate.grid import COUNTS, NOISES, PAGE, SEQUENTIAL
from benchmarks.gate.page import render_page
from benchmarks.gate.simulate import complaints, simulate, simulate_all

if TYPE_CHECKING:
    from pathlib import Path

TRIALS = 600


@pytest.mark.parametrize("noise", NOISES)
def test_what_did_not_change_is_seldom_called_regressed(noise: float) -> None:
    cells = [simulate(noise, 0.0, pairs, TRIALS) for pairs in (5, 20, SEQUENTIAL)]

    assert complaints(cells, TRIALS) == []


def test_at_two_percent_noise_twenty_pairs_find_five_and_ten_percent() -> None:
    same, five, ten = (simulate(0.02, change, 20, TRIALS) for change in (0.0, 0.05, 0.10))

    assert same.same >= 0.90
    assert five.regressed >= 0.60
    assert ten.regressed >= 0.95


def test_where_the_plain_rule_guesses_the_gate_says_that_it_cannot_tell() -> None:
    cell = simulate(0.10, 0.0, 10, TRIALS)

    assert cell.plain > 0.15
    assert cell.inconclusive > 0.80


def test_a_change_that_matters_is_hardly_ever_called_the_same() -> None:
    missed = [simulate(noise, 0.05, pairs, TRIALS).same for noise in (0.02, 0.05, 0.10) for pairs in (5, 20)]

    assert max(missed) <= 0.05


def test_the_page_holds_the_kept_results(root: Path) -> None:
    page = (root / PAGE.relative_to(PAGE.parents[2])).read_text(encoding="utf-8")

    assert render_page(page) == page, "run python -m benchmarks.gate.simulate"


@pytest.mark.slow
def test_every_cell_of_the_table_keeps_the_promises() -> None:
    cells = simulate_all(4000)

    assert complaints(cells, 4000) == []
    assert {cell.pairs for cell in cells} == {*COUNTS, SEQUENTIAL}
