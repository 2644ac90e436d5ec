"""Slow jobs whose cause is known (K2): times per rank, units, steady units, and idle time under activities."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from longpole.errors import NotATraceError
from longpole.records.ledger import Unknown
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
def test_a_rank_that_waits_is_never_the_culprit(case: str) -> None:
    for entry in get_case(case).report.collectives:
        for row in entry.waits:
            assert row.rank != row.for_rank
        if isinstance(entry.culprit_rank, int) and entry.culprit_share == 1.0:
            assert entry.waiting_ns_by_rank[str(entry.culprit_rank)] == 0


LATE = {
    "B064": [(rank, "host") for rank in (0, 1, 2, 3)],
    "B073": [(0, "more_work"), (1, "more_work"), (3, "more_work")],
    "B074": [(2, "slower_work")],
    "B078": [(0, "output")],
}


@pytest.mark.parametrize("case", REPORTED)
def test_late_ranks_are_named_with_the_reason_and_nobody_else(case: str) -> None:
    stragglers = get_case(case).report.stragglers

    assert sorted((entry.rank, entry.reason) for entry in stragglers) == LATE.get(case, [])


@pytest.mark.parametrize(
    ("case", "rank", "words"), [("B074", 2, "a slower device"), ("B078", 0, "saving"), ("B073", 1, "more work")]
)
def test_the_page_says_why_a_rank_is_late(case: str, rank: int, words: str) -> None:
    says = [entry.says for entry in get_case(case).report.stragglers if entry.rank == rank]

    assert words in says[0]


def test_no_culprit_is_named_where_ranks_are_late_in_turn() -> None:
    assert isinstance(get_case("B064").report.collectives[0].culprit_rank, Unknown)


def test_b080_a_rate_of_an_incomplete_group_is_a_lower_bound() -> None:
    (entry,) = get_case("B080").report.collectives

    assert entry.split == "unknown"
    assert entry.rate_from == "duration"
    assert entry.members_present == [0, 1]
    assert len(entry.members) == 16


def test_a_snapshot_of_the_allocator_is_refused_by_name() -> None:
    file = get_case("B090").input

    error = refusal_of(file)

    assert isinstance(error, NotATraceError)
    assert NOT_KINETO["B090"] in str(error)
    check_refusal(error, file.name)
