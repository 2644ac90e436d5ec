"""How much longer the operations of an object could take before the period grows (DESIGN 3.6, near-critical)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.analyses.name_book import OBJECT_CODE
from longpole.vocabulary.objects import OBJECTS
from longpole.whatif.change import Scale
from longpole.whatif.changes.scale import scale
from longpole.whatif.draft import Draft
from longpole.whatif.replay import median_ns
from longpole.whatif.selection import section_parts, span_edges, thread_time
from longpole.whatif.selector import Selector

if TYPE_CHECKING:
    from longpole.whatif.predict import Ground

_GROWS: Final = 1.001  # our choice: a thousandth of the period is growth
_FACTOR_MAX: Final = 64.0
_STEPS: Final = 8


class Slack(NamedTuple):
    """The slack of one object.

    Attributes:
        object: Its name.
        slack_ns: By how much all its operations of a unit together could grow; None where 64 times as long is not
            enough to be felt.
    """

    object: str
    slack_ns: int | None


def find_slack(ground: Ground) -> list[Slack]:
    """Return the slack of every object that takes time and is not on the path, by bisection on the replay.

    Args:
        ground: The run and its replay.
    """
    on_path = ground.replayed.path.by_object_ns()
    total_ns = max(float(on_path.sum()), 1.0)
    result = []
    for name in OBJECTS:
        if name == "unknown":
            continue
        service_ns = _service_ns(ground, name)
        if service_ns == 0:
            continue
        if on_path[OBJECT_CODE[name]] > (_GROWS - 1) * total_ns:
            result.append(Slack(name, 0))
            continue
        factor = _largest_factor(ground, name)
        result.append(Slack(name, None if factor is None else round((factor - 1) * service_ns)))
    return sorted(result, key=lambda slack: (slack.slack_ns is None, slack.slack_ns or 0))


def _service_ns(ground: Ground, name: str) -> int:
    """Return the mean time of an object's operations in a unit, on the rank that has the most."""
    draft = Draft.of(ground.graph, ground.instances, ground.cost, ground.settings)
    selector = Selector(object=name)
    by_rank = []
    for place, _ in draft.ranks():
        edges = span_edges(draft, place, selector)
        parts = section_parts(draft, place, thread_time(draft, place, selector))
        by_rank.append(int(draft.length_ns[edges].sum() + parts.inside_ns.sum()))
    return max(by_rank) // max(len(ground.graph.units), 1)


def _largest_factor(ground: Ground, name: str) -> float | None:
    if not _grows(ground, name, _FACTOR_MAX):
        return None
    low, high = 1.0, _FACTOR_MAX
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if _grows(ground, name, middle) else (middle, high)
    return low


def _grows(ground: Ground, name: str, factor: float) -> bool:
    draft = Draft.of(ground.graph, ground.instances, ground.cost, ground.settings)
    scale(draft, Scale(Selector(object=name), factor))
    time_ns = draft.finish().replay()
    periods_ns = ground.replayed.window.periods_ns(ground.graph, time_ns)
    return median_ns(periods_ns) > _GROWS * median_ns(ground.replayed.replayed_ns)
