"""Other layouts for the same model, devices and batch: which divide, which fit, and which of these are worth a thought.

Every combination of the degrees is tried. What does not divide is left out first, then what does not fit with its
margin, for that is cheap to tell; what fits is timed without simulating its schedule, and what may then be on the front
with it. The Pareto front is kept: layouts than which no other is as good in time, memory and devices. At last, layouts
that do not fit as they are and would be faster get the least recomputation with which they fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Any, Final

from longpole.costs.layout import Layout, complaints
from longpole.costs.memory import device_memory
from longpole.costs.recompute import fit_recompute
from longpole.costs.step import estimate_step_time, step_time
from longpole.errors import UsageError
from longpole.pipeline.plan_config import FIT
from longpole.report.plan_asked import PlanChoice, PlanSearch
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.costs.collective_time import CollectiveCosts
    from longpole.costs.layout import Work
    from longpole.pipeline.plan_config import Planned

MOST: Final = 200_000
"""Combinations that are tried at most: about a minute."""
_MICRO_BATCHES: Final = (1, 2, 4, 8)
_CHUNKS: Final = (1, 2, 4)
_POLICIES: Final = ("none", "selective", "full", "fit")
_ZERO: Final = (1, 3)
_TOLD_EVERY: Final = 8
_ALIKE: Final = 1.005
_WRITTEN: Final = ("tp", "pp", "dp", "cp", "ep", "etp", "vp", "sp", "zero", "schedule")
_ESTIMATE_ERROR: Final = 0.03
"""How much shorter than its estimate a simulated step may be; tests hold it against simulations."""
_SQUEEZED_MOST: Final = 40
"""Layouts of which the least recomputation is looked for, the fastest first: each takes some milliseconds."""
_OWN_CHUNKS: Final = {"zbv": 2, "dualpipe": 1, "gpipe": 1, "zb1p": 1, "zb2p": 1}
"""Schedules that a search keeps where the plan names one, and the chunks of a stage that they have."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout with its batch, and what it needs.

    Attributes:
        layout, work: What was tried.
        needed_bytes: Peak and margin.
        period_s: One step; 0 where it does not fit and was not timed.
    """

    layout: Layout
    work: Work
    needed_bytes: float
    period_s: float = 0.0

    def identity(self) -> tuple[Layout, Work]:
        """Return what tells it from others."""
        return self.layout, self.work

    def key(self) -> tuple[float, float, int]:
        """Return what is compared: time, memory, devices."""
        return self.period_s, self.needed_bytes, self.layout.world


def search_layouts(
    planned: Planned, costs: CollectiveCosts, progress: Callable[[str, int, int], None] | None = None
) -> PlanSearch:
    """Try layouts.

    Args:
        planned: The plan, whose `[search]` says what to try.
        costs: What collectives take.
        progress: Hears (what, layouts done, layouts in all) now and then.

    Raises:
        UsageError: There are more combinations than can be tried.
    """
    layouts = [*dict.fromkeys([planned.layout, *_layouts(planned)])]
    works = _works(planned)
    considered = len(layouts) * len(works)
    if considered > MOST:
        msg = f"{planned.path}: [search]: {considered:,} layouts, more than {MOST:,} can be tried; name fewer values"
        raise UsageError(msg)
    found = _Found(planned, costs)
    for place, layout in enumerate(layouts):
        if progress is not None and place % _TOLD_EVERY == 0:
            progress("layouts", place * len(works), considered)
        found.add(layout, works)
    front = found.front()
    plan_itself = weigh(planned, planned.layout, planned.work)
    return PlanSearch(
        considered=considered,
        divide=found.divide,
        fit=len(found.fitting),
        limit_bytes=round(planned.limit_bytes),
        plan=_choice(planned, timed(planned, plan_itself, costs)),
        best=_choice(planned, front[0]) if front else None,
        front=[_choice(planned, one) for one in front],
        near=_choice(planned, timed(planned, found.near, costs)) if found.near is not None and not front else None,
    )


class _Found:
    """What a search has found so far.

    Attributes:
        divide: Layouts that divide.
        fitting: What fits, with about what a step takes.
        near: What comes closest to fitting.
    """

    def __init__(self, planned: Planned, costs: CollectiveCosts) -> None:
        self.divide = 0
        self.fitting: list[Candidate] = []
        self.near: Candidate | None = None
        self._planned, self._costs = planned, costs
        self._squeezed: list[Candidate] = []

    def add(self, layout: Layout, works: Sequence[Work]) -> None:
        """Try a layout with each work; a larger micro-batch than one that does not fit is not weighed."""
        planned = self._planned
        too_large: dict[Any, int] = {}
        for work in works:
            if complaints(planned.model, layout, work):
                continue
            self.divide += 1
            if work.micro_batch > too_large.get(work.recompute, work.micro_batch):
                continue
            one = weigh(planned, layout, work)
            if one.needed_bytes <= planned.limit_bytes:
                self.fitting.append(replace(one, period_s=self._about(one)))
                continue
            too_large[work.recompute] = work.micro_batch
            if work.recompute == "none":
                self._squeezed.append(one)
            if self.near is None or one.needed_bytes < self.near.needed_bytes:
                self.near = one

    def front(self) -> list[Candidate]:
        """Return the Pareto front, its times simulated; and what fits with the least recomputation, where it is fast.

        What is about as good as the front is simulated, for an estimate may be off by so much.
        """
        close = [replace(one, period_s=one.period_s * (1 - _ESTIMATE_ERROR)) for one in self.fitting]
        kept = {one.identity() for one in pareto_front(self.fitting)}
        rivals = _not_beaten(close, pareto_front(self.fitting))
        exact = [timed(self._planned, one, self._costs) for one in self.fitting if one.identity() in kept | rivals]
        return pareto_front([*exact, *self._least_recomputed(exact)])

    def _least_recomputed(self, exact: Sequence[Candidate]) -> Iterator[Candidate]:
        """Yield layouts that fit with some layers computed again, as long as they can be faster than all others."""
        planned = self._planned
        if FIT not in _policies(planned.search.get("recompute", list(_POLICIES))):
            return
        best_s = min((one.period_s for one in exact), default=inf)
        ahead = sorted(((self._about(one), place) for place, one in enumerate(self._squeezed)))
        for about_s, place in ahead[:_SQUEEZED_MOST]:
            if about_s * (1 - _ESTIMATE_ERROR) >= best_s:
                return
            layout, work = self._squeezed[place].layout, self._squeezed[place].work
            policies = fit_recompute(planned.model, layout, work, planned.limit_bytes, optimizer=planned.optimizer)
            if policies is not None:
                work = replace(work, recompute_layers=policies)
                one = timed(planned, weigh(planned, layout, work), self._costs)
                best_s = min(best_s, one.period_s)
                yield one

    def _about(self, one: Candidate) -> float:
        planned = self._planned
        step = estimate_step_time(
            planned.model, self._costs, one.layout, one.work, planned.calibration, planned.software
        )
        return step.total_s


def _not_beaten(candidates: Sequence[Candidate], front: Sequence[Candidate]) -> set[tuple[Layout, Work]]:
    """Return what would not be beaten by the front, had it the shorter time that its estimate may hide."""
    return {
        one.identity()
        for one in candidates
        if not any(
            other.period_s <= one.period_s
            and other.needed_bytes <= one.needed_bytes * _ALIKE
            and other.layout.world <= one.layout.world
            for other in front
        )
    }


def weigh(planned: Planned, layout: Layout, work: Work) -> Candidate:
    """Return what a layout needs of a device's memory."""
    memory = device_memory(planned.model, layout, work, optimizer=planned.optimizer)
    return Candidate(layout, work, memory.needed_bytes)


def timed(planned: Planned, candidate: Candidate, costs: CollectiveCosts) -> Candidate:
    """Return a layout with what a step takes."""
    step = step_time(planned.model, costs, candidate.layout, candidate.work, planned.calibration, planned.software)
    return replace(candidate, period_s=step.total_s)


def pareto_front(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return those than which no other is as good in time, memory and devices; the fastest first.

    Memory that differs by less than half a percent is as good: no plan tells it to that.
    """
    front: list[Candidate] = []
    for one in sorted(candidates, key=Candidate.key):
        _, needed, world = one.key()
        # All that stand before it are as fast or faster: it is kept where none of them is as good in the rest.
        if not any(other.needed_bytes <= needed * _ALIKE and other.layout.world <= world for other in front):
            front.append(one)
    return front


def _layouts(planned: Planned) -> Iterator[Layout]:
    """Yield every layout that is to be tried."""
    given = planned.search
    tp, pp, ep = _degrees(planned)
    cp = given.get("cp", [planned.layout.cp])
    zero = given.get("zero", sorted({planned.layout.zero, *_ZERO}))
    chunks = given.get("vp", list(_CHUNKS))
    for devices in given.get("devices", [planned.devices]):
        for degrees in product(tp, pp, cp, ep, zero, chunks):
            layout = _layout(planned, devices, degrees)
            if layout is not None:
                yield layout


def _works(planned: Planned) -> list[Work]:
    """Return every micro-batch and policy that is to be tried, smaller micro-batches first, and the plan's own."""
    given = planned.search
    policies = [policy for policy in _policies(given.get("recompute", list(_POLICIES))) if policy != FIT]
    works = [
        replace(planned.work, micro_batch=micro_batch, recompute=policy, recompute_layers=())
        for policy in policies or ["none"]
        for micro_batch in sorted(given.get("micro_batch", list(_MICRO_BATCHES)))
    ]
    return works if planned.work in works else [planned.work, *works]


def _policies(given: Any) -> list[Any]:
    return [given] if isinstance(given, str) else list(given)


def _degrees(planned: Planned) -> tuple[list[int], list[int], list[int]]:
    """Return the degrees of tensor, pipeline and expert parallelism to try where the plan does not say."""
    model, given = planned.model, planned.search
    node = planned.cluster.node_size or planned.devices
    most_devices = max(given.get("devices", [planned.devices]))
    tp = [degree for degree in _powers(min(node, most_devices)) if model.heads % degree == 0]
    pp = [degree for degree in range(1, min(model.layers, most_devices) + 1) if most_devices % degree == 0]
    ep = [degree for degree in _powers(most_devices) if model.experts.count % degree == 0] if model.experts else [1]
    return given.get("tp", tp), given.get("pp", pp), given.get("ep", ep)


def _powers(most: int) -> list[int]:
    return [1 << power for power in range(most.bit_length())]


def _layout(planned: Planned, devices: int, degrees: tuple[int, ...]) -> Layout | None:
    """Return a layout on so many devices; None where the degrees do not divide them, or say the same as others do."""
    tp, pp, cp, ep, zero, vp = degrees
    if devices % (tp * pp * cp) or (pp == 1 and vp > 1):
        return None
    own = planned.layout
    dp = devices // (tp * pp * cp)
    schedule = own.schedule
    if schedule in _OWN_CHUNKS and pp > 1:
        if vp != _OWN_CHUNKS[schedule]:
            return None
    else:
        schedule = "interleaved" if vp > 1 else "1f1b"
    sp = tp > 1 and (own.sp or own.tp == 1)
    zero = zero if dp * cp > 1 else 0
    return replace(own, tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, vp=vp, sp=sp, zero=zero, schedule=schedule, chunk_layers=())


def _policy_text(work: Work) -> str:
    if not work.recompute_layers:
        return work.recompute
    again = [policy for policy in work.recompute_layers if policy != "none"]
    return f"{'+'.join(dict.fromkeys(again))} {len(again)}/{len(work.recompute_layers)}" if again else "none"


def _choice(planned: Planned, one: Candidate) -> PlanChoice:
    layout, work = one.layout, one.work
    flops = planned.flops_per_token()
    peak = planned.cluster.device.peak(work.dtype)
    return PlanChoice(
        label=layout.label(),
        layout={name: getattr(layout, name) for name in _WRITTEN},
        micro_batch=work.micro_batch,
        recompute=_policy_text(work),
        devices=layout.world,
        period_ns=round(one.period_s * NS_PER_S),
        ns_per_token_device=one.period_s * NS_PER_S * layout.world / work.tokens,
        peak_bytes=round(one.needed_bytes),
        share=work.tokens / one.period_s * flops / (layout.world * peak),
        is_plan=layout == planned.layout and work == planned.work,
    )
