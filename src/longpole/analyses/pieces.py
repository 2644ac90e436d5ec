"""A device row's record cut into pieces with one cause each: the table that every figure is summed from.

Pieces tile the recorded time of the row: they are ascending, touch each other and do not overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from longpole.errors import InvariantError
from longpole.timeline.intervals import Intervals, expand, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

RUNG_COMPUTE: Final = 1
RUNG_COLLECTIVE: Final = 2
RUNG_COPY: Final = 3
RUNG_IDLE: Final = 4


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of time, all columns of one length.

    Attributes:
        start_ns, end_ns: `[N]` int64 ns.
        rung: `[N]` int8: 1 compute, 2 collective, 3 copy, 4 nothing runs (DESIGN 3.3).
        object: `[N]` int8: code into OBJECTS: what the piece is charged to.
        reason: `[N]` int8: code into IDLE_REASONS, -1 where something runs.
        stage: `[N]` int8: code into STAGES.
        row: `[N]` int64: the device row that runs; where nothing runs, the host row that decided, -1 for none.
        gap: `[N]` int64: number of the idle gap, -1 where something runs.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    rung: NDArray[np.int8]
    object: NDArray[np.int8]
    reason: NDArray[np.int8]
    stage: NDArray[np.int8]
    row: NDArray[np.int64]
    gap: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def dur_ns(self) -> NDArray[np.int64]:
        """Return the lengths: `[N]` int64 ns."""
        return self.end_ns - self.start_ns

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Self:
        """Return some of the pieces."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def covering(self, mask: NDArray[np.bool_]) -> Intervals:
        """Return the time that the masked pieces cover."""
        return union(self.start_ns[mask], self.end_ns[mask])

    def cut_at(self, time_ns: NDArray[np.int64]) -> Self:
        """Cut pieces at the given times, so that none reaches across one."""
        time_ns = np.unique(time_ns)
        if len(time_ns) == 0:
            return self
        first = np.searchsorted(time_ns, self.start_ns, side="right")
        last = np.searchsorted(time_ns, self.end_ns, side="left")
        row, cut = expand(first, last + 1)
        start_ns = np.where(cut == first[row], self.start_ns[row], time_ns[np.maximum(cut - 1, 0)])
        end_ns = np.where(cut == last[row], self.end_ns[row], time_ns[np.minimum(cut, len(time_ns) - 1)])
        whole = self.take(row)
        columns = {f.name: getattr(whole, f.name) for f in fields(self)}
        return type(self)(**(columns | {"start_ns": start_ns, "end_ns": end_ns}))

    def check_tiling(self, start_ns: int, end_ns: int) -> None:
        """Check that the pieces tile `[start_ns, end_ns)`.

        Raises:
            InvariantError: They do not.
        """
        if len(self) == 0:
            whole = end_ns <= start_ns
        else:
            whole = (
                int(self.start_ns[0]) == start_ns
                and int(self.end_ns[-1]) == end_ns
                and bool((self.start_ns[1:] == self.end_ns[:-1]).all())
                and bool((self.end_ns > self.start_ns).all())
            )
        if not whole:
            msg = f"pieces of a device row do not tile its record [{start_ns}, {end_ns})"
            raise InvariantError(msg)


def join_pieces(parts: list[Pieces]) -> Pieces:
    """Put pieces together in time order."""
    columns = {f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Pieces)}
    order = np.argsort(columns["start_ns"], kind="stable")
    return Pieces(**{name: column[order] for name, column in columns.items()})
