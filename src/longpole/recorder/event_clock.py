"""What a program launches on a CUDA device, timed by pairs of events: recorded in the loop, asked for by the flush.

    stream      ├ e0 ├── kernels ──┤ e1 ┤
    own stream              ├ anchor ┤             recorded and waited for by the flush thread, alone on its stream
    start = when the anchor was seen on the host + (e0 − anchor),  duration = e1 − e0

The loop never waits: it records two events. The flush thread asks whether they are done, and measures them then. A
device's time runs as float32 milliseconds from one event to another, 0.06 µs apart at 1 s, so each flush sets an
anchor of its own. How long the anchor took to come back bounds how far the two clocks are apart; it is a span's own
uncertainty, and one of a millisecond or more is tried again.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from longpole.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

# More than a flush interval's worth of launches by far; a device that hangs may not fill the host's memory with events.
_PENDING_LIMIT: Final = 1 << 14
_ANCHOR_TRIES: Final = 4
_GOOD_ANCHOR_NS: Final = NS_PER_MS // 20


class Pending(NamedTuple):
    """Work on a device that may not be done yet.

    Attributes:
        device: Its index.
        start: Event before it.
        end: Event after it.
        done: Called with start and end, ns on the process's clock, once it is.
    """

    device: int
    start: Any
    end: Any
    done: Callable[[int, int], None]


class Anchor(NamedTuple):
    """An event that both clocks saw."""

    event: Any
    clock_ns: int
    uncertainty_ns: int


class DeviceClock:
    """Holds what is on the devices, and turns it into lines once it is done."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._pending: deque[Pending] = deque()
        self._streams: dict[int, Any] = {}

    def add(self, pending: Pending) -> bool:
        """Watch for the end of some work; False where too much is waited for already."""
        if len(self._pending) >= _PENDING_LIMIT:
            return False
        self._pending.append(pending)
        return True

    def poll(self) -> None:
        """Report everything that is done by now; what is not stays."""
        anchors: dict[int, Anchor] = {}
        for _ in range(len(self._pending)):
            pending = self._pending.popleft()
            try:
                if not pending.end.query():
                    self._pending.append(pending)
                    continue
                if pending.device not in anchors:
                    anchors[pending.device] = self._set_anchor(pending.device)
                pending.done(*_place(pending, anchors[pending.device]))
            except RuntimeError:  # the device failed, or is being taken down: what it did is not known
                continue

    def _set_anchor(self, device: int) -> Anchor:
        cuda = self._torch.cuda
        tries = []
        if device not in self._streams:
            self._streams[device] = cuda.Stream(device)
        for _ in range(_ANCHOR_TRIES):
            event = cuda.Event(enable_timing=True)
            before_ns = perf_counter_ns()
            event.record(self._streams[device])
            event.synchronize()  # of a stream of its own: nothing of the program's is waited for
            width_ns = perf_counter_ns() - before_ns
            tries.append(Anchor(event, before_ns + width_ns // 2, width_ns // 2))
            if width_ns < _GOOD_ANCHOR_NS:
                break
        return min(tries, key=lambda anchor: anchor.uncertainty_ns)


def _place(pending: Pending, anchor: Anchor) -> tuple[int, int]:
    """Return start and end on the process's clock.

    The start may lie before the anchor, and then the time from one to the other is negative.
    """
    start_ns = anchor.clock_ns + round(anchor.event.elapsed_time(pending.start) * NS_PER_MS)
    dur_ns = round(pending.start.elapsed_time(pending.end) * NS_PER_MS)
    return max(start_ns, 0), max(start_ns, 0) + max(dur_ns, 0)
