"""Memory of a device, per pipeline stage: states, activations, logits, and what is needed for a moment.

    weights + gradients + optimizer                          memory_states.py, after ZeRO
    activations = micro-batches in flight x those of one     memory_activations.py, after recomputation
    logits                                                   where the head is
    transient   = gathered weights and placeholders of gradients, and the larger of the head's and a layer's backward
    buffers     = what the allocator does not see: context and communication

What the peak leaves out is always on top of it, never below: fragments, workspaces, uneven experts. So a margin on top
of it is part of the answer, and a plan fits where peak and margin do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.costs.formula import Formula
from longpole.costs.memory_activations import in_flight, layer_terms
from longpole.costs.memory_stages import StageFigures, StageMakeup, figures_of, sum_of
from longpole.costs.memory_states import ELEMENT_BYTES, Held, Optimizer, StateBytes, optimizer_of, state_bytes

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture
    from longpole.costs.layout import Layout, Recompute, Work

MARGIN_SHARE: Final = 0.10  # of what the allocator holds: no measured run had reserved more than 9.3 %, decision 0032
GATHERED_MARGIN_SHARE: Final = 0.27  # of FSDP under a pipeline: six measured runs reserved 12 to 27 % more
CONTEXT_BYTES: Final = 500_000_000  # of a device's context and kernels, outside the allocator
COMMUNICATION_BYTES: Final = 400_000_000  # NCCL's buffers of a job's communicators, outside the allocator

TRANSIENT: Final = Formula(
    "standing + max(head, layer, embedding) - logits",
    "B",
    "what stands, and the largest of the moments that may be the peak: at the head (with the logits, which are a part"
    " of their own), in a layer's backward pass, and at the embedding, when that micro-batch's layers are freed",
)
MARGIN: Final = Formula("share*allocated", "B", "one-sided: see decision 0032")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMemory:
    """Memory of a device of one pipeline stage, in bytes.

    Attributes:
        stage: Counted from 0.
        layers: That it holds.
        in_flight: Micro-batches whose activations it keeps at once, of all its layers.
        weights_bytes, gradients_bytes, optimizer_bytes: States.
        activations_bytes: Of all micro-batches in flight.
        logits_bytes: With what the cross-entropy keeps.
        transient_bytes: What is needed for a moment at the peak.
        buffers_bytes: Context and communication, which an allocator's figures do not contain.
        margin_share: What to leave free, over what the allocator holds.
    """

    stage: int
    layers: int
    in_flight: float
    weights_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    logits_bytes: float
    transient_bytes: float
    buffers_bytes: float
    margin_share: float = MARGIN_SHARE

    @property
    def states_bytes(self) -> float:
        """Weights, gradients and optimizer."""
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes

    @property
    def allocated_bytes(self) -> float:
        """What a framework's allocator holds at the peak: all but the buffers."""
        return self.states_bytes + self.activations_bytes + self.logits_bytes + self.transient_bytes

    @property
    def peak_bytes(self) -> float:
        """The sum of all parts."""
        return self.allocated_bytes + self.buffers_bytes

    @property
    def margin_bytes(self) -> float:
        """What to leave free on top of the peak."""
        return self.margin_share * self.allocated_bytes

    def parts(self) -> dict[str, float]:
        """Return every part by its name, in bytes; they add up to the peak."""
        return {
            "weights": self.weights_bytes,
            "gradients": self.gradients_bytes,
            "optimizer": self.optimizer_bytes,
            "activations": self.activations_bytes,
            "logits": self.logits_bytes,
            "transient": self.transient_bytes,
            "buffers": self.buffers_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Memory of the devices of a layout.

    Attributes:
        stages: Of each pipeline stage.
    """

    stages: tuple[StageMemory, ...]

    @property
    def worst(self) -> StageMemory:
        """The stage that needs most."""
        return max(self.stages, key=lambda stage: stage.peak_bytes)

    @property
    def peak_bytes(self) -> float:
        """Of the worst stage."""
        return self.worst.peak_bytes

    @property
    def margin_bytes(self) -> float:
        """Of the worst stage."""
        return self.worst.margin_bytes

    @property
    def needed_bytes(self) -> float:
        """Peak and margin of the worst stage."""
        return self.peak_bytes + self.margin_bytes

    def fits(self, capacity_bytes: float) -> bool:
        """Tell whether peak and margin fit into a device's memory."""
        return self.needed_bytes <= capacity_bytes


def device_memory(
    model: Architecture, layout: Layout, work: Work, *, optimizer: str | Optimizer = "adam", imbalance: float = 1.0
) -> DeviceMemory:
    """Return what each pipeline stage needs on a device.

    The layout is taken as it is: `layout.check` refuses what does not divide.

    Args:
        model: Its dimensions.
        layout: How it is divided.
        work: What a step processes.
        optimizer: By name (`memory_states.OPTIMIZERS`), or what it keeps.
        imbalance: Tokens that the busiest expert rank gets, over the mean; 1 where they are even.

    Raises:
        UsageError: The optimizer is not known.
    """
    chosen = optimizer_of(optimizer) if isinstance(optimizer, str) else optimizer
    figures = figures_of(model, layout, work, imbalance)
    micro_batches = work.micro_batches(layout)
    parts: dict[StageMakeup, _Parts] = {}
    stages = []
    for place, (makeup, held) in enumerate(figures.stages(layout)):
        if makeup not in parts:
            parts[makeup] = _parts(figures, makeup, layout, chosen, held)
        stages.append(_stage_memory(parts[makeup], place, in_flight(layout, place, micro_batches)))
    return DeviceMemory(stages=tuple(stages))


def layer_activation_bytes(
    model: Architecture,
    layout: Layout,
    work: Work,
    *,
    layer: int = 0,
    policy: Recompute | None = None,
    imbalance: float = 1.0,
) -> float:
    """Return what a device keeps of one layer for one micro-batch, in bytes.

    Args:
        model: Its dimensions.
        layout: How it is divided.
        work: What a step processes.
        layer: Counted from 0.
        policy: What is computed again; None for what `work` says of the layer.
        imbalance: Tokens that the busiest expert rank gets, over the mean.
    """
    chosen = work.policy(layer) if policy is None else policy
    return sum_of(layer_terms(model, layout, work, chosen, has_experts=model.has_experts(layer), imbalance=imbalance))


class _Parts(NamedTuple):
    """A stage's parts that do not depend on how many micro-batches are in flight."""

    layers: int
    states: StateBytes
    kept_bytes: float
    logits_bytes: float
    transient_bytes: float
    buffers_bytes: float
    margin_share: float


def _parts(figures: StageFigures, stage: StageMakeup, layout: Layout, optimizer: Optimizer, held: Held) -> _Parts:
    """Add up what stages of the same makeup have in common."""
    kept = figures.kept_bytes(stage)
    logits = figures.logits_bytes if stage.last else 0.0
    moments = moments_of(figures, stage)
    return _Parts(
        layers=sum(count for _, count in stage.kinds),
        states=state_bytes(held, layout, figures.work, optimizer),
        kept_bytes=kept,
        logits_bytes=logits,
        transient_bytes=TRANSIENT(standing=figures.standing_bytes(stage, held), logits=logits, **moments),
        buffers_bytes=buffers_bytes(layout),
        margin_share=GATHERED_MARGIN_SHARE if layout.keeps_gathered else MARGIN_SHARE,
    )


def moments_of(figures: StageFigures, stage: StageMakeup) -> dict[str, float]:
    """Return what the moments need that may be the peak: at the head, in a layer, at the embedding."""
    work, model = figures.work, figures.model
    matrix = ELEMENT_BYTES[work.dtype] * model.vocabulary * model.hidden / figures.layout.tp
    return {
        "head": figures.logits_bytes + figures.head_bytes if stage.last else 0.0,
        "layer": max((figures.needed_bytes(kind) for kind, _ in stage.kinds), default=0.0),
        "embedding": matrix - figures.kept_bytes(stage) if stage.first else 0.0,
    }


def buffers_bytes(layout: Layout) -> float:
    """Return what a device needs outside of the allocator."""
    return CONTEXT_BYTES + (COMMUNICATION_BYTES if layout.world > 1 else 0)


def _stage_memory(parts: _Parts, stage: int, micro_batches_in_flight: float) -> StageMemory:
    return StageMemory(
        stage=stage,
        layers=parts.layers,
        in_flight=micro_batches_in_flight,
        weights_bytes=parts.states.weights,
        gradients_bytes=parts.states.gradients,
        optimizer_bytes=parts.states.optimizer,
        activations_bytes=micro_batches_in_flight * parts.kept_bytes,
        logits_bytes=parts.logits_bytes,
        transient_bytes=parts.transient_bytes,
        buffers_bytes=parts.buffers_bytes,
        margin_share=parts.margin_share,
    )
