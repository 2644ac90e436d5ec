"""Copies that the host waits for return at once; the copy itself stays on its stream.

main       ├ launch ─ copy's call, 300 ┤── host work, 200 ──├launch┤├── sync ──┤
stream 7    ├───── copy, 290 ─────┤                            ├─ kernel, 400 ─┤
after      ├launch┤── host work ──├launch┤├─────── sync ────────┤
            ├───── copy, 290 ─────┤├─ kernel, 400 ─┤
"""

from __future__ import annotations

import pytest

from tests.build import Script
from tests.run_graphs import Run, replayed


def _job(work: float = 200.0, size_bytes: int = 1 << 24) -> Run:
    script = Script(base_ns=0)
    step_us = 100 + 300 + work + 500
    for step in range(6):
        at = step_us * step
        script.step(step, at, at + step_us)
        call = script.call("cudaMemcpyAsync", at + 100, at + 400)
        script.copy("htod", at + 105, at + 395, call, size_bytes=size_bytes)
        begins = at + 400 + work
        script.kernel(begins + 10, begins + 410, script.launch(begins, begins + 5))
        script.sync(begins + 20, begins + 415)
    return replayed(script)


def test_the_host_works_while_the_copy_goes_on() -> None:
    """Before: copy, work, kernel. After: the kernel follows the copy on its stream, work lies beside the copy."""
    # From the copy's launch: 295 until it ends, 1 for the stream, 400 for the kernel; before 300 + 200 + 410.
    assert _job().saving_us("--async-copy") == pytest.approx(300 + 200 + 410 - (295 + 1 + 400), abs=3)


def test_a_copy_is_still_waited_for_by_what_follows_it_on_its_stream() -> None:
    """With hardly any work between them nothing is gained but the return of the call and the next launch.

    The kernel came 5 µs (return), 1 µs (work) and 5 µs (launch) after the copy; now it comes 1 µs (stream) after it.
    """
    assert _job(work=1.0).saving_us("--async-copy") == pytest.approx(5 + 1 + 5 - 1, abs=0.1)


def test_a_copy_of_which_no_size_was_recorded_is_one_too() -> None:
    assert _job(size_bytes=-1).saving_us("--async-copy") == _job().saving_us("--async-copy") > 0


def test_long_work_hides_the_whole_copy() -> None:
    """The call's own floor of 8 µs stays."""
    assert _job(work=2000.0).saving_us("--async-copy") == pytest.approx(300 - 8, abs=3)


def test_without_copies_that_block_nothing_fits() -> None:
    script = Script(base_ns=0)
    for step in range(3):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        call = script.call("cudaMemcpyAsync", at + 100, at + 104)
        script.copy("htod", at + 110, at + 395, call, size_bytes=1 << 24)
        script.sync(at + 420, at + 430)

    assert "nothing that was recorded fits" in replayed(script).predict("--async-copy").refused
