"""Points of collectives whose times are made up: rounds of one kind under several settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.bench.collectives.points import Where, measured_point
from longpole.records.bench_collectives import CollectivesRound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.records.bench_collectives import CollectivesPoint

SIZES = tuple(1 << exponent for exponent in range(10, 27, 2))


def where(size_bytes: int, setting: str = "default", kind: str = "all_reduce", ranks: int = 8) -> Where:
    return Where(kind=kind, ranks=ranks, dtype="float32", setting=setting, placement="in_place", size_bytes=size_bytes)


def points_of(
    setting: str,
    time_ns: Callable[[int, int], float],
    *,
    rounds: int = 5,
    sizes: Sequence[int] = SIZES,
    kind: str = "all_reduce",
) -> list[CollectivesPoint]:
    """Return a point for each size whose rounds took `time_ns(size, round)`."""
    return [
        measured_point(
            where(size, setting, kind),
            [CollectivesRound(number, [round(time_ns(size, number))] * 5) for number in range(rounds)],
            0,
        )
        for size in sizes
    ]
