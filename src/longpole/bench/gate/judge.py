"""The gate's answer: every figure, the stages, what may lie behind, and one verdict over all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longpole.bench.gate.asked import STAGE_PART
from longpole.bench.gate.causes import find_reasons
from longpole.bench.gate.figures import INVALID, invalid_figure, judge_figure, signed
from longpole.bench.gate.sides import gate_sides
from longpole.bench.gate.stages import Localised, find_stages, has_stages, write_change
from longpole.stats.looks import ALPHA
from longpole.stats.three_way import IMPROVED, INCONCLUSIVE, REGRESSED, SAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.gate.asked import Asked
    from longpole.bench.gate.sides import Gated
    from longpole.records.gate import GateFigure, GateReason, GateStage
    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings


@dataclass(frozen=True, slots=True)
class Judged:
    """What a gate found.

    Attributes:
        verdict: One of `longpole.records.gate.VERDICTS`.
        reason: Why, in a word: `figure`, `stage`, `noise`, `few_processes`, `not_comparable`, `not_known` or empty.
        says: Why, in a sentence.
        figures: What was gated.
        localised: The stages.
        reasons: Hypotheses; none where nothing became worse.
        gated: The sides.
    """

    verdict: str
    reason: str
    says: str
    figures: list[GateFigure]
    localised: Localised
    reasons: list[GateReason]
    gated: Gated


def judge_records(
    base: Sequence[RunRecord], new: Sequence[RunRecord], asked: Asked, settings: Settings, *, alpha: float = ALPHA
) -> Judged:
    """Judge two sides.

    Args:
        base: Records of the baseline, at least one.
        new: Records of the other side, at least one.
        asked: Figures, thresholds, what may differ.
        settings: Thresholds of the comparison.
        alpha: How often the whole answer may be a false alarm: all of it, or the part that one look may spend.
    """
    gated = gate_sides(base, new, asked, settings)
    tail = alpha / len(asked.metrics)
    if gated.invalid:
        figures = [invalid_figure(name, gated, asked, tail) for name in asked.metrics]
        return Judged(INVALID, "not_comparable", gated.invalid[0], figures, Localised([], "", ""), [], gated)
    gates_stages = "time" in asked.metrics and has_stages(gated)
    tails = {name: tail * (1 - STAGE_PART) if name == "time" and gates_stages else tail for name in asked.metrics}
    figures = [judge_figure(name, gated, asked, settings, tails[name]) for name in asked.metrics]
    time = next((figure for figure in figures if figure.metric == "time"), None)
    localised = find_stages(gated, asked, time, tail)
    if not gates_stages:
        for stage in localised.stages:
            stage.fails = False
    verdict, reason, says = _overall(figures, localised, gated)
    worse = verdict == REGRESSED or any(stage.verdict == REGRESSED for stage in localised.stages)
    reasons = find_reasons(gated, base, new) if worse else []
    return Judged(verdict, reason, says, figures, localised, reasons, gated)


def _overall(figures: Sequence[GateFigure], localised: Localised, gated: Gated) -> tuple[str, str, str]:
    """Return the gravest answer, the reason in a word, and in a sentence."""
    by_verdict: dict[str, list[GateFigure]] = {}
    for figure in figures:
        by_verdict.setdefault(figure.verdict, []).append(figure)
    if REGRESSED in by_verdict:
        because = f"; {localised.says}" if localised.says and by_verdict[REGRESSED][0].metric == "time" else ""
        return REGRESSED, "figure", "; ".join(figure.says for figure in by_verdict[REGRESSED]) + because
    failing = [stage for stage in localised.stages if stage.fails]
    if failing:
        return REGRESSED, "stage", _stage_says(failing, figures)
    if INVALID in by_verdict:
        return INVALID, "not_known", by_verdict[INVALID][0].says
    if INCONCLUSIVE in by_verdict:
        few = gated.design != "paired" and any(figure.notes for figure in by_verdict[INCONCLUSIVE])
        return INCONCLUSIVE, "few_processes" if few else "noise", by_verdict[INCONCLUSIVE][0].says
    if IMPROVED in by_verdict:
        because = f"; {localised.says}" if localised.says and by_verdict[IMPROVED][0].metric == "time" else ""
        return IMPROVED, "", "; ".join(figure.says for figure in by_verdict[IMPROVED]) + because
    return SAME, "", "; ".join(figure.says for figure in figures)


def _stage_says(failing: Sequence[GateStage], figures: Sequence[GateFigure]) -> str:
    parts = []
    for stage in failing:
        assert isinstance(stage.change_ns, float)
        share = f" ({signed(stage.change_share)})" if isinstance(stage.change_share, float) else ""
        parts.append(f"stage {stage.stage} became worse by {write_change(stage.change_ns, stage.interval_ns)}{share}")
    time = next(figure for figure in figures if figure.metric == "time")
    return f"{'; '.join(parts)}; the whole: {time.says}"
