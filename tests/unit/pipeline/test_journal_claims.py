"""Figures that somebody stated in a journal, held against each other and against what was measured."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.pipeline.journal_claims import check_claims
from longpole.records.journal import Claim, Measured
from longpole.records.ledger import Unknown
from longpole.report.journal import ClaimCheck
from tests.journals import entries, entry

SHARED = [Claim("params", "7e9", "both"), Claim("gpus", "8", "both"), Claim("device", "A100", "both")]


def measured(before: float, after: float, unit: str = "tokens/s", scope: str = "total") -> Measured:
    return Measured(after / before, before=before, after=after, unit=unit, better="higher", scope=scope)


def says(claims: list[Claim], effect: Measured) -> list[str]:
    """Return the verdict on each claim of one entry."""
    found, _ = check_claims([entry(measured=effect, claims=claims)])
    return [one.check.unknown if isinstance(one.check, Unknown) else one.check.verdict for one in found]


@pytest.mark.parametrize(
    ("mfu", "effect", "verdict"),
    [
        # 6 * 7e9 * 2200 / (8 * 312e12) = 3.7 %, and 29.6 % if each of the devices does 2,200
        ("55 %", measured(1200, 2200), "inconsistent"),
        ("3.7 %", measured(1200, 2200), "consistent"),
        ("29.6 %", measured(1200, 2200, scope="per_device"), "consistent"),
        ("29.6 %", measured(1200, 2200, "tokens/s/GPU", ""), "consistent"),
    ],
)
def test_a_stated_mfu_is_held_against_the_throughput_that_was_measured(
    mfu: str, effect: Measured, verdict: str
) -> None:
    assert says([*SHARED, Claim("mfu", mfu)], effect)[-1] == verdict


def test_a_throughput_of_which_nobody_said_whose_it_is_proves_nothing() -> None:
    found = says([*SHARED, Claim("mfu", "55 %")], measured(1200, 2200, scope=""))

    assert all("too little is stated" in one for one in found)


def test_a_claim_goes_before_what_was_measured() -> None:
    claims = [*SHARED, Claim("throughput", "32,700 tok/s"), Claim("mfu", "55 %")]

    assert says(claims, measured(1200, 2200))[-1] == "consistent"


def test_one_claim_that_cannot_be_read_spoils_no_other() -> None:
    claims = [
        *SHARED,
        Claim("mfu", "3.7 %"),
        Claim("steps", "lots"),
        Claim("colour", "red"),
        Claim("mfu", "1", "later"),
    ]

    *_, mfu, steps, colour, later = says(claims, measured(1200, 2200))

    assert mfu == "consistent"
    assert "expected a number" in steps
    assert "no such figure" in colour
    assert "expected before, after or both" in later


def test_sides_of_one_job_are_held_against_each_other_and_those_of_two_are_not() -> None:
    """2200/1200 is 1.83 and 55/35 is 1.57."""
    claims = [Claim("mfu", "35 %", "before"), Claim("mfu", "55 %", "after")]
    apart = [
        entry("one", job="a", measured=measured(1200, 1500), claims=claims[:1]),
        entry("two", job="b", measured=measured(1500, 2200), claims=claims[1:]),
    ]

    assert says(claims, measured(1200, 2200)) == ["inconsistent", "inconsistent"]
    found, audits = check_claims(apart)
    assert all(isinstance(one.check, Unknown) for one in found)
    assert [one.job for one in audits] == ["a", "b"]


@settings(max_examples=40)
@given(st.lists(entries, max_size=3))
def test_whatever_a_journal_holds_every_claim_gets_an_answer(journal: list[object]) -> None:
    found, _ = check_claims(journal)  # type: ignore[arg-type]

    assert all(isinstance(one.check, (ClaimCheck, Unknown)) for one in found)
