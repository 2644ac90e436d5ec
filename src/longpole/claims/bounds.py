"""What no run can exceed, and what none has been measured to exceed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.claims.algebra import Term
from longpole.claims.breach import Breach, is_above
from longpole.claims.bubble_bounds import bubble_breaches
from longpole.claims.figures import CUT
from longpole.claims.memory_bounds import memory_breaches
from longpole.claims.readings import SPLIT_TEXT, ceiling_of

if TYPE_CHECKING:
    from longpole.claims.algebra import Solution
    from longpole.claims.statement import Statement

_MOST_COMPUTED_AGAIN: Final = 1.5  # HFU / MFU: full recomputation is 4/3; attention and padding go somewhat beyond
# Of GLM-130B's 60 days 58 % were steps (arXiv:2210.02414, 135 TFLOP/s of 768 devices); OPT-175B's logbook has a similar
# share. Later runs report 90 % and more: Llama 3, arXiv:2407.21783, section 3.3.4.
_LEAST_GOODPUT: Final = 0.5
_SUPERLINEAR: Final = 1.05
_IN_SWITCH: Final = ("nvls", "sharp", "collnet", "nvlstree")
_IN_SWITCH_ARCH: Final = ("Hopper", "Blackwell")
_DUST: Final = 1e-6


def breaches(statement: Statement, solution: Solution) -> list[Breach]:
    """Return the limits that are exceeded at every way of rounding."""
    found: list[Breach] = []
    looks = (
        _utilisation, _recomputation, _goodput, _links, _collectives, memory_breaches, bubble_breaches, _growth,
        _division, _decode,
    )  # fmt: skip
    for look in looks:
        found += look(statement, solution)
    return found


def _utilisation(statement: Statement, solution: Solution) -> list[Breach]:
    found = []
    for name in ("mfu", "hfu"):
        term = solution.known.get(name)
        if term is None:
            continue
        stated = name in solution.figures
        what = name.upper() if stated else f"{name.upper()}, as it follows,"
        if is_above(solution, term):
            says = f"{what} {{ratio}}: more than the peak"
            found.append(Breach(code="R7", severity="impossible", says=says, ratio=term, fields=tuple(term.powers)))
            continue
        ceiling = ceiling_of(statement)
        if ceiling is not None and is_above(solution, term, ceiling.share):
            says = (
                f"{what} {100 * term.value(solution.figures):.1f} %: more than the {100 * ceiling.share:.1f} % of the"
                f" best matrix product measured ({ceiling.says})"
            )
            scaled = Term(term.constant / ceiling.share, term.powers)
            found.append(Breach(code="R7", severity="implausible", says=says, ratio=scaled, fields=tuple(term.powers)))
    return found


def _recomputation(statement: Statement, solution: Solution) -> list[Breach]:
    del statement
    mfu, hfu = solution.known.get("mfu"), solution.known.get("hfu")
    if mfu is None or hfu is None:
        return []
    ratio = mfu.times(hfu, -1.0)
    if is_above(solution, ratio):
        says = "MFU is {ratio} times HFU, but hardware computes model FLOPs at the least"
        return [Breach(code="R6", severity="contradicts", says=says, ratio=ratio, fields=tuple(ratio.powers))]
    most = Term(1 / _MOST_COMPUTED_AGAIN, {}).times(hfu).times(mfu, -1.0)
    if is_above(solution, most):
        says = "HFU is more than 1.5 times MFU; computing every layer twice makes it 4/3"
        return [Breach(code="R6", severity="implausible", says=says, ratio=most, fields=tuple(most.powers))]
    return []


def _goodput(statement: Statement, solution: Solution) -> list[Breach]:
    """Look whether a training took less time than its steps, or so much more that interruptions do not explain it."""
    goodput = solution.known.get("goodput")
    if goodput is None or "goodput" in statement.figures:
        return []
    if is_above(solution, goodput):
        says = "the time in all is {ratio} times too short for the tokens at that rate"
        return [Breach(code="R8", severity="contradicts", says=says, ratio=goodput, fields=tuple(goodput.powers))]
    lost = Term(_LEAST_GOODPUT, {}).times(goodput, -1.0)
    if is_above(solution, lost):
        says = (
            f"only {100 * goodput.value(solution.figures):.3g} % of the time in all would have been training;"
            f" {100 * _LEAST_GOODPUT:g} % is little for interruptions"
        )
        return [Breach(code="R8", severity="contradicts", says=says, ratio=lost, fields=tuple(lost.powers))]
    return []


def _links(statement: Statement, solution: Solution) -> list[Breach]:
    found = []
    device, link = statement.device, solution.known.get("link")
    fastest = device.scaleup_bytes_per_s if device is not None else None
    if device is not None and link is not None and fastest:
        ratio = Term(1 / fastest, {}).times(link)
        if is_above(solution, ratio, 1.001):
            both = device.scaleup_both_bytes_per_s
            beside = f" ({both / 1e9:g} both ways)" if both else ""
            says = (
                f"no link of {device.name} carries that: {device.fabric} carries {fastest / 1e9:g} GB/s one way{beside}"
            )
            found.append(Breach(code="R9", severity="contradicts", says=says, ratio=ratio, fields=tuple(ratio.powers)))
    busbw = solution.known.get("busbw")
    if busbw is None or (link is not None and "busbw" not in solution.figures and "algbw" not in solution.figures):
        return found  # told of the time that it follows from
    limit = link if link is not None else Term(fastest, {}) if fastest else None
    if limit is None:
        return found
    ratio = busbw.times(limit, -1.0)
    if is_above(solution, ratio) and not _reduced_in_switch(statement, solution, ratio):
        carried = f" ({limit.value(solution.figures) / 1e9:g} GB/s)"
        beyond = "even" if in_switch(statement) else "only"
        says = f"that is {{ratio}} times what a link carries one way{carried}; {beyond} a reduction in the switch does"
        says += " not do that" if in_switch(statement) else " that"
        found.append(Breach(code="R9", severity="impossible", says=says, ratio=ratio, fields=tuple(ratio.powers)))
    return found


def in_switch(statement: Statement) -> bool:
    """Tell whether a statement names an algorithm that reduces in the switch (NVLS, SHARP)."""
    return any(one in statement.words.get("algorithm", "").lower() for one in _IN_SWITCH)


def _reduced_in_switch(statement: Statement, solution: Solution, ratio: Term) -> bool:
    """Tell whether a reduction in the switch explains a bus bandwidth above the link.

    Each rank then sends and receives S once, so that S / t is at most the link, and what nccl-tests prints is at most
    2(n-1)/n times it.
    """
    group = solution.value("group") or 0
    most = 2 * (group - 1) / group if group >= 2 else 2.0
    named = in_switch(statement)
    arch = statement.device.arch if statement.device is not None else ""
    possible = named or (arch in _IN_SWITCH_ARCH and "algorithm" not in statement.words)
    reducing = statement.words.get("collective", "all_reduce").lower().replace("-", "_") in ("all_reduce", "allreduce")
    return possible and reducing and not is_above(solution, ratio, most)


def _collectives(statement: Statement, solution: Solution) -> list[Breach]:
    """Look whether a collective is faster than its bytes by the link."""
    known = solution.known
    if (
        not {"comm_s", "comm_bytes", "link"} <= known.keys()
        or in_switch(statement)
        or leaves_ring_out(statement, solution)
    ):
        return []
    factor = known.get("bus_factor") or Term(_least_factor(statement), {})
    ratio = known["comm_bytes"].times(factor).times(known["link"], -1.0).times(known["comm_s"], -1.0)
    if not is_above(solution, ratio):
        return []
    says = "the link needs {ratio} times that for what each rank sends"
    return [Breach(code="R9", severity="impossible", says=says, ratio=ratio, fields=tuple(ratio.powers))]


def leaves_ring_out(statement: Statement, solution: Solution) -> bool:
    """Tell whether a time is the bytes by the link, without what a ring sends more of them: 2(n-1)/n."""
    known = solution.known
    if not {"comm_s", "comm_bytes", "link"} <= known.keys() or in_switch(statement):
        return False
    if statement.words.get("collective", "all_reduce").lower().replace("-", "_") not in ("all_reduce", "allreduce"):
        return False
    factor = solution.value("bus_factor")
    low, high = known["comm_bytes"].times(known["link"], -1.0).times(known["comm_s"], -1.0).ends(solution.figures, CUT)
    return low <= 1 <= high and (factor is None or factor > 1 + _DUST)


def _least_factor(statement: Statement) -> float:
    name = statement.words.get("collective", "").lower().replace("-", "").replace("_", "")
    return 0.5 if name in ("allgather", "reducescatter", "alltoall") else 1.0


def _growth(statement: Statement, solution: Solution) -> list[Breach]:
    del statement
    known = solution.known
    if "efficiency" in solution.figures:
        ratio = Term(1 / _SUPERLINEAR, {}).times(known["efficiency"])
        says = "the efficiency is above 100 %: more than every added device can give needs a reason, such as a cache"
    elif {"speedup", "gpus", "baseline_gpus"} <= known.keys():
        ratio = Term(1 / _SUPERLINEAR, {}).times(known["speedup"])
        ratio = ratio.times(known["baseline_gpus"]).times(known["gpus"], -1.0)
        says = "the speed-up is more than the growth in devices, which needs a reason, such as a cache"
    else:
        return []
    if not is_above(solution, ratio):
        return []
    return [Breach(code="R12", severity="implausible", says=says, ratio=ratio, fields=tuple(ratio.powers))]


def _division(statement: Statement, solution: Solution) -> list[Breach]:
    """Look at what has to divide what, among counts that are stated or follow from counts alone."""
    found: list[Breach] = []
    for name in ("dp", "ga", "batch_per_dp", "pp", "tp", "cp", "gbs", "mbs"):
        term = solution.known.get(name)
        if name in solution.figures or term is None or not _all_counts(term, solution):
            continue
        value = term.value(solution.figures)
        if abs(value - round(value)) > 1e-6 * max(value, 1.0) or value < 1 - 1e-9:
            says = f"{_TITLES[name]} would have to be {value:.4g}, no whole number: what is stated does not divide"
            found.append(Breach(code=_CODES[name], severity="contradicts", says=says, fields=tuple(term.powers)))
    tp, heads = solution.value("tp"), statement.count("heads") or (statement.model.heads if statement.model else None)
    if tp and "tp" in statement.figures and statement.figures["tp"].text != SPLIT_TEXT and heads and heads % round(tp):
        says = f"TP {round(tp)} does not divide {heads} heads"
        found.append(Breach(code="R1", severity="contradicts", says=says, fields=("tp", "heads")))
    found += _experts(statement, solution)
    stages, layers = (
        solution.value("pp"),
        statement.count("layers") or (statement.model.layers if statement.model else 0),
    )
    if stages and layers and stages > layers:
        says = f"PP {round(stages)} is more than {layers} layers"
        found.append(Breach(code="R1", severity="contradicts", says=says, fields=("pp", "layers")))
    return found


def _experts(statement: Statement, solution: Solution) -> list[Breach]:
    """Look at what expert parallelism divides.

    Its groups lie within a pipeline stage, across tensor, context and data parallelism: devices are a multiple of
    EP · ETP · PP (Megatron-LM, `initialize_model_parallel`, which takes ETP for TP where it is not said; here it is 1).
    """
    ep = statement.count("ep")
    if not ep or ep == 1:
        return []
    found = []
    dp, tp, cp = (solution.value(name) for name in ("dp", "tp", "cp"))
    gpus, pp = solution.value("gpus"), solution.value("pp")
    shared = gpus / pp if gpus and pp else (dp or 0) * (tp or 0) * (cp or 0)
    etp = statement.count("etp") or 1
    if shared and abs(shared - round(shared)) < _DUST and round(shared) % (ep * etp):
        degrees = f"EP {ep} · ETP {etp} = {ep * etp}" if etp > 1 else f"EP {ep}"
        says = f"{degrees} does not divide DP · CP · TP = {round(shared)}, which it is carved out of"
        fields = ("ep", "etp", "dp", "cp", "tp") if etp > 1 else ("ep", "dp", "cp", "tp")
        found.append(Breach(code="R1", severity="contradicts", says=says, fields=fields))
    experts = statement.model.experts if statement.model else None
    if experts is not None and experts.count % ep:
        says = f"EP {ep} does not divide {experts.count} experts"
        found.append(Breach(code="R1", severity="contradicts", says=says, fields=("ep",)))
    return found


_CODES: Final = {
    "dp": "R1",
    "pp": "R1",
    "tp": "R1",
    "cp": "R1",
    "ga": "R2",
    "batch_per_dp": "R2",
    "gbs": "R2",
    "mbs": "R2",
}
_TITLES: Final = {
    "dp": "DP", "pp": "PP", "tp": "TP", "cp": "CP", "ga": "gradient accumulation",
    "batch_per_dp": "sequences of a replica", "gbs": "the global batch", "mbs": "the micro-batch",
}  # fmt: skip


def _all_counts(term: Term, solution: Solution) -> bool:
    return all(solution.figures[name].low[0] == solution.figures[name].high[0] for name in term.powers)


def _decode(statement: Statement, solution: Solution) -> list[Breach]:
    """Look whether weights are read faster than memory allows: a decode step reads each one once."""
    if statement.words.get("purpose", "").lower() not in ("decode", "decoding", "inference", "serving", "generation"):
        return []
    known = solution.known
    batch = known.get("gbs") or known.get("mbs")
    rate = known.get("memory_rate")
    device = statement.device
    if rate is None and device is not None and device.memory_bytes_per_s:
        rate = Term(device.memory_bytes_per_s, {})
    weights = known.get("weights")
    if weights is None and "params" in known:
        held = known.get("active_params") or known["params"]
        weights = Term(2.0, {}).times(held) if "bytes_param" not in known else held.times(known["bytes_param"])
    if batch is None or rate is None or weights is None or "tok_s" not in known:
        return []
    ratio = known["tok_s"].times(weights).times(batch, -1.0).times(rate, -1.0)
    ratio = ratio.times(known["gpus"], -1.0) if "gpus" in known else ratio
    if not is_above(solution, ratio):
        return []
    says = "memory would have to be {ratio} times as fast to read the weights that often; speculation may skip reads"
    return [Breach(code="R9", severity="implausible", says=says, ratio=ratio, fields=tuple(ratio.powers))]
