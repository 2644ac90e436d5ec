"""What the program's user is told: whole lines on standard error, under the name of the command that was typed."""

from __future__ import annotations

import contextlib
import os
import sys

_STDERR = 2  # the descriptor: the program may have replaced sys.stderr, or closed it


def say(text: str) -> None:
    """Write one line, below a progress bar if there is one; standard error may be closed or full without harm."""
    line = "".join(sign if sign.isprintable() else "?" for sign in f"longpole record: {text}") + "\n"
    if getattr(getattr(sys.modules.get("tqdm"), "tqdm", None), "_instances", None):  # the bars that are shown
        line = "\n" + line
    with contextlib.suppress(OSError):
        os.write(_STDERR, line.encode("utf-8", "backslashreplace"))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 step`, `8 steps`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
