"""Run a command as a process of its own, and measure time and memory of it and of all processes that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SAMPLE_EVERY_S = 0.05  # finding the descendants takes a few ms each time
TIME_LIMIT_S = 3_600
KIB = 1024  # the unit of ru_maxrss on Linux


class CommandError(Exception):
    """A command that failed; there is nothing to measure then."""


@dataclass(frozen=True)
class Measured:
    """What one run took.

    `cpu_s` and `peak_process_bytes` are the kernel's own figures for the process and its waited-for descendants (the
    second of the largest one); `peak_tree_bytes` is the largest sum of resident sizes seen by sampling, in which pages
    that processes share count once for each.
    """

    wall_s: float
    cpu_s: float
    peak_tree_bytes: int
    peak_process_bytes: int


class TreeSampler(threading.Thread):
    """Keeps the largest sum of the resident sizes of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        """Watch a process from the start of the thread until `finish`.

        Args:
            pid: the process.
        """
        super().__init__(daemon=True)
        self.peak_bytes = 0
        self._root = psutil.Process(pid)
        self._over = threading.Event()

    def run(self) -> None:
        """Sample until told to stop."""
        while not self._over.wait(SAMPLE_EVERY_S):
            self.peak_bytes = max(self.peak_bytes, self._sum_bytes())

    def finish(self) -> None:
        """Stop, and wait until the last sample is in."""
        self._over.set()
        self.join()

    def _sum_bytes(self) -> int:
        total_bytes = 0
        try:
            for process in (self._root, *self._root.children(recursive=True)):
                try:
                    total_bytes += process.memory_info().rss
                except psutil.Error:  # it ended between the two calls
                    continue
        except psutil.Error:
            return 0
        return total_bytes


def kill_group(pid: int) -> None:
    """End a process and all that it started."""
    os.killpg(pid, signal.SIGKILL)


def run_measured(command: Sequence[str], output: Path, *, env: Mapping[str, str] | None = None) -> Measured:
    """Run a command to its end.

    Args:
        command: program and arguments.
        output: the file that takes its standard output; its standard error goes beside it.
        env: what to set besides the own environment.

    Returns:
        What it took.

    Raises:
        CommandError: it could not be started, failed, or ran for longer than an hour; the message holds its last words.
    """
    errors = output.with_suffix(".stderr")
    with output.open("wb") as out, errors.open("wb") as err:
        start_s = time.perf_counter()
        try:
            process = subprocess.Popen(
                command, stdout=out, stderr=err, env={**os.environ, **(env or {})}, start_new_session=True
            )
        except OSError as error:
            message = f"expected to start {command[0]!r}: {error}"
            raise CommandError(message) from error
        sampler = TreeSampler(process.pid)
        sampler.start()
        alarm = threading.Timer(TIME_LIMIT_S, kill_group, [process.pid])
        alarm.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            kill_group(process.pid)
            raise
        finally:
            alarm.cancel()
            sampler.finish()
        wall_s = time.perf_counter() - start_s
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        said = errors.read_text(errors="replace")[-1_500:]
        message = f"expected exit code 0 of {' '.join(command)!r}, found {process.returncode}:\n{said}"
        raise CommandError(message)
    peak_process_bytes = used.ru_maxrss * KIB
    return Measured(
        wall_s=wall_s,
        cpu_s=used.ru_utime + used.ru_stime,
        peak_tree_bytes=max(sampler.peak_bytes, peak_process_bytes),
        peak_process_bytes=peak_process_bytes,
    )
