"""Turn what is wrong with an export into findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.timeline.integrity import CODES, Example, Finding
from longpole.units import format_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longpole.readers.nsys.capture import Capture
    from longpole.timeline.integrity import Severity

_NAME_MAX = 80


class Complaints:
    """Collects the findings of one rank of an export."""

    def __init__(self, capture: Capture, rank: int) -> None:
        self._capture = capture
        self._rank = rank
        self.findings: list[Finding] = []
        self.n_left_out = 0

    def rows(
        self,
        code: str,
        severity: Severity,
        events: NDArray[np.int64] | list[int],
        first_name: list[str],
        voids: list[str],
    ) -> None:
        """Complain of rows, if there are any.

        Args:
            code: A key of CODES.
            severity: How bad it is.
            events: Their numbers, where the rows of all tables are counted through.
            first_name: The first one's name, or nothing.
            voids: Pointers to what is void with it.
        """
        if len(events) == 0:
            return
        self.n_left_out += len(events) if code != "kernel.duration.impossible" else 0
        event = int(events[0])
        named = f" {first_name[0][:_NAME_MAX]!r}" if first_name else ""
        message = f"{len(events):,} {CODES[code]}, the first one{named} ({self._place(event)})"
        self.findings.append(
            Finding(code, severity, self._rank, len(events), Example(self._capture.shown, event), message, list(voids))
        )

    def _place(self, event: int) -> str:
        """Return a row's table and its place in it."""
        for table, count in self._capture.rows.items():
            if event < count:
                return f"row {event + 1:,} of {table}"
            event -= count
        return f"row {event:,}"

    def damage(self) -> None:
        """Complain of tables that could be read in part only."""
        for table, why in self._capture.damaged.items():
            read = self._capture.rows.get(table, 0)
            message = f"{table}: the database is damaged behind {format_count(read, 'row')} ({why})"
            self._say("nsys.table.damaged", "warn", 1, message, ["@/ledger/device/idle_ns", "@/device_span/idle_ns"])

    def whole_graphs(self, n_graphs: int) -> None:
        """Say that kernels of captured graphs were recorded as one span each."""
        if n_graphs:
            message = (
                f"{n_graphs:,} {CODES['nsys.graph.whole']}: what ran in them is not known, and all of it counts as"
                " computation; record with --cuda-graph-trace=node"
            )
            self._say("nsys.graph.whole", "warn", n_graphs, message, [])

    def others(self, names: list[str]) -> None:
        """Name processes that recorded something and belong to no rank."""
        if names:
            some = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
            message = f"{len(names):,} {CODES['nsys.process.no_device']} ({some}): what they did is in no figure"
            self._say("nsys.process.no_device", "note", len(names), message, [])

    def _say(self, code: str, severity: Severity, count: int, message: str, voids: list[str]) -> None:
        example = Example(self._capture.shown)
        self.findings.append(Finding(code, severity, self._rank, count, example, message, list(voids)))
