"""A step's figures with their formulas: rates, operators of a layer, what is exposed, the bubble, the optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.costs.calibration import (
    ATTENTION_FLOPS_PER_S,
    MATMUL_FLOPS_PER_S,
    MEMORY_BYTES_PER_S,
    Calibration,
    ceiling,
)
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.formula import Formula, Quantity, quantity
from longpole.costs.memory_states import ELEMENT_BYTES, held_by_stage, optimizer_of
from longpole.costs.operators import (
    OPERATOR_S,
    embedding_operators,
    head_operators,
    layer_operators,
    shard_of,
)
from longpole.costs.step import OPTIMIZER_S, STEP_S, step_time, updated_parameters
from longpole.costs.step_traffic import Software

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from longpole.costs.architecture import Architecture
    from longpole.costs.cluster import Cluster
    from longpole.costs.layout import Layout, Work
    from longpole.costs.operators import Operator, Rates
    from longpole.costs.step import StepTime

COMPUTE_S: Final = Formula(
    "micro_batches*micro_batch", "s", "what the busiest stage computes for a micro-batch, forward and backward, times m"
)
BUBBLE_S: Final = Formula(
    "period - micro_batches*busiest", "s", "the schedule's period, simulated, less what the busiest stage is busy"
)
TOKENS_PER_S: Final = Formula("tokens/step", "tokens/s", "tokens of a step over its time, all devices together")


def explain_step(
    model: Architecture,
    cluster: Cluster | CollectiveCosts,
    layout: Layout,
    work: Work,
    calibration: Calibration | None = None,
    software: Software | None = None,
) -> tuple[Quantity, ...]:
    """Return every figure of a step with its formula and the values in it; arguments as of `step.step_time`.

    Raises:
        UsageError: As of `step.step_time`.
    """
    software = software or Software()
    costs = cluster if isinstance(cluster, CollectiveCosts) else CollectiveCosts(cluster)
    device = costs.cluster.device
    constants = (calibration or Calibration()).on(device, flash=work.flash)
    rates = constants.rates(device, work.dtype, flash=work.flash)
    step = step_time(model, costs, layout, work, constants, software)
    return (
        *_parts(step),
        *_rates(device.peak(work.dtype), ceiling(device, work.dtype), device.memory_bytes_per_s or 0.0, constants),
        *_operators(model, layout, work, rates),
        _optimizer(model, layout, work, software, rates),
    )


def _parts(step: StepTime) -> Iterator[Quantity]:
    parts = step.parts_s
    exposed = {name: spent for name, spent in parts.items() if name.startswith("exposed_")}
    others = {name: spent for name, spent in parts.items() if name not in exposed}
    yield quantity("step", STEP_S, **others, exposed=sum(exposed.values()))
    yield quantity("tokens per second", TOKENS_PER_S, tokens=step.tokens, step=step.total_s)
    m = step.micro_batches
    yield quantity("compute", COMPUTE_S, micro_batches=m, micro_batch=step.compute_s / m)
    busiest = step.stages_s[step.stage]
    yield quantity("bubble", BUBBLE_S, period=step.bubble_s + m * busiest, micro_batches=m, busiest=busiest)


def _rates(peak: float, share: float, memory_rate: float, constants: Calibration) -> Iterator[Quantity]:
    reached = {"peak": peak, "ceiling": share, "matmul_of_ceiling": constants.matmul_of_ceiling or 0.0}
    yield quantity("rate of products", MATMUL_FLOPS_PER_S, **reached)
    yield quantity(
        "rate of attention", ATTENTION_FLOPS_PER_S, **reached, attention_of_matmul=constants.attention_of_matmul or 0.0
    )
    yield quantity("rate of memory", MEMORY_BYTES_PER_S, memory_rate=memory_rate, memory_share=constants.memory_share)


def _operators(model: Architecture, layout: Layout, work: Work, rates: Rates) -> Iterator[Quantity]:
    """Yield each operator's forward pass, for one micro-batch on one device."""
    shard = shard_of(layout, work)
    kinds = dict.fromkeys(model.has_experts(layer) for layer in range(model.layers))
    by_kind = {
        "matmul": rates.matmul_flops_per_s,
        "attention": rates.attention_flops_per_s,
        "head": rates.head_flops_per_s,
        "memory": rates.matmul_flops_per_s,
    }
    for experts in kinds:
        where = "" if len(kinds) == 1 else (" (layer with experts)" if experts else " (dense layer)")
        for one in layer_operators(model, shard, experts=experts):
            yield _operator(f"forward of {one.name}{where}", one, by_kind, rates)
    for one in (*embedding_operators(model, shard), *head_operators(model, shard)):
        yield _operator(f"forward of {one.name}", one, by_kind, rates)


def _operator(name: str, one: Operator, by_kind: Mapping[str, float], rates: Rates) -> Quantity:
    return quantity(
        name,
        OPERATOR_S,
        flops=one.flops,
        flops_per_s=by_kind[one.kind],
        moved_bytes=one.moved_bytes,
        memory_bytes_per_s=rates.memory_bytes_per_s,
        launches=one.launches,
        launch_s=rates.launch_s,
    )


def _optimizer(model: Architecture, layout: Layout, work: Work, software: Software, rates: Rates) -> Quantity:
    """Return the update of the stage that holds most."""
    optimizer = optimizer_of(software.optimizer)
    return quantity(
        "optimizer",
        OPTIMIZER_S,
        parameters=max(updated_parameters(held, layout) for held in held_by_stage(model, layout)),
        gradient=work.gradient_bytes,
        state=optimizer.state_bytes(work.dtype),
        weight=ELEMENT_BYTES[work.dtype],
        memory_bytes_per_s=rates.memory_bytes_per_s,
    )
