"""Whether something strikes in every unit or now and then, on all ranks alike or on some."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from longpole.timeline.intervals import intersect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.advice.scene import RankView, Scene
    from longpole.timeline.intervals import Intervals


@dataclass(frozen=True, slots=True)
class Stalls:
    """In which units something takes long.

    Attributes:
        units: Names of those units.
        sporadic: They are at most half of the steady ones, and the others take little.
        rhythm: `, every 4th` where they come at equal distances, else empty.
    """

    units: list[str]
    sporadic: bool
    rhythm: str


def find_stalls(scene: Scene, views: Sequence[RankView], times: Sequence[Intervals]) -> Stalls:
    """Tell whether something strikes in every unit, or sporadically.

    Args:
        scene: The run.
        views: Ranks.
        times: The time of each of them that it takes.
    """
    longest: dict[str, int] = dict.fromkeys(scene.units, 0)
    for view, time in zip(views, times, strict=True):
        for name, time_ns in zip(view.graph.units, view.by_unit_ns(time).tolist(), strict=True):
            if name in longest:
                longest[name] = max(longest[name], time_ns)
    return stalls_of(scene, longest)


def stalls_of(scene: Scene, by_unit_ns: Mapping[str, int]) -> Stalls:
    """Tell in which units something takes long, given what it takes in each, in order."""
    values = np.array(list(by_unit_ns.values()), np.int64)
    if len(values) == 0 or values.max() == 0:
        return Stalls([], sporadic=False, rhythm="")
    settings = scene.settings
    # The usual unit is the one at the upper quarter of the smaller half: a stall in half of them still stands out.
    usual_ns = int(np.sort(values)[(len(values) - 1) // 4])
    slow = (values > settings.stall_factor * usual_ns) & (2 * (values - usual_ns) > values.max() - usual_ns)
    places = np.flatnonzero(slow).tolist()
    sporadic = len(values) > 2 and 0 < len(places) <= settings.sporadic_max_share * len(values) + 0.5
    gaps = {b - a for a, b in pairwise(places)}
    rhythm = f", every {ordinal(min(gaps))}" if sporadic and len(gaps) == 1 and min(gaps) > 1 else ""
    names = list(by_unit_ns)
    return Stalls([names[place] for place in places], sporadic, rhythm)


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `3rd`, `4th` and so on."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


@dataclass(frozen=True, slots=True)
class Uneven:
    """Ranks that take much longer for something than the others.

    Attributes:
        places: Their places.
        usual_ns: What it takes the others, median, in ns per unit.
    """

    places: list[int]
    usual_ns: int


def find_uneven(scene: Scene, per_unit_ns: Mapping[int, int], least_ns: float) -> Uneven | None:
    """Return the ranks on which something takes much longer than on the others; None where all are alike.

    Args:
        scene: The run.
        per_unit_ns: Place of a rank -> what it takes per unit, in ns.
        least_ns: A smaller difference is none.
    """
    if len(per_unit_ns) < 2:
        return None
    values = sorted(per_unit_ns.values())
    # Fewer than half of the ranks may be the slow ones; of two ranks the slower one.
    usual_ns = values[(len(values) - 1) // 2]
    slow = [
        place
        for place, time_ns in per_unit_ns.items()
        if time_ns > scene.settings.uneven_factor * usual_ns and time_ns - usual_ns >= least_ns
    ]
    if not slow or len(slow) == len(per_unit_ns):
        return None
    others = sorted(time_ns for place, time_ns in per_unit_ns.items() if place not in slow)
    return Uneven(slow, others[(len(others) - 1) // 2])


def meets(a: Intervals, b: Intervals) -> bool:
    """Tell whether two sets of time have anything in common."""
    return len(intersect(a, b).start_ns) > 0
