"""The rows of one rank of a file while they are being placed and sorted into tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longpole.readers.kineto.elsewhere import device_processes
from longpole.timeline.columns import NONE_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.readers.kineto.raw import RawTrace
    from longpole.timeline.columns import Kind


class OnDevice(NamedTuple):
    """Where some spans ran: `[M]` int64 each, and the bytes of copies, NONE_ID for none."""

    device: NDArray[np.int64]
    stream: NDArray[np.int64]
    size_bytes: NDArray[np.int64]


@dataclass(slots=True)
class Rows:
    """Columns over all spans of the file, and which of them belong to the rank and are still in.

    Attributes:
        raw: The file.
        kind: `[N]` uint8: members of Kind.
        start_ns, end_ns: `[N]` int64 ns; ends change where a span is cut.
        mine: `[N]` bool.
    """

    raw: RawTrace
    kind: NDArray[np.uint8]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    mine: NDArray[np.bool_]

    def pids(self) -> frozenset[Any] | None:
        """Return the processes whose rows belong to the rank, None where all of the file's rows do."""
        if self.mine.all():
            return None
        return frozenset(self.raw.tracks[track][0] for track in np.unique(self.raw.span["track"][self.mine]).tolist())

    def of(self, kinds: tuple[Kind, ...]) -> NDArray[np.int64]:
        """Return the rows of some kinds that are still in, ascending."""
        return np.flatnonzero(np.isin(self.kind, [int(kind) for kind in kinds]) & self.mine).astype(np.int64)

    def on_device(self, some: NDArray[np.int64]) -> OnDevice:
        """Return where spans ran: by their arguments, else by the process and thread they stand on.

        Ascend's exporter gives the parts of one device processes of their own, and no category: that is device 0;
        JAX's names a process after the device.
        """
        raw = self.raw
        track, category = raw.span["track"][some], raw.span["category"][some]
        pid = np.array([number_in(pid) for pid, _ in raw.tracks] or [0], np.int64)[track]
        tid = np.array([number_in(tid) for _, tid in raw.tracks] or [0], np.int64)[track]
        bare = np.array([not category for category in raw.categories] or [False], np.bool_)[category]
        named = device_processes(raw)
        number = np.array([named.get(pid, ("", 0))[1] for pid, _ in raw.tracks] or [0], np.int64)[track]
        device, stream, size_bytes = (self._given(some, name) for name in ("device", "stream", "size_bytes"))
        return OnDevice(
            np.where(device < 0, np.where(bare, number, pid), device), np.where(stream < 0, tid, stream), size_bytes
        )

    def _given(self, some: NDArray[np.int64], name: str) -> NDArray[np.int64]:
        """Look an argument up among the spans that carry device arguments; NONE_ID where there is none."""
        having = self.raw.device.get("row", np.empty(0, np.int64))
        if len(having) == 0:
            return np.full(len(some), NONE_ID, np.int64)
        place = np.minimum(np.searchsorted(having, some), len(having) - 1)
        return np.where(having[place] == some, self.raw.device[name][place], NONE_ID)


def number_in(value: Any) -> int:
    """Return the number in a process or thread id: `7`, `stream 7`, `[TP01] 0`."""
    if isinstance(value, int):
        return value if -(1 << 62) < value < 1 << 62 else value & ((1 << 62) - 1)
    digits = "".join(c if c.isascii() and c.isdigit() else " " for c in str(value)[:256]).split()
    return int(digits[-1]) if digits and len(digits[-1]) < 19 else 0
