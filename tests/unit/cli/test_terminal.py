"""Width, colour, and a reader that has gone away."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from longpole.cli.terminal import BROKEN_PIPE, page_width, wants_color, write_text


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


def become_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """To be called by the test itself: between a fixture and its test, pytest sets standard output anew."""
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_output_that_is_no_terminal_is_80_columns_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "200")

    assert page_width() == 80


@pytest.mark.parametrize(("columns", "width"), [("72", 72), ("100", 100), ("240", 100)])
def test_a_terminal_is_used_up_to_100_columns(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    become_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", columns)

    assert page_width() == width


def test_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    become_terminal(monkeypatch)

    assert wants_color("auto")
    assert not wants_color("never")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colour_gets_none_unless_it_is_asked_for(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    become_terminal(monkeypatch)
    monkeypatch.setenv(name, value)

    assert not wants_color("auto")
    assert wants_color("always")


def test_an_empty_no_color_means_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    become_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "")

    assert wants_color("auto")


def test_a_file_gets_no_colour_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())

    assert not wants_color("auto")
    assert wants_color("always")


def test_what_an_encoding_lacks_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))

    write_text("12 µs ███\n")

    assert raw.getvalue() == b"12 ?s ???\n"


def test_a_reader_that_has_gone_away_ends_the_command_quietly() -> None:
    """`longpole … | head -1`: no traceback, no message, and the code that a shell gives for SIGPIPE."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    program = "import sys; from longpole.cli.main import main; sys.exit(main(['schema', 'report']))"

    with os.fdopen(write_end, "wb") as pipe:
        run = subprocess.run([sys.executable, "-c", program], check=False, stdout=pipe, stderr=subprocess.PIPE)

    assert (run.returncode, run.stderr) == (BROKEN_PIPE, b"")
