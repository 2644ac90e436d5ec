"""Predictions: what is saved, what holds the job up next, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.graph.kinds import EdgeKind
from longpole.settings import Settings
from tests.build import LOADER, Script
from tests.run_graphs import Run, replayed

if TYPE_CHECKING:
    from longpole.whatif.draft import Draft


def _job(load: float = 300, *, returns: float = 5, aside: bool = False, steps: int = 6) -> Run:
    """Draw steps: load, then a kernel of 490 µs that the host waits for, then 95 µs of host."""
    script = Script(base_ns=0)
    step_us = load + 700
    for step in range(steps):
        at = step_us * step
        script.step(step, at, at + step_us)
        script.span(LOADER, at + 10, at + 10 + load)
        begins = at + load + 100
        script.kernel(begins + 10, begins + 500, script.launch(begins, begins + 5))
        if aside:
            call = script.call("cudaMemcpyAsync", begins + 8, begins + 12)
            script.copy("dtoh", begins + 20, begins + 60, call, stream=9, size_bytes=1 << 20)
        script.sync(begins + 20, begins + 500 + returns)
    return replayed(script)


def test_several_changes_are_replayed_together_not_added() -> None:
    """Two ranks load in parallel: one loader less saves nothing, the other neither, both together all of it."""
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    for script in scripts:
        for step in range(4):
            at = 1000.0 * step
            script.step(step, at, at + 1000)
            script.span(LOADER, at + 10, at + 310)
            script.kernel(at + 410, at + 700, script.launch(at + 400, at + 405))
            script.collective(at + 701, at + 800, script.launch(at + 410, at + 415), stream=7)
            script.sync(at + 420, at + 805)
    run = replayed(*scripts)
    first, second = "--set rank:0&input=0", "--set rank:1&input=0"

    assert run.saving_us(first) == run.saving_us(second) == 0
    assert run.saving_us(first, second) == pytest.approx(300) == run.saving_us("--set input=0")


def test_changes_whose_savings_overlap_save_less_than_their_sum() -> None:
    """A collective hides under computation: each alone saves what the other leaves."""
    run = _job()

    both = run.saving_us("--set compute=0", "--set name:Synchronize=0")
    assert both < run.saving_us("--set compute=0") + run.saving_us("--set name:Synchronize=0")


def test_the_next_long_pole_is_what_most_of_the_rest_waits_for() -> None:
    assert _job(load=600).predict("--set compute=0.5x").pole == "input"
    assert _job(load=600).predict("--set input=0").pole == "host"
    assert _job(load=600).predict("--set input=0", "--set host=0").pole == "compute"


def test_a_function_is_a_change() -> None:
    def kernels_are_free(draft: Draft) -> None:
        edges = np.flatnonzero(draft.graph.edges.kind == EdgeKind.DURATION)
        draft.set_length(edges, np.zeros(len(edges), np.int64))
        draft.rows = len(edges)

    run = _job()

    assert run.saving_us(kernels_are_free) == run.saving_us("--set compute=0")
    assert run.predict(kernels_are_free).rows == [6]


def test_the_share_of_changed_time_beside_others_is_told() -> None:
    """Of 490 µs none runs beside another span, or all of it does; threads do not count."""
    assert _job().predict("--set compute=0.5x").overlapping_share == 0
    assert _job(aside=True).predict("--set compute=0.5x").overlapping_share == 1
    assert _job().predict("--set input=0").overlapping_share is None


def test_a_unit_that_is_alone_begins_when_it_did() -> None:
    """Half a second of host time in front of the only step is none of its time, and none of what is saved."""
    script = Script(base_ns=0)
    script.op("aten::mul", 0, 100)
    script.step(0, 500_000, 501_000)
    script.span(LOADER, 500_010, 500_310)
    script.kernel(500_410, 500_900, script.launch(500_400, 500_405))
    script.sync(500_420, 500_905)
    run = replayed(script)

    assert run.replayed.measured_ns.tolist() == [1_000_000]
    assert run.saving_us("--set input=0") == pytest.approx(300)
    assert run.saving_us("--set host=0") == pytest.approx(10 + 90 + 95, abs=15)
    assert run.predict("--set name:aten::mul=0").predicted_ns == run.replayed_us * 1000


# --- refusals -------------------------------------------------------------------------------------------------------


def test_nothing_that_fits() -> None:
    assert "nothing that was recorded fits" in _job().predict("--set name:unheard=0").refused


def test_a_change_smaller_than_the_error() -> None:
    """Waits come back 30 µs late where 8 are known: the replay is some 20 µs off, and 4 µs of input are less."""
    run = _job(returns=30, steps=4)

    small, large = run.predict("--set input=-4us"), run.predict("--set input=-100us")

    assert "less than the replay of the unchanged run misses it by" in small.refused
    assert "4.00 µs" in small.refused
    assert large.refused == ""


def test_a_rare_stall_is_larger_than_the_error_though_the_median_hardly_moves() -> None:
    """One save of 2,400 µs in seven steps that differ by 1 µs each; the replay misses each by some 20 µs."""
    script = Script(base_ns=0)
    at = 0.0
    for step in range(7):
        save = 2400.0 if step == 3 else 0.0
        step_us = 1000.0 + step + save
        script.step(step, at, at + step_us)
        script.kernel(at + 16, at + 900, script.launch(at + 10, at + 13))
        script.sync(at + 20, at + 930)
        if save:
            script.span("save_checkpoint", at + 940, at + 940 + save)
        at += step_us
    found = replayed(script, settings=Settings(clean_min_count=99)).predict("--off-path output")

    assert found.refused == ""
    assert found.replayed_mean_ns - found.predicted_mean_ns == pytest.approx(2_400_000 / 6)


def test_rows_that_nothing_waits_for() -> None:
    """A thread of its own copies to a stream of its own until the record ends: no unit is complete with it."""
    script = Script(base_ns=0)
    for step in range(4):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.kernel(at + 110, at + 900, script.launch(at + 100, at + 105))
        script.sync(at + 120, at + 905)
        script.op("aten::mul", at + 10, at + 500, thread="logger")

    assert "nothing waits for it" in replayed(script).predict("--set name:aten::mul=0").refused


def test_collectives_that_could_not_be_split() -> None:
    """One of two ranks: what it waited and what it moved cannot be told apart."""
    script = Script(base_ns=0, world_size=2)
    for step in range(4):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.collective(at + 110, at + 900, script.launch(at + 100, at + 105))
        script.sync(at + 120, at + 905)
    run = replayed(script)

    by_kind = ("--set collective=0.5x", "--set kind:all_reduce=-5us", "--remove collective")
    for change in (*by_kind, "--set name:^nccl=0.5x", "--set stream:13=0", "--set rank:0=0.5x"):
        assert "4 of 4 collectives could not be split" in run.predict(change).refused
    assert "could not be split" not in run.predict("--set host=0.5x").refused


def test_a_refusal_keeps_what_was_not_predicted_to_itself() -> None:
    found = _job().predict("--set name:unheard=0")

    assert found.predicted_ns == _job().replayed_us * 1000
    assert found.before_ns == found.after_ns


def test_one_change_that_fits_is_enough() -> None:
    found = _job().predict("--set name:unheard=0", "--set input=0")

    assert found.refused == ""
    assert found.rows == [0, 6]
