"""A ledger as it is stored: where a span of time went."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from longpole.errors import InvariantError


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
