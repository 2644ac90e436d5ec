"""Input is prepared by workers; here taking a ready batch costs nothing.

main     ├── load ──┤├──────── rest of the step ────────┤
"""

from __future__ import annotations

import pytest

from longpole.settings import Settings
from longpole.timeline.columns import Kind
from tests.build import GC, LOADER, Script
from tests.run_graphs import Run, replayed


def _job(load: float, rest: float, steps: int = 6, **settings: int) -> Run:
    """Draw steps of `load` µs, then a kernel for nearly all of `rest` that the host waits for."""
    script = Script(base_ns=0)
    at = 0.0
    for step in range(steps):
        script.step(step, at, at + load + rest)
        script.span(LOADER, at, at + load)
        begins = at + load
        script.kernel(begins + 110, begins + rest - 15, script.launch(begins + 100, begins + 105))
        script.sync(begins + 120, begins + rest - 10)
        at += load + rest
    return replayed(script, settings=Settings(**{"prefetch_handover_ns": 0, **settings}))


@pytest.mark.parametrize("steps", [3, 4, 6, 9])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_load_that_is_shorter_than_the_rest_disappears(steps: int, workers: int) -> None:
    job = _job(3000, 4000, steps, prefetch_workers=workers)

    assert job.saving_us("--prefetch input") == pytest.approx(3000)


@pytest.mark.parametrize("steps", [3, 4, 6, 9])
@pytest.mark.parametrize(("workers", "period"), [(1, 9000.0), (2, 4500.0), (4, 4000.0)])
def test_a_longer_load_paces_the_steps_by_its_share_of_a_worker(steps: int, workers: int, period: float) -> None:
    job = _job(9000, 4000, steps, prefetch_workers=workers)

    assert job.predict("--prefetch input").predicted_mean_ns / 1000 == pytest.approx(period, rel=0.02)


def test_taking_a_batch_over_costs_what_the_settings_say() -> None:
    assert _job(3000, 4000, prefetch_handover_ns=500_000).saving_us("--prefetch input") == pytest.approx(2500)
    # … but never more than preparing it.
    assert _job(300, 4000, prefetch_handover_ns=500_000).predict("--prefetch input").predicted_ns == 4_300_000


def test_what_workers_hold_up_is_charged_to_input() -> None:
    found = _job(9000, 4000, prefetch_workers=1).predict("--prefetch input")

    assert found.pole == "input"
    assert found.after_ns["input"] == pytest.approx(5_000_000, rel=0.25)


def test_waits_for_workers_are_told_apart_from_steps_that_took_no_time_on_the_record() -> None:
    """Kernels mostly follow each other after 2 µs, some at once: the replay gives those 2 µs, too."""
    script = Script(base_ns=0)
    for step in range(6):
        at = 13000.0 * step
        script.step(step, at, at + 13000)
        script.span(LOADER, at, at + 9000)
        end = at + 9108
        for k in range(4):
            begin = end + (0 if k == 2 else 2)
            end = begin + 900
            script.kernel(begin, end, script.launch(at + 9100 + 4 * k, at + 9103 + 4 * k))
        script.sync(at + 9120, end + 5)
    found = replayed(script, settings=Settings(prefetch_workers=1, prefetch_handover_ns=0)).predict("--prefetch input")

    assert found.after_ns["compute"] == 3_600_000
    assert found.after_ns["input"] == pytest.approx(5_100_000, rel=0.001)
    assert "unknown" not in found.after_ns


def test_a_load_that_another_change_has_shortened_is_prepared_in_the_shorter_time() -> None:
    job = _job(9000, 4000, prefetch_workers=1)

    assert job.predict("--set input=0.5x", "--prefetch input").predicted_ns / 1000 == pytest.approx(4500, rel=0.02)


def test_what_stands_beside_a_load_can_change_too() -> None:
    """A collection between load and launch: taking it away adds to the prefetch, in either order."""
    script = Script(base_ns=0)
    for step in range(6):
        at = 7000.0 * step
        script.step(step, at, at + 7000)
        script.span(LOADER, at + 10, at + 3010)
        script.span(GC, at + 3010, at + 3310, kind=Kind.PYTHON)
        script.kernel(at + 3410, at + 6900, script.launch(at + 3400, at + 3405))
        script.sync(at + 3420, at + 6905)
    job = replayed(script, settings=Settings(prefetch_handover_ns=100_000))

    assert job.saving_us("--set name:collect=0", "--prefetch input") == pytest.approx(2900 + 300)
    assert job.saving_us("--prefetch input", "--set name:collect=0") == pytest.approx(2900 + 300)
    assert job.predict("--prefetch input").after_ns["input"] == pytest.approx(100_000)


def test_without_input_on_the_main_thread_nothing_can_be_prefetched() -> None:
    script = Script(base_ns=0)
    for step in range(3):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.kernel(at + 110, at + 900, script.launch(at + 100, at + 105))
        script.sync(at + 120, at + 905)
        script.span(LOADER, at + 10, at + 500, thread="worker")

    assert "no activity of input" in replayed(script).predict("--prefetch input").refused
