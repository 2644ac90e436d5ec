"""Predictions against reality: the arithmetic, on outcomes made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.predictions.scoring import Answer, Outcome, read_answer, summarize
from benchmarks.predictions.tables import first_of_each, is_beaten, render_summary

MS = 10**6
# A run of 40 ms whose change brings it to 30 ms, rightly foretold.
DOCUMENT: dict[str, Any] = {
    "schema": "longpole.whatif/1",
    "measured_period_ns": 40 * MS,
    "replayed_period_ns": 40 * MS,
    "predicted_period_ns": 30 * MS,
    "saving_ns": 10 * MS,
    "replay": {"error_of_median": -0.01},
    "what_if_error": {"unknown": "no pairs of this kind"},
    "refused": None,
}


def outcome(
    *, before: float = 40, after: tuple[float, ...] = (30,), predicted: float | None = 30, **parts: Any
) -> Outcome:
    """Make an outcome; times in milliseconds."""
    answer = Answer(why_not="refused: too small a change")
    if predicted is not None:
        interval_ns = parts.pop("interval_ns", None)
        answer = Answer(
            predicted_ns=round(predicted * MS), saving_ns=round((before - predicted) * MS), interval_ns=interval_ns
        )
    names = {"pair": "loader.1", "change": "loader", "kind": "scale:input", "round": 1, **parts}
    return Outcome(
        before_ns=round(before * MS), targets_ns=tuple(round(one * MS) for one in after), answer=answer, **names
    )


def test_errors_are_signed_and_relative_to_what_was_measured() -> None:
    """A period foretold 10 % too short is an error of -10 %; the saving is compared with the real saving."""
    one = outcome(before=40, after=(29, 30, 34), predicted=27)

    assert one.target_ns == 30 * MS
    assert one.period_error == pytest.approx(-0.1)
    assert one.saving_error == pytest.approx(0.3)
    assert one.no_change_error == pytest.approx(1 / 3)
    assert one.target_spread == pytest.approx(5 / 30)
    assert one.is_sign_right
    assert not one.is_saving_close


@pytest.mark.parametrize(
    ("after", "predicted", "sign_right"),
    [
        (30, 39, True),
        (30, 41, False),
        (50, 45, True),  # a change for the worse, foretold as one
        (50, 38, False),
        (39, 40, True),  # 2.5 % is nothing, and nothing was foretold
        (41, 39, True),
        (40, 37, False),  # 7.5 % foretold, nothing came
    ],
)
def test_the_sign_of_a_saving(after: float, predicted: float, sign_right: bool) -> None:
    """Under 5 % there is no sign to foretell, and a foretold gain is wrong."""
    one = outcome(before=40, after=(after,), predicted=predicted)

    assert one.is_sign_right is sign_right
    if one.saves_nothing:
        assert one.saving_error is None
        assert one.is_saving_close is sign_right


def test_a_summary_counts_what_was_answered_and_says_what_was_not() -> None:
    """Nine good predictions, one bad one and one refusal."""
    good = [outcome(predicted=29 + place / 4, pair=f"loader.{place}") for place in range(9)]
    summary = summarize([*good, outcome(predicted=39, pair="loader.9"), outcome(predicted=None, pair="loader.10")])

    assert summary is not None
    assert (summary.asked, summary.answered) == (11, 10)
    assert summary.period_within == 0.9
    assert summary.saving_within == 0.9
    assert summary.sign_right == 1
    assert summary.error_p90 == pytest.approx(1 / 30)
    assert summary.error_max == pytest.approx(0.3)
    assert summary.optimistic == 0.4
    assert summary.no_change_within == 0
    assert summary.worthwhile == 1
    assert is_beaten(summary)


def test_the_no_change_predictor_can_win() -> None:
    """Predictions worse than none are called so."""
    bad = [outcome(before=31, after=(30,), predicted=20)]

    summary = summarize(bad)

    assert summary is not None
    assert not is_beaten(summary)
    assert "**wins**" in render_summary(bad, bad)


def test_an_interval_counts_for_a_saving_that_is_not_close() -> None:
    """The measured period is in the printed interval, though the saving is a third off."""
    inside = outcome(predicted=26, interval_ns=(25 * MS, 31 * MS))
    outside = outcome(predicted=26, interval_ns=(25 * MS, 29 * MS))

    summary = summarize([inside, outside])

    assert summary is not None
    assert summary.saving_within == 0
    assert summary.saving_or_interval == 0.5


def test_nothing_answered_has_no_summary() -> None:
    """Without a prediction there is no figure, not a zero."""
    refused = [outcome(predicted=None)]

    assert summarize(refused) is None
    assert render_summary(refused, refused) == "No prediction was made."


def test_the_first_recording_of_each_pair_stands_for_it() -> None:
    """Whatever the order in which outcomes come."""
    outcomes = [outcome(round=2), outcome(round=1), outcome(round=3, pair="loader.2")]

    assert [(one.pair, one.round) for one in first_of_each(outcomes)] == [("loader.1", 1), ("loader.2", 3)]


def test_a_document_becomes_an_answer() -> None:
    """The prediction, the replay's error and the interval, where one is printed."""
    known = {"kind_of_change": "scale", "pairs": 9, "p90_share": 0.2}

    plain, with_interval = read_answer(DOCUMENT), read_answer({**DOCUMENT, "what_if_error": known})

    assert plain == Answer(predicted_ns=30 * MS, saving_ns=10 * MS, replay_error=-0.01)
    assert with_interval.interval_ns == (25 * MS, 37_500_000)


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"refused": {"why": "the replay is off by 7 %", "missing": ["x"]}}, "refused: the replay is off by 7 %"),
        ({"refused": [{"code": "x", "why": "too small"}, "y"]}, "refused: too small x; y"),
        ({"predicted_period_ns": {"unknown": "one unit"}}, "not known: one unit"),
        ({"saving_ns": None}, "not known: 30000000"),
    ],
)
def test_a_document_without_a_prediction_says_why(part: dict[str, Any], why: str) -> None:
    """A refusal and an unknown figure are no answer, even where other figures are there."""
    answer = read_answer({**DOCUMENT, **part})

    assert answer.predicted_ns is None
    assert answer.why_not == why
