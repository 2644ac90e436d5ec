"""The audit of a file of claims: every statement by itself, then rows against each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.claims.across import across, swapped
from longpole.claims.evaluate import Evaluation, evaluate_all
from longpole.claims.explain import explain
from longpole.claims.fields import FIELDS
from longpole.claims.figures import COARSE, CUT
from longpole.claims.findings import (
    conventions,
    explanation_of,
    findings,
    implied,
    is_tested,
    nearest_of,
    omissions,
    relations_of,
    repairs,
    stated,
)
from longpole.records.audit import (
    SCHEMA,
    VERDICTS,
    Audit,
    AuditAcross,
    AuditExplanation,
    AuditFinding,
    AuditStatement,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.claims.statement import Claims, Statement

_ORDER: Final = ("impossible", "contradicts", "implausible", "holds_under", "holds")
_OF_STATUS: Final[dict[str, Verdict]] = {
    "impossible": "impossible", "contradicts": "inconsistent", "implausible": "implausible",
}  # fmt: skip


def audit(claims: Claims, *, version: str = "", progress: Callable[[str, int, int], None] | None = None) -> Audit:
    """Hold claims against each other.

    Args:
        claims: What a file states.
        version: Of the package.
        progress: Hears (what is done, statements done, statements in all).
    """
    evaluated, judged = [], []
    for number, statement in enumerate(claims.statements):
        if progress is not None:
            progress("auditing", number, len(claims.statements))
        best, same = evaluate_all(statement)
        evaluated.append(best)
        judged.append(_judge(statement, best, same))
    judged = _exchange(claims.statements, judged)
    exchanged = {number for number, one in enumerate(judged) if one.qualifier == "wording"}
    between = across(claims.statements, evaluated, exchanged)
    verdict = _worst([*(one.verdict for one in judged), *(_OF_STATUS.get(one.status, "consistent") for one in between)])
    return Audit(
        schema=SCHEMA,
        longpole=version,
        title=claims.title,
        verdict=verdict,
        says=_says_of_all(judged, between, verdict),
        statements=judged,
        across=between,
    )


def _worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst; what is undecided does not outweigh what could be told."""
    told = [one for one in verdicts if one != "underdetermined"]
    return max(told or verdicts, key=VERDICTS.index)


def _judge(statement: Statement, best: Evaluation, same: list[Evaluation]) -> AuditStatement:
    found = sorted(findings(best), key=lambda one: _ORDER.index(one.status))
    left_out = omissions(best)
    readings = _readings(best, same, found)
    verdict = _verdict(best, found, readings, left_out)
    qualifier = ""
    if left_out and verdict in ("consistent", "consistent_under"):
        verdict, qualifier = "consistent_under", "wrong model"
    elif verdict in ("consistent", "consistent_under") and best.level == COARSE:
        qualifier = "after rounding"
    explanations: list[AuditExplanation] = []
    tried = 0
    if best.bad:
        slips, tried = explain(best)
        explanations = [explanation_of(one, best) for one in slips]
    tried_conventions = conventions(same, best)
    return AuditStatement(
        name=statement.name,
        quote=statement.quote,
        verdict=verdict,
        qualifier=qualifier,
        says=_says(verdict, found, readings, left_out, explanations),
        readings=[*readings, *left_out],
        stated=stated(statement),
        assumed=[*statement.assumed, *_used(best)],
        unread=list(statement.unread),
        findings=found,
        conventions=tried_conventions,
        explanations=explanations,
        tried=tried,
        nearest=nearest_of(best) if best.bad and not explanations else "",
        implied=implied(best),
    )


def _used(best: Evaluation) -> list[str]:
    """Return what was taken for granted; of the device's peak, only where something rests on it."""
    rests = any("peak" in term.powers for name, term in best.solution.known.items() if name != "peak")
    rests = rests or any("peak" in check.residual.powers for check in best.solution.checks)
    return [note for note in best.reading.assumed if rests or not note.startswith("peak:")]


def _readings(best: Evaluation, same: list[Evaluation], found: list[AuditFinding]) -> list[str]:
    """Return what the verdict takes for granted beyond the words of the statement."""
    readings = (
        list(best.reading.says) if not any(one.status in _OF_STATUS for one in found) or best.reading.cost else []
    )
    counted = [
        one
        for one, target in ((best.counting, "flops_token"), (best.device_counting, "hw_flops_token"))
        if one.name and _decides(target, same, best)
    ]
    readings += [f"FLOPs counted as {one.name}: {one.says}" for one in counted]
    if best.level == CUT:
        readings.append("a figure is cut off after its last digit, not rounded")
    if best.apart:
        apart = max(abs(math.log(check.residual.value(best.figures))) for check in best.apart)
        readings.append(f"figures that were measured or counted each by itself may be {100 * apart:.1f} % apart")
    readings = [one for one in readings if "forward pass only" not in one]
    readings += [reading for breach in best.breaches for reading in breach.readings]
    return list(dict.fromkeys(readings))


def _decides(target: str, same: list[Evaluation], best: Evaluation) -> bool:
    """Tell whether something holds under one way of counting FLOPs and not under another."""
    if best.bad or "convention" in best.reading.statement.words:
        return False
    used = any(
        relation.target == target for check in best.solution.checks for relation in relations_of(check, best.solution)
    )
    return used and any((one.bad, len(one.apart)) > (best.bad, len(best.apart)) for one in same)


def _verdict(best: Evaluation, found: list[AuditFinding], readings: list[str], left_out: list[str]) -> Verdict:
    worst = found[0].status if found else "holds"
    if worst in _OF_STATUS:
        return _OF_STATUS[worst]
    if not best.solution.checks and not is_tested(best) and not left_out:
        return "underdetermined"
    return "consistent_under" if readings else "consistent"


def _says(
    verdict: Verdict,
    found: list[AuditFinding],
    readings: list[str],
    left_out: list[str],
    explanations: list[AuditExplanation],
) -> str:
    if verdict == "underdetermined":
        return "nothing that is stated can be held against anything else; what follows from it is listed"
    if verdict == "consistent":
        return "what is stated holds together"
    if verdict == "consistent_under":
        under = "; ".join(readings)
        if left_out:
            return f"the arithmetic holds, what it leaves out does not: {'; '.join(left_out)}"
        return f"what is stated holds together if {under}"
    says = found[0].says
    if explanations:
        says += f"; it would hold if {explanations[0].says}"
    elif counts := repairs(found):
        says += f"; it would hold with {counts}"
    return says


def _exchange(statements: tuple[Statement, ...], judged: list[AuditStatement]) -> list[AuditStatement]:
    """Find rows that hold once a figure of one is exchanged for that of another: the order of a list is wrong."""
    wrong = [number for number, one in enumerate(judged) if one.verdict == "inconsistent"]
    result = list(judged)
    for position, first in enumerate(wrong):
        for second in wrong[position + 1 :]:
            if result[first].qualifier or result[second].qualifier:
                continue
            field = swapped(statements[first], statements[second])
            if field is None:
                continue
            what = FIELDS[field].what
            for one, other in ((first, second), (second, first)):
                says = f"the {what} of “{judged[other].name}” belongs here: the two are exchanged"
                result[one] = _reworded(judged[one], says)
    return result


def _reworded(one: AuditStatement, says: str) -> AuditStatement:
    return msgspec.structs.replace(
        one,
        verdict="consistent_under",
        qualifier="wording",
        readings=[says],
        says=f"the figures hold; {says}",
        explanations=[],
        nearest="",
    )


def _says_of_all(judged: list[AuditStatement], between: list[AuditAcross], verdict: Verdict) -> str:
    if len(judged) == 1 and not any(one.status in _OF_STATUS for one in between):
        return judged[0].says
    counts = {name: sum(one.verdict == name for one in judged) for name in VERDICTS}
    parts = [f"{number} {name.replace('_', ' ')}" for name, number in counts.items() if number]
    says = f"{len(judged)} statements: {', '.join(parts)}" if len(judged) > 1 else judged[0].says
    against = [one for one in between if one.status in _OF_STATUS]
    if against:
        says += f"; {len(against)} pair{'s' if len(against) > 1 else ''} contradict each other: {against[0].says}"
    del verdict
    return says
