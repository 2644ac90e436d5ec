"""Start one command, wait for it, and say what it took. Run as a script of its own, with the standard library only.

Why a process between: a process that is forked from a large one is charged with the large one's peak memory for all of
its life, and this one is small (about 10 MB, the least that can be measured). It also ends the command's whole group
if Longpole ends first.

Standard input: one line of JSON with `argv`, `cwd`, `env`, `timeout_s` (null for none), `stdout`, `stderr` (paths, null
for inherited), `watch` (files whose text is wanted before and after); the rest of it is a pipe that stays open for as
long as the caller lives. File descriptor 1 is the answer's: one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # typing takes longer to import than everything else here
if TYPE_CHECKING:
    from typing import Any

_GRACE_S = 5.0  # between asking a group to end and ending it


def main() -> int:
    """Do what standard input says, and write what came of it."""
    task = json.loads(_read_line(0))
    answer_to = os.dup(1)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    before = _read_all(task["watch"])
    started_ns = time.perf_counter_ns()
    try:
        pid = _start(task)
    except OSError as error:
        _write_line(answer_to, {"error": error.strerror or str(error), "errno": error.errno})
        return 0
    answer = _wait(pid, task["timeout_s"], reader)
    answer |= {"before": before, "after": _read_all(task["watch"]), "started_ns": started_ns}
    answer["wall_ns"] = answer["ended_ns"] - started_ns
    _end_group(pid, signal.SIGKILL)  # what it left behind
    _write_line(answer_to, answer)
    return 0


def _start(task: dict[str, Any]) -> int:
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, name in ((1, "stdout"), (2, "stderr")):
        if task[name] is not None:
            actions.append((os.POSIX_SPAWN_OPEN, number, task[name], flags, 0o600))
        elif number == 1:
            actions.append((os.POSIX_SPAWN_DUP2, 2, 1))  # this process's own standard output is for the answer
    if task["cwd"]:
        os.chdir(task["cwd"])
    argv = task["argv"]
    restored = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD]
    return os.posix_spawnp(argv[0], argv, task["env"], file_actions=actions, setpgroup=0, setsigdef=restored)


def _wait(pid: int, timeout_s: float | None, reader: int) -> dict[str, Any]:
    """Wait for the process, and end its group where time runs out, a signal comes or the caller has gone."""
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    poller.register(0, select.POLLIN | select.POLLHUP)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    ended_by, asked = "", False
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        ended_ns = time.perf_counter_ns()
        if done:
            break
        left_ms = None if deadline is None else max((deadline - time.monotonic()) * 1000, 0)
        why = _wait_for_news(poller, reader, left_ms)
        if why:
            _end_group(pid, signal.SIGKILL if asked else signal.SIGTERM)
            ended_by, asked = ended_by or why, True
            deadline = time.monotonic() + _GRACE_S
            _forget_caller(poller)
    return {
        "exit_code": os.waitstatus_to_exitcode(status),
        "ended_by": ended_by,
        "ended_ns": ended_ns,
        "cpu_ns": round((usage.ru_utime + usage.ru_stime) * 1e9),
        "peak_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "involuntary": usage.ru_nivcsw,
    }


def _wait_for_news(poller: select.poll, reader: int, left_ms: float | None) -> str:
    """Wait for a signal, the caller's end or the time; return why the command must end, empty for a child's end."""
    events = poller.poll(left_ms)
    if not events:
        return "timeout"
    for number, _ in events:
        if number == reader:
            signals = set(os.read(reader, 4096))
            if signals - {signal.SIGCHLD}:
                return "signal"
        elif not os.read(0, 4096):
            return "caller"
    return ""


def _forget_caller(poller: select.poll) -> None:
    """Stop listening to the caller: a pipe that is closed would be news for ever."""
    with contextlib.suppress(KeyError):
        poller.unregister(0)


def _end_group(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, number)


def _read_all(paths: list[str]) -> dict[str, Any]:
    texts: dict[str, str] = {}
    clock_ns = time.perf_counter_ns()
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib takes long to import
                texts[path] = file.read()
        except OSError:
            continue
    return {"clock_ns": clock_ns, "texts": texts}


def _read_line(number: int) -> bytes:
    """Read one line without taking anything behind it: the end of the pipe is a message too."""
    data = bytearray()
    while not data.endswith(b"\n"):
        block = os.read(number, 1 << 16)
        if not block:
            break
        data += block
    return bytes(data)


def _write_line(number: int, value: dict[str, Any]) -> None:
    data = json.dumps(value).encode() + b"\n"
    while data:
        data = data[os.write(number, data) :]


if __name__ == "__main__":
    sys.exit(main())
