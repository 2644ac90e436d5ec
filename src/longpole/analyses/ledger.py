"""The ledger: every nanosecond of every unit of a device row, charged to exactly one cause (DESIGN 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.analyses.name_book import OBJECT_CODE, STAGE_CODE
from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COMPUTE, RUNG_COPY, RUNG_IDLE, Pieces
from longpole.records.ledger import DeviceTime, Ledger, ObjectTime, StageTime
from longpole.timeline.intervals import Intervals, covered_before, intersect
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS, STAGES

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unit_ledgers(
    pieces: Pieces, services: dict[str, Intervals], bounds_ns: NDArray[np.int64], unions: dict[str, Intervals]
) -> list[Ledger]:
    """Sum pieces into one ledger for each interval between two bounds.

    Args:
        pieces: The row's pieces, cut at the bounds.
        services: The time under each object's operations.
        bounds_ns: `[U + 1]` int64 ns, ascending.
        unions: `compute`, `collective` and `copy`: what ran, whatever won.

    Returns:
        U ledgers.
    """
    n = len(bounds_ns) - 1
    unit = np.clip(np.searchsorted(bounds_ns, pieces.start_ns, side="right") - 1, 0, max(n - 1, 0))
    dur_ns = pieces.dur_ns
    exposed = _sums(unit, pieces.object, dur_ns, (n, len(OBJECTS)))
    idle_rows = pieces.rung == RUNG_IDLE
    idle = _sums(unit[idle_rows], pieces.reason[idle_rows], dur_ns[idle_rows], (n, len(IDLE_REASONS)))
    rungs = _sums(unit, pieces.rung, dur_ns, (n, RUNG_IDLE + 1))
    service = {name: np.diff(covered_before(s, bounds_ns)) for name, s in services.items()}
    hidden = {name: np.diff(covered_before(s, bounds_ns)) for name, s in _hidden(pieces, services).items()}
    union_ns = {name: np.diff(covered_before(s, bounds_ns)) for name, s in unions.items()}
    ledgers = []
    for u in range(n):
        objects = {}
        for name in OBJECTS:
            time = ObjectTime(int(exposed[u, OBJECT_CODE[name]]))
            if name in service:
                time.service_ns, time.hidden_ns = int(service[name][u]), int(hidden[name][u])
            objects[name] = time
        device = DeviceTime(
            busy_ns=int(rungs[u, RUNG_COMPUTE] + rungs[u, RUNG_COLLECTIVE] + rungs[u, RUNG_COPY]),
            idle_ns=int(rungs[u, RUNG_IDLE]),
            compute_ns=int(union_ns["compute"][u]),
            collective_ns=int(union_ns["collective"][u]),
            collective_exposed_ns=int(rungs[u, RUNG_COLLECTIVE]),
            copy_ns=int(union_ns["copy"][u]),
            copy_exposed_ns=int(rungs[u, RUNG_COPY]),
        )
        reasons = dict(zip(IDLE_REASONS, idle[u].tolist(), strict=True))
        ledgers.append(Ledger(int(bounds_ns[u + 1] - bounds_ns[u]), objects, device, reasons))
    return ledgers


def unit_stages(pieces: Pieces, bounds_ns: NDArray[np.int64]) -> list[dict[str, StageTime]]:
    """Sum pieces into the stages of each interval between two bounds; stages without time are left out."""
    n = len(bounds_ns) - 1
    unit = np.clip(np.searchsorted(bounds_ns, pieces.start_ns, side="right") - 1, 0, max(n - 1, 0))
    wall = _sums(unit, pieces.stage, pieces.dur_ns, (n, len(STAGES)))
    busy_rows = pieces.rung != RUNG_IDLE
    busy = _sums(unit[busy_rows], pieces.stage[busy_rows], pieces.dur_ns[busy_rows], (n, len(STAGES)))
    return [
        {name: StageTime(int(wall[u, code]), int(busy[u, code])) for name, code in STAGE_CODE.items() if wall[u, code]}
        for u in range(n)
    ]


def _hidden(pieces: Pieces, services: dict[str, Intervals]) -> dict[str, Intervals]:
    """Return the part of each service during which something else ran."""
    busy = pieces.rung != RUNG_IDLE
    hidden = {}
    for name, service in services.items():
        other = pieces.covering(busy & (pieces.object != OBJECT_CODE[name]))
        hidden[name] = intersect(service, other)
    return hidden


def _sums(
    unit: NDArray[np.intp], code: NDArray[np.int8], dur_ns: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.int64]:
    """Sum durations by unit and code, in integers."""
    table = np.zeros(shape, np.int64)
    np.add.at(table, (unit, code.astype(np.intp)), dur_ns)
    return table
