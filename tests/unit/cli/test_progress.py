"""The progress bar."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from longpole.cli.progress import Progress

if TYPE_CHECKING:
    import pytest


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def become_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """To be called by the test itself: between a fixture and its test, pytest sets standard error anew."""
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_short_work_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = become_terminal(monkeypatch)
    clock = Clock()

    with Progress(wanted=True, clock=clock) as progress:
        clock.now_s += 0.4
        progress.update("rank0.json", 5, 10)

    assert terminal.getvalue() == ""


def test_long_work_has_a_bar_with_what_is_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = become_terminal(monkeypatch)
    clock = Clock()

    with Progress(wanted=True, clock=clock) as progress:
        clock.now_s += 0.6
        progress.update("rank0.json", 5_000_000, 10_000_000)

    assert "rank0.json" in terminal.getvalue()
    assert "5.0/10.0 MB" in terminal.getvalue()


def test_a_hostile_file_name_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = become_terminal(monkeypatch)
    clock = Clock()

    with Progress(wanted=True, clock=clock) as progress:
        clock.now_s += 0.6
        progress.update("[bold]\x1b]0;owned\x07.json", 5, 10)

    assert "[bold]\\x1b]0;owned\\x07.json" in terminal.getvalue()


def test_who_is_quiet_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = become_terminal(monkeypatch)
    clock = Clock()

    with Progress(wanted=False, clock=clock) as progress:
        clock.now_s += 9
        progress.update("rank0.json", 5, 10)
    progress.say_done()

    assert terminal.getvalue() == ""


def test_a_log_file_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    clock = Clock()

    with Progress(wanted=True, clock=clock) as progress:
        clock.now_s += 9
        progress.update("rank0.json", 5, 10)
    progress.say_done()

    assert stream.getvalue() == ""


def test_the_time_it_took_is_said_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = become_terminal(monkeypatch)
    clock = Clock()

    with Progress(wanted=True, clock=clock) as progress:
        clock.now_s += 4.25
    progress.say_done()

    assert terminal.getvalue() == "4.2 s\n"
