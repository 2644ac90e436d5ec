"""What a device has to hold at the least, against its memory and against the memory that is stated (R10)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from longpole.claims.algebra import Term
from longpole.claims.breach import Breach, is_above
from longpole.claims.bubble_bounds import TITLES, schedule_of
from longpole.claims.models import described
from longpole.claims.readings import ASSUMED, dtype_of
from longpole.costs.layout import RECOMPUTE, SCHEDULES, Layout, Work, complaints
from longpole.costs.memory import StageMemory, device_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.claims.algebra import Solution
    from longpole.claims.statement import Statement
    from longpole.costs.architecture import Architecture
    from longpole.costs.layout import Recompute

_CAPACITY: Final = 1.08  # an "80 GB" part holds 80 GiB
_ADAM_BYTES: Final = 16  # bytes of states a parameter, ZeRO paper, arXiv:1910.02054, K = 12
_TRAININGS: Final = ("training", "pre-training", "pretraining", "pretrain", "train")
_OF_TRAINING: Final = frozenset({"mfu", "hfu", "ga", "flops_step", "zero"})
_UNLESS: Final = "it fits only with another optimizer, narrower states or states kept elsewhere"
_AGAIN: Final = {"none": "nothing", "selective": "attention", "full": "all"}
_DTYPES: Final = ("fp8", "fp16")  # any other type is counted as bf16: none takes less


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastMemory:
    """What the device that needs most holds at the least.

    Attributes:
        stage: Of the pipeline, as the memory model has it.
        recompute: What is computed again.
        zero: The stage of ZeRO.
        schedule: Of the pipeline.
        stages: How many the pipeline has.
    """

    stage: StageMemory
    recompute: str
    zero: int
    schedule: str
    stages: int

    @property
    def bytes(self) -> float:
        """States, activations and logits; what is needed for a moment and outside of the allocator is left out."""
        return self.stage.states_bytes + self.stage.activations_bytes + self.stage.logits_bytes

    def says(self) -> str:
        """Write what it is made of."""
        stage = self.stage
        where = f"stage {stage.stage} of {self.stages} with {TITLES[self.schedule]}: " if self.stages > 1 else ""
        kept = stage.activations_bytes + stage.logits_bytes
        return (
            f"{where}{stage.states_bytes / 1e9:.3g} GB of weights, gradients and Adam's states with ZeRO {self.zero},"
            f" {kept / 1e9:.3g} GB of activations and logits where {_AGAIN[self.recompute]} is computed again"
        )


def memory_breaches(statement: Statement, solution: Solution) -> list[Breach]:
    """Hold memory against the device, and what a training has to hold against both."""
    found = []
    device, memory = statement.device, solution.known.get("memory")
    capacity = device.memory_bytes if device is not None else None
    if capacity and memory is not None and device is not None:
        ratio = Term(1 / capacity, {}).times(memory)
        if is_above(solution, ratio, _CAPACITY):
            says = f"that is {{ratio}} times the {capacity / 1e9:g} GB of {device.name}"
            found.append(Breach(code="R10", severity="impossible", says=says, ratio=ratio, fields=tuple(ratio.powers)))
    room = memory if memory is not None else Term(capacity * _CAPACITY, {}) if capacity else None
    if room is None:
        return found
    against = "the stated memory"
    if memory is None and device is not None and capacity:
        against = f"the {capacity * _CAPACITY / 1e9:.3g} GB of {device.name}"
    states = _least_states(statement, solution)
    if states is not None and is_above(solution, ratio := states[0].times(room, -1.0)):
        says = f"weights, gradients and Adam's states ({states[1]}) are {{ratio}} times {against}; {_UNLESS}"
        return [*found, Breach(code="R10", severity="implausible", says=says, ratio=ratio, fields=tuple(ratio.powers))]
    return found + _of_model(statement, solution, room, against)


def _of_model(statement: Statement, solution: Solution, room: Term, against: str) -> list[Breach]:
    """Hold what the memory model counts at the least against the room for it."""
    least = least_memory(statement, solution)
    if least is None or not is_above(solution, ratio := Term(least.bytes, {}).times(room, -1.0)):
        return []
    says = f"a device holds at the least {{ratio}} times {against} ({least.says()}); {_UNLESS}"
    stated = [name for name in ("memory", "tp", "pp", "dp", "cp", "ep", "mbs", "seq") if name in statement.figures]
    return [Breach(code="R10", severity="implausible", says=says, ratio=ratio, fields=tuple(stated))]


def _is_training(statement: Statement) -> bool:
    if statement.words.get("optimizer", "adam").lower() not in ("adam", "adamw"):
        return False
    if statement.words.get("purpose", "training").lower() not in _TRAININGS:
        return False
    return bool(_OF_TRAINING & statement.figures.keys()) or "recompute" in statement.words


def _least_states(statement: Statement, solution: Solution) -> tuple[Term, str] | None:
    """Return the bytes of states that a device holds at the least: ZeRO paper, arXiv:1910.02054, section 5."""
    known = solution.known
    if not _is_training(statement) or "params" not in known or "gpus" not in known:
        return None
    stage = statement.count("zero")
    whole = known["params"]
    if stage is None or stage == 3 or not {"tp", "pp"} <= known.keys():
        return Term(_ADAM_BYTES, {}).times(whole).times(known["gpus"], -1.0), "divided over all devices"
    each = whole.times(known["tp"], -1.0).times(known["pp"], -1.0)
    replicas = solution.value("dp") or math.inf
    least = {0: 16.0, 1: 4.0 + 12.0 / replicas, 2: 2.0 + 14.0 / replicas}[stage]
    return Term(least, {}).times(each), f"at least {least:.3g} bytes a parameter with ZeRO stage {stage}"


def least_memory(statement: Statement, solution: Solution) -> LeastMemory | None:
    """Return what the memory model counts for a stated layout at the least; None where too little is stated.

    What is not stated takes the value that needs least: all is computed again, gradients have 16 bits, scores and
    logits are fused, what tensor parallelism leaves whole is divided along the sequence. Transients and buffers are
    left out: `tests/unit/costs/test_memory.py` holds the rest against measured rows, on which it is 2 to 9 % low.
    """
    model = statement.model or described(statement.figures, statement.model_name)
    seq, degrees = statement.count("seq"), _degrees(statement, solution)
    if model is None or seq is None or degrees is None or not _is_training(statement):
        return None
    micro_batch = _whole(solution, "mbs") or 1
    work = Work(
        sequence=seq,
        micro_batch=micro_batch,
        global_batch=degrees.dp * micro_batch * (_whole(solution, "ga") or 1),
        recompute=_recompute(statement),
        dtype=dtype if (dtype := dtype_of(statement)) in _DTYPES else "bf16",
        gradient_bytes=2,
    )
    layouts = tuple(_layouts(model, degrees, statement.count("zero"), statement.count("etp")))
    found = [one for layout in layouts if (one := _least(_without_prediction(model), layout, work)) is not None]
    return min(found, key=lambda one: one.bytes, default=None)


@dataclass(frozen=True, slots=True)
class _Degrees:
    """How a statement divides its model."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    vp: int
    schedule: str


def _degrees(statement: Statement, solution: Solution) -> _Degrees | None:
    """Return degrees that are stated, or that follow from those that are; None where one is open."""
    tp, pp, dp, cp = (_whole(solution, name) for name in ("tp", "pp", "dp", "cp"))
    schedule = schedule_of(statement, solution)
    if tp is None or pp is None or dp is None or cp is None or schedule is None:
        return None
    if schedule.name not in SCHEDULES or (schedule.name == "interleaved" and "vp" not in statement.figures):
        return None
    if not {"gpus", "dp"} <= statement.figures.keys() and any(_is_assumed(statement, name) for name in ("tp", "pp")):
        return None
    return _Degrees(tp, pp, dp, cp, statement.count("ep") or 1, schedule.chunks if pp > 1 else 1, schedule.name)


def _is_assumed(statement: Statement, name: str) -> bool:
    return name not in statement.figures or statement.figures[name] is ASSUMED


def _whole(solution: Solution, name: str) -> int | None:
    value = solution.value(name)
    return round(value) if value is not None and value >= 1 and abs(value - round(value)) < 1e-6 * value else None


def _recompute(statement: Statement) -> Recompute:
    stated = statement.words.get("recompute", "full").lower()
    return next((one for one in RECOMPUTE if one == stated), "full")


def _layouts(model: Architecture, degrees: _Degrees, zero: int | None, etp: int | None) -> Iterator[Layout]:
    """Return the layouts that a statement leaves open."""
    of_experts = {1} if model.experts is None else {etp} if etp else {1, degrees.tp}
    for stage in (2, 3) if zero is None else (zero,):
        for each in sorted(of_experts):
            yield Layout(
                tp=degrees.tp, pp=degrees.pp, dp=degrees.dp, cp=degrees.cp, ep=degrees.ep, etp=each, vp=degrees.vp,
                sp=degrees.tp > 1, zero=stage, schedule=degrees.schedule,
            )  # fmt: skip


def _without_prediction(model: Architecture) -> Architecture:
    """Return a model without modules that predict further tokens, which a training may leave out."""
    return replace(model, predicted_tokens=0) if model.predicted_tokens else model


@lru_cache(maxsize=1024)
def _least(model: Architecture, layout: Layout, work: Work) -> LeastMemory | None:
    if complaints(model, layout, work):
        return None
    stages = device_memory(model, layout, work).stages
    found = [
        LeastMemory(stage=stage, recompute=work.recompute, zero=layout.zero, schedule=layout.schedule, stages=layout.pp)
        for stage in stages
    ]
    return max(found, key=lambda one: one.bytes)
