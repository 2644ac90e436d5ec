"""What goes wrong becomes a sentence and an exit code."""

from __future__ import annotations

import errno
from typing import NoReturn

import pytest

from longpole.cli.main import INTERNAL, INTERRUPTED, main, run_guarded
from longpole.errors import InputError, InvariantError, LongpoleError, MissingExtraError, UsageError


def raising(error: BaseException) -> NoReturn:
    raise error


def test_the_exit_code_of_a_command_is_passed_on() -> None:
    assert run_guarded(lambda: 5, debug=False) == 5


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such path"), 2),
        (MissingExtraError("needs ray"), 2),
        (InputError("not a trace"), 3),
        (InvariantError("a law is broken"), 4),
        (LongpoleError("something"), 4),
    ],
)
def test_an_explained_failure_is_a_sentence_on_standard_error(
    error: LongpoleError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(lambda: raising(error), debug=False) == code

    out, err = capsys.readouterr()
    assert (out, err) == ("", f"longpole: {error}\n")


def test_a_hostile_message_is_escaped_and_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    run_guarded(lambda: raising(InputError("two files:\n  \x1b[2J.json\n  b.json")), debug=False)

    assert capsys.readouterr().err == "longpole: two files:\n  \\x1b[2J.json\n  b.json\n"


def test_an_interrupt_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(lambda: raising(KeyboardInterrupt()), debug=False) == INTERRUPTED

    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("error", [ZeroDivisionError("by \x1b zero"), MemoryError(), OSError(errno.EIO, "disk")])
def test_anything_else_is_one_line_that_asks_for_a_report(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(lambda: raising(error), debug=False) == INTERNAL

    err = capsys.readouterr().err
    assert err.startswith(f"longpole: internal error ({type(error).__name__}")
    assert "please report it, with what --debug shows" in err
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(lambda: raising(ZeroDivisionError("by zero")), debug=True) == INTERNAL

    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_wrong_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--no-such-option"]) == 2

    assert "No such option" in capsys.readouterr().err


def test_a_missing_path_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 2

    assert "Missing argument 'PATH'" in capsys.readouterr().err


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2

    out, err = capsys.readouterr()
    assert "Commands:" in out + err


def test_debug_may_stand_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--debug"]) == 0
    assert main(["--debug", "version"]) == 0

    assert capsys.readouterr().out.count("longpole ") == 2


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0

    name, version = capsys.readouterr().out.split()
    assert name == "longpole"
    assert version[0].isdigit()
