"""One process that may record: counts its steps, opens the window, closes it, and says what came of it."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from .boundaries import ModuleCalls, OptimizerSteps
from .endings import Endings
from .others import OtherProfilers
from .rank import rank_of, rank_told
from .request import ROOT, VARIABLE, Request
from .saying import counted, say
from .window import Window

if TYPE_CHECKING:
    from collections.abc import Callable

_WAITING, _RECORDING, _DONE = "waiting", "recording", "done"


class Session:
    """Counts steps until the window opens, and is gone when it has closed."""

    def __init__(self, torch: Any, request: Request) -> None:
        self._torch = torch
        self._request = request
        self._state = _WAITING
        self._busy = False
        self._steps = 0
        self._postponed = False
        self._last_s = 0.0
        self._longest_s = 0.0
        self._window: Window | None = None
        self._endings: Endings | None = None
        self._others = OtherProfilers(torch, lambda: self._cut_if_open("the program started its own profiler"))
        self._optimizers: OptimizerSteps | None = None
        self._modules: ModuleCalls | None = None

    def install(self) -> None:
        """Begin to count."""
        if self._request.step in ("auto", "optimizer"):
            self._optimizers = OptimizerSteps(self._torch, self._step, self._has_optimizer)
            self._optimizers.install()
        if self._request.step == "module" or (self._request.step == "auto" and not _is_worker()):
            self._modules = ModuleCalls(self._torch, self._step)
            self._modules.install()
        self._others.install()
        atexit.register(self._at_exit)
        os.register_at_fork(after_in_child=self._forked)

    def _has_optimizer(self) -> None:
        """Count the steps of the optimizer alone, now that there is one."""
        if self._modules is not None and self._request.step == "auto" and self._state == _WAITING:
            self._modules.remove()
            self._modules = None
            self._steps = 0

    def _step(self) -> None:
        """Hear that a step has ended."""
        if self._state == _DONE or self._busy:
            return
        now_s = time.monotonic()
        if self._steps:
            self._longest_s = max(self._longest_s, now_s - self._last_s)
        self._last_s = now_s
        self._steps += 1
        self._safely(self._advance)

    def _advance(self) -> None:
        if self._window is not None and self._endings is not None:
            self._endings.step()
            with self._others.ours():
                complete = self._window.step()
            if complete:
                self._close()
        elif self._steps >= self._request.skip:
            self._open()

    def _open(self) -> None:
        rank = rank_of(self._torch)
        if not self._request.counts(rank):
            self._end()
            return
        self._postponed = self._others.is_on()
        if self._postponed:
            return
        with self._others.ours():
            window = Window(self._torch, self._request, rank, self._steps)
            window.start()
        self._window = window
        self._state = _RECORDING
        self._endings = Endings(self._cut_if_open)
        self._endings.install(self._longest_s)
        _at_end_of_worker(self._at_exit)

    def _cut_if_open(self, reason: str) -> None:
        if self._state == _RECORDING and not self._busy:
            self._safely(lambda: self._cut(reason))

    def _cut(self, reason: str) -> None:
        if self._window is not None:
            with self._others.ours():
                self._window.cut(reason)
            self._close(reason)

    def _close(self, reason: str = "") -> None:
        window = self._window
        self._end()
        if window is None:
            return
        rank = window.rank
        if window.failure is not None:
            self._request.remove_out_if_empty()
            say(f"the trace of rank {rank} could not be written: {window.failure}")
        elif window.path is None:
            self._tell_nothing(f"{reason} before a step was recorded")
        elif self._request.speaks(rank) and not self._request.quiet:
            what = counted(window.recorded, "step")
            cut = f" of {self._request.active} ({reason})" if reason else ""
            size_mb = window.path.stat().st_size / 1e6
            folder = os.path.relpath(self._request.out)
            folder = self._request.out if folder.startswith("..") else folder
            say(f"{what}{cut} of rank {rank} in {folder} ({size_mb:.1f} MB); next: longpole report {folder}")

    def _at_exit(self) -> None:
        if self._state == _RECORDING:
            self._cut_if_open("the program ended")
        elif self._state == _WAITING and self._steps:
            self._safely(self._tell_too_few)

    def _tell_too_few(self) -> None:
        request = self._request
        if self._postponed:
            self._tell_nothing("the program's own profiler was on")
        else:
            kind = "optimizer step" if self._modules is None else "model call"
            begins = request.skip + request.warmup
            self._tell_nothing(
                f"the program ended after {counted(self._steps, kind)}, and the window begins after {begins}; "
                f"see --skip and --warmup"
            )
        self._end()

    def _tell_nothing(self, reason: str) -> None:
        if self._request.speaks(rank_of(self._torch)):
            self._request.remove_out_if_empty()
            if not self._request.quiet:
                say(f"nothing was recorded: {reason}")

    def _end(self) -> None:
        """Take every hook away; from here on the program is alone, and so is what it starts."""
        self._state = _DONE
        self._window = None
        for part in (self._optimizers, self._modules, self._others, self._endings):
            if part is not None:
                part.remove()
        _disarm_children()

    def _forked(self) -> None:
        """Leave a forked child alone once the parent has stepped: it is a helper, and the profiler is the parent's."""
        if self._steps or self._modules is not None:
            self._state = _DONE

    def _safely(self, call: Callable[[], None]) -> None:
        """Do something for the record that must never reach the program."""
        self._busy = True
        try:
            call()
        except Exception as error:  # noqa: BLE001 - the program goes on, whatever is wrong with us
            say(f"gave up: {error!r}")
            with contextlib.suppress(Exception):
                self._end()
        finally:
            self._busy = False


def _is_worker() -> bool:
    """Tell whether this process is a helper of another one: started by multiprocessing, and no rank of a job."""
    import multiprocessing

    return multiprocessing.parent_process() is not None and rank_told() is None


def _at_end_of_worker(call: Callable[[], None]) -> None:
    """Have multiprocessing call back at the end of a child that it forked, which leaves no other way."""
    if "multiprocessing.util" in sys.modules:
        sys.modules["multiprocessing.util"].Finalize(None, call, exitpriority=100)


def _disarm_children() -> None:
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - as it stands in the path
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = os.pathsep.join(entry for entry in path if entry != home)
    if kept:
        os.environ["PYTHONPATH"] = kept
    else:
        os.environ.pop("PYTHONPATH", None)
    for name in (VARIABLE, ROOT):
        os.environ.pop(name, None)
