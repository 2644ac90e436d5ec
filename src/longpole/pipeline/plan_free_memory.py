"""What saved memory would buy: which micro-batch would fit, and what a token would then take.

Two kinds of rows. A *change* saves something and may cost time: its own step is computed. A *bound* takes a part of the
memory as if it were nothing and free: no change that saves (part of) it can buy more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from longpole.costs.layout import complaints
from longpole.costs.memory import device_memory
from longpole.pipeline.plan_parts import policy_text
from longpole.pipeline.plan_search import Candidate, timed
from longpole.records.ledger import Unknown
from longpole.report.plan import MEMORY_PARTS
from longpole.report.plan_asked import PlanSaving
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.costs.collective_time import CollectiveCosts
    from longpole.costs.layout import Layout, Recompute, Work
    from longpole.pipeline.plan_config import Planned

_MOST: Final = 1 << 16  # sequences of a micro-batch
_NOTHING_FITS: Final = Unknown("not even one sequence fits")
_NOT_DIVIDING: Final = Unknown("no micro-batch that fits divides the sequences of a replica")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saving:
    """One thing to save.

    Attributes:
        saved: The part of the memory.
        how: The change; empty for a bound.
        layout, work, optimizer: With the change.
        free: Part that counts as nothing.
    """

    saved: str
    how: str
    layout: Layout
    work: Work
    optimizer: str
    free: str = ""

    def many(self, micro_batch: int, micro_batches: int) -> Work:
        """Return the work with so many micro-batches, whatever the global batch."""
        whole = self.layout.dp * micro_batch * micro_batches
        return replace(self.work, micro_batch=micro_batch, global_batch=whole)

    def needed_bytes(self, planned: Planned, work: Work) -> float:
        """Return peak and margin, the free part left out."""
        memory = device_memory(planned.model, self.layout, work, optimizer=self.optimizer)
        if not self.free:
            return memory.needed_bytes
        allocated = self.free != "buffers"  # the margin is a share of what the allocator holds
        return max(
            stage.peak_bytes + stage.margin_bytes - (1.0 + allocated * stage.margin_share) * stage.parts()[self.free]
            for stage in memory.stages
        )


def find_savings(planned: Planned, costs: CollectiveCosts) -> list[PlanSaving]:
    """Return what each saving would buy, first what the memory that is free already buys.

    Changes that the plan has already are left out. Times are compared with the plan as it stands, as if it fitted.
    """
    itself = _plan_itself(planned)
    step = timed(planned, Candidate(planned.layout, planned.work, 0.0), costs)
    own = step.period_s * NS_PER_S / planned.work.tokens
    return [_row(planned, saving, costs, own) for saving in (itself, *_changes(planned), *_bounds(planned))]


def _plan_itself(planned: Planned) -> _Saving:
    return _Saving(
        saved="nothing",
        how="nothing: what is free already",
        layout=planned.layout,
        work=planned.work,
        optimizer=planned.optimizer,
    )


def _changes(planned: Planned) -> Iterator[_Saving]:
    """Yield changes that save memory, one at a time."""
    layout, work = planned.layout, planned.work
    of_work: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("activations", 'recompute = "selective"', {"recompute": "selective", "recompute_layers": ()}),
        ("activations", 'recompute = "full"', {"recompute": "full", "recompute_layers": ()}),
        ("activations", "flash = true", {"flash": True}),
        ("logits", "fused_loss = true", {"fused_loss": True}),
        ("gradients", "gradient_bytes = 2", {"gradient_bytes": 2}),
    )
    for saved, how, keys in of_work:
        changed = replace(work, **keys)
        if changed != work and not (work.recompute == "full" and "recompute" in keys):
            yield _Saving(saved=saved, how=how, layout=layout, work=changed, optimizer=planned.optimizer)
    of_layout: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("activations", "sp = true", {"sp": layout.tp > 1}),
        ("optimizer", "zero = 1", {"zero": 1}),
        ("gradients", "zero = 2", {"zero": 2}),
        ("weights", "zero = 3", {"zero": 3}),
    )
    for saved, how, keys in of_layout:
        other = replace(layout, **keys)
        if other != layout and other.zero >= layout.zero and not (other.zero and layout.dp * layout.cp == 1):
            yield _Saving(saved=saved, how=how, layout=other, work=work, optimizer=planned.optimizer)
    if planned.optimizer == "adam":
        yield _Saving(saved="optimizer", how='optimizer = "adam-8bit"', layout=layout, work=work, optimizer="adam-8bit")


def _bounds(planned: Planned) -> Iterator[_Saving]:
    for part in MEMORY_PARTS:
        yield _Saving(
            saved=MEMORY_PARTS[part],
            how="",
            layout=planned.layout,
            work=planned.work,
            optimizer=planned.optimizer,
            free=part,
        )


def _row(planned: Planned, saving: _Saving, costs: CollectiveCosts, own_ns_per_token: float) -> PlanSaving:
    before = device_memory(planned.model, planned.layout, planned.work, optimizer=planned.optimizer).needed_bytes
    most = _largest_fitting(planned, saving)
    fastest = _fastest(planned, saving, costs)
    row = PlanSaving(
        saved=saving.saved,
        how=saving.how,
        saves_bytes=round(before - saving.needed_bytes(planned, saving.work)),
        micro_batch=_NOTHING_FITS,
        recompute=_NOTHING_FITS,
        fits_at_most=most,
        period_ns=_NOTHING_FITS,
        ns_per_token=_NOTHING_FITS,
        change_share=_NOTHING_FITS,
        bound=bool(saving.free),
    )
    if fastest is None:
        why = _NOT_DIVIDING if most else _NOTHING_FITS
        row.micro_batch = row.recompute = row.period_ns = row.ns_per_token = row.change_share = why
        return row
    ns_per_token = fastest.period_s * NS_PER_S / fastest.work.tokens
    row.micro_batch = fastest.work.micro_batch
    row.recompute = policy_text(fastest.work)
    row.period_ns = round(fastest.period_s * NS_PER_S)
    row.ns_per_token = ns_per_token
    row.change_share = ns_per_token / own_ns_per_token - 1
    return row


def _largest_fitting(planned: Planned, saving: _Saving) -> int:
    """Return the largest micro-batch that fits, 0 for none: doubled until it does not, then halved in."""
    micro_batches = planned.work.micro_batches(planned.layout)

    def fits(micro_batch: int) -> bool:
        return saving.needed_bytes(planned, saving.many(micro_batch, micro_batches)) <= planned.limit_bytes

    if not fits(1):
        return 0
    low, high = 1, 2
    while high <= _MOST and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _lighter(own: Work, changed: Work) -> list[Work]:
    """Return the changed work, and with less recomputation where the change is not about that."""
    policy = (own.recompute, own.recompute_layers)
    if policy == ("none", ()) or (changed.recompute, changed.recompute_layers) != policy:
        return [changed]
    lighter: tuple[Recompute, ...] = ("none",) if own.recompute == "selective" else ("none", "selective")
    return [changed, *(replace(changed, recompute=one, recompute_layers=()) for one in lighter)]


def _fastest(planned: Planned, saving: _Saving, costs: CollectiveCosts) -> Candidate | None:
    """Return the shortest step, of micro-batches that fit and divide the sequences of a replica.

    Where the plan computes activations again, saved memory can also be spent on computing fewer of them again.
    """
    of_replica = planned.work.global_batch // saving.layout.dp
    works = [
        replace(work, micro_batch=micro_batch)
        for work in _lighter(planned.work, saving.work)
        for micro_batch in range(1, of_replica + 1)
        if of_replica % micro_batch == 0
    ]
    tried = [
        timed(planned, Candidate(saving.layout, work, 0.0), costs)
        for work in works
        if not complaints(planned.model, saving.layout, work)
        and saving.needed_bytes(planned, work) <= planned.limit_bytes
    ]
    return min(tried, key=Candidate.key, default=None)
