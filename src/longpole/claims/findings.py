"""Findings, corrections and what follows, in the words and numbers of the document."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from longpole.claims.algebra import Term
from longpole.claims.bounds import leaves_ring_out
from longpole.claims.bubble_bounds import is_held, least_bubble
from longpole.claims.explain import nearest
from longpole.claims.fields import FIELDS
from longpole.claims.figures import COARSE, CUT, ROUNDED, Figure
from longpole.claims.memory_bounds import least_memory
from longpole.claims.words import shown, times, title_of, unit_of_field, write
from longpole.records.audit import (
    AuditConvention,
    AuditCorrection,
    AuditExplanation,
    AuditFigure,
    AuditFinding,
    Status,
)

if TYPE_CHECKING:
    from longpole.claims.algebra import Check, Relation, Solution
    from longpole.claims.breach import Breach
    from longpole.claims.evaluate import Evaluation
    from longpole.claims.explain import Explanation
    from longpole.claims.statement import Statement

# Of the figures in a contradiction, the one that is an outcome is called wrong first.
_OUTCOMES: Final = (
    "mfu", "hfu", "efficiency", "speedup", "r_mfu", "busbw", "comm_s", "ideal_step_s", "kv_cache", "kv_token",
    "flops_run", "flops_token", "flops_step", "flops_total", "flops_gpu", "hw_flops_gpu", "ga",
    "tokens_step", "collectives",
    "message", "peak", "cost", "gpu_s",
    "time_s", "tokens", "step_s", "tok_s", "tok_s_gpu", "gbs", "gpus", "dp", "pp", "tp", "cp",
)  # fmt: skip
_HIDDEN: Final = frozenset(
    {
        "counted_params",
        "counted_active",
        "counted_kv_token",
        "counted_flops_token",
        "counted_hw_flops_token",
        "device_peak",
        "group",
        "element_bytes",
        "vp",
        "bus_factor",
    }
)
_NOT_IMPLIED: Final = _HIDDEN | {"layers", "hidden", "params", "hw_flops_token", "r_mfu", "r_tok"}
_REPAIRS: Final = 4
_FAR: Final = 64.0  # a figure that would have to be so many times another is not what was wrong
_NEAR: Final = 0.05  # a factor that is told in per cent
_NARROW: Final = 1.003  # an interval that is not worth printing
_TOLERANCE: Final = 1e-6


def stated(statement: Statement) -> list[AuditFigure]:
    """Return what a statement states."""
    return [
        AuditFigure(
            field=name,
            what=title_of(name),
            value=figure.value,
            low=_end(figure.low[ROUNDED]),
            high=_end(figure.high[ROUNDED]),
            unit=unit_of_field(name),
            text=figure.text,
        )
        for name, figure in statement.figures.items()
    ]


def _end(value: float) -> float | None:
    return value if math.isfinite(value) else None


def implied(evaluation: Evaluation) -> list[AuditFigure]:
    """Return what follows from a statement and is not stated, with the formula that it follows by."""
    solution = evaluation.solution
    found = []
    for name, term in solution.known.items():
        if name in solution.figures or name in _NOT_IMPLIED:
            continue
        low, high = term.ends(solution.figures, ROUNDED)
        found.append(
            AuditFigure(
                field=name,
                what=title_of(name),
                value=term.value(solution.figures),
                low=_end(low),
                high=_end(high),
                unit=unit_of_field(name),
                text=term.explain(solution.figures, unit_of_field(name)),
            )
        )
    return [*found, *_at_full_link(evaluation), *_by_models(evaluation)]


def _by_models(evaluation: Evaluation) -> list[AuditFigure]:
    """Return what the memory model and the simulated schedule give for the layout that is stated."""
    statement, solution = evaluation.reading.statement, evaluation.solution
    found = []
    if (memory := least_memory(statement, solution)) is not None:
        what, text = title_of("least_memory"), memory.says()
        found.append(AuditFigure("least_memory", what, memory.bytes, memory.bytes, None, "B", text))
    if (bubble := least_bubble(statement, solution)) is not None and bubble.stages > 1:
        what, text = title_of("least_bubble"), f"{bubble.says()} wait that share of a step"
        found.append(AuditFigure("least_bubble", what, bubble.share, bubble.share, None, "", text))
    return found


def _at_full_link(evaluation: Evaluation) -> list[AuditFigure]:
    """Return the time of tensor parallelism's all-reduces at the device's own link, where another one is stated."""
    solution, device = evaluation.solution, evaluation.reading.statement.device
    term = solution.known.get("tp_step_comm_s")
    if device is None or not device.scaleup_bytes_per_s:
        return []
    if term is None and {"layers", "message", "bus_factor"} <= solution.known.keys():
        each = Term(4.0, {}).times(solution.known["layers"]).times(solution.known["message"])
        term = each.times(solution.known["bus_factor"])
        term = term.times(solution.known["pp"], -1.0) if "pp" in solution.known else term
    elif term is None or "link" not in solution.known:
        return []
    else:
        if abs(solution.known["link"].value(solution.figures) / device.scaleup_bytes_per_s - 1) < _TOLERANCE:
            return []
        term = term.times(solution.known["link"])
    term = term.times(Term(1.0, {"device_link": 1.0}), -1.0)
    figures = {**solution.figures, "device_link": Figure.exactly(device.scaleup_bytes_per_s)}
    low, high = term.ends(figures, ROUNDED)
    what = f"{title_of('tp_step_comm_s')}, at {write('link', device.scaleup_bytes_per_s)} of {device.name}"
    text = term.explain(figures, "s")
    return [AuditFigure("tp_step_comm_s", what, term.value(figures), _end(low), _end(high), "s", text)]


def findings(evaluation: Evaluation) -> list[AuditFinding]:
    """Return what came of every relation and limit."""
    found = [_of_check(check, evaluation) for check in evaluation.solution.checks]
    found += [_of_breach(one, evaluation.solution) for one in evaluation.breaches]
    return found + omitted(evaluation)


def _of_check(check: Check, evaluation: Evaluation) -> AuditFinding:
    solution = evaluation.solution
    target = _target(check)
    expected = check.residual.solved(target)
    value, stated_value = expected.value(solution.figures), solution.figures[target].value
    factor = stated_value / value if value else math.inf
    if check in evaluation.failed:
        low, high = expected.ends(solution.figures, ROUNDED)
        between = "" if high / max(low, 1e-300) < _NARROW else f" ({write(target, low)} to {write(target, high)})"
        says = (
            f"{title_of(target)}: {_shown(solution, target)} is stated, {write(target, value, 4)}{between} follows"
            f" from {_others(check, target, solution)}; {_apart(factor)}"
        )
        return AuditFinding(
            code=check.relation.code,
            status="contradicts",
            says=says,
            fields=_fields(check.residual, solution),
            factor=factor,
            corrections=_corrections(check.residual, target, solution),
        )
    held = {
        None: "as close as figures are that were measured or counted each by itself",
        COARSE: "after rounding",
        CUT: "cut off, not rounded",
    }
    note = held.get(check.level, "")
    says = (
        f"{check.relation.says}: {write(target, value, 4)} for {_shown(solution, target)}{f', {note}' if note else ''}"
    )
    status: Status = "holds" if check.level is not None and check.level < CUT else "holds_under"
    return AuditFinding(
        code=check.relation.code, status=status, says=says, fields=_fields(check.residual, solution), factor=factor
    )


def _apart(factor: float) -> str:
    if factor > 0 and abs(factor - 1) < _NEAR:
        return f"too {'high' if factor > 1 else 'low'} by {100 * abs(factor - 1):.2g} %"
    if factor >= 1:
        return f"too high by a factor of {times(factor)}"
    return f"too low by a factor of {times(1 / factor)}" if factor > 0 else "it cannot be 0"


def _shown(solution: Solution, name: str) -> str:
    figure = solution.figures[name]
    return shown(name, figure.text, figure.value)


def _target(check: Check) -> str:
    powers = check.residual.powers
    ranked = [name for name in _OUTCOMES if name in powers]
    return ranked[0] if ranked else next(iter(powers))


def _fields(term: Term, solution: Solution) -> list[str]:
    del solution
    return [name for name in term.powers if name not in _HIDDEN]


def _others(check: Check, target: str, solution: Solution) -> str:
    names = [name for name in check.residual.powers if name != target]
    told = [f"{title_of(name)} {write(name, solution.figures[name].value)}" for name in names if name not in _HIDDEN]
    counted = [
        f"FLOPs counted as {solution.figures[name].text}" if "flops" in name else solution.figures[name].text
        for name in names
        if name.startswith(("counted_", "device_"))
    ]
    return ", ".join([*told, *counted]) or "the rest"


def _corrections(term: Term, target: str, solution: Solution) -> list[AuditCorrection]:
    """Return what each figure would have to be; of a count, only a whole number."""
    found = []
    others = sorted((name for name in term.powers if name != target), key=lambda name: name != "dp")
    for name in (target, *others):
        if name in _HIDDEN or (name not in FIELDS):
            continue
        needed = term.solved(name)
        value = needed.value(solution.figures)
        counted = FIELDS[name].exact or FIELDS[name].kind == "amount"
        if name != target and counted and not 1 / _FAR <= value / solution.figures[name].value <= _FAR:
            continue
        low, high = needed.ends(solution.figures, ROUNDED)
        if FIELDS[name].exact and name != target:
            binary = (
                1.024**2 if "tokens_step" in needed.powers and solution.figures["tokens_step"].value >= 1e6 else 1.0
            )
            whole = _roundest(low * (1 - _TOLERANCE), high * binary * (1 + _TOLERANCE))
            if whole is None:
                continue
            value = float(whole)
        found.append(
            AuditCorrection(
                field=name,
                what=title_of(name),
                unit=unit_of_field(name),
                stated=solution.figures[name].value,
                value=value,
                low=_end(low),
                high=_end(high),
                formula=needed.explain(solution.figures, unit_of_field(name)) if needed.powers else "",
            )
        )
    return found


def _roundest(low: float, high: float) -> int | None:
    """Return the whole number between two ends that is divisible by the highest power of two; None for none."""
    if not math.isfinite(low) or not math.isfinite(high):
        return None  # a bound, such as "up to 3", fixes no number
    first, last = max(math.ceil(low), 1), math.floor(high)
    if first > last:
        return None
    step = 1
    while math.ceil(first / (2 * step)) * 2 * step <= last:
        step *= 2
    return math.ceil(first / step) * step


def _of_breach(breach: Breach, solution: Solution) -> AuditFinding:
    ratio = breach.ratio.value(solution.figures) if breach.ratio is not None else None
    shown = "" if ratio is None else f"{100 * ratio:.1f} %" if breach.code == "R7" else f"{times(ratio)}"
    if breach.code == "R7" and ratio is not None and ratio > 10:
        shown = f"{times(ratio)} times the peak"
    says = breach.says.replace("{ratio}", shown)
    corrections = []
    if breach.ratio is not None:
        target = next((name for name in _OUTCOMES if name in breach.ratio.powers), next(iter(breach.ratio.powers), ""))
        corrections = _limits(breach.ratio, target, solution) if target else []
        if target and says.startswith(("that is", "no link", "the link needs")):
            says = f"{title_of(target)} {_shown(solution, target)}: {says}"
    return AuditFinding(
        code=breach.code,
        status=breach.severity,
        says=says,
        fields=[name for name in breach.fields if name not in _HIDDEN],
        factor=ratio,
        corrections=corrections,
    )


def _limits(ratio: Term, target: str, solution: Solution) -> list[AuditCorrection]:
    """Return the value at which a limit is just met."""
    return [one for one in _corrections(ratio, target, solution) if one.field == target or not FIELDS[one.field].exact][
        :3
    ]


def conventions(same: list[Evaluation], best: Evaluation) -> list[AuditConvention]:
    """Return every way of counting FLOPs that was tried, with what it makes of the figure that it decides on."""
    found: dict[str, AuditConvention] = {}
    for one in same:
        counting, key = one.counting, "flops_token"
        if not counting.name or _hardware(best):
            counting, key = one.device_counting, "hw_flops_token"
        if not counting.name or counting.name in found:
            continue
        field, expected = _decided(one, key)
        found[counting.name] = AuditConvention(
            name=counting.name,
            says=counting.says,
            flops_per_token=_counted(one, key),
            field=field,
            expected=expected,
            holds=one.bad <= best.bad and not one.failed,
        )
    return list(found.values()) if any(one.field for one in found.values()) else []


def _hardware(best: Evaluation) -> bool:
    figures = best.figures
    return bool({"hfu", "hw_flops_gpu"} & figures.keys()) and not {"mfu", "flops_gpu", "flops_token"} & figures.keys()


def _counted(one: Evaluation, key: str) -> float | None:
    figure = one.figures.get(f"counted_{key}")
    if figure is not None:
        return figure.value
    relation = (one.counting if key == "flops_token" else one.device_counting).relation
    if relation is None or relation.over[0] not in one.figures:
        return None
    return relation.constant * one.figures[relation.over[0]].value


def relations_of(check: Check, solution: Solution) -> list[Relation]:
    """Return the relation of a check, and those that its figures were derived through."""
    found = [check.relation]
    for name in check.relation.fields:
        found += solution.through.get(name, ())
    return found


def _decided(one: Evaluation, key: str) -> tuple[str, float | None]:
    """Return the figure that hangs on how FLOPs are counted, and what it would be."""
    for check in one.solution.checks:
        if any(relation.target == key for relation in relations_of(check, one.solution)):
            target = _target(check)
            return target, check.residual.solved(target).value(one.figures)
    for name in ("mfu", "hfu", "ideal_step_s", "flops_gpu"):
        if name not in one.figures and (value := one.solution.value(name)) is not None:
            return name, value
    return "", None


def explanation_of(explanation: Explanation, evaluation: Evaluation) -> AuditExplanation:
    """Return an explanation with the claim as it would have to be."""
    figures = evaluation.figures
    repaired = {}
    for slip in explanation.slips:
        figure = slip.figure or figures[slip.field].scaled(slip.factor)
        repaired[slip.field] = figure.value
    touched = {name for check in evaluation.failed for name in check.residual.powers}
    touched |= {name for one in evaluation.breaches if one.ratio is not None for name in one.ratio.powers}
    shown = [name for name in _OUTCOMES[::-1] if name in touched and name not in repaired]
    line = [f"{title_of(name)} {write(name, value, 4)}" for name, value in repaired.items()]
    line += [f"{title_of(name)} {write(name, figures[name].value, 4)}" for name in shown]
    return AuditExplanation(
        says=explanation.says,
        factors={slip.field: slip.factor for slip in explanation.slips},
        repaired=repaired,
        claim=", ".join(line),
    )


def nearest_of(evaluation: Evaluation) -> str:
    """Return what the likeliest slip would make of the figure that is wrong, where none repairs it; else nothing."""
    found = nearest(evaluation)
    if found is None:
        return ""
    slip, residual = found
    check = evaluation.failed[0]
    target = _target(check)
    figures = slip.apply(evaluation.figures)
    expected = figures[target].value * residual ** (-1.0 / check.residual.powers[target])
    if slip.field == target:
        return (
            f"if {slip.says}, it would be {write(target, figures[target].value)}, and {write(target, expected)} follows"
        )
    return f"if {slip.says}, {title_of(target)} {write(target, expected)} would follow"


def repairs(found: list[AuditFinding]) -> str:
    """Return the whole numbers with which a contradiction would hold, where a count is wrong.

    Of several contradictions, those that repair them all; where none does, those that repair the first.
    """
    if not found or found[0].status != "contradicts":
        return ""
    counts = [one for one in found[0].corrections[1:] if one.field in FIELDS and FIELDS[one.field].exact]
    others = [one.corrections for one in found[1:] if one.status == "contradicts" and one.corrections]
    of_all = [
        one
        for one in counts
        if all(any((o.field, o.value) == (one.field, one.value) for o in other) for other in others)
    ]
    counts = of_all or counts
    return ", or ".join(f"{one.what} {write(one.field, one.value)}" for one in counts[:_REPAIRS])


def is_tested(evaluation: Evaluation) -> bool:
    """Tell whether figures were held against a limit that they could have exceeded."""
    known = evaluation.solution.known
    device = evaluation.reading.statement.device
    limits = (
        {"busbw", "link"}, {"comm_s", "comm_bytes", "link"}, {"mfu", "hfu"},
        {"speedup", "baseline_gpus", "gpus"}, {"ep", "dp"},
        {"mfu"} - evaluation.figures.keys(), {"hfu"} - evaluation.figures.keys(),
        {"goodput"} - evaluation.figures.keys(),
    )  # fmt: skip
    figures = evaluation.figures
    divided = any(
        name in known and name not in figures and all(FIELDS[one].exact for one in known[name].powers if one in FIELDS)
        for name in ("dp", "ga")
    )
    if divided or any(limit and limit <= known.keys() for limit in limits):
        return True
    if device is not None and ("memory" in known or "busbw" in known or "link" in known):
        return True
    if is_held(evaluation.reading.statement, evaluation.solution):
        return True
    room = (device is not None and bool(device.memory_bytes)) or "memory" in known
    return room and least_memory(evaluation.reading.statement, evaluation.solution) is not None


def omissions(evaluation: Evaluation) -> list[str]:
    """Return what a sum of communication leaves out although its arithmetic holds."""
    found = []
    if leaves_ring_out(evaluation.reading.statement, evaluation.solution):
        factor = evaluation.solution.value("bus_factor")
        shown = f" ({factor:.4g})" if factor else ""
        found.append(f"a ring sends 2(n-1)/n{shown} times the bytes, and the time counts them once")
    if any("forward pass only" in one for one in evaluation.reading.says):
        found.append("the collectives are those of the forward pass only; the backward pass has as many")
    return found


def omitted(evaluation: Evaluation) -> list[AuditFinding]:
    """Return what is left out as a finding, with what the time would be with it."""
    left_out = omissions(evaluation)
    solution = evaluation.solution
    if not left_out:
        return []
    found = [figure for figure in implied(evaluation) if figure.field in ("tp_step_comm_s", "least_comm_s")]
    found.sort(key=lambda figure: (figure.field != "tp_step_comm_s", " at " not in figure.what))
    was = solution.figures["comm_s"].value if "comm_s" in solution.figures else 0.0
    corrections = [
        AuditCorrection(one.field, one.what, one.unit, was, one.value, one.low, one.high, one.text) for one in found
    ]
    names = [name for name in ("comm_s", "collectives", "message", "link") if name in solution.figures]
    return [AuditFinding("R9", "holds_under", "; ".join(left_out), names, None, corrections)]
