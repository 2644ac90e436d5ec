"""The page of a what-if: honest about what it rests on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from longpole.report.text.layout import columns_of
from longpole.report.text.whatif import render_whatif
from tests.report_builder import ms
from tests.whatif_samples import SAMPLES, change_entry, changed, usable

if TYPE_CHECKING:
    from pathlib import Path

_SGR = re.compile(r"\x1b\[[0-9;]*m")


def page(name: str, width: int = 80) -> str:
    return render_whatif(SAMPLES[name](), width=width, color=False)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_as_it_was_agreed_on(name: str, root: Path) -> None:
    """After an intended change: `python -m tools.write_generated`, and read the difference."""
    assert page(name) == (root / "tests" / "golden" / f"whatif-{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_adds_nothing_but_colour(name: str) -> None:
    painted = render_whatif(SAMPLES[name](), width=80, color=True)

    assert "\x1b[" in painted
    assert _SGR.sub("", painted) == page(name)


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_keeps_to_its_width(name: str, width: int) -> None:
    assert max(columns_of(line) for line in page(name, width).splitlines()) <= width


def test_a_prediction_that_was_not_tested_is_not_called_accurate() -> None:
    text = page("not-tested")

    assert "PREDICTION, NOT TESTED" in text
    assert "small error says nothing" in text
    assert "How far off it may be is not known" in text


def test_a_refused_prediction_shows_no_figure_of_it() -> None:
    text = page("refused")

    assert "NO PREDICTION  because" in text
    assert "To get one: nodes of captured graphs" in text
    assert "118 ms" not in text
    assert "WHERE IT COMES FROM" not in text


def test_the_replays_own_error_never_stands_for_the_predictions() -> None:
    """The error of this kind of change comes first, with its pairs and its bias."""
    text = " ".join(page("usable").split())

    assert "off by 7.5% of the period in the median" in text
    assert "27 pairs of recordings, median 7.3% too fast" in text


def test_a_change_for_the_worse_says_more() -> None:
    assert "20.0 ms MORE (11%)" in page("longer")


def test_no_control_character_gets_through() -> None:
    assert "\x1b" not in page("longer")
    assert r"my_change(graph) \x1b[2J" in page("longer")


def test_a_saving_in_few_units_shows_in_the_mean() -> None:
    """A stall in fewer than half of the units leaves the median where it is."""
    answer = changed(usable(), predicted_period_ns=ms(180), saving_ns=0, mean_saving_ns=ms(60))

    text = " ".join(render_whatif(answer, width=80, color=False).split())

    assert "no difference: a step every 180 ms, with the changes as without them in the median" in text
    assert "in the mean 60.0 ms less, as only some units are concerned" in text


def test_no_saving_at_all_is_no_difference() -> None:
    answer = changed(usable(), predicted_period_ns=ms(180), saving_ns=0, mean_saving_ns=0)

    assert "no difference: a step every 180 ms" in render_whatif(answer, width=80, color=False)


def test_many_changes_are_cut_and_counted() -> None:
    entries = [change_entry(f"--set rank:{rank}=0.5x") for rank in range(15)]

    text = render_whatif(changed(usable(), changes=entries), width=80, color=False)

    assert "everything on rank 11 takes 0.5 times as long" in text
    assert "rank 12" not in text
    assert "and 3 more" in text


def test_a_change_can_be_copied_into_a_shell() -> None:
    text = render_whatif(changed(usable(), changes=[change_entry("--set rank:2&name:a b=0")]), width=80, color=False)

    assert "--set 'rank:2&name:a b=0'" in text
