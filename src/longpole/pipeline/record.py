"""`longpole record`: become the program, with what records it in its environment."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from longpole.errors import UsageError
from longpole.recorder.profiled.environment import launched_rank, recorded_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.recorder.profiled.injected.longpole_recording.request import Request

DEFAULT_FOLDER: Final = "traces"
_FRESH_NAMES: Final = 1000
# Python ignores these from its start, and an ignored signal stays ignored in the program that takes over.
_IGNORED_BY_PYTHON: Final = ("SIGPIPE", "SIGXFSZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A command that is ready to be recorded.

    Attributes:
        program: The file to run.
        command: The command, its name first.
        environment: The environment that records it.
        folder: Where the traces come to lie.
    """

    program: str
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path


def prepare_recording(
    command: Sequence[str], request: Request, spans: str | None, environ: Mapping[str, str] | None = None
) -> Recording:
    """Find the program, and make the folder for its traces.

    Args:
        command: The command, its name first.
        request: What is to be recorded; an empty folder in it stands for a fresh one.
        spans: Folder for the spans of programs that use `longpole.record`.
        environ: The environment; this process's own where None.

    Raises:
        UsageError: There is no such program, or its traces have no place.
    """
    variables = os.environ if environ is None else environ
    program = _find_program(command[0], variables)
    folder = _make_folder(request.out, launched_rank(variables))
    placed = replace(request, out=str(folder))
    home = None if spans is None else Path(os.path.abspath(spans))  # noqa: PTH100 - links in it are the user's affair
    return Recording(
        program=program,
        command=list(command),
        environment=recorded_environment(placed, variables, home),
        folder=folder,
    )


def become(recording: Recording) -> NoReturn:
    """Run the command in the place of this process: same process id, terminal, files and limits.

    Raises:
        UsageError: The system will not run it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    for name in _IGNORED_BY_PYTHON:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execve(recording.program, list(recording.command), dict(recording.environment))
    except OSError as error:
        msg = f"{recording.program}: cannot be run: {error.strerror}. {_hint(recording.program)}"
        raise UsageError(msg) from None


def _find_program(name: str, environ: Mapping[str, str]) -> str:
    found = shutil.which(name, path=environ.get("PATH", os.defpath))
    if found is None:
        known = "it is not executable" if Path(name).is_file() else "there is no such program"
        msg = f"{name}: {known}. {_hint(name)}"
        raise UsageError(msg)
    return found


def _hint(name: str) -> str:
    if name.endswith(".py"):
        return f"Name the Python that is to run it: longpole record -- python {name}"
    return "Behind -- stands the command as you would type it without Longpole"


def _make_folder(asked: str, rank: int | None) -> Path:
    """Return a folder of its own for this recording; ranks that are launched one by one share it."""
    if asked or rank is not None:
        folder = Path(os.path.abspath(asked or DEFAULT_FOLDER))  # noqa: PTH100 - the name that was typed, not its target
        _refuse_traces(folder, "*" if rank is None else str(rank))
        _try_folder(folder, exist_ok=True)
        return folder
    for number in range(1, _FRESH_NAMES):
        folder = Path.cwd() / (DEFAULT_FOLDER if number == 1 else f"{DEFAULT_FOLDER}-{number}")
        if not folder.exists():
            _try_folder(folder, exist_ok=False)
            return folder
    msg = f"{DEFAULT_FOLDER} to {DEFAULT_FOLDER}-{_FRESH_NAMES - 1} are taken. Name a folder with --out"
    raise UsageError(msg)


def _refuse_traces(folder: Path, rank: str) -> None:
    found = next(iter(sorted(folder.glob(f"rank{rank}.pt.trace.json*"))), None) if folder.is_dir() else None
    if found is not None:
        msg = f"--out: {folder} holds a recording already ({found.name}). Name another folder: two runs do not mix"
        raise UsageError(msg)


def _try_folder(folder: Path, *, exist_ok: bool) -> None:
    """Make a folder, and see that a file can be made in it."""
    probe = folder / f".longpole.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=exist_ok)
        probe.touch()
        probe.unlink()
    except OSError as error:
        msg = f"--out: {folder} cannot be written to: {error.strerror}. Name another folder with --out"
        raise UsageError(msg) from None
