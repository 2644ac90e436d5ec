"""Launches are captured: the first starts all, up to the next call that waits for the device.

main       ├l├ 20 ├l├ 20 ├l├ 20 ├l├ … ├ sync ┤
stream 7     ├k┤  ·  ├k┤  ·  ├k┤  ·  ├k┤
captured   ├l├sync┤
             ├k┤├k┤├k┤├k┤
"""

from __future__ import annotations

import pytest

from tests.build import LOADER, Script
from tests.run_graphs import Run, replayed

KERNEL, EVERY, DELAY = 4.0, 20.0, 5.0


def _job(kernels: int, sync_after: tuple[int, ...], *, load: float = 0.0) -> Run:
    """Draw steps of short kernels; the host waits for the device after the kernels that are named."""
    script = Script(base_ns=0)
    at = 0.0
    for step in range(4):
        begin = at
        if load:
            script.span(LOADER, at, at + load)
            at += load
        for k in range(kernels):
            script.kernel(at + DELAY, at + DELAY + KERNEL, script.launch(at, at + 3))
            at += EVERY
            if k + 1 in sync_after:
                script.sync(at - EVERY + 4, at)
        script.step(step, begin, at + 10)
        at += 10
    return replayed(script)


def test_one_launch_starts_all_kernels_back_to_back() -> None:
    """50 launches every 20 µs and 10 behind: of 1,010 remain the launch, 50 kernels, the return and 10 behind."""
    run = _job(50, (50,))
    after = DELAY + 50 * KERNEL + (EVERY - DELAY - KERNEL) + 10

    assert run.replayed_us - run.saving_us("--graph-launches") == pytest.approx(after, abs=6)


def test_a_wait_in_between_parts_two_graphs() -> None:
    run = _job(50, (25, 50))
    after = 2 * (DELAY + 25 * KERNEL + (EVERY - DELAY - KERNEL)) + 10

    assert run.replayed_us - run.saving_us("--graph-launches") == pytest.approx(after, abs=12)


def test_input_is_no_part_of_a_graph() -> None:
    run = _job(50, (50,), load=400)

    assert run.predict("--graph-launches").after_ns["input"] == pytest.approx(400_000, rel=0.01)


def test_other_changes_of_captured_time_are_made_together_with_it() -> None:
    """A load of 400 µs between two launches stays, and goes with another change, in either order."""
    script = Script(base_ns=0)
    for step in range(4):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        for begin in (at + 10, at + 100, at + 800):
            script.kernel(begin + 5, begin + 45, script.launch(begin, begin + 3))
        script.span(LOADER, at + 200, at + 600)
        script.sync(at + 810, at + 850)
    run = replayed(script)
    alone = run.predict("--graph-launches")

    assert alone.after_ns["input"] == pytest.approx(400_000)
    for changes in (("--graph-launches", "--set host=0"), ("--set host=0", "--graph-launches")):
        assert run.predict(*changes).after_ns["input"] == pytest.approx(400_000)
    for changes in (("--graph-launches", "--set input=0"), ("--set input=0", "--graph-launches")):
        assert "input" not in run.predict(*changes).after_ns
        assert run.predict(*changes).predicted_ns < alone.predicted_ns - 250_000


def test_gaps_of_a_graph_that_was_captured_before_stay() -> None:
    script = Script(base_ns=0)
    for step in range(4):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        graph = script.launch(at + 10, at + 20, name="cudaGraphLaunch")
        for k in range(5):
            script.kernel(at + 30 + 100 * k, at + 70 + 100 * k, graph)
        script.sync(at + 25, at + 475)
    run = replayed(script)

    assert run.predict("--graph-launches").predicted_ns == run.replayed_us * 1000
