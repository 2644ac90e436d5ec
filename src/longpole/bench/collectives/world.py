"""One set of fresh processes: started together, watched, and gone afterwards, whatever happens.

    start all ──► each writes lines into its own file ──► all exit with 0          fine
                                │                     └─► one dies                 the others are ended
                                └─ no line from anyone for too long                all are ended; who is behind is named

Each process leads a group of its own, so that what it started goes with it. Nothing of our own environment is changed:
what a setting sets is handed to the children only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from longpole.errors import LongpoleError
from longpole.records.credentials import redact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_POLL_S: Final = 0.05
_GRACE_S: Final = 2.0
_TAIL_BYTES: Final = 4096
_TAIL_COLUMNS: Final = 300


class WorldFailedError(LongpoleError):
    """A set of processes did not come to its end: one died, or all hung."""


@dataclass(frozen=True, slots=True)
class Rank:
    """One process.

    Attributes:
        command: What to start.
        out: The file it writes its lines into.
        errors: The file for its standard error.
    """

    command: Sequence[str]
    out: Path
    errors: Path


def run_world(ranks: Sequence[Rank], environment: Mapping[str, str], timeout_s: float) -> None:
    """Start all ranks, and wait for them to end.

    Args:
        ranks: One each.
        environment: The whole environment of the children.
        timeout_s: How long nobody may get on.

    Raises:
        WorldFailedError: One died, or nobody got on for too long; no process of the set is left.
    """
    started: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as held:
        held.callback(_end_all, started)
        for rank in ranks:
            errors = held.enter_context(rank.errors.open("wb"))
            started.append(_start(rank, environment, errors))
        _watch(ranks, started, timeout_s)


def _start(rank: Rank, environment: Mapping[str, str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(rank.command),
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        msg = f"a rank could not be started: {error.strerror or error}"
        raise WorldFailedError(msg) from None


def _watch(ranks: Sequence[Rank], started: Sequence[subprocess.Popen[bytes]], timeout_s: float) -> None:
    sizes = [0] * len(ranks)
    heard_s = time.monotonic()
    while True:
        codes = [process.poll() for process in started]
        dead = next((place for place, code in enumerate(codes) if code), None)
        if dead is not None:
            raise WorldFailedError(_how_it_died(dead, codes[dead] or 0, ranks[dead].errors))
        if all(code == 0 for code in codes):
            return
        now = [_size(rank.out) for rank in ranks]
        if now != sizes:
            sizes, heard_s = now, time.monotonic()
        elif time.monotonic() - heard_s > timeout_s:
            raise WorldFailedError(_who_hangs(ranks, timeout_s))
        time.sleep(_POLL_S)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _how_it_died(rank: int, code: int, errors: Path) -> str:
    how = f"exit code {code}" if code > 0 else f"signal {_signal_name(-code)}"
    last = _last_line(errors)
    return f"rank {rank} ended with {how}{': ' + last if last else ''}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _who_hangs(ranks: Sequence[Rank], timeout_s: float) -> str:
    lines = [_count_lines(rank.out) for rank in ranks]
    behind = [str(place) for place, count in enumerate(lines) if count < max(lines)]
    who = f"; rank {', '.join(behind)} is behind the others" if behind else ""
    return f"nobody got on for {timeout_s:g} s, and all ranks were ended{who}"


def _count_lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


def _last_line(path: Path) -> str:
    """Return the last line that a process wrote, which is where an exception says what it is."""
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _TAIL_BYTES, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((redact(line.strip())[:_TAIL_COLUMNS] for line in reversed(lines) if line.strip()), "")


def _end_all(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """End every process and what it started: asked first, then made to; and wait, so that none is left as a zombie."""
    running = [process for process in started if process.poll() is None]
    for process in running:
        _signal_group(process, signal.SIGTERM)
    until_s = time.monotonic() + _GRACE_S
    while running and time.monotonic() < until_s:
        time.sleep(_POLL_S / 5)
        running = [process for process in running if process.poll() is None]
    for process in started:
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
