"""Every verdict, on runs in which it is the truth by construction."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from longpole.advice.verify.contract import Metric
from longpole.advice.verify.limits import parse_limit
from longpole.advice.verify.prediction import Forecast
from longpole.records.ledger import Unknown
from longpole.records.run_record import (
    RecordCheck,
    RecordContract,
    RecordCorrectness,
    RecordEnvironment,
    RecordMetric,
    RecordTime,
    RecordUnit,
)
from longpole.records.verdict import REASONS, VERDICTS, Effect, Part
from tests.verify_runs import HEALTHY, Job, ask, compare

BEFORE = Job()
FASTER = Job(parts={**HEALTHY, "input": 9})


def changed(**parts: float) -> Job:
    """The healthy job with other parts."""
    return Job(parts={**HEALTHY, **parts})


def test_a_part_that_shrinks_and_takes_the_step_along_is_accepted() -> None:
    found = compare(BEFORE, FASTER, part="input")
    assert (found.verdict, found.reason) == ("accepted", "faster")
    assert isinstance(found.effect, Effect)
    assert found.effect.estimate == pytest.approx(-28 / 120, abs=0.02)
    assert found.effect.interval[0] < found.effect.estimate < found.effect.interval[1] < -0.03  # type: ignore[index, operator]
    assert not found.effect.single_run
    assert isinstance(found.part, Part)
    assert found.part.shrank == "yes"
    assert found.part.says == f"the input stage fell {found.part.says.partition('fell ')[2]}"


def test_the_sentence_says_that_the_wait_moved_to_the_all_reduce() -> None:
    """The sentence of the issue: input fell from 37 to 9 ms, the step is not shorter, the all-reduce has it now."""
    before = replace(BEFORE, between=0, within=0, collectives={"all_reduce": (18, 2)})
    after = replace(changed(input=9, collective=46), between=0, within=0, collectives={"all_reduce": (46, 29)})
    found = compare(before, after, part="input")
    assert (found.verdict, found.reason) == ("rejected", "moved")
    assert found.says == (
        "the input stage fell from 37 to 9 ms but the step is not shorter: the wait moved to the all-reduce,"
        " where ranks wait for the last one (from 18 to 46 ms)"
    )
    assert found.moved.to == "collective:all_reduce"


@pytest.mark.parametrize(
    ("parts", "to"),
    [
        ({"input": 9, "collective": 46}, "collective"),
        ({"input": 9, "host": 33}, "host"),
        ({"input": 9, "compute": 88}, "compute"),
        ({"collective": 2, "input": 53}, "input"),
    ],
)
def test_changes_that_only_move_the_wait_are_rejected(parts: dict[str, float], to: str) -> None:
    part = "collective" if parts.get("collective") == 2 else "input"
    for asked in (part, ""):
        found = compare(BEFORE, changed(**parts), part=asked)
        assert (found.verdict, found.reason, found.moved.to) == ("rejected", "moved", to), asked


def test_one_run_a_side_is_enough_to_see_that_a_large_fall_did_not_arrive() -> None:
    found = compare(BEFORE, changed(input=9, collective=46), runs=1, part="input")
    assert (found.verdict, found.reason) == ("rejected", "moved")
    assert isinstance(found.effect, Effect)
    assert found.effect.single_run


def test_a_step_that_gets_longer_while_the_part_shrinks_has_moved_too() -> None:
    found = compare(BEFORE, changed(input=9, collective=66), part="input")
    assert (found.verdict, found.reason) == ("rejected", "moved")
    assert "is longer" in found.says


def test_the_same_job_again_has_no_effect_with_enough_runs() -> None:
    assert compare(BEFORE, BEFORE, runs=6).reason == "no_effect"


def test_the_same_job_again_is_inconclusive_with_one_run_and_says_how_many_more() -> None:
    found = compare(BEFORE, BEFORE, runs=1)
    assert (found.verdict, found.reason) == ("inconclusive", "spread")
    assert isinstance(found.needs.runs, int)
    assert found.needs.runs > 0
    assert "more pairs of runs" in found.needs.says


def test_the_recommended_number_of_pairs_settles_it() -> None:
    """What is said to be needed is about enough: it settles at least seven of ten tries."""
    job = replace(BEFORE, between=0.015, units=20)
    settled = 0
    for seed in range(10):
        first = compare(job, job, runs=3, seed=seed, paired=True)
        if first.verdict != "inconclusive" or not isinstance(first.needs.runs, int):
            settled += 1
            continue
        settled += compare(job, job, runs=3 + first.needs.runs, seed=seed, paired=True).reason == "no_effect"
    assert settled >= 7


def test_a_longer_item_is_worse() -> None:
    found = compare(BEFORE, changed(compute=75), part="compute")
    assert (found.verdict, found.reason) == ("rejected", "worse")


def test_a_doubled_batch_with_a_longer_step_but_less_time_per_item_is_accepted_and_marked() -> None:
    after = Job(parts={"compute": 115, "collective": 18, "input": 60, "host": 5}, items=1024)
    found = compare(BEFORE, after)
    assert found.verdict == "accepted"
    assert isinstance(found.effect, Effect)
    assert found.effect.per_item
    assert found.effect.estimate == pytest.approx(198 / 240 - 1, abs=0.02)
    assert any(entry.what == "batch" and entry.severity == "warn" for entry in found.differences)


def test_a_doubled_batch_whose_items_take_longer_is_not() -> None:
    after = Job(parts={"compute": 180, "collective": 18, "input": 74, "host": 5}, items=1024)
    assert compare(BEFORE, after).reason == "worse"


def test_a_changed_batch_without_items_is_not_verifiable_and_says_what_is_missing() -> None:
    before = replace(BEFORE, items=None, contract=RecordContract(micro_batch=8))
    after = replace(changed(compute=115), items=None, contract=RecordContract(micro_batch=16))
    found = compare(before, after)
    assert (found.verdict, found.reason) == ("not verifiable", "items_unknown")
    assert any("--items" in field for field in found.needs.fields)


def test_items_on_one_side_only_are_not_enough() -> None:
    found = compare(BEFORE, replace(FASTER, items=None))
    assert (found.verdict, found.reason) == ("not verifiable", "items_unknown")


def test_without_items_and_without_a_sign_of_another_batch_periods_are_compared() -> None:
    found = compare(replace(BEFORE, items=None), replace(FASTER, items=None))
    assert found.verdict == "accepted"
    assert isinstance(found.effect, Effect)
    assert not found.effect.per_item
    assert any(entry.what == "items" and entry.severity == "note" for entry in found.differences)


def test_far_more_compute_without_items_may_be_a_larger_batch() -> None:
    found = compare(replace(BEFORE, items=None), replace(changed(compute=120), items=None))
    assert found.reason == "items_unknown"


def test_shapes_tell_a_doubled_batch_where_items_are_not_declared() -> None:
    shape = "[[{n}, 512], [10, 512], [10]]"
    before = replace(BEFORE, items=None, contract=RecordContract(shapes={"aten::linear": [shape.format(n=16)]}))
    after = Job(
        parts={"compute": 110, "collective": 18, "input": 60, "host": 5},
        items=None,
        contract=RecordContract(shapes={"aten::linear": [shape.format(n=32)]}),
    )
    found = compare(before, after)
    assert found.verdict == "accepted"
    assert isinstance(found.effect, Effect)
    assert found.effect.estimate == pytest.approx(193 / 240 - 1, abs=0.02)


def test_items_that_shapes_contradict_are_pointed_out() -> None:
    shape = "[[{n}, 512], [10, 512], [10]]"
    before = replace(BEFORE, contract=RecordContract(shapes={"aten::linear": [shape.format(n=16)]}))
    after = replace(FASTER, items=2048, contract=RecordContract(shapes={"aten::linear": [shape.format(n=16)]}))
    found = compare(before, after)
    assert any(entry.key == "shapes" and "one of the two" in entry.says for entry in found.differences)


@pytest.mark.parametrize("key", ["devices", "torch_version"])
def test_what_must_match_and_does_not_makes_it_not_verifiable_unless_it_is_the_change(key: str) -> None:
    before = replace(BEFORE, environment=RecordEnvironment(must_match={key: "one"}))
    after = replace(FASTER, environment=RecordEnvironment(must_match={key: "other"}))
    found = compare(before, after)
    assert (found.verdict, found.reason) == ("not verifiable", "not_comparable")
    assert key in found.needs.fields
    assert compare(before, after, allowed=frozenset([key])).verdict == "accepted"


def test_more_ranks_need_items() -> None:
    wider = replace(FASTER, world=8)
    assert compare(replace(BEFORE, items=None), replace(wider, items=None)).reason == "items_unknown"
    assert compare(BEFORE, wider).verdict == "accepted"


def test_other_units_of_work_are_not_comparable() -> None:
    assert compare(BEFORE, replace(FASTER, kind="iteration")).reason == "not_comparable"
    assert compare(replace(BEFORE, kind="trace"), replace(FASTER, kind="trace")).reason == "not_comparable"


def test_a_check_that_fails_rejects_whatever_time_says() -> None:
    failed = RecordCorrectness(checks=[RecordCheck("results_equal", "failed")])
    found = compare(BEFORE, replace(FASTER, correctness=failed))
    assert (found.verdict, found.reason) == ("rejected", "contract")


def test_outputs_that_differ_reject() -> None:
    one, other = (RecordCorrectness(outputs={"loss": value}) for value in ("1f", "2f"))
    assert compare(replace(BEFORE, correctness=one), replace(FASTER, correctness=other)).reason == "contract"
    assert compare(replace(BEFORE, correctness=one), replace(FASTER, correctness=one)).verdict == "accepted"


def test_evidence_that_is_withheld_after_the_change_makes_it_not_verifiable() -> None:
    shown = RecordCorrectness(
        checks=[RecordCheck("results_equal", "passed")], metrics=[RecordMetric("loss", [2.0])], outputs={"loss": "1f"}
    )
    found = compare(replace(BEFORE, correctness=shown), FASTER)
    assert (found.verdict, found.reason) == ("not verifiable", "fields_missing")
    assert set(found.needs.fields) == {"results_equal", "loss"}


@pytest.mark.parametrize("key", ["dtype", "sampler", "length_distribution"])
def test_what_is_processed_must_stay_the_same_unless_that_is_the_change(key: str) -> None:
    one, other = (msgspec.structs.replace(RecordContract(), **{key: value}) for value in ("a", "b"))
    before, after = replace(BEFORE, contract=one), replace(FASTER, contract=other)
    found = compare(before, after)
    assert (found.verdict, found.reason) == ("rejected", "contract")
    assert f"--allow {key}" in found.says
    assert compare(before, after, allowed=frozenset([key])).verdict == "accepted"


@pytest.mark.parametrize(
    ("metric", "verdict", "reason"),
    [
        (Metric("loss", 2.0, 2.01, "lower", 0.02), "accepted", "faster"),
        (Metric("loss", 2.0, 2.1, "lower", 0.02), "rejected", "contract"),
        (Metric("accuracy", 0.9, 0.8, "higher", 0.02), "rejected", "contract"),
        (Metric("accuracy", 0.9, 0.95, "higher", 0.02), "accepted", "faster"),
        (Metric("loss", 2.0, 2.03, "lower", 0.02, relative=True), "accepted", "faster"),
        (Metric("loss", 2.0, 1.9, "equal", 0.02), "rejected", "contract"),
        (Metric("loss", [2.0, 2.01, 1.99], [2.4, 2.41, 2.39], "lower", 0.02), "rejected", "contract"),
        (Metric("loss", [2.0, 2.2], [2.05, 2.15], "lower", 0.02), "inconclusive", "quality"),
    ],
)
def test_quality_must_hold_within_its_tolerance(metric: Metric, verdict: str, reason: str) -> None:
    found = compare(BEFORE, FASTER, metrics=[metric])
    assert (found.verdict, found.reason) == (verdict, reason)


def test_a_broken_limit_rejects_a_faster_item_and_a_met_one_does_not() -> None:
    before, after = replace(BEFORE, limits={"peak_bytes": 60e9}), replace(FASTER, limits={"peak_bytes": 85e9})
    found = compare(before, after, limits=[parse_limit("peak_bytes<=80GB")])
    assert (found.verdict, found.reason) == ("rejected", "limit")
    assert compare(before, after, limits=[parse_limit("peak_bytes<=90GB")]).verdict == "accepted"


def test_an_unknown_figure_makes_it_not_verifiable_for_that_limit() -> None:
    found = compare(BEFORE, FASTER, limits=[parse_limit("peak_bytes<=80e9"), parse_limit("median_ms<=100")])
    assert (found.verdict, found.reason) == ("not verifiable", "fields_missing")
    assert found.needs.fields == ["peak_bytes"]
    assert [limit.status for limit in found.limits] == ["unknown", "met"]


def test_some_limits_better_and_some_worse_are_mixed() -> None:
    before = replace(BEFORE, limits={"peak_bytes": 60e9, "p99_latency": 250.0})
    after = replace(FASTER, limits={"peak_bytes": 85e9, "p99_latency": 150.0})
    limits = [parse_limit("peak_bytes<=80e9"), parse_limit("p99_latency<=200")]
    found = compare(before, after, limits=limits)
    assert (found.verdict, found.reason) == ("mixed", "limits")


def test_memory_bought_with_time_is_mixed() -> None:
    before = replace(BEFORE, limits={"peak_bytes": 90e9})
    after = replace(changed(compute=78), limits={"peak_bytes": 50e9})
    found = compare(before, after, limits=[parse_limit("peak_bytes<=80e9")])
    assert (found.verdict, found.reason) == ("mixed", "limits")


def test_an_item_that_is_faster_for_another_reason_than_the_part_is_mixed() -> None:
    found = compare(BEFORE, changed(compute=40), part="input")
    assert (found.verdict, found.reason) == ("mixed", "part")


def test_a_part_that_was_not_recorded_makes_it_not_verifiable_where_it_was_asked_for() -> None:
    before, after = replace(BEFORE, exposed=False), replace(FASTER, exposed=False)
    found = compare(before, after, part="input")
    assert (found.verdict, found.reason) == ("not verifiable", "fields_missing")
    assert compare(before, after).verdict == "accepted"


def test_a_stage_may_be_the_part() -> None:
    before = replace(BEFORE, stages={"input": 37, "forward": 83})
    after = replace(FASTER, stages={"input": 9, "forward": 83})
    assert compare(before, after, part="stage:input").verdict == "accepted"
    assert compare(before, after, part="stage:rollout").verdict == "not verifiable"


def test_too_few_units_of_one_run_are_inconclusive_without_an_interval() -> None:
    found = compare(replace(BEFORE, units=3), replace(FASTER, units=3), runs=1)
    assert (found.verdict, found.reason) == ("inconclusive", "few_samples")
    assert isinstance(found.effect, Effect)
    assert isinstance(found.effect.interval, Unknown)


def test_a_stall_in_few_units_is_seen_by_the_mean() -> None:
    """A save in every fourth unit leaves the median where it is."""
    runs = replace(BEFORE, units=12).runs(5, 3)
    for run in runs:
        run.units = [with_write(unit, 0 if place % 4 else 60_000_000) for place, unit in enumerate(run.units)]
    without = BEFORE.runs(5, 4)
    assert ask(runs, without, part="output", statistic="median").verdict != "accepted"
    for part in ("output", ""):
        found = ask(runs, without, part=part)
        assert found.verdict == "accepted"
        assert isinstance(found.effect, Effect)
        assert found.effect.statistic == "mean time per item"
        assert found.also[0] == "means are compared: writing output lies in few of the units"


def with_write(unit: RecordUnit, extra_ns: int) -> RecordUnit:
    """A unit with a write of some length."""
    assert isinstance(unit.period_ns, int)
    assert isinstance(unit.wall_ns, int)
    objects = {**unit.objects, "output": RecordTime(extra_ns)}
    return msgspec.structs.replace(
        unit, period_ns=unit.period_ns + extra_ns, wall_ns=unit.wall_ns + extra_ns, objects=objects
    )


def test_a_prediction_that_did_not_come_true_is_named() -> None:
    right = Forecast(changes=["--remove input"], share=-0.235, error_share=0.05)
    wrong = Forecast(changes=["--remove input"], share=-0.6, error_share=0.05)
    found = compare(BEFORE, FASTER, forecast=right).predicted
    assert not isinstance(found, Unknown)
    assert not found.missed
    found = compare(BEFORE, FASTER, forecast=wrong).predicted
    assert not isinstance(found, Unknown)
    assert found.missed
    assert "too much" in found.says


def test_one_run_twice_on_a_side_is_no_second_sample() -> None:
    one = BEFORE.runs(1, 1)
    found = ask([*one, *one], FASTER.runs(2, 2))
    assert found.reason == "not_comparable"


def test_verdicts_and_reasons_are_those_of_the_list() -> None:
    found = [compare(BEFORE, FASTER), compare(BEFORE, BEFORE, runs=1), compare(BEFORE, changed(compute=75))]
    for judgement in found:
        assert judgement.verdict in VERDICTS
        assert REASONS[judgement.reason].startswith(judgement.verdict)
