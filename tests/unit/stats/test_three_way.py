"""The rule of the gate: its regions, its mirror, its looks, and the tests beside it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from longpole.stats.looks import ALPHA, last_look, plan_looks, run_looks
from longpole.stats.many import adjust_by_holm
from longpole.stats.signed_rank import signed_rank_interval, signed_rank_p
from longpole.stats.three_way import (
    IMPROVED,
    INCONCLUSIVE,
    REGRESSED,
    SAME,
    Bounds,
    judge,
    measure_pairs,
    pairs_to_settle,
    smallest_worsening,
)

SYMMETRIC = Bounds(0.03, -0.03)
MIRRORED = {REGRESSED: IMPROVED, IMPROVED: REGRESSED}


def centred(mean: float, spread: float, pairs: int) -> np.ndarray:
    """Pairs of exactly this mean and standard deviation."""
    values = np.arange(pairs, dtype=float)
    values = (values - values.mean()) / values.std(ddof=1)
    return (mean + spread * values)[None, :]


@pytest.mark.parametrize(
    ("mean", "spread", "answer"),
    [
        (0.00, 0.01, SAME),
        (0.02, 0.002, SAME),  # surely worse, and by less than the threshold
        (0.05, 0.01, REGRESSED),
        (0.05, 0.20, INCONCLUSIVE),
        (0.031, 0.001, REGRESSED),
        (0.029, 0.01, INCONCLUSIVE),  # may be beyond the threshold
        (-0.05, 0.01, IMPROVED),
        (-0.05, 0.20, INCONCLUSIVE),
        (-0.30, 0.20, IMPROVED),
        (-0.12, 0.22, INCONCLUSIVE),  # no regression is in sight, but twice the threshold would not be seen either
    ],
)
def test_each_region_has_its_answer(mean: float, spread: float, answer: str) -> None:
    seen = measure_pairs(centred(mean, spread, 10))

    assert judge(seen, SYMMETRIC)[0] == answer


def test_proven_asks_the_whole_interval_to_lie_beyond_the_threshold() -> None:
    seen = measure_pairs(centred(0.04, 0.03, 10))

    assert judge(seen, SYMMETRIC)[0] == REGRESSED
    assert judge(seen, Bounds(0.03, -0.03, proven=True))[0] == INCONCLUSIVE
    assert judge(measure_pairs(centred(0.06, 0.03, 10)), Bounds(0.03, -0.03, proven=True))[0] == REGRESSED


def test_less_throughput_is_worse_by_the_same_share() -> None:
    down = Bounds.of_share(0.03, higher_is_better=True)

    assert down.worse_at == pytest.approx(-np.log(0.97))
    assert down.better_at == pytest.approx(-np.log(1.03))


def test_a_few_wild_pairs_do_not_make_a_regression() -> None:
    values = np.array([[-0.02, -0.01, -0.02, -0.01, -0.02, -0.01, -0.02, -0.01, 9.0, 9.0, 9.0]])
    seen = measure_pairs(values)

    assert float(seen.low[0]) < 0
    assert judge(seen, SYMMETRIC)[0] == INCONCLUSIVE


def test_a_few_wild_pairs_do_not_hide_that_nothing_changed() -> None:
    """Every fifth pair met a CPU in another state: what real pairs of a virtual machine look like."""
    rng = np.random.default_rng(5)
    values = np.where(
        rng.random((200, 40)) < 0.2, 0.45 * rng.choice([-1, 1], (200, 40)), rng.normal(0, 0.03, (200, 40))
    )

    assert np.mean(judge(measure_pairs(values, 0.02), SYMMETRIC) == REGRESSED) <= 0.02
    assert np.median(measure_pairs(values, 0.02).high) < 0.5 * np.median(
        2.12 * values.std(axis=1, ddof=1) / values.shape[1] ** 0.5
    )


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=14, unique=True), st.sampled_from([0.02, 0.05, 0.1]))
def test_an_interval_by_ranks_is_where_the_test_of_ranks_does_not_object(values: list[float], tail: float) -> None:
    differences = np.array([values])
    found = signed_rank_interval(differences, tail)

    assert found is not None
    estimate, low, high = (float(column[0]) for column in found)
    assert low <= estimate <= high
    step = 1e-9 * max(map(abs, values))
    assert float(signed_rank_p(differences - (low - step))[0]) <= tail
    assert float(signed_rank_p(-(differences - (high + step)))[0]) <= tail
    if low < high:
        assert float(signed_rank_p(differences - (low + step))[0]) > tail


def test_so_few_pairs_that_ranks_never_say_so_much_have_no_interval_by_ranks() -> None:
    assert signed_rank_interval(np.ones((1, 5)), 0.01) is None
    assert measure_pairs(np.arange(8.0)[None, :], 0.001).method == "t"


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=30))
def test_the_mirror_of_worse_is_better(values: list[float]) -> None:
    one, other = np.array([values]), -np.array([values])
    answers = judge(measure_pairs(one), SYMMETRIC)[0], judge(measure_pairs(other), SYMMETRIC)[0]

    if answers[0] in MIRRORED:
        assert answers[1] == MIRRORED[str(answers[0])]


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=30), st.floats(0, 1))
def test_more_of_the_same_never_turns_a_regression_into_less(values: list[float], more: float) -> None:
    order = [IMPROVED, SAME, INCONCLUSIVE, REGRESSED]
    rows = np.array([values, [value + more for value in values]])
    fewer = rows[:, :7]  # ranks are asked from eight pairs on; they too only rise

    answers = judge(measure_pairs(fewer if fewer.shape[1] > 1 else rows), SYMMETRIC)

    if answers[0] == REGRESSED:
        assert order.index(str(answers[1])) >= order.index(REGRESSED)


def test_the_smallest_worsening_is_found_in_four_of_five_tries() -> None:
    rng = np.random.default_rng(3)
    spread, pairs = 0.02, 10
    error = spread / pairs**0.5
    seen = measure_pairs(centred(0.0, spread, pairs))
    least = float(smallest_worsening(seen, SYMMETRIC)[0])

    drawn = rng.normal(least, error * pairs**0.5, (4000, pairs))
    found = np.mean(judge(measure_pairs(drawn), SYMMETRIC) == REGRESSED)

    assert 0.74 < found < 0.9


def test_pairs_to_settle_settle_it() -> None:
    rng = np.random.default_rng(2)
    needed = pairs_to_settle(0.05, 0.1, SYMMETRIC, 200)

    assert needed is not None
    drawn = rng.normal(0.05, 0.1, (2000, needed))
    drawn += 0.05 - np.median(drawn, axis=1)[:, None]  # an estimate that stays what it is
    settled = np.mean(judge(measure_pairs(drawn), SYMMETRIC) == REGRESSED)
    fewer = np.mean(judge(measure_pairs(drawn[:, : needed // 2]), SYMMETRIC) == REGRESSED)
    assert settled > 0.5 > fewer
    assert pairs_to_settle(0.0299, 0.1, SYMMETRIC, 50) is None


@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 6)), min_size=3, max_size=20, unique_by=abs))
def test_signed_ranks_agree_with_scipy(values: list[float]) -> None:
    values = [value for value in values if value]
    if len(values) < 3:
        return
    expected = stats.wilcoxon(values, alternative="greater", method="exact").pvalue

    assert float(signed_rank_p(np.array([values]))[0]) == pytest.approx(float(expected), abs=1e-12)


def test_pairs_that_do_not_differ_say_nothing() -> None:
    assert signed_rank_p(np.zeros((1, 10)))[0] > 0.4


def test_holm_is_the_stepwise_definition() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        p = rng.random(8) ** 3
        adjusted = adjust_by_holm(p)
        for alpha in (0.01, 0.05, 0.2):
            rejected = set()
            for step, place in enumerate(np.argsort(p)):
                if p[place] > alpha / (len(p) - step):
                    break
                rejected.add(int(place))
            assert {int(i) for i in np.flatnonzero(adjusted <= alpha)} == rejected


@given(st.integers(5, 60), st.integers(5, 200))
def test_looks_spend_exactly_what_there_is(first: int, most: int) -> None:
    looks = plan_looks(min(first, most), most)

    assert sum(look.tail for look in looks) == pytest.approx(ALPHA)
    assert [look.pairs for look in looks] == sorted({look.pairs for look in looks})
    assert looks[-1].pairs == most


def test_a_look_that_time_forces_spends_what_is_left() -> None:
    looks = plan_looks(10, 40)

    assert last_look(14, looks[0].tail).tail == pytest.approx(ALPHA - looks[0].tail)


def test_looking_again_and_again_keeps_false_alarms_at_five_percent() -> None:
    """With noise so large that the threshold never matters, where peeking at 5 % a look gives twice as many."""
    drawn = np.random.default_rng(7).normal(0, 0.5, (8000, 40))
    answers, _ = run_looks(drawn, SYMMETRIC, plan_looks(10, 40))

    peeking = np.zeros(len(drawn), dtype=bool)
    for pairs in (10, 20, 40):
        peeking |= judge(measure_pairs(drawn[:, :pairs]), SYMMETRIC) == REGRESSED

    assert np.mean(answers == REGRESSED) <= 0.05
    assert np.mean(peeking) > 0.08
