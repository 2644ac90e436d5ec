"""Slow jobs whose cause is known (K2): times per rank, units, steady units, and idle time under activities."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from longpole.errors import NotATraceError
from tests.case_answers import ANSWERS, CASES, NOT_KINETO, Case, later
from tests.laws import check_refusal, check_report, check_rungs, refusal_of

get_case = functools.cache(Case)


def _values() -> list[tuple[str, str, Any]]:
    rows = []
    for path in sorted(CASES.glob("B*/expected.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["kind"] == "K2":
            rows += [(document["id"], key, value) for key, value in document["values"].items()]
    return rows


K2 = _values()
REPORTED = sorted({case for case, _, _ in K2} - set(NOT_KINETO))


@pytest.mark.parametrize(("case", "key", "want"), [row for row in K2 if later(*row[:2]) is None])
def test_an_expected_value_comes_out(case: str, key: str, want: Any) -> None:
    ANSWERS[key](get_case(case), want)


@pytest.mark.parametrize("case", REPORTED)
def test_all_laws_hold(case: str) -> None:
    report = get_case(case).report

    check_report(report)
    for row in report.ranks:
        check_rungs(row.ledger)


@pytest.mark.parametrize("case", REPORTED)
def test_no_rank_is_accused_before_there_is_a_diagnosis(case: str) -> None:
    report = get_case(case).report

    assert report.findings == report.candidates == report.collectives == report.overlap == []
    assert report.long_pole is None
    assert getattr(report.headline, "cause", "unknown") == "unknown"
    assert getattr(report.headline, "basis", "ledger") == "ledger"


def test_a_snapshot_of_the_allocator_is_refused_by_name() -> None:
    file = get_case("B090").input

    error = refusal_of(file)

    assert isinstance(error, NotATraceError)
    assert NOT_KINETO["B090"] in str(error)
    check_refusal(error, file.name)
