"""Other layouts for the same model, devices and batch: which divide, which fit, and which of these are worth a thought.

Every combination of the degrees is tried. What does not divide is left out first, then what does not fit with its
margin, for that is cheap to tell; only what fits is timed. Of these the Pareto front is kept: layouts than which no
other is as good in time, memory and devices and better in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from longpole.costs.layout import Layout, complaints
from longpole.costs.memory import device_memory
from longpole.costs.step import step_time
from longpole.errors import UsageError
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
_POLICIES: Final = ("none", "selective", "full")
_ZERO: Final = (1, 3)
_TOLD_EVERY: Final = 64
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
    tried = list(dict.fromkeys(_combinations(planned)))
    if len(tried) > MOST:
        msg = f"{planned.path}: [search]: {len(tried):,} layouts, more than {MOST:,} can be tried; name fewer values"
        raise UsageError(msg)
    fitting: list[Candidate] = []
    near: Candidate | None = None
    divide = 0
    for place, (layout, work) in enumerate(tried):
        if progress is not None and place % _TOLD_EVERY == 0:
            progress("layouts", place, len(tried))
        if complaints(planned.model, layout, work):
            continue
        divide += 1
        found = weigh(planned, layout, work)
        if found.needed_bytes <= planned.limit_bytes:
            fitting.append(timed(planned, found, costs))
        elif near is None or found.needed_bytes < near.needed_bytes:
            near = found
    front = pareto_front(fitting)
    return PlanSearch(
        considered=len(tried),
        divide=divide,
        fit=len(fitting),
        limit_bytes=round(planned.limit_bytes),
        best=_choice(planned, front[0]) if front else None,
        front=[_choice(planned, one) for one in front],
        near=_choice(planned, timed(planned, near, costs)) if near is not None and not front else None,
    )


def weigh(planned: Planned, layout: Layout, work: Work) -> Candidate:
    """Return what a layout needs of a device's memory."""
    memory = device_memory(planned.model, layout, work, optimizer=planned.optimizer)
    return Candidate(layout, work, memory.needed_bytes)


def timed(planned: Planned, candidate: Candidate, costs: CollectiveCosts) -> Candidate:
    """Return a layout with what a step takes."""
    step = step_time(planned.model, costs, candidate.layout, candidate.work, planned.calibration, planned.software)
    return replace(candidate, period_s=step.total_s)


def pareto_front(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return those than which no other is as good in time, memory and devices and better in one; the fastest first.

    Of several that are alike in all three, the first stays.
    """
    front: list[Candidate] = []
    for one in sorted(candidates, key=Candidate.key):
        _, needed, world = one.key()
        # All that stand before it are as fast or faster: it is kept where none of them is as good in the rest.
        if not any(other.needed_bytes <= needed and other.layout.world <= world for other in front):
            front.append(one)
    return front


def _combinations(planned: Planned) -> Iterator[tuple[Layout, Work]]:
    """Yield the plan's own layout, then every combination of what is to be tried."""
    yield planned.layout, planned.work
    given = planned.search
    tp, pp, ep = _degrees(planned)
    cp = given.get("cp", [planned.layout.cp])
    zero = given.get("zero", sorted({planned.layout.zero, *_ZERO}))
    chunks = given.get("vp", list(_CHUNKS))
    micro_batches = given.get("micro_batch", list(_MICRO_BATCHES))
    policies = _policies(given.get("recompute", list(_POLICIES)))
    for devices in given.get("devices", [planned.devices]):
        for degrees in product(tp, pp, cp, ep, zero, chunks):
            layout = _layout(planned, devices, degrees)
            if layout is not None:
                for micro_batch, policy in product(micro_batches, policies):
                    yield layout, replace(planned.work, micro_batch=micro_batch, recompute=policy, recompute_layers=())


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


def _choice(planned: Planned, one: Candidate) -> PlanChoice:
    layout, work = one.layout, one.work
    default = Layout()
    flops = planned.flops_per_token()
    peak = planned.cluster.device.peak(work.dtype)
    differing = {
        name: getattr(layout, name)
        for name in ("tp", "pp", "dp", "cp", "ep", "etp", "vp", "sp", "zero", "schedule")
        if getattr(layout, name) != getattr(default, name)
    }
    return PlanChoice(
        label=layout.label(),
        layout=differing,
        micro_batch=work.micro_batch,
        recompute=work.recompute if not work.recompute_layers else "by layer",
        devices=layout.world,
        period_ns=round(one.period_s * NS_PER_S),
        ns_per_token_device=one.period_s * NS_PER_S * layout.world / work.tokens,
        peak_bytes=round(one.needed_bytes),
        share=work.tokens / one.period_s * flops / (layout.world * peak),
        is_plan=layout == planned.layout and work == planned.work,
    )
