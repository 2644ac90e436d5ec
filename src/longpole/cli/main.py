"""The entry point: run a command, and turn what goes wrong into a sentence and an exit code."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Final

from longpole.cli.terminal import tell
from longpole.errors import LongpoleError
from longpole.report.escape import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INTERRUPTED: Final = 130  # what a shell reports for a program that SIGINT ended: 128 + 2
INTERNAL: Final = 4
_DEBUG: Final = "--debug"
_COMMAND: Final = "--"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: What stands behind the program's name, that of this process by default.

    Returns:
        The exit code: 0 fine, 2 usage, 3 input, 4 internal; the page docs/reference/cli.md has them all.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    ours = given.index(_COMMAND) if _COMMAND in given else len(given)  # what follows belongs to somebody else's command
    kept = [argument for argument in given[:ours] if argument != _DEBUG] + given[ours:]
    return run_guarded(lambda: _run(kept), debug=len(kept) < len(given))


def run_guarded(call: Callable[[], int], *, debug: bool) -> int:
    """Run a command; say in a sentence what went wrong.

    Args:
        call: The command; returns its exit code.
        debug: Show the traceback of an internal error.

    Returns:
        The exit code.
    """
    try:
        return call()
    except LongpoleError as error:
        tell(_sentence(error))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one place that catches everything: no traceback reaches a user
        if debug:
            import traceback

            traceback.print_exc()
        else:
            name = type(error).__name__
            tell(f"longpole: internal error ({name}: {escape(str(error))}); please report it, with what {_DEBUG} shows")
        return INTERNAL


def _run(arguments: list[str]) -> int:
    try:
        _command().main(args=arguments, prog_name="longpole")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


@functools.cache
def _command() -> Any:
    """Return the command line with all its commands, made once a process."""
    from typer.main import get_command

    from longpole.cli.app import app
    from longpole.cli.plain_values import hand_over_plainly

    command = get_command(app)
    hand_over_plainly(command)
    return command


def _sentence(error: LongpoleError) -> str:
    """Return an error's message, made harmless line by line."""
    return "\n".join(escape(line) for line in f"longpole: {error}".splitlines())
