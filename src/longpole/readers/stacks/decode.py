"""From the text of a dump of stacks to threads and frames (formats.md F.3 and F.4).

py-spy       Thread 4711 (active+gil): "MainThread"      innermost first
                 all_reduce (torch/distributed/distributed_c10d.py:3252)
faulthandler Thread 0x00007f44e5ffb6c0 (most recent call first):      the main thread comes last
               File "train.py", line 14 in step
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from longpole.errors import InputError, NotATraceError
from longpole.readers.rank_in_name import last_number_in_name
from longpole.readers.spelling import show_controls
from longpole.records.credentials import redact
from longpole.records.flight import Frame, StackDump, ThreadStack

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]{0,16}m")
_PY_SPY_THREAD: Final = re.compile(r'Thread (?:0x)?[0-9A-Fa-f]{1,20} \(([\w+]{1,32})\)(?:: "(.{0,200})")?\s*$')
_PY_SPY_FRAME: Final = re.compile(r"\s+(\S.{0,400}?) \((.{1,1000}?)(?::(\d{1,9}))?\)\s*$")
_FAULT_THREAD: Final = re.compile(
    r"(Current thread|Thread) 0x[0-9a-f]{1,20}(?: \[(.{0,200})\])? \(most recent call first\):"
)
_FAULT_FRAME: Final = re.compile(r'\s+File "(.{1,1000})", line (\d{1,9}) in (.{1,400})$')
_MAIN: Final = "MainThread"
_LINES_MAX: Final = 1 << 17
_NAME_MAX: Final = 400


def looks_like_stacks(head: bytes) -> bool:
    """Tell whether text may be a dump of stacks."""
    if b"(most recent call first):" in head:
        return True
    is_py_spy = head.lstrip().startswith(b"Process ") and b"\nThread " in head
    return is_py_spy or (head.lstrip()[:1] == b"[" and b'"owns_gil"' in head)


def read_stacks(content: bytes, path: str) -> StackDump:
    """Read a dump of stacks.

    Args:
        content: The whole file, unpacked.
        path: As it was given; the last number in its name is the rank.

    Raises:
        InputError: The name has no number.
        NotATraceError: It is no dump of stacks.
    """
    rank = last_number_in_name(path)
    if rank is None:
        hint = "Call it by its rank: pyspy_rank_3.txt"
        raise InputError.at(path, None, "the name of a file of stacks does not say its rank", hint)
    text = _COLOURS.sub("", content.decode("utf-8", "replace"))
    if text.lstrip().startswith("["):
        threads = _of_json(text)
    elif "(most recent call first):" in text:
        threads = _of_fault_handler(text.splitlines()[:_LINES_MAX])
    else:
        threads = _of_py_spy(text.splitlines()[:_LINES_MAX])
    if not threads:
        raise NotATraceError.at(path, None, "no stacks of threads in it", "Give what py-spy dump or faulthandler wrote")
    return StackDump(path, rank, tuple(threads))


def _shown(text: object) -> str:
    return redact(show_controls(str(text)))[:_NAME_MAX]


def _of_py_spy(lines: list[str]) -> list[ThreadStack]:
    threads: list[ThreadStack] = []
    frames: list[Frame] = []
    for line in lines:
        if found := _PY_SPY_THREAD.match(line):
            frames = []
            name = found[2] or ""
            threads.append(ThreadStack(_shown(name), name == _MAIN, "gil" in found[1], ()))
        elif threads and (found := _PY_SPY_FRAME.match(line)):
            frames.append(Frame(_shown(found[1]), _shown(found[2]), int(found[3] or 0)))
            threads[-1] = _with(threads[-1], frames)
    return threads


def _with(thread: ThreadStack, frames: list[Frame]) -> ThreadStack:
    return ThreadStack(thread.name, thread.is_main, thread.holds_gil, tuple(frames))


def _of_fault_handler(lines: list[str]) -> list[ThreadStack]:
    threads: list[ThreadStack] = []
    frames: list[Frame] = []
    for line in lines:
        if found := _FAULT_THREAD.match(line):
            frames = []
            threads.append(ThreadStack(_shown(found[2] or ""), is_main=False, holds_gil=None, frames=()))
        elif threads and (found := _FAULT_FRAME.match(line)):
            frames.append(Frame(_shown(found[3]), _shown(found[1]), int(found[2])))
            threads[-1] = _with(threads[-1], frames)
    if threads:  # Python lists its first thread last
        last = threads[-1]
        threads[-1] = ThreadStack(last.name or _MAIN, is_main=True, holds_gil=None, frames=last.frames)
    return threads


def _of_json(text: str) -> list[ThreadStack]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [_of_object(one) for one in found if isinstance(one, dict) and isinstance(one.get("frames"), list)]


def _of_object(one: dict[str, Any]) -> ThreadStack:
    frames = tuple(
        Frame(_shown(frame.get("name", "")), _shown(frame.get("filename", "")), _line(frame.get("line")))
        for frame in one["frames"]
        if isinstance(frame, dict)
    )
    name = str(one.get("thread_name") or "")
    return ThreadStack(_shown(name), name == _MAIN, bool(one.get("owns_gil")), frames)


def _line(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else 0
