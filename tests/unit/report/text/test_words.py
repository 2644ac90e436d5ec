"""The words of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.report.text.words import (
    IDLE_WORDS,
    WAIT_WORDS,
    ranks_as_text,
    row_name,
    wait_words,
)
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS
from tests.report_builder import make_ledger, make_row

if TYPE_CHECKING:
    from pathlib import Path

LEDGER = make_ledger({"compute": 5}, {})


def test_every_idle_reason_has_words() -> None:
    assert set(IDLE_WORDS) == set(IDLE_REASONS)


def test_every_object_that_can_be_waited_for_has_words() -> None:
    assert set(WAIT_WORDS) == set(OBJECTS) - {"compute"}


@pytest.mark.parametrize("reason", IDLE_REASONS)
def test_the_words_of_a_reason_fit_beside_its_figures(reason: str) -> None:
    """Figures and name take 42 of the 80 columns."""
    assert len(IDLE_WORDS[reason]) <= 38


@pytest.mark.parametrize("name", WAIT_WORDS)
def test_the_words_of_a_wait_fit_on_a_line(name: str) -> None:
    assert len(wait_words(name, on_cpu=False)) <= 78
    assert len(wait_words(name, on_cpu=True)) <= 78


def test_every_reason_is_explained_in_the_documentation(root: Path) -> None:
    page = (root / "docs" / "concepts" / "idle-reasons.md").read_text(encoding="utf-8")

    assert not [reason for reason in IDLE_WORDS if f"`{reason}`" not in page]


def test_a_rank_with_one_device_goes_by_its_number() -> None:
    rows = [make_row(0, [LEDGER]), make_row(1, [LEDGER])]

    assert row_name(rows[1], rows) == "rank 1"


def test_a_rank_with_several_devices_names_the_device() -> None:
    rows = [make_row(1, [LEDGER]), make_row(1, [LEDGER], device="cuda:1")]

    assert row_name(rows[1], rows) == "rank 1 cuda:1"


def test_a_long_list_of_ranks_is_cut_and_counted() -> None:
    assert ranks_as_text(range(0, 40, 2)) == "ranks 0, 2, 4, 6, 8, … (20 in all)"
