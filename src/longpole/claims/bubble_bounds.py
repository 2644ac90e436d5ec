"""What a pipeline waits at the least, against the bubble and the utilisation that are stated (R11)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.claims.algebra import Term
from longpole.claims.breach import Breach, Severity, is_above
from longpole.claims.figures import CUT
from longpole.claims.readings import ceiling_of
from longpole.costs.schedule_orders import DUAL, SIMULATED, V_SHAPED, check_counts
from longpole.costs.schedules import BUBBLE_SHARE, Times, closed_bubble_s, step_seconds
from longpole.errors import UsageError

if TYPE_CHECKING:
    from longpole.claims.algebra import Solution
    from longpole.claims.statement import Statement

_SPELLINGS: Final = {
    "pipedreamflush": "1f1b", "dapple": "1f1b", "onefoneb": "1f1b", "afab": "gpipe", "allforwardallbackward": "gpipe",
    "interleaved1f1b": "interleaved", "1f1binterleaved": "interleaved", "virtualpipeline": "interleaved",
    "zbh1": "zb1p", "zbh2": "zb2p", "zbvzerobubble": "zbv",
}  # fmt: skip
TITLES: Final = {
    "gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B", "zb1p": "ZB-H1", "zb2p": "ZB-H2",
    "zbv": "ZB-V", "dualpipe": "DualPipe", "dualpipev": "DualPipeV",
}  # fmt: skip
# Forward, both halves of the backward, and a pair that is as long as its backward: the passes that fit into one another
# best. A backward takes twice the products of a forward, attention has no weights, and recomputation only adds to it.
_LONG: Final = 4096  # stages squared times chunks: passes of a simulation over 16; a fraction of a second
_BEST: Final = Times(forward_s=1.0, backward_s=2.0, weight_s=1.0, pair_s=2.0)


class Schedule(NamedTuple):
    """How a pipeline runs.

    Attributes:
        name: As the simulation knows it.
        chunks: Parts of the model on a device.
        is_named: Whether the statement names it, rather than leaving it to its counts.
    """

    name: str
    chunks: int
    is_named: bool


def schedule_of(statement: Statement, solution: Solution) -> Schedule | None:
    """Return the schedule of a statement: the one that it names, else that of its counts; None for one not known.

    An interleaved one whose chunks are not stated has the most that its layers allow, which leaves the least bubble.
    """
    stated = re.sub(r"[^a-z0-9]", "", statement.words.get("schedule", "").lower())
    name = _SPELLINGS.get(stated, stated)
    chunks = statement.count("vp") or 1
    if not name:
        return Schedule("interleaved" if chunks > 1 else "1f1b", chunks, is_named=False)
    if name not in SIMULATED:
        return None
    if name == "interleaved" and "vp" not in statement.figures:
        layers, stages = solution.value("layers"), solution.value("pp")
        if not layers or not stages:
            return None
        chunks = max(int(layers // stages), 1)
    return Schedule(name, 2 if name in V_SHAPED else chunks, is_named=True)


@lru_cache(maxsize=1024)
def least_share(schedule: str, stages: int, micro_batches: int, chunks: int) -> float | None:
    """Return the least share of a step that the devices of a pipeline wait; None for counts without such a schedule.

    For stages that are alike and transfers that take no time; anything else only adds to it. Where no closed form is
    exact and a simulation would be long, interleaving has its form, which is exact for whole groups of micro-batches
    and too small for others; the zero-bubble schedules have no bound.

    >>> round(least_share("1f1b", 8, 16, 1) - 7 / 23, 12), round(least_share("zb1p", 4, 8, 1) - 3 / (3 * 8 + 3), 12)
    (0.0, 0.0)
    """
    try:
        chunks = check_counts(schedule, stages, micro_batches, chunks)
        if schedule in DUAL:
            bubble_s = closed_bubble_s(schedule, stages, micro_batches, _BEST, chunks)
            pair_s = _BEST.backward_s if _BEST.pair_s is None else _BEST.pair_s
            return None if bubble_s is None else bubble_s / (bubble_s + micro_batches * pair_s)
        simulated = closed_bubble_s(schedule, stages, micro_batches, _BEST, chunks) is None
        if simulated and stages * stages * chunks > _LONG:
            whole = schedule == "interleaved"
            return BUBBLE_SHARE(p=stages, v=chunks, m=micro_batches) if whole else None
        busy_s = micro_batches * (_BEST.forward_s + _BEST.backward_s)
        return max(1 - busy_s / step_seconds(schedule, stages, micro_batches, _BEST, chunks), 0.0)
    except UsageError:
        return None


class LeastBubble(NamedTuple):
    """What a pipeline waits at the least.

    Attributes:
        schedule: How it runs.
        stages, micro_batches: Its counts.
        share: Of a step.
    """

    schedule: Schedule
    stages: int
    micro_batches: int
    share: float

    def says(self) -> str:
        """Write what waits."""
        chunks = f" of {self.schedule.chunks} chunks" if self.schedule.name == "interleaved" else ""
        counts = f"{self.stages} stages{chunks} and {self.micro_batches} micro-batches"
        return f"{counts} with {TITLES[self.schedule.name]}" if self.schedule.is_named else counts


def least_bubble(statement: Statement, solution: Solution) -> LeastBubble | None:
    """Return the least bubble of a stated pipeline; None where its counts are open or its schedule is not known."""
    stages, batches = solution.value("pp"), solution.value("ga")
    schedule = schedule_of(statement, solution)
    if schedule is None or not stages or not batches or round(stages) < 1 or round(batches) < 1:
        return None
    share = least_share(schedule.name, round(stages), round(batches), schedule.chunks)
    return None if share is None else LeastBubble(schedule, round(stages), round(batches), share)


def bubble_breaches(statement: Statement, solution: Solution) -> list[Breach]:
    """Look whether a bubble, or what a utilisation leaves for one, is smaller than the schedule's."""
    least = least_bubble(statement, solution)
    if least is None or least.share <= 0:
        return []
    return _of_bubble(statement, solution, least) + _of_utilisation(statement, solution, least)


def is_held(statement: Statement, solution: Solution) -> bool:
    """Tell whether a bubble or a utilisation is held against the schedule."""
    least = least_bubble(statement, solution)
    if least is None or least.stages < 2:
        return False
    shares = {"bubble", "mfu", "hfu"} if least.schedule.is_named or "vp" in statement.figures else {"bubble"}
    return bool(shares & solution.known.keys())


def _fields(statement: Statement, first: str) -> tuple[str, ...]:
    return (first, *(name for name in ("pp", "ga", "vp") if name in statement.figures))


def _severity(statement: Statement, least: LeastBubble, named: Severity) -> tuple[Severity, tuple[str, ...]]:
    readings = () if least.schedule.is_named else (
        "a schedule without bubble (zero-bubble, DualPipe), or more chunks a stage",
    )  # fmt: skip
    return named if least.schedule.is_named or "vp" in statement.figures else "implausible", readings


def _of_bubble(statement: Statement, solution: Solution, least: LeastBubble) -> list[Breach]:
    bubble = solution.known.get("bubble")
    if bubble is None or bubble.ends(solution.figures, CUT)[1] >= least.share * (1 - 1e-9):
        return []
    severity, readings = _severity(statement, least, "contradicts")
    of_ideal = least.share / (1 - least.share)
    says = (
        f"{least.says()} leave a bubble of {100 * least.share:.1f} % of the step"
        f" ({100 * of_ideal:.1f} % of the ideal time) at the least"
    )
    ratio = Term(least.share, {}).times(bubble, -1.0)
    fields = _fields(statement, "bubble")
    return [Breach(code="R11", severity=severity, says=says, ratio=ratio, fields=fields, readings=readings)]


def _of_utilisation(statement: Statement, solution: Solution, least: LeastBubble) -> list[Breach]:
    """Look whether a device computes more than its peak, or than was ever measured, while it does not wait."""
    if not least.schedule.is_named and "vp" not in statement.figures:
        return []
    for name in ("mfu", "hfu"):
        term = solution.known.get(name)
        if term is None:
            continue
        limits = _limits(statement)
        if any(is_above(solution, term, share) for share, _, _ in limits):
            continue  # that is told of the utilisation itself
        computing = Term(1 / (1 - least.share), {}).times(term)
        for share, at_most, beyond in limits:
            if is_above(solution, computing, share):
                severity, readings = _severity(statement, least, at_most)
                says = (
                    f"{least.says()} wait {100 * least.share:.1f} % of a step at the least, so {name.upper()} is"
                    f" {100 * computing.value(solution.figures):.1f} % while a device computes: more than {beyond}"
                )
                ratio = Term(computing.constant / share, computing.powers)
                fields = _fields(statement, name)
                return [Breach(code="R11", severity=severity, says=says, ratio=ratio, fields=fields, readings=readings)]
    return []


def _limits(statement: Statement) -> list[tuple[float, Severity, str]]:
    """Return what a utilisation cannot exceed, and what none was measured to exceed."""
    found: list[tuple[float, Severity, str]] = [(1.0, "impossible", "the peak")]
    ceiling = ceiling_of(statement)
    if ceiling is not None:
        says = f"the {100 * ceiling.share:.1f} % of the best matrix product measured ({ceiling.says})"
        found.append((ceiling.share, "implausible", says))
    return found
