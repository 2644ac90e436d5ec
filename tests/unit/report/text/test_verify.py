"""The page of a verdict: the word first, then what it rests on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from longpole.report.text.layout import columns_of
from longpole.report.text.verify import render_verify
from tests.verify_samples import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.verify import Verify

_SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def documents() -> dict[str, Verify]:
    """Each sample once: they are drawn and judged anew every time."""
    return {name: build() for name, build in SAMPLES.items()}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_as_it_was_agreed_on(name: str, root: Path, documents: dict[str, Verify]) -> None:
    """After an intended change: `python -m tools.write_generated`, and read the difference."""
    page = render_verify(documents[name], width=80, color=False)
    assert page == (root / "tests" / "golden" / f"verify-{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_adds_nothing_but_colour(name: str, documents: dict[str, Verify]) -> None:
    painted = render_verify(documents[name], width=80, color=True)
    assert "\x1b[" in painted
    assert _SGR.sub("", painted) == render_verify(documents[name], width=80, color=False)


@pytest.mark.parametrize("width", [20, 60, 80, 140])
@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_too_long_and_nothing_moves_the_cursor(name: str, width: int, documents: dict[str, Verify]) -> None:
    page = render_verify(documents[name], width=width, color=False)
    assert max(map(columns_of, page.splitlines())) <= max(width, 60)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", page)


def test_the_verdict_stands_above_what_it_rests_on(documents: dict[str, Verify]) -> None:
    page = render_verify(documents["moved"], width=80, color=False)
    order = [page.index(word) for word in ("REJECTED  (moved)", "TIME PER ITEM", "WHERE TIME WENT", "BESIDE IT")]
    assert order == sorted(order)


def test_a_single_run_is_marked(documents: dict[str, Verify]) -> None:
    assert "single run: how much one run differs from the next is not seen here" in render_verify(
        documents["single-run"], width=120, color=False
    )
