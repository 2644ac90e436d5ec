"""What a gate makes of two sides: verdicts, what must match, figures in their direction, and the stage behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longpole.bench.gate.asked import Asked, parse_metrics
from longpole.bench.gate.judge import Judged, judge_records
from longpole.errors import UsageError
from longpole.records.ledger import Unknown
from longpole.records.run_record import (
    RecordCheck,
    RecordCollective,
    RecordContract,
    RecordCorrectness,
    RecordEnvironment,
    RecordTime,
    RunRecord,
)
from longpole.settings import Settings
from tests.gate_runs import Bench, pair, record

if TYPE_CHECKING:
    from collections.abc import Sequence

BENCH = Bench()


def judge(records: Sequence[RunRecord], **asked: Any) -> Judged:
    return judge_records([records[0]], [records[1]], Asked(**asked), Settings())


def slower(bench: Bench = BENCH, **factors: float) -> Bench:
    return replace(bench, stages=bench.scaled(**factors))


ALL_SLOWER = slower(input=1.2, forward=1.2, backward=1.2, optimizer=1.2)


@pytest.mark.parametrize("seed", range(6))
def test_what_did_not_change_is_the_same_though_the_machine_moves_by_ten_percent(seed: int) -> None:
    assert judge(pair(BENCH, BENCH, seed=seed)).verdict == "same"


def test_a_regression_names_the_stage_that_explains_it_with_its_time_and_share() -> None:
    found = judge(pair(BENCH, slower(optimizer=2.0)))

    assert (found.verdict, found.reason) == ("regressed", "figure")
    assert found.localised.explains == "optimizer"
    first = found.localised.stages[0]
    assert first.stage == "optimizer"
    assert isinstance(first.change_ns, float)
    assert first.change_ns == pytest.approx(10e6, rel=0.15)
    assert isinstance(first.interval_ns, list)
    assert first.interval_ns[0] < 10e6 < first.interval_ns[1]
    assert isinstance(first.share_of_change, float)
    assert first.share_of_change == pytest.approx(1.0, abs=0.25)
    assert {stage.stage: stage.verdict for stage in found.localised.stages}["input"] == "same"


def test_an_improvement_is_found_and_explained() -> None:
    found = judge(pair(slower(input=2.0), BENCH))

    assert (found.verdict, found.localised.explains) == ("improved", "input")


def test_a_stage_may_fail_a_gate_whose_whole_is_the_same() -> None:
    found = judge(pair(BENCH, slower(optimizer=1.2)))

    assert (found.verdict, found.reason) == ("regressed", "stage")
    assert [stage.stage for stage in found.localised.stages if stage.fails] == ["optimizer"]
    assert "optimizer" in found.says


def test_a_small_stage_fails_only_where_it_is_critical() -> None:
    bench = Bench(stages={"forward": 95.0, "logging": 5.0})
    records = pair(bench, slower(bench, logging=1.15))

    assert judge(records).verdict == "same"
    assert {s.stage: s.verdict for s in judge(records).localised.stages}["logging"] == "regressed"
    assert judge(records, critical=frozenset({"logging"})).verdict == "regressed"
    assert judge(records, min_contribution=0.001).verdict == "regressed"


def test_noise_is_answered_by_what_would_settle_it() -> None:
    found = judge(pair(replace(BENCH, noise=0.1), replace(BENCH, noise=0.1), seed=5))
    figure = found.figures[0]

    assert (found.verdict, found.reason) == ("inconclusive", "noise")
    assert isinstance(figure.pairs_needed, int | Unknown)
    assert isinstance(figure.smallest_seen_share, float)
    assert figure.smallest_seen_share > 0.06


def test_figures_are_gated_in_their_own_direction_and_threshold() -> None:
    more_memory = replace(BENCH, peak_bytes=1_040_000_000)
    metrics = parse_metrics(["throughput", "peak_memory", "latency"])

    grown = {f.metric: f.verdict for f in judge(pair(BENCH, more_memory), metrics=metrics).figures}
    allowed = judge(pair(BENCH, more_memory), metrics=parse_metrics(["peak_memory=5%"]))
    slow = {f.metric: f.verdict for f in judge(pair(BENCH, ALL_SLOWER), metrics=metrics).figures}
    fast = {f.metric: f.verdict for f in judge(pair(ALL_SLOWER, BENCH), metrics=metrics).figures}

    assert grown == {"throughput": "same", "peak_memory": "regressed", "latency": "same"}
    assert allowed.verdict == "same"
    assert slow == {"throughput": "regressed", "peak_memory": "same", "latency": "regressed"}
    assert fast == {"throughput": "improved", "peak_memory": "same", "latency": "improved"}


def test_communication_is_gated_by_what_is_exposed() -> None:
    sides = [replace(BENCH, unit={"objects": {"collective": RecordTime(ms * 1_000_000)}}) for ms in (10, 12)]

    found = judge(pair(*sides), metrics=parse_metrics(["collective"]))

    assert found.verdict == "regressed"
    assert found.figures[0].change_share == pytest.approx(0.2, abs=0.01)


def test_several_figures_share_what_may_be_spent_on_false_alarms() -> None:
    one = judge(pair(BENCH, BENCH), metrics=parse_metrics(["latency"])).figures[0]
    two = judge(pair(BENCH, BENCH), metrics=parse_metrics(["latency", "peak_memory"])).figures[0]

    assert two.tail_share == pytest.approx(one.tail_share / 2)


@pytest.mark.parametrize(
    ("metric", "why"),
    [("latency_p95", "200"), ("collective", "not recorded"), ("peak_memory", "0")],
)
def test_a_figure_that_is_not_there_is_invalid_and_never_zero(metric: str, why: str) -> None:
    found = judge(pair(replace(BENCH, peak_bytes=0), BENCH), metrics=parse_metrics([metric]))

    assert (found.verdict, found.reason) == ("invalid", "not_known")
    assert why in found.says
    assert isinstance(found.figures[0].change_share, Unknown)


def test_a_tail_is_gated_from_200_units_on_and_not_below_ten_percent() -> None:
    bench = Bench(stages={"forward": 1.0}, units=200)
    found = judge(pair(bench, slower(bench, forward=1.3), processes=5), metrics=parse_metrics(["latency_p95"]))

    assert found.verdict == "regressed"
    assert found.figures[0].threshold_share == 0.10
    with pytest.raises(UsageError, match="10 %"):
        parse_metrics(["latency_p95=3%"])


def test_time_per_item_is_compared_where_items_differ() -> None:
    twice = slower(input=2.0, forward=2.0, backward=2.0, optimizer=2.0)
    one, other = (
        replace(bench, extra={"items_per_unit": items, "item_kind": "sample"})
        for bench, items in ((BENCH, 32), (twice, 64))
    )

    found = judge(pair(one, other))

    assert found.verdict == "same"
    assert any(entry.key == "items" for entry in found.gated.differences)


INVALID: list[tuple[Bench, str]] = [
    (replace(BENCH, process={3: {"exit_code": 1, "failure": "exit code 1"}}), "exit code 1"),
    (replace(BENCH, extra={"failure": "the disk is full"}), "the disk is full"),
    (replace(BENCH, extra={"contract": RecordContract(dtype="float16")}), "dtype"),
    (replace(BENCH, extra={"contract": RecordContract(sampler="other input")}), "sampler"),
    (
        replace(BENCH, extra={"correctness": RecordCorrectness(checks=[RecordCheck("adds up", "failed")])}),
        "adds up",
    ),
    (replace(BENCH, process={place: {"flags": ["quota-throttled"]} for place in range(6)}), "4 clean pairs of 10"),
]


@pytest.mark.parametrize(("new", "why"), INVALID)
def test_what_must_hold_and_does_not_makes_it_invalid(new: Bench, why: str) -> None:
    base = replace(BENCH, extra={"contract": RecordContract(dtype="float32", sampler="input")})

    found = judge(pair(base, new))

    assert (found.verdict, found.reason) == ("invalid", "not_comparable")
    assert any(why in says for says in found.gated.invalid)


def unpaired(base: Bench, new: Bench, processes: int) -> list[RunRecord]:
    return [record(base, "a", processes=processes, seed=1), record(new, "b", processes=processes, seed=2)]


def in_another_place(**fields: Any) -> Bench:
    return replace(BENCH, extra={"environment": RecordEnvironment(**fields)})


@pytest.mark.parametrize(
    ("new", "key"),
    [
        (in_another_place(informational={"host": "there"}), "machine"),
        (in_another_place(must_match={"cpu": "B"}, informational={"host": "here"}), "cpu"),
    ],
)
def test_another_machine_is_compared_only_when_asked_and_marked(new: Bench, key: str) -> None:
    base = in_another_place(must_match={"cpu": "A"} if key == "cpu" else {}, informational={"host": "here"})

    refused = judge(unpaired(base, new, 8))
    asked = judge(unpaired(base, new, 8), allow=frozenset({key}))

    assert refused.verdict == "invalid"
    assert asked.verdict == "same"
    assert any(entry.key == key for entry in asked.gated.differences)


def test_records_of_other_benchmarks_are_not_compared() -> None:
    one, other = unpaired(BENCH, BENCH, 8)
    assert other.design is not None
    other.design.semantic_id = "another"

    assert judge([one, other]).verdict == "invalid"
    assert judge([one, other], allow=frozenset({"benchmark"})).verdict == "same"


def test_without_pairs_four_processes_do_not_make_a_regression_and_five_do() -> None:
    four, five = (judge(unpaired(BENCH, ALL_SLOWER, n)) for n in (4, 5))

    assert (four.verdict, four.gated.design) == ("inconclusive", "unpaired")
    assert any("fewer than 5" in note for note in four.figures[0].notes)
    assert five.verdict == "regressed"


def test_pairs_of_other_records_are_no_pairs() -> None:
    one = record(BENCH, "a", partner="b")
    other = record(BENCH, "c", partner="d")

    assert judge([one, other]).gated.design == "unpaired"


def test_one_process_a_side_is_a_single_run_with_room_for_the_next_one() -> None:
    a, b = unpaired(BENCH, ALL_SLOWER, 1)
    found = judge([a, b])
    close = judge(unpaired(BENCH, slower(forward=1.03), 1))

    assert (found.verdict, found.gated.design) == ("regressed", "single run")
    assert any("single run" in note for note in found.figures[0].notes)
    assert close.verdict == "inconclusive"


def test_three_units_of_one_process_are_too_few() -> None:
    few = replace(BENCH, units=3)

    assert judge(unpaired(few, few, 1)).verdict == "invalid"


def test_a_process_that_only_filled_caches_takes_no_part() -> None:
    a, b = pair(BENCH, BENCH)
    for side in (a, b):
        side.processes[0].pair = None
        for unit in side.units:
            if unit.process == 0:
                unit.left_out = "warm-up"

    found = judge([a, b])

    assert found.figures[0].n == 9
    assert found.gated.left_out == ([], [])


def test_what_else_differs_is_offered_as_a_hypothesis() -> None:
    def side(count: float, algo: str, sync: int) -> Bench:
        return replace(
            BENCH,
            extra={
                "collectives": [RecordCollective("all_reduce", count=count, bytes=1000)],
                "environment": RecordEnvironment(should_match={"env": {"NCCL_ALGO": algo}}),
                "contract": RecordContract(shapes={"aten::mm" if algo == "Ring" else "aten::addmm": ["[[2,2],[2,2]]"]}),
            },
            unit={"idle_ns": {"host.sync": sync, "host.alloc": 1}},
        )

    same = judge(pair(side(4, "Ring", 10), side(4, "Ring", 10)))
    found = judge(
        pair(side(4, "Ring", 1_000_000), replace(side(8, "Tree", 9_000_000), stages=slower(forward=1.5).stages))
    )

    assert same.reasons == []
    causes = {reason.cause: reason.says for reason in found.reasons}
    assert {"synchronisation", "collectives", "topology", "shapes"} <= causes.keys()
    assert "NCCL_ALGO" in causes["topology"]
    assert "8" in causes["collectives"]


@pytest.mark.parametrize("text", ["speed", "time=0%", "time=x", "time=150%"])
def test_a_wrong_metric_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(UsageError, match="--metric"):
        parse_metrics([text])


def test_a_noise_floor_raises_a_threshold_and_nothing_lowers_it() -> None:
    asked = Asked(metrics=parse_metrics(["time", "peak_memory=10%"]), floors={"time": 0.08, "peak_memory": 0.01})

    assert asked.threshold_of("time") == (0.08, "calibration")
    assert asked.threshold_of("peak_memory") == (0.10, "given")


def test_eight_stages_and_two_figures_raise_no_more_false_alarms_than_one_figure() -> None:
    bench = Bench(
        noise=0.05, units=3, stages={f"s{place}": ms for place, ms in enumerate((40, 20, 12, 10, 8, 5, 3, 2))}
    )
    metrics = parse_metrics(["time", "throughput"])

    verdicts = [judge(pair(bench, bench, seed=1000 + seed), metrics=metrics).verdict for seed in range(60)]

    assert verdicts.count("regressed") <= 4  # of 60: 5 % and a little chance
