"""One recording in one process: a bounded buffer, a thread that empties it into the file, and what a fork does to it.

    any thread     span ends ──> lines (deque, append is atomic) ──┐
    flush thread                  every second, or when it fills   └──> one write of whole lines ──> file

Nothing here raises into the user's program, and nothing but a full buffer makes it wait: a line that finds the buffer
full is dropped and counted.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from longpole.errors import UsageError
from longpole.recorder.identity import find_rank, make_header, rank_of_torch, read_clocks
from longpole.recorder.span_writer import SpanWriter
from longpole.records.span_file import ClockLine, CloseLine, LostLine, RankLine, ThreadLine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from longpole.recorder.event_clock import DeviceClock
    from longpole.records.span_file import Header, Line

FOLDER_VARIABLE: Final = "LONGPOLE_RECORD"
# A killed process loses at most what it did in this time; a write each second costs nothing that can be measured.
FLUSH_INTERVAL_S: Final = 1.0
# About 200 bytes each: 13 MB at most. A loop that records a span every 10 µs fills it in 0.6 s, and a flush empties it
# in 0.05 s.
BUFFER_LINES: Final = 1 << 16
# Lines are encoded with the interpreter's lock held; so many take about 30 µs, then the write lets other threads run.
_BATCH_LINES: Final = 128
# How often the file says again which time since the epoch belongs to the clock: a good crystal drifts 1 µs a second.
_CLOCK_INTERVAL_NS: Final = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Options:
    """What a recording was started with.

    Attributes:
        folder: Where files go.
        rank, world_size: What the caller says of this process; None where it leaves that to be found.
        item_kind: What items count.
        annotate: Open profiler ranges of the same names.
        flush_interval_s: How long a line waits at most.
        buffer_lines: How many may wait.
        role, worker, parent_pid: As the header of a span file has them.
    """

    folder: str
    rank: int | None = None
    world_size: int | None = None
    item_kind: str = ""
    annotate: bool = False
    flush_interval_s: float = FLUSH_INTERVAL_S
    buffer_lines: int = BUFFER_LINES
    role: str = ""
    worker: int | None = None
    parent_pid: int | None = None


class Recorder:
    """One recording. It sleeps until the first line comes: no file, no thread.

    Attributes:
        options: What it was started with.
        lines: What is not written yet.
        room: Lines that may be in the buffer before somebody has to look at it; none while it sleeps, none once closed.
        groups: Process groups whose members the file names.
        device_clock: What watches the CUDA devices, where a span asked for it.
        polls: Called before each flush, by the flush thread; what a device has finished is asked for here.
    """

    __slots__ = (
        "_bell",
        "_closed",
        "_dropped",
        "_dropping",
        "_identity",
        "_last_clock_ns",
        "_named",
        "_thread",
        "_writer",
        "_writing",
        "device_clock",
        "groups",
        "lines",
        "options",
        "polls",
        "room",
    )

    def __init__(self, options: Options) -> None:
        self.options = options
        self.lines: deque[Line] = deque()
        self.room = 0
        self.polls: list[Callable[[], None]] = []
        self.groups: set[str] = set()
        self.device_clock: DeviceClock | None = None
        self._writer = SpanWriter(options.folder, self._make_header)
        self._writing = threading.Lock()
        self._dropping = threading.Lock()
        # A lock that the flush thread waits for: unlike an event, it may be rung from a signal handler.
        self._bell = threading.Lock()
        self._bell.acquire()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._dropped = 0
        self._identity = RankLine()
        self._named: set[int] = set()
        self._last_clock_ns = 0

    @property
    def path(self) -> Path | None:
        """The file, once there is one."""
        return self._writer.path

    def keep(self, line: Line) -> None:
        """Put a line into the buffer."""
        lines = self.lines
        if len(lines) < self.room:
            lines.append(line)
        else:
            self.crowded(line)

    def crowded(self, line: Line) -> None:
        """Put a line into a buffer that sleeps, fills, is full or was closed: wake, hurry, count or drop."""
        if self._closed:
            return
        if self._thread is None:
            self._wake()
        if len(self.lines) >= self.options.buffer_lines:
            with self._dropping:
                self._dropped += 1
        else:
            self.lines.append(line)
        if len(self.lines) >= self.room:
            self._ring()

    def flush(self) -> None:
        """Write what is in the buffer."""
        with self._writing:
            self._flush()

    def keep_on_disk(self, line: Line) -> None:
        """Write a line before this returns, ahead of what is in the buffer."""
        if self._thread is None:
            self._wake()
        with self._writing:
            if not self._closed:
                self._writer.write([line])

    def close(self) -> None:
        """Write what is left and the closing line, and close the file; what comes later is dropped."""
        with self._writing:
            if self._closed:
                return
            begun = bool(self.lines) or self._writer.path is not None
            if begun:
                self._flush()
            self._closed = True
            self.room = 0
            if begun:
                self._write_lines()
                clock_ns, epoch_ns = read_clocks()
                self._writer.write([ClockLine(clock_ns, epoch_ns), CloseLine(clock_ns)])
            self._writer.close()
        self._ring()

    def abandon(self) -> None:
        """Give up, in a forked child, what belongs to its parent: nothing is written, and open spans end in silence."""
        self._closed = True
        self.room = 0
        self.lines = deque()
        self._writer.abandon()

    def _wake(self) -> None:
        with self._writing:
            if self._thread is not None or self._closed:
                return
            self._thread = threading.Thread(target=self._run, name="longpole-recorder", daemon=True)
            with suppress(RuntimeError):  # the interpreter ends, and takes no new threads: closing writes the rest
                self._thread.start()
            self.room = max(self.options.buffer_lines // 4, 1)
        _write_at_exit_of_child(self)

    def _ring(self) -> None:
        with suppress(RuntimeError):  # it rings already
            self._bell.release()

    def _run(self) -> None:
        # The first flush comes early: the file is there, and has its header, soon after the first span.
        wait_s = min(0.1, self.options.flush_interval_s)
        while not self._closed:
            self._bell.acquire(timeout=wait_s)
            wait_s = self.options.flush_interval_s
            self.flush()

    def _flush(self) -> None:
        if self._closed:
            return
        for poll in self.polls:
            poll()
        self._write_changes()
        self._write_lines()

    def _write_lines(self) -> None:
        for _ in range(len(self.lines) // _BATCH_LINES + 1):
            batch = [self.lines.popleft() for _ in range(min(len(self.lines), _BATCH_LINES))]
            if batch:
                self._writer.write([*self._name_threads(batch), *batch])

    def _write_changes(self) -> None:
        """Write what is new about the process itself: lines dropped, its rank, its clock."""
        news: list[Line] = []
        if self._dropped:
            with self._dropping:
                news.append(LostLine(self._dropped, "the buffer was full"))
                self._dropped = 0
        if self._writer.path is not None:
            if (identity := self._find_identity()) != self._identity:
                self._identity = identity
                news.append(identity)
            clock_ns, epoch_ns = read_clocks()
            if clock_ns - self._last_clock_ns > _CLOCK_INTERVAL_NS:
                self._last_clock_ns = clock_ns
                news.append(ClockLine(clock_ns, epoch_ns))
        if news:
            self._writer.write(news)

    def _name_threads(self, batch: Sequence[Line]) -> list[ThreadLine]:
        idents = {getattr(line, "t", 0) for line in batch} - {0}
        if idents <= self._named:
            return []
        new = idents - self._named
        self._named |= new
        return [
            ThreadLine(ident, thread.name, _native_id_of(thread))
            for thread in threading.enumerate()
            if (ident := thread.ident) in new and ident is not None
        ]

    def _find_identity(self) -> RankLine:
        found = find_rank()
        options = self.options
        if options.rank is None or (options.role == "" and rank_of_torch() is not None):
            return found
        return RankLine(options.rank, options.world_size or found.world_size, found.local_rank)

    def _make_header(self) -> Header:
        self._identity = self._find_identity()
        options = self.options
        header = make_header(self._identity, options.item_kind, (options.role, options.worker, options.parent_pid))
        self._last_clock_ns = header.clock_ns
        return header


class _State:
    """Holds the recording of this process; None while recording is off."""

    __slots__ = ("recorder",)

    def __init__(self) -> None:
        self.recorder: Recorder | None = None


STATE: Final = _State()


def start(options: Options) -> Recorder:
    """Begin a recording; one that runs already is ended first."""
    stop()
    os.environ[FOLDER_VARIABLE] = options.folder  # for processes that are spawned, not forked
    STATE.recorder = Recorder(options)
    return STATE.recorder


def stop() -> None:
    """End the recording, if there is one: everything is in the file when this returns."""
    recorder, STATE.recorder = STATE.recorder, None
    if recorder is not None:
        if os.environ.get(FOLDER_VARIABLE) == recorder.options.folder:
            del os.environ[FOLDER_VARIABLE]
        recorder.close()


def start_from_environment() -> None:
    """Begin a recording where the variable names a folder and none runs yet."""
    folder = os.environ.get(FOLDER_VARIABLE, "")
    if folder and STATE.recorder is None:
        STATE.recorder = Recorder(Options(folder))


def change_role(role: str, worker: int) -> None:
    """Say, before its first line, that this process carries no units but works for another."""
    if STATE.recorder is not None:
        options = replace(STATE.recorder.options, role=role, worker=worker)
        if options.parent_pid is None:
            options = replace(options, parent_pid=os.getppid())
        STATE.recorder.close()
        STATE.recorder = Recorder(options)


def check_options(options: Options) -> None:
    """Refuse what cannot be meant.

    Raises:
        UsageError: A number is out of its range; it is named.
    """
    if options.flush_interval_s <= 0:
        msg = f"flush_interval_s: expected seconds above 0, found {options.flush_interval_s!r}"
        raise UsageError(msg)
    if options.buffer_lines < 1:
        msg = f"buffer_lines: expected at least 1, found {options.buffer_lines!r}"
        raise UsageError(msg)
    if options.rank is not None and options.rank < 0:
        msg = f"rank: expected 0 or more, found {options.rank!r}"
        raise UsageError(msg)


def _native_id_of(thread: threading.Thread) -> int | None:
    """Return the system's number of a thread; in a forked child the main thread still bears its parent's."""
    if thread is threading.main_thread() and sys.platform == "linux":
        return os.getpid()
    return thread.native_id


def _begin_anew_in_child() -> None:
    recorder = STATE.recorder
    if recorder is not None:
        parent_pid = os.getppid()
        recorder.abandon()
        STATE.recorder = Recorder(replace(recorder.options, parent_pid=parent_pid))


def _write_at_exit_of_child(recorder: Recorder) -> None:
    """Have a child of multiprocessing close its file: it ends without the interpreter's own exit functions."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, recorder.close, exitpriority=-100)


os.register_at_fork(after_in_child=_begin_anew_in_child)
atexit.register(stop)
