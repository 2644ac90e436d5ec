"""Which frames of Python lie around a span: of a device span around its launch, of a host span around itself.

thread   ├───────────── train.py(31): step ──────────────┤
            ├──── model.py(12): forward ────┤
               ├─ aten::linear ─┤                          forward, step
                   launch                                  forward, step
stream                 ├─ gemm ─┤                          forward, step
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from longpole.timeline.columns import NONE_ID, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.threads import Threads
    from longpole.timeline.timeline import Timeline

    Ints: TypeAlias = NDArray[np.int64]

FRAMES_MAX: Final = 6
"""Frames of a stack, the innermost first: enough to come from a library to the program that calls it."""
_SAYS_NOTHING: Final = ("_call_impl", "_wrapped_call_impl", "<built-in ", "<method ")
"""Frames that lie around every module, and those that repeat the operator's name."""


class Stacks(NamedTuple):
    """The distinct stacks of a rank.

    Attributes:
        frames: `[S, FRAMES_MAX]` int32: name codes, the innermost frame first, -1 behind the last.
        extra: Names beyond those of the timeline: codes count on from the last of them.
    """

    frames: NDArray[np.int32]
    extra: list[str]


class StackBook:
    """Finds stacks, and remembers which there are.

    Args:
        timeline: The record.
        threads: What its threads did.
    """

    def __init__(self, timeline: Timeline, threads: Threads) -> None:
        self._timeline = timeline
        self._threads = threads
        host = timeline.host
        dull = np.array([any(mark in name for mark in _SAYS_NOTHING) for name in timeline.names] or [True], np.bool_)
        self._is_frame = (host.kind == Kind.PYTHON) & ~dull[host.name] if len(host) else np.empty(0, np.bool_)
        self._places: dict[tuple[int, ...], int] = {}
        self._extra: dict[str, int] = {}
        self._any = bool(self._is_frame.any()) or len(timeline.call_stacks.row) > 0

    def of_launches(self, launch: Ints) -> NDArray[np.int32]:
        """Return the stack around each launching call, -1 where there is none.

        Args:
            launch: `[N]` int64: host rows, NONE_ID for none.
        """
        found = np.full(len(launch), -1, np.int32)
        if not self._any:
            return found
        track = self._timeline.host.track
        linked = np.flatnonzero(launch != NONE_ID)
        for code in np.unique(track[launch[linked]]).tolist():
            mine = linked[track[launch[linked]] == code]
            found[mine] = self.of_rows(code, launch[mine])
        return found

    def of_rows(self, track: int, rows: Ints) -> NDArray[np.int32]:
        """Return the stack around each of a thread's spans, -1 where there is none.

        Args:
            track: The thread.
            rows: `[N]` int64: its host rows.
        """
        if not self._any or len(rows) == 0:
            return np.full(len(rows), -1, np.int32)
        distinct, inverse = np.unique(rows, return_inverse=True)
        written = self._written(track, distinct)
        spanned = self._spanned(track, distinct)
        return np.where(written >= 0, written, spanned)[inverse.reshape(-1)]

    def stacks(self) -> Stacks:
        """Return all stacks found so far, in the order of their numbers."""
        frames = np.full((len(self._places), FRAMES_MAX), -1, np.int32)
        for frame, place in self._places.items():
            frames[place, : len(frame)] = frame
        return Stacks(frames, list(self._extra))

    def _spanned(self, track: int, rows: Ints) -> NDArray[np.int32]:
        """Return stacks of the frames that were recorded as spans."""
        span = self._threads.rows_of(track)
        wanted = self._is_frame[span]
        if not wanted.any():
            return np.full(len(rows), -1, np.int32)
        cover = self._threads.cover(track)
        inner = cover.outwards(cover.parent[rows - cover.first_row], wanted)
        distinct, inverse = np.unique(inner, return_inverse=True)
        names, at, columns = self._timeline.host.name[span], distinct.copy(), []
        for _ in range(FRAMES_MAX):
            columns.append(np.where(at >= 0, names[at], -1))
            at = cover.outwards(np.where(at >= 0, cover.parent[at], -1), wanted)
        numbers = [self._number(tuple(frame)) for frame in np.stack(columns, axis=1).tolist()]
        return np.array(numbers, np.int32)[inverse.reshape(-1)]

    def _written(self, track: int, rows: Ints) -> NDArray[np.int32]:
        """Return stacks that an operator around a span was recorded with, as text."""
        recorded = self._timeline.call_stacks
        if len(recorded.row) == 0:
            return np.full(len(rows), -1, np.int32)
        cover, span = self._threads.cover(track), self._threads.rows_of(track)
        has = np.zeros(span.stop - span.start, np.bool_)
        has[recorded.row[(recorded.row >= span.start) & (recorded.row < span.stop)] - span.start] = True
        inner = cover.outwards(rows - cover.first_row, has)
        codes = np.where(inner >= 0, recorded.codes(inner + cover.first_row), -1)
        distinct, inverse = np.unique(codes, return_inverse=True)
        numbers = [self._number(self._parsed(recorded.texts[code]) if code >= 0 else ()) for code in distinct.tolist()]
        return np.array(numbers, np.int32)[inverse.reshape(-1)]

    def _parsed(self, text: str) -> tuple[int, ...]:
        """Return the frames of a written stack; exporters write the innermost first."""
        frames = [frame.strip() for frame in text.split(";")]
        kept = [frame for frame in frames if frame and not any(mark in frame for mark in _SAYS_NOTHING)]
        first = len(self._timeline.names)
        return tuple(first + self._extra.setdefault(frame, len(self._extra)) for frame in kept[:FRAMES_MAX])

    def _number(self, frames: tuple[int, ...]) -> int:
        kept = tuple(frame for frame in frames if frame >= 0)
        return self._places.setdefault(kept, len(self._places)) if kept else -1
