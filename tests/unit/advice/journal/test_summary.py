"""What changes add up to: they multiply, and their shares add up in logarithms."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.advice.journal.summary import JobSummary, gain, summarise
from longpole.records.journal import Entry, Expected, Measured
from longpole.records.ledger import Unknown
from tests.journals import entry

speedups = st.lists(st.floats(0.2, 5), min_size=1, max_size=8)
GAP = 0.03


def only(entries: list[Entry]) -> JobSummary:
    (summary,) = summarise(entries, GAP)
    return summary


@given(speedups)
def test_the_compound_is_the_product(factors: list[float]) -> None:
    summary = only([entry(str(n), speedup=factor) for n, factor in enumerate(factors)])

    assert summary.compound == pytest.approx(math.prod(factors))
    assert summary.kept[-1].compound == summary.compound
    assert summary.sum_of_gains == pytest.approx(1 + sum(factor - 1 for factor in factors))
    assert summary.time_saved == pytest.approx(1 - 1 / math.prod(factors))
    assert summary.sum_of_savings == pytest.approx(sum(1 - 1 / factor for factor in factors))


@given(speedups, st.randoms(use_true_random=False))
def test_the_compound_and_the_shares_do_not_depend_on_the_order(factors: list[float], random: object) -> None:
    entries = [entry(str(n), speedup=factor) for n, factor in enumerate(factors)]
    shuffled = list(entries)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    one, other = only(entries), only(shuffled)

    assert one.compound == pytest.approx(other.compound)
    shares = [{part.id: part.log_share for part in summary.kept} for summary in (one, other)]
    known = [isinstance(share, float) for share in shares[0].values()]
    if all(known):
        assert sum(shares[0].values()) == pytest.approx(1, abs=1e-3)  # type: ignore[arg-type]


@given(st.lists(st.floats(100, 10_000), min_size=2, max_size=6))
def test_a_chain_of_figures_has_no_gap_and_leaves_nothing_over(figures: list[float]) -> None:
    pairs = list(itertools.pairwise(figures))

    summary = only([entry(str(n), speedup=b / a, before=a, after=b) for n, (a, b) in enumerate(pairs)])

    assert summary.gaps == []
    assert (summary.before, summary.after) == (figures[0], figures[-1])
    assert summary.unaccounted == pytest.approx(1)


def test_only_what_was_kept_and_stayed_counts() -> None:
    summary = only(
        [
            entry("kept", speedup=1.5),
            entry("tried", speedup=0.9, decision="reverted", verdict="rejected"),
            entry("taken back", speedup=2.0),
            entry("revert", decision="reverted", reverts="taken back", verdict="not verifiable"),
            entry("unmeasured"),
        ]
    )

    assert [one.id for one in summary.kept] == ["kept"]
    assert summary.compound == 1.5
    assert {one.id: one.why for one in summary.not_counted} == {
        "tried": "reverted",
        "taken back": "reverted by revert",
        "revert": "a revert of taken back",
        "unmeasured": "not measured",
    }


def test_what_changed_between_entries_is_named() -> None:
    summary = only(
        [entry("a", speedup=1.25, before=1200.0, after=1500.0), entry("b", speedup=1.1, before=1400.0, after=1540.0)]
    )

    (gap,) = summary.gaps
    assert (gap.after_id, gap.before_id, gap.left, gap.found) == ("a", "b", 1500.0, 1400.0)
    assert gap.speedup == pytest.approx(1400 / 1500)
    assert summary.unaccounted == pytest.approx(1400 / 1500)


def test_a_difference_that_runs_have_anyway_is_no_gap() -> None:
    summary = only(
        [entry("a", speedup=1.25, before=1200.0, after=1500.0), entry("b", speedup=1.1, before=1520.0, after=1672.0)]
    )

    assert summary.gaps == []
    assert summary.unaccounted == pytest.approx(1520 / 1500)


def test_times_are_counted_the_other_way_round() -> None:
    effects = [Measured(2.0, before=8.0, after=4.0, unit="ms/step", better="lower")]

    summary = only([entry("a", measured=effects[0])])

    assert (summary.compound, summary.before, summary.after, summary.unaccounted) == (2.0, 8.0, 4.0, 1.0)


def test_figures_of_two_units_have_no_ends_and_still_a_compound() -> None:
    summary = only(
        [
            entry("a", speedup=2.0, before=1.0, after=2.0),
            entry("b", measured=Measured(2.0, before=8.0, after=4.0, unit="ms/step", better="lower")),
        ]
    )

    assert summary.compound == 4.0
    assert isinstance(summary.before, Unknown)
    assert isinstance(summary.unaccounted, Unknown)


def test_jobs_are_apart_and_entries_go_by_their_day() -> None:
    one, other = summarise(
        [
            entry("late", speedup=2.0, date="2026-12-02", job="a"),
            entry("early", speedup=3.0, date="2026-12-01", job="a"),
            entry("b", speedup=5.0, job="b"),
        ],
        GAP,
    )

    assert [part.id for part in one.kept] == ["early", "late"]
    assert (one.compound, other.compound) == (6.0, 5.0)


def test_an_interval_of_the_compound_adds_squares_and_needs_all() -> None:
    factors = [Measured(2.0, low=2 / 1.1, high=2 * 1.1, level=0.9), Measured(3.0, low=3 / 1.1, high=3 * 1.1, level=0.9)]
    both = [entry(str(n), measured=effect) for n, effect in enumerate(factors)]

    summary = only(both)
    without = only([*both, entry("bare", speedup=1.0)])

    assert summary.compound_high == pytest.approx(6 * 1.1 ** math.sqrt(2))
    assert summary.compound_low == pytest.approx(6 / 1.1 ** math.sqrt(2))
    assert isinstance(without.compound_low, Unknown)
    assert without.compound_low.unknown == "1 of 3 changes have no interval"


def test_changes_that_cancel_out_have_no_shares() -> None:
    summary = only([entry("up", speedup=2.0), entry("down", speedup=0.5)])

    assert summary.compound == 1.0
    assert all(isinstance(part.log_share, Unknown) for part in summary.kept)


def test_nothing_kept_is_said() -> None:
    summary = only([entry("tried", speedup=0.9, decision="reverted")])

    assert isinstance(summary.compound, Unknown)
    assert summary.says == "Nothing adds up yet: no change of this job is kept and measured."
    assert summarise([], GAP) == []


def test_predictions_are_hits_by_what_both_leave_open_and_reverted_ones_count() -> None:
    def predicted(name: str, expected: Expected, decision: str = "kept") -> Entry:
        measured = Measured(1.10, low=1.05, high=1.15, level=0.9)
        return entry(name, expected=expected, measured=measured, decision=decision)

    predictions = only(
        [
            predicted("in", Expected(1.14, "x.y")),
            predicted("out", Expected(1.3, "x.y")),
            predicted("out, but so uncertain", Expected(1.3, "x.y", error_share=0.2), "reverted"),
            predicted("wrong way", Expected(0.9, "x.y")),
            entry("no interval", expected=Expected(1.1, "x.y"), speedup=1.1),
        ]
    ).predictions

    assert [one.hit for one in predictions.each[:4]] == [True, False, True, False]
    assert isinstance(predictions.each[4].hit, Unknown)
    assert (predictions.hits, predictions.judged, predictions.right_direction) == (2, 4, 4)
    logs = [math.log(expected / 1.1) for expected in (1.14, 1.3, 1.3, 0.9, 1.1)]
    assert predictions.bias_share == pytest.approx(math.expm1(sum(logs) / 5))


@pytest.mark.parametrize(
    ("speedup", "text"), [(1.8333, "+83 %"), (1.0476, "+4.8 %"), (0.5, "−50 %"), (0.9999, "±0 %"), (1.0996, "+10.0 %")]
)
def test_a_gain_has_its_sign(speedup: float, text: str) -> None:
    assert gain(speedup) == text
