"""The verdict on a change, from the answers to the single questions (DESIGN 3.11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from longpole.advice.verify.contract import check_contract
from longpole.advice.verify.differences import Comparison, compare_sides
from longpole.advice.verify.effect import Design, measure_effect
from longpole.advice.verify.limits import judge_limits, side_figures, spread_of
from longpole.advice.verify.part import find_moved, is_sporadic, measure_part
from longpole.advice.verify.prediction import compare_prediction
from longpole.advice.verify.wording import part_noun
from longpole.records.ledger import Unknown
from longpole.records.verdict import (
    ContractItem,
    Difference,
    Effect,
    Limit,
    Moved,
    Needs,
    Part,
    Predicted,
    RunSpread,
    SideFigure,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.verify.contract import Metric
    from longpole.advice.verify.limits import LimitGiven
    from longpole.advice.verify.prediction import Forecast
    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings

Decision: TypeAlias = tuple[str, str, str, Needs]

_NO_PART: Final = "the sides cannot be compared"
_NOTHING: Final = Needs(0, [], "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a change.

    Attributes:
        design: How runs are compared.
        part: What must shrink; empty for the object that fell most.
        part_from: `given` or `candidate`.
        limits: What the after side must keep.
        metrics: Quality, beside what records hold.
        allowed: Differences that are the change itself.
        forecast: What was predicted; None where nothing was asked.
    """

    design: Design
    part: str = ""
    part_from: str = "given"
    limits: Sequence[LimitGiven] = ()
    metrics: Sequence[Metric] = ()
    allowed: frozenset[str] = field(default=frozenset())
    forecast: Forecast | None = None


@dataclass(slots=True, kw_only=True)
class Judgement:
    """The verdict, and everything that it rests on."""

    verdict: str
    reason: str
    says: str
    comparison: Comparison
    effect: Effect | Unknown
    part: Part | Unknown
    moved: Moved
    limits: list[Limit]
    contract: list[ContractItem]
    differences: list[Difference]
    predicted: Predicted | Unknown
    needs: Needs
    figures: list[SideFigure]
    spread_before: RunSpread
    spread_after: RunSpread
    also: list[str]


def judge(before: Sequence[RunRecord], after: Sequence[RunRecord], question: Question, settings: Settings) -> Judgement:
    """Say whether a change did what it was made for.

    Args:
        before: Records of runs before the change, at least one.
        after: Records of runs after it, at least one.
        question: What is asked.
        settings: Thresholds.
    """
    comparison = compare_sides(before, after, settings, question.allowed)
    contract = check_contract(comparison, question.metrics)
    limits = judge_limits(comparison, question.limits, settings)
    common = {
        "comparison": comparison,
        "limits": limits,
        "contract": contract,
        "differences": comparison.differences,
        "figures": side_figures(comparison, settings),
        "spread_before": spread_of(comparison.before, settings),
        "spread_after": spread_of(comparison.after, settings),
    }
    if comparison.obstacle is not None:
        why = comparison.obstacle
        reason = "items_unknown" if comparison.items_obstacle() else "not_comparable"
        needs = _needs_to_compare(comparison, why)
        return Judgement(
            verdict="not verifiable",
            reason=reason,
            says=f"time per item cannot be compared: {why.unknown}",
            effect=why,
            part=Unknown(_NO_PART),
            moved=Moved([], [], "", ""),
            predicted=Unknown(_NO_PART),
            needs=needs,
            also=[],
            **common,  # type: ignore[arg-type]  # of the types of the fields
        )
    part = measure_part(comparison, question.design, settings, question.part, question.part_from)
    sporadic = is_sporadic(comparison, part, question.design.threshold)
    effect, needs = measure_effect(comparison, question.design.settled(sporadic=sporadic), settings)
    moved = find_moved(comparison, part, effect, settings)
    predicted: Predicted | Unknown = Unknown("no candidate and no change was named")
    if question.forecast is not None:
        predicted = compare_prediction(question.forecast, effect, batch_changed=comparison.batch_changed)
    answers = _Answers(effect, part, moved, limits, contract, needs, settings)
    chose_mean = sporadic and question.design.statistic == "auto"
    verdict, reason, says, needs = answers.decide()
    return Judgement(
        verdict=verdict,
        reason=reason,
        says=says,
        effect=effect,
        part=part,
        moved=moved,
        predicted=predicted,
        needs=needs,
        also=[f"means are compared: {part_noun(part.part)} lies in few of the units"] * chose_mean + answers.also(),
        **common,  # type: ignore[arg-type]  # of the types of the fields
    )


def _needs_to_compare(comparison: Comparison, why: Unknown) -> Needs:
    """Say what would make two sides comparable; a difference that was meant can be declared."""
    fields = list(dict.fromkeys(why.missing))
    says = f"needed: {', '.join(fields)}"
    keys = [d.key for d in comparison.differences if d.severity == "void" and d.what in ("devices", "versions")]
    if keys:
        says = f"needed: runs that agree in {', '.join(keys)}; or, where that is the change, --allow {keys[0]}"
    return Needs(0, fields, says)


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers to the single questions; `decide` weighs them in the order of what outweighs what."""

    effect: Effect
    part: Part
    moved: Moved
    limits: list[Limit]
    contract: list[ContractItem]
    needs: Needs
    settings: Settings

    def decide(self) -> Decision:
        """Return verdict, reason, sentence, and what would settle it.

        What is broken is broken however fast it is; then what is missing; then time, the part and the limits.
        """
        steps = (self._broken, self._missing, self._moved, self._unsettled, self._by_limits, self._not_faster)
        decisions = (step() for step in steps)
        return next((decision for decision in decisions if decision is not None), None) or self._faster()

    def _broken(self) -> Decision | None:
        broken = [item.says for item in self.contract if item.status == "broken"]
        return ("rejected", "contract", "; ".join(broken), _NOTHING) if broken else None

    def _missing(self) -> Decision | None:
        """Refuse where something asked for is not known, unless what is known rejects the change anyway."""
        says = [item.says for item in self.contract if item.status == "unknown"]
        says += [limit.says for limit in self.limits if limit.status == "unknown"]
        if not says or self._broken_limits():
            return None
        fields = [item.name for item in self.contract if item.status == "unknown"]
        fields += [limit.figure for limit in self.limits if limit.status == "unknown"]
        return "not verifiable", "fields_missing", "; ".join(says), Needs(0, fields, f"needed: {', '.join(fields)}")

    def _broken_limits(self) -> list[Limit]:
        return [limit for limit in self.limits if limit.status == "broken"]

    def _moved(self) -> Decision | None:
        return ("rejected", "moved", self.moved.says, _NOTHING) if self._has_moved() else None

    def _has_moved(self) -> bool:
        """Tell whether a part shrank and the item did not follow.

        Either the item takes as long as before or longer; or, where that is not sure, even the best case of the
        interval is far from what the part gave up.
        """
        if self.part.shrank != "yes" or self.effect.answer == "faster":
            return False
        if self.effect.answer == "slower":
            # Nobody said that this part was to shrink: then what counts is that something else grew by more.
            return self.part.chosen != "fell most"
        if self.effect.answer == "same":
            return True
        effect, part = self.effect, self.part
        known = isinstance(effect.interval, list) and isinstance(part.change_ns, int)
        if not known or isinstance(effect.estimate, Unknown) or isinstance(effect.before_ns, Unknown):
            return False
        assert isinstance(effect.interval, list)
        assert isinstance(part.change_ns, int)
        best_case_ns = -effect.interval[0] * effect.before_ns
        arrived = best_case_ns < self.settings.verify_arrived_max_share * -part.change_ns
        return arrived and effect.estimate > -effect.threshold

    def _unsettled(self) -> Decision | None:
        if self.effect.answer != "unsettled":
            return None
        broken = self._broken_limits()
        if broken:
            return "rejected", "limit", "; ".join(limit.says for limit in broken), _NOTHING
        reason = "spread" if isinstance(self.effect.interval, list) else "few_samples"
        return "inconclusive", reason, self.effect.says, self.needs

    def _by_limits(self) -> Decision | None:
        """Judge by limits where one is broken though the item is faster, or came closer though it is slower."""
        broken = self._broken_limits()
        better = [limit for limit in self.limits if limit.trend == "better"]
        told = "; ".join(limit.says for limit in (*broken, *(limit for limit in better if limit not in broken)))
        if self.effect.answer == "faster" and broken:
            if better:
                return "mixed", "limits", f"{self.effect.says}; {told}", _NOTHING
            return "rejected", "limit", told, _NOTHING
        if self.effect.answer == "slower" and better:
            return "mixed", "limits", f"{self.effect.says}; {told}", _NOTHING
        return None

    def _not_faster(self) -> Decision | None:
        reason = {"same": "no_effect", "slower": "worse"}.get(self.effect.answer)
        return ("rejected", reason, self.effect.says, _NOTHING) if reason is not None else None

    def _faster(self) -> Decision:
        """Accept what is faster because of its part; where no part was asked for, what is faster."""
        if self.part.chosen != "fell most":
            doubt = self._part_in_doubt()
            if doubt is not None:
                return doubt
        unsettled = [item for item in self.contract if item.status == "unsettled"]
        if unsettled:
            says = "; ".join(item.says for item in unsettled)
            needs = Needs(0, [item.name for item in unsettled], "needed: more repetitions of what measures quality")
            return "inconclusive", "quality", says, needs
        because = f"; {self.part.says}" if self.part.shrank == "yes" else ""
        return "accepted", "faster", f"{self.effect.says}{because}", _NOTHING

    def _part_in_doubt(self) -> Decision | None:
        if isinstance(self.part.change_ns, Unknown):
            missing = self.part.change_ns.missing
            needs = Needs(0, missing, f"needed: {', '.join(missing)}")
            return "not verifiable", "fields_missing", self.part.says, needs
        if self.part.shrank == "no":
            return "mixed", "part", f"{self.effect.says}, but {self.part.says}", _NOTHING
        if self.part.shrank == "unsettled":
            needs = Needs(self.effect.runs.after, [], "about as many runs again would tell whether the part shrank")
            return "inconclusive", "spread", f"{self.effect.says}; {self.part.says}", needs
        return None

    def also(self) -> list[str]:
        """Return what else a reader should know: a statistic that disagrees, a limit broken by a rejected change."""
        found = []
        effect = self.effect
        both = not isinstance(effect.estimate, Unknown) and not isinstance(effect.mean_estimate, Unknown)
        if both and abs(effect.estimate - effect.mean_estimate) > effect.threshold:  # type: ignore[operator]
            name = "mean" if effect.statistic.startswith("median") else "median"
            share = f"{100 * effect.mean_estimate:+.1f} %"  # type: ignore[operator]  # a number, see above
            found.append(f"the {name} changed by {share}: the distribution changed in shape, not only in place")
        if isinstance(self.part.change_ns, Unknown) and self.part.chosen != "fell most":
            found.append(f"whether {part_noun(self.part.part)} shrank is not known: {self.part.change_ns.unknown}")
        return found
