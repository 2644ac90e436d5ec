"""A step that does not end is ended from the main thread, and nothing of the watch stays behind."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING

from longpole.recorder.profiled.injected.longpole_recording import endings

if TYPE_CHECKING:
    import pytest


def test_a_step_that_does_not_end_is_cut_in_the_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "STALE_S", 0.1)
    cuts: list[tuple[str, threading.Thread]] = []
    before = (signal.getsignal(signal.SIGTERM), signal.set_wakeup_fd(-1))
    signal.set_wakeup_fd(before[1])
    watched = endings.Endings(lambda reason: cuts.append((reason, threading.current_thread())))

    watched.install(longest_s=0.0)
    deadline_s = time.monotonic() + 30
    while not cuts and time.monotonic() < deadline_s:
        time.sleep(0.01)
    watched.remove()

    (reason, thread), *others = cuts
    assert reason.startswith("a step took over ")
    assert thread is threading.main_thread()
    assert not others
    after = (signal.getsignal(signal.SIGTERM), signal.set_wakeup_fd(-1))
    signal.set_wakeup_fd(after[1])
    assert after == before


def test_a_handler_of_the_programs_own_is_left_alone() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: seen.append(number))
    try:
        watched = endings.Endings(lambda _reason: None)
        watched.install(longest_s=0.0)
        signal.raise_signal(signal.SIGTERM)
        watched.remove()

        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
