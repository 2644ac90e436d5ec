"""The least recomputation that fits: a policy for each layer, stage by stage.

A layer that is computed again frees its activations for as many micro-batches as its stage has in flight, and costs
its forward pass once more. So the early stages of a pipeline, which hold the most, need it for more layers than the
late ones, and a policy that is the same everywhere computes again what fits anyway.

    stage 0, 4 in flight   full full full ·     three of four layers
    stage 3, 1 in flight   ·    ·    ·    ·     none

Layers of a stage take turns: the next step up is the one that frees the most bytes for a FLOP. Steps are added until
the stage fits; among layers of one kind that is the fewest possible.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from longpole.costs.flops import layer_forward_flops
from longpole.costs.layout import RECOMPUTE
from longpole.costs.memory import device_memory, layer_activation_bytes
from longpole.costs.memory_states import Optimizer, optimizer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.costs.architecture import Architecture
    from longpole.costs.layout import Layout, Recompute, Work


class _Step(NamedTuple):
    """One layer's policy goes up."""

    layer: int
    policy: Recompute


def fit_recompute(
    model: Architecture,
    layout: Layout,
    work: Work,
    capacity_bytes: float,
    *,
    optimizer: str | Optimizer = "adam",
    imbalance: float = 1.0,
) -> tuple[Recompute, ...] | None:
    """Return a policy for each layer with which every stage fits, computing again as little as possible.

    Args:
        model: Its dimensions.
        layout: How it is divided.
        work: What a step processes; its own policies are left aside.
        capacity_bytes: Of a device; peak and margin have to fit.
        optimizer: By name, or what it keeps.
        imbalance: Tokens that the busiest expert rank gets, over the mean.

    Returns:
        A policy for each layer, or None where a stage does not fit even when all of it is computed again.

    Raises:
        UsageError: The optimizer is not known.
    """
    chosen = optimizer_of(optimizer) if isinstance(optimizer, str) else optimizer
    order = _order(model, layout, work, imbalance)
    stages = [
        [step for step in order if any(step.layer in chunk for chunk in chunks)]
        for chunks in layout.stages(model.layers)
    ]

    def fits(taken: Sequence[int]) -> list[bool]:
        tried = replace(work, recompute_layers=_policies(model, stages, taken))
        memory = device_memory(model, layout, tried, optimizer=chosen, imbalance=imbalance)
        return [stage.peak_bytes + stage.margin_bytes <= capacity_bytes for stage in memory.stages]

    taken = _fewest(fits, [len(steps) for steps in stages])
    return None if taken is None else _policies(model, stages, taken)


def _fewest(fits: Callable[[Sequence[int]], list[bool]], longest: list[int]) -> list[int] | None:
    """Return the fewest steps with which each stage fits, all stages halved at once; None where one cannot.

    The first step may cost more than it frees, for what is computed again stands for a moment; from then on each step
    frees. So no step at all is tried by itself.
    """
    nothing, everything = fits([0] * len(longest)), fits(longest)
    if not all(fine or all_of_it for fine, all_of_it in zip(nothing, everything, strict=True)):
        return None
    low = [0 if fine else 1 for fine in nothing]
    high = [0 if fine else most for fine, most in zip(nothing, longest, strict=True)]
    while low != high:
        middle = [(lower + upper) // 2 for lower, upper in zip(low, high, strict=True)]
        for stage, fine in enumerate(fits(middle)):
            if low[stage] < high[stage] and fine:
                high[stage] = middle[stage]
            elif low[stage] < high[stage]:
                low[stage] = middle[stage] + 1
    return low


def _order(model: Architecture, layout: Layout, work: Work, imbalance: float) -> list[_Step]:
    """Return all steps, those that free the most bytes for a FLOP first; of equal ones the earlier layer."""
    kinds = {
        has: _steps_of_kind(model, layout, work, layer, imbalance) for has, layer in _representatives(model).items()
    }
    steps = [
        (-ratio, layer, place, policy)
        for layer in range(model.layers)
        for place, (policy, ratio) in enumerate(kinds[model.has_experts(layer)])
    ]
    return [_Step(layer, policy) for _, layer, _, policy in sorted(steps, key=lambda step: step[:3])]


def _representatives(model: Architecture) -> dict[bool, int]:
    """Return one layer of each kind."""
    return {model.has_experts(layer): layer for layer in reversed(range(model.layers))}


def _steps_of_kind(
    model: Architecture, layout: Layout, work: Work, layer: int, imbalance: float
) -> list[tuple[Recompute, float]]:
    """Return a layer's steps with the bytes that each frees for a FLOP; a step that the next one beats is left out."""
    kept = {
        policy: layer_activation_bytes(model, layout, work, layer=layer, policy=policy, imbalance=imbalance)
        for policy in RECOMPUTE
    }
    flops = layer_forward_flops(model, layer, work.sequence, attention="causal" if work.flash else "full")
    selective = (kept["none"] - kept["selective"]) / flops["core"]
    rest = (kept["selective"] - kept["full"]) / (sum(flops.values()) - flops["core"])
    if selective > rest:
        return [("selective", selective), ("full", rest)]
    return [("full", (kept["none"] - kept["full"]) / sum(flops.values()))]


def _policies(model: Architecture, stages: Sequence[Sequence[_Step]], taken: Sequence[int]) -> tuple[Recompute, ...]:
    """Return the policy of each layer after so many steps of each stage."""
    policies: list[Recompute] = ["none"] * model.layers
    for steps, count in zip(stages, taken, strict=True):
        for step in steps[:count]:
            if RECOMPUTE.index(step.policy) > RECOMPUTE.index(policies[step.layer]):
                policies[step.layer] = step.policy
    return tuple(policies)
