"""Sums and means of ledgers, in whole nanoseconds, so that the laws hold in them too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.records.ledger import DeviceTime, Ledger, ObjectTime
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS, charged_to

if TYPE_CHECKING:
    from collections.abc import Iterable

MOVED: Final = ("compute", "collective", "input", "artifact", "state", "output")


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
    for name in DeviceTime.__struct_fields__:
        setattr(total.device, name, getattr(total.device, name) + getattr(more.device, name))
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
    for field in ("collective_ns", "collective_exposed_ns", "copy_ns", "copy_exposed_ns"):
        setattr(mean.device, field, _divide(getattr(total.device, field), n))
    mean.device.compute_ns = mean.device.busy_ns - mean.device.collective_exposed_ns - mean.device.copy_exposed_ns
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
