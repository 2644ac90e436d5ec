"""How long a training step takes, and what of: computing, exposed communication, bubble, optimizer.

A stage's passes are its layers' operators (`operators.py`) with the messages that nothing hides; the schedule of the
pipeline is simulated (`schedules.py`); gradients are reduced behind the last backward pass (`overlap.py`); then the
optimizer runs. The parts are those of the busiest stage, and add up to the step exactly.

    busiest stage   ├ F ┤├ F ┤├ B ┤├ F ┤├ B ┤   idle   ├ B ┤├ reduce ┤├ optimizer ┤
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.costs.calibration import Calibration
from longpole.costs.formula import Formula
from longpole.costs.memory_states import held_by_stage
from longpole.costs.operators import (
    PassTime,
    embedding_operators,
    head_operators,
    layer_operators,
    predictor_operators,
    shard_of,
    time_of,
)
from longpole.costs.schedules import Times, step_seconds
from longpole.costs.step_traffic import Overlapping, layer_traffic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.costs.architecture import Architecture
    from longpole.costs.cluster import Cluster
    from longpole.costs.collective_time import CollectiveCosts
    from longpole.costs.layout import Layout, Work
    from longpole.costs.operators import Rates

STEP_S: Final = Formula(
    "compute + recompute + exposed + contention + bubble + optimizer", "s", "parts of the busiest stage"
)
OPTIMIZER_S: Final = Formula(
    "parameters*bytes_each/memory_bytes_per_s",
    "s",
    "Adam reads the gradient, reads and writes weight and both moments in 32 bits, and writes the 16-bit weight",
)
_UPDATE_BYTES: Final = 26.0  # besides the gradient: 3 · (4 + 4) and 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """A step, split by what the busiest stage spends it on, in seconds.

    Attributes:
        compute_s: Forward and backward.
        recompute_s: What is computed again.
        exposed_s: By dimension, communication that nothing hides; only dimensions that there are.
        hidden_s: By dimension, communication beside computation; no part of the total.
        contention_s: What hidden communication slows computation by.
        bubble_s: Waiting for other stages.
        optimizer_s: The update.
        tokens: Of the step.
        micro_batches: Of the step, m.
        stage: The busiest, counted from 0.
        stages_s: Per stage, what one micro-batch keeps it busy, exposed communication included.
        spent_s: `compute_s` and `recompute_s` by what they run at: `matmul`, `attention`, `memory`, `launch`.
        calibration: What the constants are from.
    """

    compute_s: float
    recompute_s: float
    exposed_s: Mapping[str, float]
    hidden_s: Mapping[str, float]
    contention_s: float
    bubble_s: float
    optimizer_s: float
    tokens: int
    micro_batches: int
    stage: int
    stages_s: tuple[float, ...]
    spent_s: Mapping[str, float]
    calibration: Calibration

    @property
    def parts_s(self) -> dict[str, float]:
        """The parts by name, `exposed_` before a dimension's."""
        exposed = {f"exposed_{dimension}": spent for dimension, spent in self.exposed_s.items()}
        return {
            "compute": self.compute_s,
            "recompute": self.recompute_s,
            **exposed,
            "contention": self.contention_s,
            "bubble": self.bubble_s,
            "optimizer": self.optimizer_s,
        }

    @property
    def total_s(self) -> float:
        """The step: the sum of its parts."""
        return sum(self.parts_s.values())

    @property
    def tokens_per_s(self) -> float:
        """Tokens of a step over its time, of all devices together."""
        return self.tokens / self.total_s


class _Stage(NamedTuple):
    """One chunk of a pipeline, one micro-batch."""

    forward_s: float
    backward_s: float
    passes: PassTime
    tp_s: float
    cp_s: float
    ep_s: float
    pp_s: float
    hidden_tp_s: float
    hidden_cp_s: float
    hidden_ep_s: float


def step_time(
    model: Architecture,
    cluster: Cluster,
    layout: Layout,
    work: Work,
    calibration: Calibration = Calibration(),
    overlapping: Overlapping = Overlapping(),
    costs: CollectiveCosts | None = None,
) -> StepTime:
    from longpole.costs.collective_time import CollectiveCosts as Costs

    costs = costs or Costs(cluster)
    rates = calibration.rates(cluster.device, work.dtype)
    parts = [_part(model, layout, work, rates, costs, overlapping, calibration, index) for index in range(layout.pp * layout.vp)]
    m = work.micro_batches(layout)
    size = 2.0 * work.micro_batch * work.sequence / layout.cp * model.hidden / layout.tp
    send = costs.seconds_along("send_recv", layout, "pp", size) * calibration.network if layout.pp > 1 else 0.0
    if not overlapping.pp and layout.pp > 1:
        parts = [p._replace(forward_s=p.forward_s + send, backward_s=p.backward_s + send, pp_s=2 * send) for p in parts]
    times = [Times(forward_s=p.forward_s, backward_s=p.backward_s) for p in parts]
    schedule = layout.schedule if layout.vp == 1 or layout.schedule != "1f1b" else "interleaved"
    whole = step_seconds(schedule, layout.pp, m, times, layout.vp, send if overlapping.pp else 0.0)
    stages = []
    for s in range(layout.pp):
        own = parts[s::layout.pp]
        stages.append(own)
    busy = [sum(p.forward_s + p.backward_s for p in own) for own in stages]
    at = max(range(layout.pp), key=busy.__getitem__)
    own = stages[at]
    passes = PassTime()
    for p in own:
        passes = passes.plus(p.passes)
    held = held_by_stage(model, layout)[at]
    opt = held.total * (_UPDATE_BYTES + work.gradient_bytes) / (layout.dp * layout.cp if layout.zero else 1) / rates.memory_bytes_per_s
    dp = 0.0
    if layout.dp * layout.cp > 1:
        gb = held.total * work.gradient_bytes
        dp = calibration.network * costs.seconds_along("all_reduce", layout, "dp", gb)
    exposed = {k: m * sum(getattr(p, k + "_s") for p in own) for k in ("tp", "cp", "ep", "pp")}
    exposed["dp"] = dp
    return StepTime(
        compute_s=m * (passes.forward_s + passes.backward_s), recompute_s=m * passes.recompute_s,
        exposed_s={k: v for k, v in exposed.items() if v}, hidden_s={}, contention_s=0.0,
        bubble_s=whole - m * busy[at], optimizer_s=opt, tokens=work.tokens, micro_batches=m, stage=at, stages_s=tuple(busy),
        spent_s={"matmul": m * passes.matmul_s, "attention": m * passes.attention_s, "memory": m * passes.memory_s, "launch": m * passes.launch_s},
        calibration=calibration)


def _part(model, layout, work, rates, costs, overlapping, calibration, index):
    counts = layout.chunks(model.layers)
    start = sum(counts[:index])
    shard = shard_of(layout, work)
    total = PassTime()
    tpf = tpb = 0.0
    cpx = epx = 0.0
    f = b = 0.0
    for layer in range(start, start + counts[index]):
        ex = model.has_experts(layer)
        t = time_of(layer_operators(model, shard, experts=ex), rates, work.policy(layer))
        c = layer_traffic(model, layout, work, costs, experts=ex)
        sc = calibration.scale_up
        again = c.tp_again_s if work.policy(layer) == "full" else 0.0
        total = total.plus(t)
        tpf += sc * c.tp_forward_s
        tpb += sc * (c.tp_backward_s + again)
        att = t.attention_s
        hid = c.cp_forward_s + c.cp_backward_s
        cpx += max(0.0, hid - att)
        epx += sc * (c.ep_forward_s + c.ep_backward_s)
    if index == 0:
        total = total.plus(time_of(embedding_operators(model, shard), rates))
    if index == layout.pp * layout.vp - 1:
        total = total.plus(time_of(head_operators(model, shard), rates))
        for _ in range(model.predicted_tokens):
            total = total.plus(time_of(head_operators(model, shard), rates)).plus(time_of(predictor_operators(model, shard), rates)).plus(time_of(layer_operators(model, shard, experts=model.experts is not None), rates))
    f = total.forward_s + tpf + (cpx + epx) / 3
    b = total.backward_s + total.recompute_s + tpb + (cpx + epx) * 2 / 3
    return _Stage(f, b, total, tpf + tpb, cpx, epx, 0.0, 0.0, 0.0, 0.0)
