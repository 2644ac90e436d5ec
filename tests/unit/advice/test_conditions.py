"""Conditions on figures hold, do not, or are not known; and how they are said."""

from __future__ import annotations

from typing import Any

import pytest

from longpole.advice.conditions import Condition, write_value
from longpole.advice.figures import FIGURES
from longpole.records.ledger import Unknown

WHY = Unknown("nobody recorded it", ["what it takes"])


@pytest.mark.parametrize(
    ("bounds", "value", "holds"),
    [
        ({"at_least": 0.1}, 0.1, True),
        ({"above": 0.1}, 0.1, False),
        ({"at_most": 0.1}, 0.1, True),
        ({"below": 0.1}, 0.1, False),
        ({"at_least": 0.1, "below": 0.2}, 0.15, True),
        ({"at_least": 0.1, "below": 0.2}, 0.25, False),
    ],
)
def test_bounds(bounds: dict[str, Any], value: float, holds: bool) -> None:
    condition = Condition("input.exposed_share", **bounds)

    assert condition.mistake() == ""
    assert condition.holds({"input.exposed_share": value}) is holds


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        (Condition("run.on_device", is_=False), True, False),
        (Condition("run.on_device", is_=False), False, True),
        (Condition("collective.bound", is_="skew"), "skew", True),
        (Condition("collective.bound", is_="skew"), "", False),
        (Condition("collective.kinds", has="all_to_all"), ["all_reduce"], False),
        (Condition("collective.kinds", has="all_to_all"), ["all_reduce", "all_to_all"], True),
    ],
)
def test_flags_texts_and_lists(condition: Condition, value: Any, holds: bool) -> None:
    assert condition.mistake() == ""
    assert condition.holds({condition.figure: value}) is holds


@pytest.mark.parametrize(
    "condition",
    [
        Condition("memory.peak_share", at_least=0.9),
        Condition("loader.has_workers", is_=True),
        Condition("collective.bound", is_="skew"),
        Condition("collective.kinds", has="all_to_all"),
    ],
)
def test_what_is_not_known_is_neither_true_nor_false(condition: Condition) -> None:
    assert condition.holds({condition.figure: WHY}) == WHY
    assert "not known: nobody recorded it" in condition.found({condition.figure: WHY})


@pytest.mark.parametrize(
    ("condition", "says", "found", "value"),
    [
        (Condition("idle.host.gc", at_least=0.03), "idle.host.gc at least 3.0%", "idle.host.gc is 12%", 0.12),
        (Condition("kernel.mean_ns", at_most=1e5), "kernel.mean_ns at most 100 µs", "kernel.mean_ns is 20.0 µs", 2e4),
        (
            Condition("collective.largest_bytes", above=1e6),
            "collective.largest_bytes above 1.00 MB",
            "collective.largest_bytes is 64.0 MB",
            64e6,
        ),
        (Condition("run.ranks", below=2), "run.ranks below 2", "run.ranks is 1", 1),
        (Condition("loader.seen", is_=False), "loader.seen does not hold", "loader.seen is no", False),
    ],
)
def test_words(condition: Condition, says: str, found: str, value: Any) -> None:
    assert (condition.says(), condition.found({condition.figure: value})) == (says, found)


def test_every_figure_says_what_it_is_in_a_known_sort() -> None:
    assert all(spec.says and spec.sort in ("number", "flag", "text", "list") for spec in FIGURES.values())


def test_nothing_is_written_as_none() -> None:
    assert (write_value("collective.kinds", []), write_value("collective.bound", "")) == ("none", "none")
