"""What a journal takes from a verdict: the effect as a speed-up, the expectation, and what else changed."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from longpole.advice.journal.entry import TIME_PER_ITEM
from longpole.records.journal import Expected, Measured
from longpole.records.ledger import Unknown
from longpole.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.verdict import ContractItem, Effect, Limit, Part, Predicted, RunEntry, SideFigure

_LEVEL: Final = 0.9  # of the interval of an effect: each end is missed in one case of twenty


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The parts of a verdict's document that a journal takes; None and empty for what it lacks.

    Attributes:
        verdict: One of `records.verdict.VERDICTS`.
        reason: One of `records.verdict.REASONS`.
        says: The verdict in a sentence.
        candidate: The change that was verified.
        unit_kind: What a unit of work is.
        effect: What it brought.
        part: What became of the part that was to shrink.
        predicted: What the replay said.
        limits: What was limited.
        contract: What had to hold.
        figures: What it may have cost.
        moved: Where the wait went, in a sentence.
        before: The runs before.
        after: The runs after.
    """

    verdict: str
    reason: str = ""
    says: str = ""
    candidate: str = ""
    unit_kind: str = "unit"
    effect: Effect | None = None
    part: Part | None = None
    predicted: Predicted | None = None
    limits: Sequence[Limit] = ()
    contract: Sequence[ContractItem] = ()
    figures: Sequence[SideFigure] = ()
    moved: str = ""
    before: Sequence[RunEntry] = ()
    after: Sequence[RunEntry] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FromVerdict:
    """What a verdict fills into an entry; empty where it says nothing, or where there is none.

    Attributes:
        title: A name for the change.
        verdict: As an entry writes it.
        reason: As an entry writes it.
        says: The verdict in a sentence.
        measured: What the change brought.
        expected: What was predicted.
        part: What became of the part that was to shrink.
        side_effects: Limits, and what grew.
    """

    title: str = ""
    verdict: str = ""
    reason: str = ""
    says: str = ""
    measured: Measured | UnsetType = UNSET
    expected: Expected | UnsetType = UNSET
    part: str = ""
    side_effects: list[str] = field(default_factory=list)


def take_verdict(verdict: Verdict) -> FromVerdict:
    """Return what a verdict fills into an entry."""
    labels = [run.label or run.run_id for run in (*verdict.before[:1], *verdict.after[:1])]
    effects = [limit.says for limit in verdict.limits]
    effects += [item.says for item in verdict.contract if item.status != "held"]
    effects += [figure.says for figure in verdict.figures]
    return FromVerdict(
        title=verdict.candidate or " → ".join(labels),
        verdict=verdict.verdict,
        reason=verdict.reason,
        says=verdict.says,
        measured=_measured(verdict),
        expected=_expected(verdict),
        part=" ".join(text for text in (verdict.part.says if verdict.part else "", verdict.moved) if text),
        side_effects=[text for text in effects if text],
    )


def _measured(verdict: Verdict) -> Measured | UnsetType:
    effect = verdict.effect
    if effect is None or not isinstance(effect.estimate, float | int) or effect.estimate <= -1:
        return UNSET
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET
    if not isinstance(effect.interval, Unknown):
        # Less time is a larger speed-up, so that the ends change places.
        least, most = effect.interval
        if least > -1:
            low, high = speedup_of(most), speedup_of(least)
    before, after, unit = _figures(verdict, effect)
    return Measured(
        speedup_of(effect.estimate),
        low=low,
        high=high,
        level=_LEVEL if isinstance(low, float) else UNSET,
        statistic=effect.statistic,
        before=before,
        after=after,
        unit=unit,
        better="lower" if unit else "",
        runs=[effect.runs.before, effect.runs.after],
        single_run=effect.single_run,
    )


def speedup_of(change: float) -> float:
    """Return the speed-up of a change of time, as a share above −1.

    >>> speedup_of(-0.2), speedup_of(0.0)
    (1.25, 1.0)
    """
    return 1 / (1 + change)


def _figures(verdict: Verdict, effect: Effect) -> tuple[float | UnsetType, float | UnsetType, str]:
    """Return the figures before and after: time per item where items are known, else the period."""
    if effect.per_item:
        sides = [[run.time_per_item_ns for run in runs] for runs in (verdict.before, verdict.after)]
        known = [[float(value) for value in side if isinstance(value, float | int) and value > 0] for side in sides]
        if all(len(known[n]) == len(sides[n]) > 0 for n in (0, 1)):
            return statistics.median(known[0]), statistics.median(known[1]), TIME_PER_ITEM
        return UNSET, UNSET, ""
    ends = [float(value) for value in (effect.before_ns, effect.after_ns) if isinstance(value, float | int)]
    if len(ends) == 2 and min(ends) > 0 and math.isfinite(max(ends)):
        return to_ms(ends[0]), to_ms(ends[1]), f"ms/{verdict.unit_kind}"
    return UNSET, UNSET, ""


def _expected(verdict: Verdict) -> Expected | UnsetType:
    predicted = verdict.predicted
    if predicted is None or not isinstance(predicted.predicted, float | int) or predicted.predicted <= -1:
        return UNSET
    command = f"longpole whatif … {' '.join(predicted.changes)}" if predicted.changes else ""
    error = float(predicted.error_share) if isinstance(predicted.error_share, float | int) else UNSET
    source = command or ("" if verdict.candidate else "the verdict")
    return Expected(speedup_of(predicted.predicted), verdict.candidate, source, error)
