"""Taking a cause away shortens what it held up, by as much as it held it up and no more.

main     ├ loader ┤ 50 ├ launch ┤├─ sync ─┤ 195 ┤       a step of 500 µs and the loader's 300
device                     ├ gemm ┤
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.advice.removal import (
    span_lengths,
    transfer_lengths,
    without_activity,
    without_spans,
    without_time,
    without_waits,
)
from longpole.timeline.intervals import Intervals
from longpole.whatif.predict import measure_effect
from tests.build import Script
from tests.scenes import loading_job, scene_of, team

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.advice.scene import Scene
    from longpole.whatif.change import Change
    from longpole.whatif.draft import Draft

LOADS = (300.0,) * 6


def _saving_us(scene: Scene, *changes: Change | Callable[[Draft], None]) -> float:
    assert scene.ground is not None
    effect = measure_effect(scene.ground, changes)
    assert effect.refused == ""
    return effect.saving_ns / 1000


def _loader(scene: Scene) -> dict[int, list[tuple[int, Intervals]]]:
    return {view.place: [(view.main, view.activity_time("data_loader"))] for view in scene.views}


def test_time_of_a_thread_is_taken_away() -> None:
    scene = scene_of(loading_job(*LOADS))

    assert _saving_us(scene, without_time(_loader(scene))) == pytest.approx(300, abs=1)


@pytest.mark.parametrize(("left", "saved"), [(0.0, 300), (0.25, 225), (1.0, 0)])
def test_a_share_of_it_may_stay(left: float, saved: float) -> None:
    scene = scene_of(loading_job(*LOADS))

    assert _saving_us(scene, without_time(_loader(scene), left={0: left})) == pytest.approx(saved, abs=1)


def test_the_same_time_twice_is_taken_once() -> None:
    scene = scene_of(loading_job(*LOADS))
    threads = _loader(scene)[0]

    assert _saving_us(scene, without_time({0: [*threads, *threads]})) == pytest.approx(300, abs=1)


def test_only_the_slowest_rank_s_loader_was_waited_for() -> None:
    """Ranks that do not meet: the run's unit is complete with the slower one."""
    scene = scene_of(loading_job(*LOADS, rank=0, world=2), loading_job(*LOADS, rank=1, world=2))
    loader = _loader(scene)

    assert _saving_us(scene, without_time({0: loader[0]})) == 0
    assert _saving_us(scene, without_time(loader)) == pytest.approx(300, abs=1)


def _reads_back(*, copies: bool = False) -> Script:
    """Draw steps that log for 200 µs: inside, the host waits for a kernel of 150 µs, or copies for 80 µs of it."""
    script = Script(base_ns=0)
    for number in range(6):
        at = 600.0 * number
        script.kernel(at + 20, at + 170, script.launch(at + 10, at + 14))
        script.span("log_metrics", at + 20, at + 220)
        if copies:
            call = script.call("cudaMemcpyAsync", at + 180, at + 184)
            script.copy("dtoh", at + 190, at + 270, call)
        else:
            script.sync(at + 30, at + 175)
        script.kernel(at + 280, at + 430, script.launch(at + 230, at + 234))
        script.sync(at + 240, at + 435, name="cudaDeviceSynchronize")
        script.step(number, at, at + 600)
    return script


def test_waits_inside_go_with_it_unless_they_are_kept() -> None:
    scene = scene_of(_reads_back())
    view = scene.views[0]
    time = {0: [(view.main, view.activity_time("logging"))]}

    gone, kept = _saving_us(scene, without_time(time)), _saving_us(scene, without_time(time, keep_waits=True))

    assert 0 < kept < gone


def test_an_activity_goes_with_the_copies_that_it_launched() -> None:
    scene = scene_of(_reads_back(copies=True))
    view = scene.views[0]
    time = view.activity_time("logging")

    both = _saving_us(scene, *without_activity([(view, time)]))
    assert both > _saving_us(scene, without_time({0: [(view.main, time)]})) + 50
    assert len(without_activity([(view, time)])) == 2
    assert len(without_activity([(view, Intervals.none())])) == 1


def test_calls_that_wait_no_longer_let_the_host_run_ahead() -> None:
    """The host takes 400 µs of a step by itself, and the kernel as long: now they lie beside each other."""
    scene = scene_of(loading_job(*(0.0,) * 6, kernel_us=400))
    view = scene.views[0]
    calls = view.rows(view.call == "sync")
    assert len(calls) == 6

    saved = _saving_us(scene, without_waits({0: calls}))

    assert saved == pytest.approx(400, abs=20)


def test_a_removal_that_touches_nothing_is_refused() -> None:
    scene = scene_of(loading_job(*(0.0,) * 6))
    assert scene.ground is not None

    assert "nothing" in measure_effect(scene.ground, [without_waits({0: np.empty(0, np.int64)})]).refused
    assert "nothing" in measure_effect(scene.ground, [without_time(_loader(scene))]).refused


def test_spans_take_other_times() -> None:
    """Without any, the wait of 395 µs still takes the 8 that the call takes by itself."""
    scene = scene_of(loading_job(*LOADS, kernel_us=400))
    rows = np.arange(6, dtype=np.int64)

    assert _saving_us(scene, span_lengths({0: (rows, np.full(6, 100_000, np.int64))})) == pytest.approx(300, abs=1)
    assert _saving_us(scene, span_lengths({0: (rows[::-1], np.full(6, 100_000, np.int64))})) == pytest.approx(
        300, abs=1
    )
    assert _saving_us(scene, without_spans({0: rows})) == pytest.approx(387, abs=1)


def test_each_span_takes_its_own() -> None:
    """Rows come in any order, each with its length."""
    scene = scene_of(loading_job(*LOADS, kernel_us=400))
    rows = np.array([5, 3, 4], np.int64)

    assert scene.ground is not None

    found = measure_effect(scene.ground, [span_lengths({0: (rows, np.array([400, 100, 200]) * 1000)})])

    assert (np.round(found.periods_ns / 1000) - 1100).tolist() == [0, 0, -300, -200, 0]


def test_transfers_take_other_times_once_all_have_come() -> None:
    """The wait for the slow rank stays: 20 µs of transfer are all there is to save."""
    scene = scene_of(*team([100, 400]))
    assert scene.across is not None
    operations = dict.fromkeys(range(len(scene.across.matched)), 0)

    assert _saving_us(scene, transfer_lengths(operations)) == pytest.approx(20, abs=1)
    assert _saving_us(scene, transfer_lengths(dict.fromkeys(operations, 520_000))) == pytest.approx(-500, abs=1)
