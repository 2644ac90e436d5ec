"""The machine and its traces: what it does is CUDA's way, and a report measures on a trace what happened on it."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
from tests.jobs.draw import draw
from tests.jobs.machine import Physics, run
from tests.jobs.program import Collective, Host, Task
from tests.jobs.render import render
from tests.jobs.truth import cost_of, periods_of, simulate

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report
    from tests.jobs.draw import Job

EXACT = Physics(launch_ns=5000, gap_ns=1000, event_ns=2000, return_ns=7000, floor_ns=3000, spread=0.0)
SEEDS = (range(0, 120, 40), range(20, 120, 40))
MARKED = {"recompilation", "per_shape_search", "cold_start", "communicator_setup", "profiler_start_skew"}
INCOMPLETE = "unknown_incomplete_trace"


def kernel(name: str, ns: int, stream: int = 7) -> Task:
    return Task(name, stream, ns)


def spans(host: Host | list[Host], physics: Physics = EXACT) -> dict[str, tuple[int, int]]:
    hosts = host if isinstance(host, list) else [host]
    return {
        f"{item.task.name}@{item.rank}" if len(hosts) > 1 else item.task.name: (item.start, item.end)
        for item in run(hosts, physics).device
        if item.task is not None
    }


def test_a_kernel_starts_a_launch_later_and_the_next_one_behind_it() -> None:
    host = Host(0, "main")
    host.launch("cudaLaunchKernel", 3000, kernel("a", 20_000))
    host.launch("cudaLaunchKernel", 3000, kernel("b", 10_000))

    assert spans(host) == {"a": (5000, 25_000), "b": (26_000, 36_000)}


def test_streams_run_side_by_side_unless_one_waits_for_an_event() -> None:
    host = Host(0, "main")
    host.launch("cudaLaunchKernel", 3000, kernel("a", 50_000))
    host.record("cudaEventRecord", "after a", 7)
    host.launch("cudaLaunchKernel", 3000, kernel("free", 10_000, 20))
    host.wait("cudaStreamWaitEvent", 20, "after a")
    host.launch("cudaLaunchKernel", 3000, kernel("held", 10_000, 20))

    times = spans(host)
    assert times["free"][0] < times["a"][1]
    assert times["held"] == (times["a"][1] + EXACT.event_ns, times["a"][1] + EXACT.event_ns + 10_000)


def test_a_synchronise_returns_after_the_device_and_takes_its_floor_when_there_is_nothing_to_wait_for() -> None:
    host = Host(0, "main")
    host.launch("cudaLaunchKernel", 3000, kernel("a", 50_000))
    host.sync("cudaDeviceSynchronize")
    host.sync("cudaDeviceSynchronize")

    first, second = [row for row in run([host], EXACT).host if row.name == "cudaDeviceSynchronize"]
    assert first.end == 55_000 + EXACT.return_ns
    assert second.end - second.start == EXACT.floor_ns


def test_a_blocking_copy_holds_the_host_until_it_has_ended() -> None:
    host = Host(0, "main")
    host.launch("cudaLaunchKernel", 3000, kernel("a", 50_000))
    host.launch("cudaMemcpyAsync", 3000, Task("copy", 7, 20_000, "gpu_memcpy"), blocking=True)

    recording = run([host], EXACT)
    call = next(row for row in recording.host if row.name == "cudaMemcpyAsync")
    assert (call.start, call.end) == (3000, 76_000 + EXACT.return_ns)


def test_a_collective_moves_from_its_last_member_s_start_and_ends_on_all_together() -> None:
    one = Collective("key", (0, 1), 10_000, {})
    hosts = []
    for rank, late_ns in ((0, 0), (1, 40_000)):
        host = Host(rank, "main")
        host.work(late_ns)
        host.launch("cudaLaunchKernel", 3000, Task("all_reduce", 20, 10_000, collective=one))
        hosts.append(host)

    assert spans(hosts) == {"all_reduce@0": (5000, 55_000), "all_reduce@1": (45_000, 55_000)}


def test_with_one_hardware_queue_a_kernel_waits_behind_another_stream_s_record() -> None:
    def program() -> Host:
        host = Host(0, "main")
        host.launch("cudaLaunchKernel", 3000, kernel("long", 90_000, 20))
        host.record("cudaEventRecord", "after long", 20)
        host.launch("cudaLaunchKernel", 3000, kernel("free", 10_000))
        return host

    assert spans(program())["free"][0] < 20_000
    assert spans(program(), Physics(launch_ns=5000, one_queue=True, spread=0.0))["free"][0] == 95_000


def test_under_contention_both_take_longer_for_as_long_as_they_overlap() -> None:
    one = Collective("key", (0,), 40_000, {})
    host = Host(0, "main")
    host.launch("cudaLaunchKernel", 0, [kernel("k", 20_000), Task("c", 20, 40_000, collective=one)])

    times = spans(host, Physics(launch_ns=5000, contention=(2.0, 4.0), spread=0.0))
    assert times["k"] == (5000, 45_000)
    # 40 µs together at a quarter of its pace move 10 of 40 µs; the rest moves alone.
    assert times["c"] == (5000, 75_000)


def test_a_thread_that_waits_for_a_key_for_ever_is_an_error() -> None:
    host = Host(0, "main")
    host.get("never put")

    with pytest.raises(RuntimeError, match="hangs"):
        run([host], EXACT)


def reported(job: Job, folder: Path) -> tuple[Report, float]:
    recording, plan = simulate(job.plan, job.causes)
    render(recording, plan, folder)
    report = build_report([str(folder)], ReportOptions(use_cache=False, processes=1))
    return report, statistics.median(periods_of(recording, plan.steps))


@pytest.fixture(scope="module", params=[SEEDS[0], pytest.param(SEEDS[1], marks=pytest.mark.slow)], ids=str)
def some(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Job, Report, float]]:
    found = []
    for seed in request.param:
        job = draw(seed)
        found.append((job, *reported(job, tmp_path_factory.mktemp(f"job{seed}"))))
    return found


def test_a_report_measures_the_periods_that_the_machine_had(some: list[tuple[Job, Report, float]]) -> None:
    for job, report, period_ns in some:
        if not MARKED & {job.truth.cause, job.truth.also} and job.truth.cause != INCOMPLETE:
            assert report.unit.period_ns.median == pytest.approx(period_ns, abs=2), job


def test_traces_are_whole_unless_they_are_meant_to_be_incomplete(some: list[tuple[Job, Report, float]]) -> None:
    for job, report, _ in some:
        severe = {finding.code for finding in report.integrity if finding.severity != "note"}
        assert not severe or job.truth.cause == INCOMPLETE, (job, severe)


def test_most_replays_are_not_refused(some: list[tuple[Job, Report, float]]) -> None:
    verdicts = Counter(getattr(report.replay, "verdict", "refused") for _, report, _ in some)

    assert verdicts["refused"] <= 0.1 * verdicts.total(), verdicts


def test_collectives_that_wait_for_all_can_be_split(some: list[tuple[Job, Report, float]]) -> None:
    for job, report, _ in some:
        for entry in report.collectives:
            assert entry.split == "known" or entry.kind == "broadcast", (job, entry)


def test_the_same_seed_gives_the_same_job() -> None:
    first, second = draw(14), draw(14)

    assert first.truth == second.truth
    assert periods_of(simulate(first.plan, first.causes)[0], first.plan.steps) == periods_of(
        simulate(second.plan, second.causes)[0], second.plan.steps
    )


def test_a_job_costs_what_its_periods_lose_without_the_cause() -> None:
    job = next(job for job in map(draw, range(200)) if job.kind == "single" and job.truth.statistic == "median")
    cause = job.causes[0]
    slow = statistics.median(periods_of(simulate(job.plan, job.causes)[0], job.plan.steps))
    quick = statistics.median(periods_of(simulate(job.plan, job.causes, cause)[0], job.plan.steps))

    assert slow - quick > 0.03 * slow
    low_ns, high_ns = cost_of(job.plan, job.causes, cause).median_ns
    assert low_ns <= slow - quick <= high_ns
    assert (job.truth.low_ns, job.truth.high_ns) == (low_ns, high_ns)
