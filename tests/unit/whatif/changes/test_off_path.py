"""A write goes on beside the work; the next one waits until it is done.

main     ├──────── work ────────┤├── save ──┤
"""

from __future__ import annotations

import pytest

from tests.build import Script
from tests.run_graphs import Run, replayed

SAVE = "save_checkpoint"


def _job(write: float, work: float, every: int = 1, steps: int = 7) -> Run:
    script = Script(base_ns=0)
    at = 0.0
    for step in range(steps):
        own = write if step % every == every - 1 else 0.0
        script.step(step, at, at + work + own)
        script.kernel(at + 110, at + work - 15, script.launch(at + 100, at + 105))
        script.sync(at + 120, at + work - 10)
        if own:
            script.span(SAVE, at + work, at + work + own)
        at += work + own
    return replayed(script)


def test_a_write_shorter_than_a_step_disappears() -> None:
    assert _job(300, 1000).saving_us("--off-path output") == pytest.approx(300, abs=1)
    assert _job(300, 1000).saving_us(f"--off-path name:{SAVE}") == pytest.approx(300, abs=1)


def test_a_write_longer_than_a_step_pushes_back() -> None:
    """Each write waits for the one before: a step cannot be shorter than a write."""
    job = _job(3000, 1000)

    assert job.saving_us("--off-path output") == pytest.approx(1000, abs=1)
    assert job.predict("--off-path output").pole == "output"


def test_a_rare_write_may_be_as_long_as_all_steps_until_the_next_one() -> None:
    job = _job(2500, 1000, every=3, steps=9)
    found = job.predict("--off-path output")

    assert found.predicted_mean_ns / 1000 == pytest.approx(1000, abs=1)
    assert found.replayed_mean_ns / 1000 == pytest.approx((8000 + 3 * 2500) / 8, abs=1)


def test_removing_it_is_never_worse_than_moving_it() -> None:
    job = _job(3000, 1000)

    assert job.saving_us("--remove output") > job.saving_us("--off-path output")


def test_what_is_not_there_cannot_be_moved() -> None:
    assert "nothing of that name or object" in _job(300, 1000).predict("--off-path state").refused
