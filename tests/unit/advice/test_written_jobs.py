"""Jobs without operators whose cause is known: it is the long pole, on its ranks, at what it costs, and alone.

Each job is run with its cause and without it; the twin has no finding.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.jobs.confusion import report_of
from tests.written_jobs import UPDATE, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.written_jobs import Host, Job, Task, Waits

MB = 10**6


def micro_batches(host: Host, *, bad: bool) -> Waits:
    """Gradients are reduced for each of eight micro-batches; the last time would do."""
    for step in range(4):
        with host.step(step):
            reduced: list[Task] = []
            for micro in range(8):
                host.compute(8000, step, micro, needs=reduced)
                reduced = []
                for bucket in range(3):
                    last = host.compute(5000, step, micro, bucket, n=3)
                    if bad or micro == 7:
                        length = 4500.0 if bucket < 2 else 1500.0
                        size = 150 * MB if bucket < 2 else 50 * MB
                        reduced.append(host.collective("all_reduce", size, length, [last]))
                if reduced:
                    host.wait_for_event()
            host.launch(UPDATE, 300, needs=reduced)
            yield from host.synchronize()


def behind_everything(host: Host, *, bad: bool) -> Waits:
    """Six buckets are reduced when all of them are computed; five of them could run beside computing."""
    for step in range(4):
        with host.step(step):
            made = [host.compute(10_000, step, bucket, n=3) for bucket in range(6)] if bad else []
            reduced = []
            for bucket in range(6):
                last = made[-1] if bad else host.compute(10_000, step, bucket, n=3)
                reduced.append(host.collective("all_reduce", 60 * MB, 2500 if bucket < 5 else 600, [last]))
            host.wait_for_event()
            host.launch(UPDATE, 3000, needs=reduced)
            yield from host.synchronize()


def buffers(host: Host, *, bad: bool) -> Waits:
    """Buffers are broadcast before every forward pass."""
    for step in range(4):
        with host.step(step):
            sent = [host.collective("broadcast", 40 * MB, 4000, [])] if bad else []
            if sent:
                host.wait_for_event()
            host.compute(20_000, step, needs=sent, n=3)
            reduced = []
            for bucket in range(3):
                last = host.compute(10_000, step, bucket, n=3)
                reduced.append(host.collective("all_reduce", 60 * MB, 2500 if bucket < 2 else 600, [last]))
            host.wait_for_event()
            host.launch(UPDATE, 3000, needs=reduced)
            yield from host.synchronize()


def one_queue(host: Host, *, bad: bool) -> Waits:
    """What is computed next waits in one hardware queue behind the all-reduce before it."""
    for step in range(4):
        with host.step(step):
            behind: list[Task] = []
            reduced = []
            for bucket in range(6):
                last = host.compute(6000, step, bucket, n=2, needs=behind)
                reduced.append(host.collective("all_reduce", 60 * MB, 2000 if bucket < 5 else 400, [last]))
                behind = reduced[-1:] if bad else []
            host.wait_for_event()
            host.launch(UPDATE, 1000, needs=reduced)
            yield from host.synchronize()


def slower_clock(host: Host, *, bad: bool) -> Waits:
    """The clock of rank 2 drops half way."""
    for step in range(10):
        with host.step(step):
            slow = 1.5 if bad and host.rank == 2 and step >= 5 else 1.0
            last = host.compute(50_000 * slow, step)
            reduced = host.collective("all_reduce", 10 * MB, 1000, [last])
            host.wait_for_event()
            host.launch(UPDATE, 300, needs=[reduced])
            yield from host.synchronize()


def slow_stage(host: Host, *, bad: bool) -> Waits:
    """Stage 1 of three computes for longer; receives are posted early, and nothing else is shared."""
    down, up = ("d0", "d1"), ("u0", "u1")
    length = 8000 * (1.6 if bad and host.rank == 1 else 1.0)
    for step in range(4):
        with host.step(step):
            for micro in range(12):
                forward = micro < 6
                source, target = (host.rank - 1, host.rank) if forward else (host.rank + 1, host.rank)
                needs = []
                if 0 <= source <= 2:
                    link = (down if forward else up)[min(source, target)]
                    needs = [host.collective("recv", 20 * MB, 200, [], group=link, stream=20 if forward else 21)]
                    host.wait_for_event()
                made = host.compute(length / 2 if forward else length, step, micro, n=3, needs=needs)
                target = host.rank + 1 if forward else host.rank - 1
                if 0 <= target <= 2:
                    link = (down if forward else up)[min(host.rank, target)]
                    host.collective("send", 20 * MB, 200, [made], group=link, stream=22 if forward else 23)
            yield from host.synchronize()


def captures(host: Host, *, bad: bool) -> Waits:
    """Every step captures a graph anew: the calls that begin and end it are short, what is between them is not."""
    for step in range(6):
        with host.step(step):
            if bad:
                host.call("cudaStreamBeginCapture", 20)
                host.at += 300_000
                host.call("cudaStreamEndCapture", 9000)
                host.call("cudaGraphInstantiate", 60_000)
            host.compute(60_000, 0)
            yield from host.synchronize("cudaStreamSynchronize")


def waited_copy(host: Host, *, bad: bool) -> Waits:
    """Batches come from pageable memory by a call that returns at once, and the stream is waited for behind it."""
    for step in range(5):
        with host.step(step):
            memory = "Pageable" if bad else "Pinned"
            host.copy(f"Memcpy HtoD ({memory} -> Device)", 20_000 if bad else 300, 100 * MB)
            if bad:
                yield from host.synchronize("cudaStreamSynchronize")
            host.compute(50_000, step)
            if not bad:
                yield from host.synchronize("cudaStreamSynchronize")


GROUPS = {"d0": (0, 1), "d1": (1, 2), "u0": (0, 1), "u1": (1, 2)}


@dataclass(frozen=True, slots=True)
class Written:
    """A job, how many ranks it has, its cause, and the ranks at fault; `near_ns` is how far off the cost may be."""

    program: Any
    n_ranks: int
    cause: str
    ranks: tuple[int, ...]
    groups: bool = False

    def run(self, *, bad: bool) -> Job:
        return run(lambda host: self.program(host, bad=bad), self.n_ranks, **(GROUPS if self.groups else {}))


JOBS = (
    Written(micro_batches, 2, "extra_collective", (0, 1)),
    Written(behind_everything, 2, "late_issue", (0, 1)),
    Written(buffers, 2, "extra_collective", (0, 1)),
    Written(one_queue, 2, "queue_order", (0, 1)),
    Written(slower_clock, 4, "slow_rank", (2,)),
    Written(slow_stage, 3, "slow_stage", (1,), groups=True),
    Written(captures, 1, "recompilation", (0,)),
    Written(waited_copy, 1, "pageable_copy", (0,)),
)


@pytest.mark.slow
@pytest.mark.parametrize("written", JOBS, ids=lambda written: written.program.__name__)
def test_the_cause_is_named_alone_with_its_ranks_and_its_cost(written: Written, tmp_path: Path) -> None:
    bad, good = written.run(bad=True), written.run(bad=False)
    bad.write(tmp_path)
    true_us = statistics.median(bad.periods()) - statistics.median(good.periods())

    (finding,) = report_of(tmp_path)["findings"]

    assert (finding["cause"], tuple(finding["ranks"])) == (written.cause, written.ranks)
    assert finding["cost_ns_per_unit"] / 1000 == pytest.approx(true_us, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("written", JOBS, ids=lambda written: written.program.__name__)
def test_its_twin_has_nothing_worth_a_finding(written: Written, tmp_path: Path) -> None:
    written.run(bad=False).write(tmp_path)

    assert [one["cause"] for one in report_of(tmp_path)["findings"]] in ([], ["gpu_work"])
