"""Rows take a factor of their time, or some time more or less.

main       ├ load ─ 300 ┤ 90 ┤launch┤├───── sync ─────┤ 95 ┤     a step of 1,000 µs
stream 7                        ├──── kernel, 490 ────┤
"""

from __future__ import annotations

import pytest

from longpole.timeline.columns import Kind
from tests.build import GC, LOADER, Script
from tests.run_graphs import Run, replayed


def _job(steps: int = 5) -> Run:
    script = Script(base_ns=0)
    for step in range(steps):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.span(LOADER, at + 10, at + 310)
        script.span(GC, at + 320, at + 340, kind=Kind.PYTHON)
        script.kernel(at + 410, at + 900, script.launch(at + 400, at + 405))
        script.sync(at + 420, at + 905)
    return replayed(script)


JOB = _job()


def test_the_drawing_replays_exactly() -> None:
    assert JOB.replayed.measured_ns.tolist() == JOB.replayed.replayed_ns.tolist() == [1_000_000] * 4


@pytest.mark.parametrize(
    ("change", "saving"),
    [
        ("--set input=0.5x", 150.0),
        ("--set input=0", 300.0),
        ("--remove input", 300.0),
        ("--set name:DataLoader=0", 300.0),
        ("--set input&rank:0=0", 300.0),
        ("--set input=2x", -300.0),
        ("--set compute=0.5x", 245.0),
        ("--set name:gemm=0.5x", 245.0),
        ("--set stream:7=0.5x", 245.0),
        ("--set compute=2x", -490.0),
        # The launch at 400 + 20 until the call + 8 for the call itself: no longer the kernel's 900 + 5.
        ("--set compute=0", 905.0 - 428.0),
        ("--set name:collect=0", 20.0),
        ("--set input=+100us", -100.0),
        ("--set input=-100us", 100.0),
        ("--set input=-1ms", 300.0),
        ("--set compute=+50us", -50.0),
        ("--set compute=-50us", 50.0),
        ("--set compute=-1s", 905.0 - 428.0),
    ],
)
def test_the_saving_is_what_the_drawing_says(change: str, saving: float) -> None:
    assert JOB.saving_us(change) == pytest.approx(saving, abs=1e-6)


def test_host_time_is_what_lies_under_no_activity_and_waits_stay() -> None:
    """10 + 10 + 20 + 60 before the launch, 15 behind it, 95 behind the wait."""
    before, around, behind = 10 + 10 + 20 + 60, 20, 95

    saving = JOB.saving_us("--set host=0")

    assert saving == pytest.approx(before + behind, abs=around)


def test_removing_the_wait_itself_lets_the_host_run_ahead() -> None:
    """What is left of a step is the longer of the host's and the device's part."""
    host_us = 1000 - (905 - 420)

    assert JOB.replayed_us - JOB.saving_us("--set name:Synchronize=0") == pytest.approx(host_us, abs=10)


def test_half_of_a_wait_is_not_half_of_what_it_waits_for() -> None:
    assert abs(JOB.saving_us("--set name:cudaStreamSynchronize=0.5x")) < 5


def test_rows_are_counted() -> None:
    assert JOB.predict("--set input=0").rows == [5]
    assert JOB.predict("--set compute=0").rows == [5]


def test_a_share_of_nothing_is_refused() -> None:
    assert "nothing that was recorded fits" in JOB.predict("--set output=0").refused
    assert "nothing that was recorded fits" in JOB.predict("--set input&rank:3=0").refused


@pytest.mark.parametrize(
    ("changes", "saving"),
    [
        (("--set input=0", "--set name:DataLoader=0"), 300.0),
        (("--set name:DataLoader=0.5x", "--set input=0"), 300.0),
        (("--set input=0.5x", "--set input=0.5x"), 225.0),
        (("--set input=0.5x", "--set name:DataLoader=0.5x", "--set input=0.5x"), 262.5),
        (("--set input=0", "--set input=-1ms"), 300.0),
        (("--set input=-1ms", "--set input=0"), 300.0),
        (("--set input=-100us", "--set input=-100us"), 200.0),
        (("--set compute=0.5x", "--set name:gemm=0.5x"), 367.5),
        (("--set input=0", "--set compute=0.5x"), 545.0),
    ],
)
def test_changes_of_the_same_rows_are_made_one_after_the_other(changes: tuple[str, ...], saving: float) -> None:
    """The second finds what the first has left; neither takes time that stands beside what was selected."""
    assert JOB.saving_us(*changes) == pytest.approx(saving, abs=1e-6)
