"""The ledger: every nanosecond of every unit of a device row, charged to exactly one cause (DESIGN 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from longpole.analyses.name_book import OBJECT_CODE, STAGE_CODE
from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COMPUTE, RUNG_COPY, RUNG_IDLE, Pieces
from longpole.errors import InvariantError
from longpole.timeline.intervals import Intervals, covered_before, intersect
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS, STAGES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

MOVED: Final = ("compute", "collective", "input", "artifact", "state", "output")


class Unknown(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure that is not known, as reports write it.

    Attributes:
        unknown: Why, in one sentence.
        missing: What would have to be recorded.
    """

    unknown: str
    missing: list[str] = []


class ObjectTime(msgspec.Struct, omit_defaults=True):
    """What one object took of a span of time.

    Attributes:
        exposed_ns: The part charged to it.
        service_ns: How long its operations took; host and unknown have none.
        hidden_ns: The part of service under something else that ran; the rest of service is *elsewhere*.
        waiting_ns: For collectives: time spent waiting for other ranks.
    """

    exposed_ns: int
    service_ns: int | Unknown | UnsetType = UNSET
    hidden_ns: int | Unknown | UnsetType = UNSET
    waiting_ns: int | Unknown | UnsetType = UNSET


class DeviceTime(msgspec.Struct):
    """Unions of what ran on a device: collectives are exposed less compute, copies less both."""

    busy_ns: int = 0
    idle_ns: int = 0
    compute_ns: int = 0
    collective_ns: int = 0
    collective_exposed_ns: int = 0
    copy_ns: int = 0
    copy_exposed_ns: int = 0


class Ledger(msgspec.Struct):
    """Where a span of time went.

    Laws: the objects' exposed times add up to the wall, busy and idle too, and the idle reasons add up to idle.
    """

    wall_ns: int
    objects: dict[str, ObjectTime]
    device: DeviceTime
    idle_ns: dict[str, int]

    def check(self) -> None:
        """Check the laws.

        Raises:
            InvariantError: One of them is broken.
        """
        exposed_ns = sum(time.exposed_ns for time in self.objects.values())
        idle_ns = sum(self.idle_ns.values())
        broken = [
            text
            for text, holds in (
                (f"objects add up to {exposed_ns}, the wall is {self.wall_ns}", exposed_ns == self.wall_ns),
                ("busy + idle is not the wall", self.device.busy_ns + self.device.idle_ns == self.wall_ns),
                ("idle reasons do not add up to idle", idle_ns == self.device.idle_ns),
                *((f"{name} exceeds its service", _fits(time)) for name, time in self.objects.items()),
            )
            if not holds
        ]
        if broken:
            raise InvariantError("ledger: " + "; ".join(broken))


def _fits(time: ObjectTime) -> bool:
    if not isinstance(time.service_ns, int):
        return time.exposed_ns >= 0
    hidden_ns = time.hidden_ns if isinstance(time.hidden_ns, int) else 0
    return time.exposed_ns >= 0 and time.exposed_ns + hidden_ns <= time.service_ns


class StageTime(msgspec.Struct):
    """What a stage took of a unit, and how much of that something ran."""

    wall_ns: int
    busy_ns: int


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


def add_ledgers(ledgers: Iterable[Ledger]) -> Ledger:
    """Add ledgers; a service that is unknown in one of them is unknown in the sum."""
    total: Ledger | None = None
    for ledger in ledgers:
        total = _copy(ledger) if total is None else _add(total, ledger)
    if total is None:
        return empty_ledger()
    return total


def empty_ledger() -> Ledger:
    """Return the ledger of no time."""
    objects = {name: ObjectTime(0) for name in OBJECTS}
    for name in MOVED:
        objects[name] = ObjectTime(0, 0, 0)
    return Ledger(0, objects, DeviceTime(), dict.fromkeys(IDLE_REASONS, 0))


def _copy(ledger: Ledger) -> Ledger:
    objects = {name: msgspec.structs.replace(time) for name, time in ledger.objects.items()}
    return Ledger(ledger.wall_ns, objects, msgspec.structs.replace(ledger.device), dict(ledger.idle_ns))


def _add(total: Ledger, more: Ledger) -> Ledger:
    total.wall_ns += more.wall_ns
    for name, time in more.objects.items():
        mine = total.objects[name]
        mine.exposed_ns += time.exposed_ns
        mine.service_ns = _plus(mine.service_ns, time.service_ns)
        mine.hidden_ns = _plus(mine.hidden_ns, time.hidden_ns)
        mine.waiting_ns = _plus(mine.waiting_ns, time.waiting_ns)
    for field in msgspec.structs.fields(DeviceTime):
        setattr(total.device, field.name, getattr(total.device, field.name) + getattr(more.device, field.name))
    for reason, time_ns in more.idle_ns.items():
        total.idle_ns[reason] += time_ns
    return total


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return a if not isinstance(a, int) else b


def mean_ledger(ledgers: list[Ledger]) -> Ledger:
    """Return the mean of ledgers, in whole nanoseconds, so that the laws hold in the mean too.

    The leaves (exposed parts of what ran, idle reasons) are rounded by largest remainder to the rounded mean of the
    wall, and every sum is derived from them.
    """
    n = len(ledgers)
    if n == 0:
        return empty_ledger()
    total = add_ledgers(ledgers)
    busy = {name: total.objects[name].exposed_ns - _idle_of(total, name) for name in OBJECTS}
    leaves = [*busy.values(), *(total.idle_ns[reason] for reason in IDLE_REASONS)]
    rounded = round_shares(leaves, n)
    busy_mean = dict(zip(OBJECTS, rounded[: len(OBJECTS)], strict=True))
    idle_mean = dict(zip(IDLE_REASONS, rounded[len(OBJECTS) :], strict=True))
    mean = Ledger(sum(rounded), {}, DeviceTime(), idle_mean)
    mean.device.idle_ns = sum(idle_mean.values())
    mean.device.busy_ns = mean.wall_ns - mean.device.idle_ns
    for name in OBJECTS:
        mean.objects[name] = _mean_object(total.objects[name], n, busy_mean[name] + _idle_of(mean, name))
    for field in ("compute_ns", "collective_ns", "collective_exposed_ns", "copy_ns", "copy_exposed_ns"):
        setattr(mean.device, field, _divide(getattr(total.device, field), n))
    return mean


def _mean_object(total: ObjectTime, n: int, exposed_ns: int) -> ObjectTime:
    """Divide service and hidden, keeping exposed + hidden within service although exposed was rounded elsewhere."""
    time = ObjectTime(exposed_ns, total.service_ns, total.hidden_ns, total.waiting_ns)
    if isinstance(total.waiting_ns, int):
        time.waiting_ns = _divide(total.waiting_ns, n)
    if isinstance(total.service_ns, int) and isinstance(total.hidden_ns, int):
        elsewhere_ns = _divide(total.service_ns - total.hidden_ns - total.exposed_ns, n)
        time.hidden_ns = _divide(total.hidden_ns, n)
        time.service_ns = exposed_ns + time.hidden_ns + elsewhere_ns
    return time


def _idle_of(ledger: Ledger, name: str) -> int:
    from longpole.vocabulary.objects import charged_to

    return sum(time_ns for reason, time_ns in ledger.idle_ns.items() if charged_to(reason) == name)


def _divide(total: int, n: int) -> int:
    return (2 * total + n) // (2 * n)


def round_shares(parts: list[int], n: int) -> list[int]:
    """Divide parts by n in whole numbers that add up to the rounded quotient of their sum (largest remainder).

    >>> round_shares([1, 1, 1], 2)
    [1, 1, 0]
    """
    whole = [part // n for part in parts]
    missing = _divide(sum(parts), n) - sum(whole)
    by_remainder = sorted(range(len(parts)), key=lambda i: (-(parts[i] % n), i))
    for i in by_remainder[:missing]:
        whole[i] += 1
    return whole
