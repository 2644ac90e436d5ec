"""How a job scales: efficiency and the parts of the loss, on runs whose truth is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.records.ledger import Unknown
from longpole.report.compare_runs import ItemsGiven, compare_runs
from longpole.report.document import PeriodStatistics
from longpole.report.scaling import PARTS
from longpole.settings import Settings
from longpole.timeline.integrity import Example, Finding
from tests.build import to_ns
from tests.scaling_runs import LAUNCH, Job, compare

if TYPE_CHECKING:
    from longpole.report.document import Report
    from longpole.report.scaling import Scaling, ScalingRun

WEAK = ItemsGiven(per_rank={})
STRONG = ItemsGiven(per_rank={}, mode="strong")


def compare_reports(*reports: tuple[str, Report], items: ItemsGiven = WEAK) -> Scaling:
    return compare_runs(reports, items, Settings(), version="0.1.0")


def losses_us(run: ScalingRun) -> dict[str, float]:
    """Part -> µs lost, parts that lost nothing left out."""
    return {part.part: part.loss_ns / 1000 for part in run.parts if isinstance(part.loss_ns, int) and part.loss_ns}


def check_sums(scaling: Scaling) -> None:
    """The parts of the loss, and the objects, add up to it exactly."""
    for run in scaling.runs:
        if isinstance(run.loss_ns, int):
            assert sum(part.loss_ns for part in run.parts if isinstance(part.loss_ns, int)) == run.loss_ns
            assert sum(run.by_object_ns.values()) == run.loss_ns
            assert isinstance(run.period_ns, int)
            assert isinstance(run.ideal_ns, int)
            assert run.period_ns == run.ideal_ns + run.loss_ns
            assert [part.part for part in run.parts] == list(PARTS)


def test_an_ideal_job_loses_nothing() -> None:
    scaling = compare(Job(ranks=1), Job(ranks=2), Job(ranks=8))

    check_sums(scaling)
    assert [run.efficiency for run in scaling.runs] == [1.0, 1.0, 1.0]
    assert [run.speedup for run in scaling.runs] == [1.0, 2.0, 8.0]
    assert [losses_us(run) for run in scaling.runs] == [{}, {}, {}]
    assert scaling.comparable
    assert scaling.differences == []
    assert "within what one run differs from the next" in scaling.says


def test_growing_communication_is_the_loss() -> None:
    scaling = compare(Job(ranks=1), Job(ranks=2, transfer=100), Job(ranks=8, transfer=300))

    check_sums(scaling)
    assert losses_us(scaling.runs[1]) == {"transfer": 100}
    assert losses_us(scaling.runs[2]) == {"transfer": 300}
    assert scaling.runs[2].efficiency == pytest.approx((1000 + LAUNCH) / (1300 + LAUNCH))
    assert "300 µs moving bytes between ranks" in scaling.says


def test_a_straggler_is_work_on_one_rank_and_waiting_on_the_others() -> None:
    """Rank 2 computes 200 µs longer: a quarter of that in the mean, and 150 µs in which the other three wait."""
    scaling = compare(Job(ranks=1), Job(ranks=4, transfer=40, extra={2: 200}))

    check_sums(scaling)
    assert losses_us(scaling.runs[1]) == {"transfer": 40, "skew": 150, "compute": 50}
    assert scaling.runs[1].split_range_ns == 0


def test_a_starved_job_loses_its_time_to_input() -> None:
    scaling = compare(Job(ranks=1, load=100), Job(ranks=2, load=500, transfer=60))

    check_sums(scaling)
    assert losses_us(scaling.runs[1]) == {"input": 400, "transfer": 60}


def test_waiting_for_a_pipeline_neighbour_is_a_bubble() -> None:
    scaling = compare(Job(ranks=1), Job(ranks=2, transfer=40, extra={1: 100}, kind="send_recv"))

    assert losses_us(scaling.runs[1]) == {"transfer": 40, "bubble": 50, "compute": 50}


def test_strong_scaling_halves_what_a_rank_has_to_do() -> None:
    """2 ranks with half the items each and 60 µs to move: ideal is half of 1010 µs."""
    scaling = compare(Job(ranks=1), Job(ranks=2, compute=500, transfer=60), items=STRONG)

    run = scaling.runs[1]
    check_sums(scaling)
    assert run.ideal_ns == to_ns((1000 + LAUNCH) / 2)
    assert losses_us(run) == {"transfer": 60, "host": LAUNCH / 2}
    assert run.speedup == pytest.approx((1000 + LAUNCH) / (560 + LAUNCH))
    assert scaling.items.basis == "assumed strong"


def test_declared_items_take_the_place_of_an_assumption() -> None:
    items = ItemsGiven(per_rank={"n1": 32, "n2": 16})

    scaling = compare(Job(ranks=1), Job(ranks=2, compute=500), items=items)

    assert scaling.runs[1].efficiency == pytest.approx((1000 + LAUNCH) / 2 / (500 + LAUNCH))
    assert scaling.runs[1].items_per_s == pytest.approx(2 * 16 / (510e-6))
    assert scaling.items.basis == "declared"
    assert not [difference for difference in scaling.differences if difference.what == "items"]


def test_half_the_compute_under_an_assumption_of_weak_scaling_is_said() -> None:
    scaling = compare(Job(ranks=1), Job(ranks=2, compute=500))

    (difference,) = scaling.differences
    assert (difference.what, difference.severity) == ("items", "warn")
    assert "0.50 times as long" in difference.says
    assert "--strong" in difference.says
    assert scaling.comparable


def test_what_cannot_be_split_is_communication_as_a_whole() -> None:
    scaling = compare(Job(ranks=1), Job(ranks=4, transfer=40, extra={2: 200}), split=False)

    run = scaling.runs[1]
    check_sums(scaling)
    assert losses_us(run) == {"collective": 190, "compute": 50}
    unknown = {part.part: part.loss_ns for part in run.parts if isinstance(part.loss_ns, Unknown)}
    assert set(unknown) == {"transfer", "skew", "bubble"}
    assert unknown["skew"].missing == ["traces of all ranks of the group"]
    assert {entry.at for entry in scaling.unknown} >= {"/runs/1/parts/0/loss_ns", "/runs/1/parts/1/loss_ns"}


def test_a_report_without_collectives_gives_no_split() -> None:
    report = Job(ranks=2, transfer=40).report()
    report.collectives = []

    scaling = compare_reports(("n1", Job(ranks=1).report()), ("n2", report))

    assert losses_us(scaling.runs[1]) == {"collective": 40}


def test_waiting_that_may_be_hidden_is_not_split() -> None:
    """Of 240 µs of collective on four ranks 190 are exposed: they may hold all of the waiting, or little of it."""
    report = Job(ranks=4, transfer=40, extra={2: 200}).report()
    report.collectives[0].duration_ns += to_ns(4 * 4 * 400)

    scaling = compare_reports(("n1", Job(ranks=1).report()), ("n4", report))

    check_sums(scaling)
    assert losses_us(scaling.runs[1]) == {"collective": 190, "compute": 50}
    skew = next(part for part in scaling.runs[1].parts if part.part == "skew")
    assert isinstance(skew.loss_ns, Unknown)
    assert "partly under compute" in skew.loss_ns.unknown


def test_a_little_that_is_hidden_leaves_a_range() -> None:
    report = Job(ranks=4, transfer=40, extra={2: 200}).report()
    report.collectives[0].duration_ns += to_ns(4 * 4 * 10)

    scaling = compare_reports(("n1", Job(ranks=1).report()), ("n4", report))

    run = scaling.runs[1]
    check_sums(scaling)
    assert run.split_range_ns == to_ns(10)
    skew = losses_us(run)["skew"]
    assert 140 <= skew <= 150
    assert losses_us(run)["transfer"] == pytest.approx(190 - skew)


def test_the_smallest_run_is_the_base_wherever_it_stands() -> None:
    scaling = compare(Job(ranks=8, transfer=300), Job(ranks=1))

    assert scaling.base == "n1"
    assert [run.ranks for run in scaling.runs] == [1, 8]


def test_other_kernels_are_another_job() -> None:
    scaling = compare(Job(ranks=1), Job(ranks=2, kernel="conv_kernel"))

    (difference,) = scaling.differences
    assert (difference.what, difference.severity) == ("kernels", "void")
    assert "only n2 has conv_kernel" in difference.says
    assert not scaling.comparable
    assert isinstance(scaling.runs[1].efficiency, Unknown)
    assert isinstance(scaling.runs[1].loss_ns, Unknown)
    assert "not comparable" in scaling.runs[1].says


def test_another_tile_size_is_the_same_kernel() -> None:
    scaling = compare(Job(ranks=1, kernel="sgemm_128x64_nn"), Job(ranks=2, kernel="sgemm_64x32_nn"))

    assert scaling.differences == []


def test_a_hundred_times_the_compute_is_another_job() -> None:
    scaling = compare(Job(ranks=1), Job(ranks=2, compute=100_000))

    assert [(d.what, d.severity) for d in scaling.differences] == [("compute", "void")]
    assert "100 times as long" in scaling.differences[0].says


def test_other_units_are_not_comparable() -> None:
    scaling = compare(Job(ranks=1), Job(ranks=2, marked=False))

    whats = {(d.what, d.severity) for d in scaling.differences}
    assert ("units", "void") in whats
    assert not scaling.comparable
    assert isinstance(scaling.runs[1].efficiency, Unknown)


def test_missing_ranks_are_said() -> None:
    report = Job(ranks=4, transfer=40).report()
    report.run.ranks_present = [0, 1, 3]

    scaling = compare_reports(("n1", Job(ranks=1).report()), ("n4", report))

    assert "n4: 1 rank of 4 not recorded" in scaling.differences[0].says
    assert scaling.runs[1].ranks == 4


def test_a_run_of_one_step_is_compared_by_that_step() -> None:
    scaling = compare(Job(ranks=1, steps=1), Job(ranks=2, steps=1, transfer=100))

    check_sums(scaling)
    assert losses_us(scaling.runs[1]) == {"transfer": 100}


@given(
    ranks=st.integers(2, 4),
    load=st.integers(0, 300),
    compute=st.integers(300, 2000),
    late=st.integers(0, 500),
    transfer=st.integers(0, 200),
    items=st.tuples(st.integers(1, 7), st.integers(1, 7)),
)
def test_the_parts_add_up_to_the_loss(
    ranks: int, load: int, compute: int, late: int, transfer: int, items: tuple[int, int]
) -> None:
    given_items = ItemsGiven(per_rank={"n1": items[0], f"n{ranks}": items[1]})
    job = Job(ranks=ranks, steps=2, load=load, compute=compute, extra={1: late}, transfer=transfer)

    scaling = compare(Job(ranks=1, steps=2), job, items=given_items)

    check_sums(scaling)


def changed_pair(**run: Any) -> Scaling:
    """Two sizes of the ideal job, the larger of which was recorded otherwise."""
    report = Job(ranks=2).report()
    for name, value in run.items():
        if name == "devices":
            for row in report.ranks:
                row.device_name = value
        else:
            setattr(report.run, name, value)
    base = Job(ranks=1).report()
    base.run.environment = {"torch_version": "2.9.0", "nccl_version": 22703}
    return compare_reports(("n1", base), ("n2", report))


@pytest.mark.parametrize(
    ("run", "what", "severity", "says"),
    [
        ({"devices": "H100"}, "devices", "warn", "n2 on H100"),
        ({"environment": {"torch_version": "2.10.0", "nccl_version": 22703}}, "versions", "note", "2.9.0 and 2.10.0"),
        ({"world_size": Unknown("not said"), "ranks_assumed": True}, "ranks", "warn", "taken for as many ranks"),
    ],
)
def test_what_leaves_a_comparison_standing_is_said(run: dict[str, Any], what: str, severity: str, says: str) -> None:
    scaling = changed_pair(**run)

    (difference,) = scaling.differences
    assert (difference.what, difference.severity) == (what, severity)
    assert says in difference.says
    assert scaling.comparable
    assert scaling.runs[1].efficiency == 1.0


def test_two_runs_of_one_size_are_said_to_be() -> None:
    one, other = Job(ranks=2).report(), Job(ranks=2, transfer=100).report()

    scaling = compare_reports(("first", one), ("second", other))

    assert [d.says for d in scaling.differences] == ["first, second have the same number of ranks, 2"]
    assert losses_us(scaling.runs[1]) == {"transfer": 100}


def test_a_void_period_is_no_ground_for_a_comparison() -> None:
    report = Job(ranks=2).report()
    why = Unknown("rank.start_spread: no unit lies behind it", ["one start of all profilers"])
    report.unit.period_ns = PeriodStatistics(why, why, why, 0)
    report.integrity.append(Finding("rank.start_spread", "void", None, 1, Example("a.json"), "started apart", []))

    scaling = compare_reports(("n1", Job(ranks=1).report()), ("n2", report))

    run = scaling.runs[1]
    assert isinstance(run.efficiency, Unknown)
    assert run.efficiency.unknown == "n2 has no period: rank.start_spread: no unit lies behind it"
    assert run.efficiency.missing == why.missing
    assert "n2: started apart" in [difference.says for difference in scaling.differences]


def test_a_faster_run_is_no_loss() -> None:
    scaling = compare(Job(ranks=1, load=500), Job(ranks=2, load=100))

    check_sums(scaling)
    assert losses_us(scaling.runs[1]) == {"input": -400}
    assert "faster than the smallest run" in scaling.says
