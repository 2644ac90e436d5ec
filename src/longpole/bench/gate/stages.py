"""Where a change lies: stage by stage, with a correction for looking at many (DESIGN 3.12, bench-io A8).

The stages of a unit are gated beside its period. A stage whose interval lies above 0 after Holm's correction, and whose
estimate reaches the threshold, regressed; it makes the gate fail where it adds at least `min_contribution` of the
period, or is critical. What explains a change of the period is the stage with the largest change the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.verify.sides import part_of_run, part_of_unit, parts_known
from longpole.bench.gate.asked import MIN_PAIRS, STAGE_PART
from longpole.bench.gate.difference import FigureValues, find_amount, find_difference, share_of
from longpole.bench.gate.figures import signed
from longpole.bench.gate.sides import SINGLE_RUN
from longpole.bench.span_units import RESIDUAL
from longpole.records.gate import GateStage
from longpole.records.ledger import Unknown
from longpole.stats.many import adjust_by_holm
from longpole.stats.three_way import IMPROVED, INCONCLUSIVE, REGRESSED, SAME, Bounds
from longpole.units import format_ns
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.verify.sides import Side
    from longpole.bench.gate.asked import Asked
    from longpole.bench.gate.difference import Found
    from longpole.bench.gate.sides import Gated
    from longpole.records.gate import GateFigure
    from longpole.records.run_record import RunRecord
    from longpole.stats.intervals import Interval

REST: Final = "(rest)"

_REST_FROM: Final = 0.01  # of the period: less than this that no stage covers is not worth a line
_STAGE: Final = "stage:"
_SINGLE: Final = Unknown("one process a side: the units of one run say little of a stage", ["several processes a side"])


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a unit, of every process.

    Attributes:
        name: What is shown.
        statistic: `median` or `mean`.
        values: Its time in ns, both sides.
    """

    name: str
    statistic: str
    values: FigureValues


@dataclass(frozen=True, slots=True)
class _Judged:
    part: _Part
    found: Found | None
    amount: Interval | None


@dataclass(frozen=True, slots=True)
class Localised:
    """What the stages say.

    Attributes:
        stages: The largest change first.
        explains: The stage whose change explains that of the period; empty where none can be told.
        says: One sentence on it; empty where the period did not change.
    """

    stages: list[GateStage]
    explains: str
    says: str


def has_stages(gated: Gated) -> bool:
    """Tell whether both sides say what their units are made of, so that a stage can make the gate fail."""
    few = gated.design == SINGLE_RUN or gated.count() < MIN_PAIRS
    return not few and bool(_names(gated))


def find_stages(gated: Gated, asked: Asked, time: GateFigure | None, tail: float) -> Localised:
    """Judge every stage, and say which one explains the change of the period.

    Args:
        gated: Both sides.
        asked: Thresholds.
        time: What was found of the period, None where it is not gated.
        tail: What all stages together may spend on false alarms, each way.
    """
    names = _names(gated)
    if not names:
        return Localised([], "", "")
    before, after = gated.sides()
    period = FigureValues(_periods(before), _periods(after), gated.design)
    judged = [_judge(part, tail) for part in _parts(gated, names, period)]
    total = find_amount(period, tail)
    p_worse = _holm([one.found.p_worse if one.found is not None else 1.0 for one in judged])
    p_better = _holm([one.found.p_better if one.found is not None else 1.0 for one in judged])
    base_ns = float(np.median(period.base))
    stages = [
        _stage(one, (worse, better), asked, tail, _Total(total, base_ns, float(np.median(period.new)) - base_ns))
        for one, worse, better in zip(judged, p_worse, p_better, strict=True)
    ]
    stages.sort(key=lambda stage: -abs(stage.change_ns) if isinstance(stage.change_ns, float) else 0.0)
    explains, says = _explanation(stages, time, total, tail)
    return Localised(stages, explains, says)


@dataclass(frozen=True, slots=True)
class _Total:
    """The change of the period: its interval where there is one, the base, and the plain difference."""

    interval: Interval | None
    base_ns: float
    difference_ns: float

    def can_be_told(self) -> bool:
        """Tell whether the period changed at all, so that shares of its change mean something."""
        return self.interval is not None and (self.interval.low > 0 or self.interval.high < 0)


def _names(gated: Gated) -> list[str]:
    """Return the parts that both sides know: stages where there are some, else objects."""
    known = [parts_known(side) for side in gated.sides()]
    for belongs in (lambda name: name.startswith(_STAGE), lambda name: name in OBJECTS):
        found = [[name for name in names if belongs(name)] for names in known]
        if all(found):
            return list(dict.fromkeys([*found[0], *found[1]]))
    return []


def _periods(side: Side) -> list[float]:
    return [float(np.median(side.times(run))) for run in side.runs]


def _parts(gated: Gated, names: Sequence[str], period: FigureValues) -> list[_Part]:
    parts = [part for name in names if (part := _part(gated, name)) is not None]
    rest = [
        [whole - sum(part.values.base[place] for part in parts) for place, whole in enumerate(period.base)],
        [whole - sum(part.values.new[place] for part in parts) for place, whole in enumerate(period.new)],
    ]
    share = max(abs(float(np.median(own))) / float(np.median(period.base)) for own in rest)
    # With a residual the stages of each unit add up; what is left then is that medians do not.
    whole_is_told = any(part.name == RESIDUAL for part in parts)
    if parts and names[0].startswith(_STAGE) and share >= _REST_FROM and not whole_is_told:
        parts.append(_Part(REST, "difference", FigureValues(rest[0], rest[1], gated.design)))
    return parts


def _part(gated: Gated, name: str) -> _Part | None:
    """Return a part of every process, None where one does not know it; its mean where medians overlook it."""
    medians, means = [], []
    for side in gated.sides():
        own = [_of_run(side, run, name) for run in side.runs]
        if any(one is None for one in own):
            return None
        medians.append([one[0] for one in own if one is not None])
        means.append([one[1] for one in own if one is not None])
    # In most processes, so that a burst of noise in one does not choose the statistic.
    sporadic = any(
        abs(np.median(mean) - np.median(median)) > np.median(mean) / 2
        for mean, median in zip(means, medians, strict=True)
    )
    chosen = means if sporadic else medians
    shown = name.removeprefix(_STAGE)
    return _Part(shown, "mean" if sporadic else "median", FigureValues(chosen[0], chosen[1], gated.design))


def _of_run(side: Side, run: RunRecord, name: str) -> tuple[float, float] | None:
    """Return median and mean of a part over the units of a process, for as many items as a unit of the base has."""
    mean = part_of_run(side, run, name)
    if mean is None:
        return None
    values = [float(part_of_unit(unit, name) or 0) for unit in run.counted()]
    weights = side.weights(run)
    return float(np.median([value / weight for value, weight in zip(values, weights, strict=True)])), mean


def _judge(part: _Part, tail: float) -> _Judged:
    values = part.values
    can_be_a_ratio = min(*values.base, *values.new) > 0 and values.design != SINGLE_RUN
    found = find_difference(values, tail) if can_be_a_ratio else None
    return _Judged(part, found, find_amount(values, tail))


def _holm(p: Sequence[float]) -> list[float]:
    return [float(value) for value in adjust_by_holm(np.array(p, dtype=float))]


def _stage(one: _Judged, p: tuple[float, float], asked: Asked, tail: float, total: _Total) -> GateStage:
    base, new = (float(np.median(own)) for own in (one.part.values.base, one.part.values.new))
    change_ns = one.amount.estimate if one.amount is not None else new - base
    verdict = _verdict(one.found, p, asked, tail)
    critical = one.part.name in asked.critical
    adds = change_ns >= asked.min_contribution * total.base_ns
    share: float | Unknown = Unknown("the change of the period cannot be told from none")
    if total.can_be_told() and total.interval is not None:
        share = change_ns / total.interval.estimate
    none = Unknown("it takes no time in some process, and a change of 0 has no share")
    found = one.found
    spans = [one.amount.low, one.amount.high] if one.amount is not None else None
    return GateStage(
        stage=one.part.name,
        statistic=one.part.statistic,
        base_ns=base,
        new_ns=new,
        change_share=share_of(found.interval.estimate) if found is not None else _plain_share(base, new, none),
        interval_share=_SINGLE if spans is None else none if found is None else _span(found),
        change_ns=change_ns,
        interval_ns=spans if spans is not None else _SINGLE,
        share_of_change=share,
        p_adjusted=(_SINGLE if spans is None else none) if found is None else min(p),
        verdict=verdict,
        critical=critical,
        fails=False if verdict != REGRESSED else _fails(p[0], tail, critical=critical, adds=adds),
        n=min(len(one.part.values.base), len(one.part.values.new)),
    )


def _plain_share(base: float, new: float, none: Unknown) -> float | Unknown:
    return new / base - 1 if base > 0 and new > 0 else none


def _span(found: Found) -> list[float]:
    return [share_of(found.interval.low), share_of(found.interval.high)]


def _fails(p: float, tail: float, *, critical: bool, adds: bool) -> bool:
    """Tell whether a stage makes the gate fail: what stages may spend for that is a part of what the gate may."""
    return p <= STAGE_PART * tail and (critical or adds)


def _verdict(found: Found | None, p: tuple[float, float], asked: Asked, tail: float) -> str:
    """Return what is known of a stage: beyond chance for all stages together, and by the threshold."""
    if found is None:
        return INCONCLUSIVE
    bounds = Bounds.of_share(asked.threshold)
    estimate = found.interval.estimate
    if p[0] <= tail and estimate >= bounds.worse_at:
        return REGRESSED
    if p[1] <= tail and estimate <= bounds.better_at:
        return IMPROVED
    return SAME if found.interval.high < bounds.worse_at else INCONCLUSIVE


def _explanation(
    stages: Sequence[GateStage], time: GateFigure | None, total: Interval | None, tail: float
) -> tuple[str, str]:
    """Name the stage that changed most the way the period did."""
    if time is None or time.verdict not in (REGRESSED, IMPROVED):
        return "", ""
    grows = time.verdict == REGRESSED
    sign = 1.0 if grows else -1.0
    same_way = [s for s in stages if isinstance(s.change_ns, float) and sign * s.change_ns > 0]
    told = [s for s in same_way if isinstance(s.p_adjusted, float) and s.p_adjusted <= tail] or [
        s for s in same_way if s.p_adjusted is _SINGLE or isinstance(s.p_adjusted, Unknown)
    ]
    if not told:
        return "", "no stage's change can be told from none"
    first = max(told, key=lambda s: abs(s.change_ns) if isinstance(s.change_ns, float) else 0.0)
    assert isinstance(first.change_ns, float)
    figures = write_change(first.change_ns, first.interval_ns)
    if total is not None and isinstance(first.share_of_change, float):
        figures += f", {100 * first.share_of_change:.0f} % of the change"
    change = f" ({signed(first.change_share)})" if isinstance(first.change_share, float) else ""
    return first.stage, f"{first.stage} changed by {figures}{change}"


def write_change(change_ns: float, interval_ns: list[float] | Unknown) -> str:
    """Write a change of a time with its interval.

    >>> write_change(5e6, [4e6, 6e6])
    '+5.00 ms [+4.00 ms, +6.00 ms]'
    """
    text = _signed_ns(change_ns)
    if isinstance(interval_ns, Unknown):
        return text
    return f"{text} [{_signed_ns(interval_ns[0])}, {_signed_ns(interval_ns[1])}]"


def _signed_ns(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{format_ns(abs(value))}"
