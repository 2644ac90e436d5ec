"""The document of `longpole buckets`: what was recorded, the curve under a cost, the best cap and a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from longpole.costs.overlap import BEST_CAP_BYTES
from longpole.digest.steady import real_units
from longpole.pipeline.bucket_cost import RecordedTimes, find_model
from longpole.pipeline.version import package_version
from longpole.ranks.cost_model import Model
from longpole.records.ledger import Unknown
from longpole.report.buckets import (
    SCHEMA,
    BestCap,
    BucketCheck,
    BucketCost,
    Buckets,
    CapPoint,
    CapRange,
    GradientsEntry,
    RecordedBuckets,
)
from longpole.report.build import run_summary
from longpole.report.collectives import written_model
from longpole.units import NS_PER_S, format_ns
from longpole.whatif.bucket_sweep import Cost, Gradients, is_torch_default, recorded_caps, sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.gradients import GradientPass
    from longpole.digest.across import Across
    from longpole.digest.jobs import Run
    from longpole.digest.rank_digest import RankDigest
    from longpole.digest.steady import Steady
    from longpole.report.document import SelectionEntry
    from longpole.settings import Settings
    from longpole.timeline.timeline import Timeline
    from longpole.whatif.bucket_sweep import Point, Sweep

MIB: Final = 1 << 20
CANNOT_KNOW: Final = (
    "how much computing slows down beside communication: gradients are taken to be ready when they were recorded so",
    "what else a communication stream carries, and what a communication hook computes on each bucket",
)
_ONE_RANK: Final = "when other ranks' gradients are ready: taken to be no later than this rank's"
_AT_ONCE: Final = "what buckets cost that run at once, as these did: they are taken to run one after another"
_SPREAD: Final = "where inside a recorded bucket its bytes lie: spread over its gradients, so smaller caps are a guess"
_NO_SIZES: Final = ["shapes (record_shapes=True), or the sizes that torch 2.2 and newer write for collectives"]
_MISFIT_MAX: Final = 3.0  # recorded over model, either way, up to which a model can be this run's (our choice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was read, and what was asked.

    Attributes:
        digest: The rank whose gradients these are.
        timeline: Its record.
        passes: Its backward passes, at least one.
        sized: The same with sizes, or why these are not known.
        run: All ranks.
        across: Their collectives.
        steady: Their units.
        stated: Latency in seconds and bytes per second of an all-reduce, as the user says.
        selection: What part of the run was read.
        settings: Thresholds.
    """

    digest: RankDigest
    timeline: Timeline
    passes: Sequence[GradientPass]
    sized: Gradients | str
    run: Run
    across: Across | None
    steady: Steady
    stated: tuple[float, float] | None
    selection: SelectionEntry
    settings: Settings


def answer_buckets(asked: Question) -> Buckets:
    """Sweep the caps as far as sizes and a cost are known, and judge."""
    sized = asked.sized
    swept: Sweep | None = None
    cost: BucketCost | Unknown = Unknown(sized, _NO_SIZES) if isinstance(sized, str) else _cost(asked, sized)
    check: BucketCheck | Unknown
    best: BestCap | Unknown
    if isinstance(cost, Unknown) or isinstance(sized, str):
        why = cost if isinstance(cost, Unknown) else Unknown("not swept")
        check = best = why
    else:
        price = Cost(cost.model.alpha_ns, cost.model.gamma, cost.model.gb_per_s, cost.factor)
        swept = sweep(sized, price)
        check = _check(sized, swept.recorded, _waiting_ns(asked))
        best = _best(asked, sized, swept, price)
    verdict, says = _verdict(asked, best, check, cost)
    return Buckets(
        schema=SCHEMA,
        longpole=package_version(),
        run=run_summary(asked.run.digests, asked.selection),
        rank=asked.digest.rank,
        device=asked.digest.rows[0].device_name or asked.digest.rows[0].device,
        unit_kind=real_units(asked.digest.rows[0].units)[0].kind,
        units=len(_passes(asked)),
        period_ns=_period_ns(asked),
        verdict=verdict,
        says=says,
        gradients=_gradients(asked),
        recorded=_recorded(asked),
        cost=cost,
        check=check,
        curve=_curve(swept, sized) if swept is not None and isinstance(sized, Gradients) else [],
        best=best,
        cannot_know=_cannot_know(asked),
    )


def _passes(asked: Question) -> Sequence[GradientPass]:
    return asked.passes if isinstance(asked.sized, str) else asked.sized.passes


def _period_ns(asked: Question) -> int | Unknown:
    periods = list(asked.steady.periods.values())
    return round(median(periods)) if periods else Unknown("a single unit was recorded", ["two units or more"])


def _ranks(asked: Question) -> int:
    """Return how many ranks reduce the gradients, 0 where not known."""
    instances = asked.digest.instances
    group = int(instances.column("group")[asked.passes[0].buckets[0].instance])
    size = instances.groups[group].size if group >= 0 else None
    return size or asked.digest.world_size or 0


def _cost(asked: Question, sized: Gradients) -> BucketCost | Unknown:
    """Find a cost, and hold it against the recorded buckets."""
    ranks = _ranks(asked)
    times = RecordedTimes(sized, asked.digest.rank, asked.across)
    if asked.stated is not None:
        latency_s, bytes_per_s = asked.stated
        model: Model | Unknown = Model(latency_s * NS_PER_S, 0.0, bytes_per_s / NS_PER_S, "stated", "--cost")
    else:
        device = asked.digest.rows[0].device_name, len(asked.timeline.device_names)
        model = find_model(device, ranks, times, asked.run.recorded, asked.settings)
    if isinstance(model, Unknown):
        return model
    over = times.over(model)
    is_met = times.is_split and isinstance(over, float) and asked.stated is None
    return BucketCost(
        model=written_model(model),
        ranks=ranks,
        recorded_over_model=over,
        recorded_as="transfer" if times.is_split else "duration",
        factor=over if is_met and isinstance(over, float) else 1.0,
    )


def _check(sized: Gradients, predicted: Point, waiting_ns: int | Unknown) -> BucketCheck:
    recorded_ns = round(median(one.exposed_ns for one in sized.passes))
    recorded_ns -= waiting_ns if isinstance(waiting_ns, int) else 0
    return BucketCheck(predicted.exposed_ns, recorded_ns, predicted.exposed_ns - recorded_ns)


def _waiting_ns(asked: Question) -> int | Unknown:
    """Return the median of what exposed buckets waited for other ranks."""
    if isinstance(asked.sized, str):
        return Unknown(asked.sized, _NO_SIZES)
    times = RecordedTimes(asked.sized, asked.digest.rank, asked.across)
    found = [times.waiting_ns(one) for one in asked.sized.passes]
    known = [one for one in found if isinstance(one, int)]
    return round(median(known)) if known else found[0]


def _best(asked: Question, sized: Gradients, swept: Sweep, cost: Cost) -> BestCap:
    backward_s = median(sized.backward_s(one) for one in sized.passes)
    inputs = {"G": sized.total_bytes, "alpha": cost.factor * cost.alpha_ns / NS_PER_S, "T": backward_s}
    saving_ns = swept.recorded.exposed_ns - swept.best.exposed_ns
    return BestCap(
        cap_bytes=round(swept.best.cap_bytes),
        exposed_ns=swept.best.exposed_ns,
        least_ns=swept.least_ns,
        late_bytes=round(swept.late_bytes),
        saving_ns=saving_ns,
        saving_share=saving_ns / _wall_ns(asked),
        low_bytes=round(swept.best_low_bytes),
        high_bytes=round(swept.best_high_bytes),
        formula_bytes=round(swept.formula_bytes)
        if swept.is_bound
        else Unknown(
            "communication takes less than the backward pass, so G*sqrt(alpha/T) is not where the curve is lowest"
        ),
        formula=BEST_CAP_BYTES.explain(**inputs) if backward_s > 0 else "",
    )


def _wall_ns(asked: Question) -> int:
    """Return the median period, the longest unit where there is none."""
    period_ns = _period_ns(asked)
    if isinstance(period_ns, int):
        return period_ns
    return max(unit.ledger.wall_ns for unit in real_units(asked.digest.rows[0].units))


def _curve(swept: Sweep, sized: Gradients) -> list[CapPoint]:
    guessed_below = 0.0
    if sized.sizes == "within buckets":
        guessed_below = max(bucket.bytes for bucket in sized.recorded_buckets(sized.passes[0]))
    return [
        CapPoint(
            cap_bytes=round(point.cap_bytes),
            buckets=point.buckets,
            exposed_ns=point.exposed_ns,
            hidden_ns=max(point.communication_ns - point.exposed_ns, 0),
            communication_ns=point.communication_ns,
            assumed=point.cap_bytes < guessed_below,
        )
        for point in swept.curve
    ]


def _gradients(asked: Question) -> GradientsEntry:
    sized = asked.sized
    backward_ns = round(median(max(one.end_ns - one.start_ns, 0) for one in _passes(asked)))
    if isinstance(sized, str):
        why = Unknown(sized, _NO_SIZES)
        return GradientsEntry(len(asked.passes[0].ready_ns), why, why, 0, backward_ns)
    return GradientsEntry(len(sized.size_bytes), round(sized.total_bytes), sized.sizes, sized.skipped, backward_ns)


def _recorded(asked: Question) -> RecordedBuckets:
    passes = _passes(asked)
    sizes: list[int] | Unknown
    if isinstance(asked.sized, str):
        sizes = Unknown(asked.sized, _NO_SIZES)
    else:
        sizes = [round(bucket.bytes) for bucket in asked.sized.recorded_buckets(passes[0])]
    return RecordedBuckets(
        sizes_bytes=sizes,
        cap=_cap(asked.sized),
        exposed_ns=round(median(one.exposed_ns for one in passes)),
        waiting_ns=_waiting_ns(asked),
        communication_ns=round(median(sum(b.end_ns - b.start_ns for b in one.buckets) for one in passes)),
        overlapping=_overlapping(passes),
    )


def _overlapping(passes: Sequence[GradientPass]) -> bool:
    return any(later.start_ns < earlier.end_ns for one in passes for earlier, later in pairwise(one.buckets))


def _cap(sized: Gradients | str) -> CapRange | Unknown:
    if isinstance(sized, str):
        return Unknown(sized, _NO_SIZES)
    if sized.sizes == "within buckets":
        return Unknown("the size of each gradient is not known", _NO_SIZES)
    caps = recorded_caps(sized)
    if caps is None:
        return Unknown("no cap makes these buckets of gradients in the order in which they became ready")
    above, until, others_above, others_until = caps
    return CapRange(
        above_bytes=round(others_above),
        up_to_bytes=None if math.isinf(others_until) else round(others_until),
        first_above_bytes=round(above),
        first_up_to_bytes=None if math.isinf(until) else round(until),
        torch_default=is_torch_default(caps),
    )


def _verdict(
    asked: Question, best: BestCap | Unknown, check: BucketCheck | Unknown, cost: BucketCost | Unknown
) -> tuple[str, str]:
    """Weigh what the best cap saves against what is worth a change, and against how far off the cost is."""
    if isinstance(best, Unknown) or isinstance(check, Unknown) or isinstance(cost, Unknown):
        return "not known", best.unknown if isinstance(best, Unknown) else "not swept"
    noun = real_units(asked.digest.rows[0].units)[0].kind
    worth = asked.settings.finding_min_share
    saved = format_ns(max(best.saving_ns, 0))
    over = cost.recorded_over_model
    if isinstance(over, float) and cost.factor == 1 and not 1 / _MISFIT_MAX <= over <= _MISFIT_MAX:
        waiting = "" if cost.recorded_as == "transfer" else ", waiting for other ranks included"
        return "cannot tell", (
            f"the recorded buckets took {over:.2g} times what the cost says{waiting}:"
            " either these ranks wait for one another, or the cost is not theirs"
        )
    error_ns = abs(check.error_ns)
    off = f"the recorded buckets come out {format_ns(error_ns)} off under this cost"
    if best.saving_share >= worth and best.saving_ns > error_ns:
        return "change", (
            f"bucket_cap_mb={math.ceil(best.cap_bytes / MIB)} would save {saved} of a {noun},"
            f" {_percent(best.saving_share)} of its period"
        )
    if best.saving_share >= worth or error_ns / _wall_ns(asked) >= worth:
        return "cannot tell", f"the best cap would save {saved} of a {noun}, but {off}"
    return "keep", (
        f"the best cap would save {saved} of a {noun}, {_percent(best.saving_share)};"
        f" less than {_percent(worth)} is not worth a change"
    )


def _percent(share: float) -> str:
    return f"{100 * max(share, 0):.1f} %"


def _cannot_know(asked: Question) -> list[str]:
    found = list(CANNOT_KNOW)
    if _ranks(asked) != 1:
        found.insert(0, _ONE_RANK)
    if isinstance(asked.sized, Gradients) and asked.sized.sizes == "within buckets":
        found.append(_SPREAD)
    if _overlapping(_passes(asked)):
        found.append(_AT_ONCE)
    return found
