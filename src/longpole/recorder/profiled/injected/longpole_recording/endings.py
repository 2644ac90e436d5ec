"""What ends a window that is still open: the program's end, a SIGTERM, a step that does not end."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

STALE_S = 120.0  # a profiler that stays on through an evaluation fills the memory: some 50 MB a second at worst
STALE_STEPS = 5.0  # … and a step that takes five times as long as any before it is none
_GRACE_S = 10.0  # what a blocked main thread is given to come to its senses after a SIGTERM
_LOOK_S = 0.5


class Endings:
    """Ends an open window in time, from the main thread.

    SIGTERM is handled only where the program leaves it to the system, and only while the window is open: the trace is
    written, then the signal takes its course. Python runs a handler between two instructions; where the main thread
    hangs in a call, a thread of ours gives the signal back to the system.
    """

    def __init__(self, cut: Callable[[str], None]) -> None:
        self._cut = cut
        self._pid = os.getpid()
        self._handles = False
        self._handled = threading.Event()
        self._over = threading.Event()
        self._pipe: Any | None = None
        self._deadline_s = float("inf")
        self._longest_s = 0.0
        self._last_s = time.monotonic()
        self._callback: Any = None

    def install(self, longest_s: float) -> None:
        """Begin to watch; the longest step so far says how long one may take."""
        self._longest_s = longest_s
        self.step()
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_sigterm)
            self._handles = True
            self._watch_signals()
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._on_stale)
        threading.Thread(target=self._watch, name="longpole record", daemon=True).start()

    def step(self) -> None:
        """Hear that a step has ended."""
        now_s = time.monotonic()
        self._longest_s = max(self._longest_s, now_s - self._last_s)
        self._last_s = now_s
        self._deadline_s = now_s + max(STALE_S, STALE_STEPS * self._longest_s)

    def remove(self) -> None:
        """Give everything back."""
        self._over.set()
        if threading.current_thread() is not threading.main_thread():
            return
        if self._handles and signal.getsignal(signal.SIGTERM) == self._on_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._handles = False
        if self._pipe is not None:
            descriptor = signal.set_wakeup_fd(-1)
            if descriptor != self._pipe[1]:  # the program has set its own meanwhile
                signal.set_wakeup_fd(descriptor)

    def _watch_signals(self) -> None:
        before = signal.set_wakeup_fd(-1)
        if before != -1:
            signal.set_wakeup_fd(before)
            return
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)

    def _on_sigterm(self, number: int, _frame: Any) -> None:
        self._handled.set()
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() == self._pid:  # else a process that was forked while the window was open
            self._cut("SIGTERM")
        os.kill(os.getpid(), number)

    def _watch(self) -> None:
        """Run beside the program: sleep, look, and leave everything to the main thread that it can do itself."""
        while not self._over.is_set():
            if self._pipe is None:
                self._over.wait(_LOOK_S)
            elif select.select([self._pipe[0]], [], [], _LOOK_S)[0]:
                self._heed(os.read(self._pipe[0], 4096))
            if time.monotonic() > self._deadline_s and not self._over.is_set():
                self._deadline_s = float("inf")
                ctypes.pythonapi.Py_AddPendingCall(self._callback, None)
        if self._pipe is not None:
            for descriptor in self._pipe:
                os.close(descriptor)

    def _heed(self, signals: bytes) -> None:
        if signal.SIGTERM in signals and not self._handled.wait(_GRACE_S):
            ctypes.CDLL(None).signal(int(signal.SIGTERM), None)  # SIG_DFL, which Python sets in no other thread
            os.kill(self._pid, signal.SIGTERM)

    def _on_stale(self, _nothing: Any) -> int:
        if not self._over.is_set():
            self._cut(f"a step took over {time.monotonic() - self._last_s:.0f} s")
        return 0
