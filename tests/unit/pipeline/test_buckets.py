"""From traces to the best bucket cap: what was recorded comes out again, and what is not known is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.errors import InputError, UsageError
from longpole.pipeline.buckets import BucketOptions, sweep_buckets
from longpole.pipeline.reading import ReportOptions
from longpole.records.ledger import Unknown
from longpole.report.buckets import BestCap, BucketCheck, BucketCost, Buckets, CapRange
from tests.ddp_traces import MIB, Job, write_trace

if TYPE_CHECKING:
    from pathlib import Path

COST = (60e-6, 12.5e9)  # what `Job` takes for an all-reduce


def _swept(
    job: Job, folder: Path, cost: tuple[float, float] | None = COST, element_bytes: int | None = None
) -> Buckets:
    trace = write_trace(job, folder / "rank0.pt.trace.json")
    report = ReportOptions(use_cache=False, processes=1)
    return sweep_buckets([str(trace)], BucketOptions(report=report, cost=cost, element_bytes=element_bytes))


def test_the_recorded_buckets_simulated_leave_exposed_what_was_recorded(tmp_path: Path) -> None:
    """The trace was made by the cost that is stated here."""
    found = _swept(Job(), tmp_path)

    assert isinstance(found.check, BucketCheck)
    assert abs(found.check.error_ns) < 10_000
    assert found.check.recorded_exposed_ns == found.recorded.exposed_ns > 1_000_000
    assert (found.gradients.count, found.gradients.bytes, found.gradients.sizes) == (40, 160 * MIB, "recorded")
    assert found.gradients.backward_ns == 20_000_000


@pytest.mark.parametrize("cap_mib", [5, 25, 50, 1000])
def test_a_trace_recorded_with_a_cap_leaves_exposed_what_was_predicted_for_it(tmp_path: Path, cap_mib: int) -> None:
    """The same job recorded twice: the first trace's curve holds the second one's time."""
    curve = {point.cap_bytes: point.exposed_ns for point in _swept(Job(), tmp_path).curve}
    predicted_ns = curve[min(cap_mib * MIB, 160 * MIB)]
    first = MIB if cap_mib == 25 else cap_mib * MIB

    found = _swept(Job(cap_bytes=cap_mib * MIB, first_cap_bytes=first), tmp_path)

    assert found.recorded.exposed_ns == pytest.approx(predicted_ns, abs=10_000)


def test_a_job_with_one_bucket_is_told_to_divide_it(tmp_path: Path) -> None:
    found = _swept(Job(cap_bytes=1000 * MIB, first_cap_bytes=1000 * MIB), tmp_path)

    assert found.verdict == "change"
    assert isinstance(found.best, BestCap)
    assert found.best.saving_ns > 10_000_000
    assert isinstance(found.period_ns, int)
    assert found.best.saving_share == pytest.approx(found.best.saving_ns / found.period_ns)
    assert f"bucket_cap_mb={found.best.cap_bytes // MIB}" in found.says


def test_a_job_whose_buckets_hide_is_left_alone(tmp_path: Path) -> None:
    found = _swept(Job(backward_us=200_000), tmp_path)

    assert found.verdict == "keep"
    assert isinstance(found.recorded.cap, CapRange)
    assert found.recorded.cap.torch_default


def test_a_cost_that_is_not_the_runs_gives_no_verdict(tmp_path: Path) -> None:
    """Buckets that took twenty times what the cost says were waiting, or the cost is another machine's."""
    found = _swept(Job(), tmp_path, cost=(1e-6, 400e9))

    assert found.verdict == "cannot tell"
    assert isinstance(found.cost, BucketCost)
    assert isinstance(found.cost.recorded_over_model, float)
    assert found.cost.recorded_over_model > 20
    assert found.cost.factor == 1  # one rank: what was recorded holds waiting, and is no cost


def test_without_a_model_the_buckets_own_rate_stands_in(tmp_path: Path) -> None:
    """Large buckets: their times go with their bytes, but for a latency that is assumed."""
    found = _swept(Job(first_cap_bytes=25 * MIB), tmp_path, cost=None)

    assert isinstance(found.cost, BucketCost)
    assert found.cost.model.source == "buckets"
    assert found.cost.model.gb_per_s == pytest.approx(12.5, rel=0.05)


def test_buckets_whose_times_do_not_go_with_their_bytes_give_no_rate(tmp_path: Path) -> None:
    """Buckets of 12 and 29 MB, and 20 ms of each that has nothing to do with bytes."""
    found = _swept(Job(latency_us=20_000, first_cap_bytes=10 * MIB), tmp_path, cost=None)

    assert found.verdict == "not known"
    assert isinstance(found.best, Unknown)
    assert "do not go with their bytes" in found.best.unknown
    assert found.best.missing
    assert not found.curve


def test_without_shapes_small_caps_are_marked_as_a_guess(tmp_path: Path) -> None:
    found = _swept(Job(shapes=False), tmp_path)

    assert found.gradients.sizes == "within buckets"
    assert all(point.assumed for point in found.curve if point.cap_bytes <= 25 * MIB)
    assert not any(point.assumed for point in found.curve if point.cap_bytes > 30 * MIB)
    assert any("smaller caps are a guess" in text for text in found.cannot_know)
    assert isinstance(found.recorded.cap, Unknown)


def test_without_the_sizes_of_collectives_shapes_and_the_kernels_name_do(tmp_path: Path) -> None:
    found = _swept(Job(bytes_written=False), tmp_path)

    assert (found.gradients.sizes, found.gradients.bytes) == ("shapes", 160 * MIB)


def test_without_any_size_the_sweep_is_not_known_and_the_rest_is(tmp_path: Path) -> None:
    found = _swept(Job(bytes_written=False, shapes=False), tmp_path)

    assert found.verdict == "not known"
    assert isinstance(found.cost, Unknown)
    assert "record_shapes" in found.cost.missing[0]
    assert found.recorded.exposed_ns > 0
    assert {entry.at for entry in found.unknown} >= {"/cost", "/best", "/check", "/gradients/bytes"}


def test_where_communication_bounds_the_formula_is_given_and_the_curve_agrees(tmp_path: Path) -> None:
    found = _swept(Job(backward_us=6_000, gradients=160, gradient_bytes=MIB), tmp_path)

    assert isinstance(found.best, BestCap)
    assert found.best.formula_bytes == pytest.approx(160 * MIB * (60 / 6_000) ** 0.5, rel=0.001)
    near = min(found.curve, key=lambda point: abs(point.cap_bytes - 16 * MIB))
    assert near.exposed_ns <= 1.01 * found.best.exposed_ns


def test_a_rank_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    trace = write_trace(Job(), tmp_path / "rank0.pt.trace.json")

    with pytest.raises(UsageError, match=r"--of 5: expected a rank of the run; there are 0"):
        sweep_buckets([str(trace)], BucketOptions(report=ReportOptions(use_cache=False), rank=5))


def test_a_trace_without_gradient_hooks_says_what_was_found(root: Path) -> None:
    trace = root / "examples" / "loader-bound" / "rank0.pt.trace.json.gz"

    with pytest.raises(InputError, match="expected all-reduces from hooks of torch's gradients"):
        sweep_buckets([str(trace)], BucketOptions(report=ReportOptions(use_cache=False)))


def test_all_ranks_together_tell_waiting_from_moving(root: Path) -> None:
    """Four ranks over gloo of which three wait 47 of 51 ms for the fourth (examples/ddp-gloo-4ranks/README.md)."""
    found = sweep_buckets(
        [str(root / "examples" / "ddp-gloo-4ranks")], BucketOptions(report=ReportOptions(use_cache=False, processes=1))
    )

    assert (found.gradients.count, found.gradients.bytes, found.gradients.sizes) == (15, 725_264, "recorded")
    assert isinstance(found.recorded.waiting_ns, int)
    assert 44_000_000 < found.recorded.waiting_ns < 50_000_000
    assert isinstance(found.cost, BucketCost)
    assert (found.cost.ranks, found.cost.recorded_as) == (4, "transfer")
    assert found.verdict == "keep"


def test_small_buckets_tell_the_latency_and_large_ones_the_rate(tmp_path: Path) -> None:
    """A first bucket of one mebibyte beside one of the rest: what a cap of a gigabyte leaves."""
    job = Job(gradients=160, gradient_bytes=MIB, cap_bytes=1000 * MIB, latency_us=250)

    found = _swept(job, tmp_path, cost=None)

    assert isinstance(found.cost, BucketCost)
    assert found.cost.model.gb_per_s == pytest.approx(12.5, rel=0.05)
    assert found.cost.model.alpha_ns == pytest.approx(250_000, rel=0.1)
    assert found.cost.model.says.startswith(
        "latency and rate of the recorded buckets, waiting for other ranks included"
    )


def test_what_becomes_ready_last_is_the_least_that_any_cap_leaves(tmp_path: Path) -> None:
    found = _swept(Job(gradients=2, gradient_bytes=80 * MIB), tmp_path)

    assert isinstance(found.best, BestCap)
    assert found.best.late_bytes == 80 * MIB
    assert found.best.least_ns == pytest.approx(60_000 + 80 * MIB / 12.5, rel=0.001)
    assert found.best.exposed_ns == pytest.approx(found.best.least_ns, rel=0.001)


def test_the_cap_that_a_real_program_set_is_among_those_that_its_trace_says(shared: Path) -> None:
    """Seven layers over gloo, `bucket_cap_mb=2` in the program that was recorded."""
    folder = shared / "corpus/own-torch-cpu/kineto/ddp2_balanced"

    found = sweep_buckets([str(folder)], BucketOptions(report=ReportOptions(use_cache=False, processes=1)))

    cap = found.recorded.cap
    assert isinstance(cap, CapRange)
    assert cap.up_to_bytes is not None
    assert cap.first_up_to_bytes is not None
    assert cap.above_bytes < 2 * MIB <= cap.up_to_bytes
    assert cap.first_above_bytes < 2 * MIB <= cap.first_up_to_bytes
    assert not cap.torch_default


@pytest.mark.parametrize("kind", ["ddp2_fsdp", "train_resnet18"])
def test_jobs_without_buckets_are_refused(kind: str, shared: Path) -> None:
    paths = {
        "ddp2_fsdp": shared / "corpus/own-torch-cpu/kineto/ddp2_fsdp",
        "train_resnet18": shared / "corpus/AMD-AGI-TraceLens/mi300/ddp_resnet18_no_pool/train_resnet18.json.gz",
    }
    with pytest.raises(InputError, match="found"):
        sweep_buckets([str(paths[kind])], BucketOptions(report=ReportOptions(use_cache=False, processes=1)))


def test_a_real_resnet_ran_with_torchs_own_caps(shared: Path) -> None:
    """ResNet-18 in bfloat16 on 8 devices: 11,689,512 parameters; the first bucket closes above 1 MiB."""
    trace = shared / "corpus/AMD-AGI-TraceLens/mi300/resnet_act_checkpoint.json.gz"

    found = sweep_buckets([str(trace)], BucketOptions(report=ReportOptions(use_cache=False, processes=1)))

    assert (found.gradients.bytes, found.gradients.sizes) == (2 * 11_689_512, "recorded")
    assert found.recorded.sizes_bytes == [5_746_640, 17_632_384]
    assert isinstance(found.recorded.cap, CapRange)
    assert found.recorded.cap.torch_default
    assert found.verdict == "not known"  # one rank of eight: 7 ms for 6 MB is mostly waiting
