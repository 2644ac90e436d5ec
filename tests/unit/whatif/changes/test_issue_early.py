"""Collectives start as soon as what they need is there.

main          ├k1├ wait ├g1├ … ├k2├
stream 7      ├── k1 ──┤ ································· ├── k2 ──┤
stream 20               └► ├──────── all-gather of k2's ────────┤└►
early         ├── k1 ──┤ ··············· ├── k2 ──┤
              ├──────── all-gather ─────┤
"""

from __future__ import annotations

import pytest

from tests.build import Script
from tests.run_graphs import Run, replayed

GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SCATTER = "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _team(kind: str, *, launch_late: float = 0.0) -> Run:
    """Draw two ranks: kernel k1 (300), a collective (400) after it, kernel k2 (300) after that."""
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    step_us = 1500.0 + launch_late
    for script in scripts:
        for step in range(5):
            at = step_us * step
            script.step(step, at, at + step_us)
            script.kernel(at + 10, at + 310, script.launch(at, at + 3), name="k1")
            script.call("cudaStreamWaitEvent", at + 20, at + 21)
            begins = at + 313 + launch_late
            launch = at + 25 + (300 + launch_late if launch_late else 0)
            script.collective(
                begins + (0 if not launch_late else 20),
                begins + 420,
                script.launch(launch, launch + 3),
                stream=20,
                name=kind,
            )
            script.call("cudaStreamWaitEvent", launch + 10, launch + 11)
            script.kernel(begins + 423, begins + 723, script.launch(launch + 15, launch + 18), name="k2")
            script.sync(launch + 30, begins + 731, name="cudaDeviceSynchronize")
    return replayed(*scripts)


def test_a_gather_needs_nothing_that_this_unit_computed() -> None:
    """It starts with its launch, 25 µs into the step, beside k1; k2 follows when both are done."""
    run = _team(GATHER)
    before, after = 313 + 420 + 3 + 300, 25 + 6 + 420 + 3 + 300

    assert run.saving_us("--issue-early kind:all_gather") == pytest.approx(before - after, abs=15)
    assert run.saving_us("--issue-early collective") == run.saving_us("--issue-early kind:all_gather")
    assert run.saving_us("--issue-early name:AllGather") == run.saving_us("--issue-early kind:all_gather")


def test_a_reduction_needs_its_input() -> None:
    """Its launch is early already, and its input is not: nothing is gained."""
    run = _team(SCATTER)

    assert run.saving_us("--issue-early kind:reduce_scatter") == 0


def test_a_reduction_that_is_launched_late_starts_when_its_input_is_there() -> None:
    """It started 20 after its launch's 513; with its input there at 310, it starts 3 later, and k2 with it."""
    run = _team(SCATTER, launch_late=200)

    assert run.saving_us("--issue-early kind:reduce_scatter") == pytest.approx(533 - 313, abs=10)


def test_nothing_says_what_an_operation_without_an_event_wait_needs() -> None:
    script = Script(base_ns=0)
    for step in range(4):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.kernel(at + 10, at + 300, script.launch(at, at + 3))
        script.collective(at + 410, at + 500, script.launch(at + 400, at + 403), stream=7)
        script.sync(at + 420, at + 505)

    assert "nothing recorded says what" in replayed(script).predict("--issue-early collective").refused


def _on_host(name: str) -> Run:
    """Draw two ranks without a device: 300 µs of work, then a collective of 200 on gloo's thread that is waited for."""
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    for script in scripts:
        for step in range(4):
            at = 1000.0 * step
            script.step(step, at, at + 1000)
            script.op("aten::linear", at + 10, at + 310)
            script.op(f"c10d::{name}_", at + 310, at + 314)
            script.span(f"gloo:{name}", at + 320, at + 520, thread="gloo")
            script.op("c10d::wait", at + 314, at + 525)
            script.op("aten::mul", at + 526, at + 990)
    return replayed(*scripts)


def test_on_the_hosts_own_threads_what_gathers_is_issued_as_the_unit_begins() -> None:
    """It is done at 210, before the work is: the main thread no longer waits for it, and goes on at 314."""
    run = _on_host("all_gather")

    assert run.saving_us("--issue-early kind:all_gather") == pytest.approx(526 - 314, abs=10)


def test_on_the_hosts_own_threads_a_reduction_stays() -> None:
    assert "nothing recorded says" in _on_host("all_reduce").predict("--issue-early kind:all_reduce").refused
