"""Slow jobs whose cause is known (K2): the right cause first, on the right ranks, at the right cost.

The cost is the figure that the case's `cost_statistic` names, within 5 %, or in the range that the case gives.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from longpole.records.ledger import Unknown
from longpole.report.document import Headline
from longpole.vocabulary.causes import CAUSES, NO_VERDICT
from tests.case_answers import CASES, NOT_KINETO, Case

if TYPE_CHECKING:
    from longpole.records.findings import CauseFinding

get_case = functools.cache(Case)

RANKS: Final = {
    "B064": [0, 1, 2, 3],
    "B073": [0, 1, 3],
    "B074": [2],
    "B078": [0],
}
"""Who causes it, where that is not every rank: B073's slowest ranks by step are 1, 3, 0, 1, 1, 1."""


@functools.cache
def _values(case: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))["values"]
    return values


def _k2() -> list[str]:
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("B*/expected.json"))]
    return [document["id"] for document in documents if document["kind"] == "K2" and document["id"] not in NOT_KINETO]


K2: Final = _k2()


def _first(case: str) -> CauseFinding:
    return get_case(case).report.findings[0]


@pytest.mark.parametrize("case", K2)
def test_the_right_cause_comes_first(case: str) -> None:
    assert _first(case).cause == _values(case)["cause"]
    assert _first(case).object == CAUSES[_first(case).cause]


@pytest.mark.parametrize("case", K2)
def test_the_first_cause_is_the_long_pole_and_the_headline(case: str) -> None:
    report, first = get_case(case).report, _first(case)

    if first.cause == NO_VERDICT:
        assert report.long_pole is None
        assert isinstance(report.headline, Unknown)
        return
    assert report.long_pole == first.id == "f1"
    assert isinstance(report.headline, Headline)
    assert (report.headline.says, report.headline.cause) == (first.says, first.cause)


@pytest.mark.parametrize("case", K2)
def test_the_ranks_that_cause_it_are_named_and_no_rank_that_waits(case: str) -> None:
    everyone = get_case(case).report.run.ranks_present

    assert _first(case).ranks == RANKS.get(case, everyone)


@pytest.mark.parametrize("case", K2)
def test_it_costs_what_the_case_says(case: str) -> None:
    values, first = _values(case), _first(case)
    statistic = values["cost_statistic"]
    if statistic == "none" or values["cost_basis"] == "outside":
        return
    if statistic == "one_off":
        assert first.once
        assert first.cost_once_ns / 1000 == pytest.approx(values["cost_once_us"], rel=0.05)
        return
    assert first.cost_statistic == statistic
    cost_us = first.cost_ns_per_unit / 1000
    if "cost_us_per_unit_between" in values:
        low, high = values["cost_us_per_unit_between"]
        assert low <= cost_us <= high
        return
    wanted = values["cost_mean_us_per_unit" if statistic == "mean" else "cost_us_per_unit"]
    assert cost_us == pytest.approx(wanted, rel=0.05, abs=50)


@pytest.mark.parametrize("case", K2)
def test_findings_are_ordered_numbered_and_rest_on_rows(case: str) -> None:
    report = get_case(case).report

    assert [finding.id for finding in report.findings] == [f"f{n + 1}" for n in range(len(report.findings))]
    for finding in report.findings:
        assert finding.evidence
        assert finding.cause in CAUSES
        assert 0 <= finding.cost_share <= 1
        assert finding.ceiling_ns >= finding.cost_ns_per_unit
        assert set(finding.ranks) <= set(report.run.ranks_present)
