"""When a row applies, is silenced, does not apply, or is not known to."""

from __future__ import annotations

from typing import Any

import pytest

from longpole.advice.catalogue import Row
from longpole.advice.conditions import Condition
from longpole.advice.judge import APPLIES, NOT_HERE, NOT_KNOWN, SILENCED, judge
from longpole.records.ledger import Unknown
from tests.catalogue_runs import finding

UNKNOWN = Unknown("nobody recorded it", ["peak device memory"])
FULL = Condition("memory.peak_share", at_least=0.9)
WAITS = Condition("input.waiting_share", at_least=0.1)
BUSY = Condition("compute.exposed_share", above=0.9, why="compute-bound")


def _row(**keys: Any) -> Row:
    return Row(
        **{
            "id": "input.try",
            "object": "input",
            "says": "Try it.",
            "effort": "low",
            "must_record": [],
            "proved_by": ["it"],
            "cannot_replace": "it",
            "costs": [],
            "part": "input",
            "references": ["https://example.org"],
            "answers": ["data_loader"],
            "not_when": [BUSY],
            "change": ["--prefetch input"],
            **keys,
        }
    )


def _figures(waits: Any = 0.2, busy: Any = 0.5, memory: Any = UNKNOWN) -> dict[str, Any]:
    return {"input.waiting_share": waits, "compute.exposed_share": busy, "memory.peak_share": memory}


@pytest.mark.parametrize(
    ("wanted", "figures", "causes", "verdict"),
    [
        ([WAITS], _figures(), (), APPLIES),
        ([WAITS], _figures(waits=0.05), (), NOT_HERE),
        ([WAITS], _figures(waits=0.05), ("data_loader",), APPLIES),
        ([WAITS], _figures(busy=0.95), (), SILENCED),
        ([WAITS], _figures(busy=0.95), ("data_loader",), SILENCED),
        ([WAITS], _figures(waits=0.05, busy=0.95), (), NOT_HERE),
        ([WAITS, FULL], _figures(), (), NOT_KNOWN),
        ([WAITS, FULL], _figures(waits=0.05), (), NOT_HERE),
        ([WAITS, FULL], _figures(), ("data_loader",), APPLIES),
        ([WAITS, FULL], _figures(memory=0.95), (), APPLIES),
        ([WAITS], _figures(busy=UNKNOWN), (), APPLIES),
        ([], _figures(), (), NOT_HERE),
        ([], _figures(), ("gc",), NOT_HERE),
        ([], _figures(), ("data_loader",), APPLIES),
    ],
)
def test_the_verdict(wanted: list[Condition], figures: dict[str, Any], causes: tuple[str, ...], verdict: str) -> None:
    found = judge(_row(applies_when=wanted), figures, [finding(cause) for cause in causes])

    assert found.verdict == verdict
    assert found.because()


def test_a_row_may_need_figures_besides_a_finding() -> None:
    row = _row(applies_when=[WAITS], needs_figures=True)

    assert judge(row, _figures(waits=0.05), [finding("data_loader")]).verdict == NOT_HERE
    assert judge(row, _figures(), [finding("data_loader")]).verdict == APPLIES


def test_what_is_not_known_goes_to_missing() -> None:
    silencing = Condition("memory.peak_share", above=0.9, why="it is full")
    row = _row(applies_when=[WAITS], not_when=[silencing])

    assert judge(row, _figures(), []).missing == ["peak device memory"]
    assert judge(row, _figures(memory=0.5), []).missing == []


def test_fields_that_the_run_does_not_record_are_missing() -> None:
    row = _row(applies_when=[WAITS], must_record=["period of every unit", "items per unit", "the colour of the rack"])
    figures = _figures() | {"unit.period_ns": 5, "unit.items": Unknown("nobody said")}

    assert judge(row, figures, []).missing == ["items per unit", "the colour of the rack"]


def test_why_names_findings_first_and_says_their_cost() -> None:
    assert judge(_row(applies_when=[WAITS]), _figures(), [finding("data_loader", 2_000_000)]).because() == [
        "f1, data_loader: 2.00 ms per unit",
        "input.waiting_share is 20%",
    ]
    once = judge(_row(), _figures(), [finding("data_loader", 2_000_000, once=True)])
    assert once.because() == ["f1, data_loader: 2.00 ms once"]


def test_why_not_names_the_condition_that_silences() -> None:
    assert judge(_row(applies_when=[WAITS]), _figures(busy=0.95), []).because() == [
        "compute-bound (compute.exposed_share is 95%)"
    ]
