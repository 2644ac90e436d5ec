"""The environment in which a program is recorded: everything that is asked of it travels in there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.recorder.profiled import injected
from longpole.recorder.profiled.injected.longpole_recording.rank import rank_told
from longpole.recorder.profiled.injected.longpole_recording.request import ROOT, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.recorder.profiled.injected.longpole_recording.request import Request

SPANS_VARIABLE: Final = "LONGPOLE_RECORD"  # the folder in which `longpole.record` leaves spans
# The profiler's own library writes lines to standard error, from level 5 down (torch 2.4 to 2.13 looked at).
_KINETO_LEVEL: Final = {"KINETO_LOG_LEVEL": "6"}


def recorded_environment(request: Request, environ: Mapping[str, str], spans: Path | None = None) -> dict[str, str]:
    """Return the environment for a command that is to be recorded.

    Args:
        request: What is to be recorded.
        environ: The environment as it is; a level of the profiler's own messages that it sets is kept.
        spans: Folder for the spans of programs that use `longpole.record`.
    """
    home = str(Path(injected.__file__).resolve().parent)
    path = environ.get("PYTHONPATH", "")
    told = {
        "PYTHONPATH": home + (os.pathsep + path if path else ""),
        VARIABLE: request.encode(),
        ROOT: str(os.getpid()),  # the command takes this process over
    }
    if spans is not None:
        told[SPANS_VARIABLE] = str(spans)
    return {**_KINETO_LEVEL, **environ, **told}


def launched_rank(environ: Mapping[str, str]) -> int | None:
    """Return the rank that a launcher gave this process, None where no launcher started it."""
    return rank_told(environ)
