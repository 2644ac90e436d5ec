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

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.costs.formula import Formula, Quantity, quantity
from longpole.costs.layout import Layout
from longpole.costs.memory_activations import (
    Term,
    in_flight,
    in_flight_formula,
    layer_terms,
    logits_term,
    outer_terms,
)
from longpole.costs.memory_states import (
    ELEMENT_BYTES,
    STATE_BYTES,
    Held,
    Optimizer,
    StateBytes,
    held_by_stage,
    layer_kinds,
    optimizer_of,
    stage_layers,
    state_bytes,
    state_terms,
)
from longpole.costs.memory_transients import backward_terms, head_backward_term, standing_terms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.costs.architecture import Architecture
    from longpole.costs.layout import Recompute, Work

MARGIN_SHARE: Final = 0.10  # of what the allocator holds: no measured run had reserved more than 9.3 %, decision 0032
CONTEXT_BYTES: Final = 500_000_000  # of a device's context and kernels, outside the allocator
COMMUNICATION_BYTES: Final = 400_000_000  # NCCL's buffers of a job's communicators, outside the allocator

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
        return MARGIN_SHARE * self.allocated_bytes

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
    figures = _figures(model, _divided(layout), work, imbalance)
    micro_batches = work.micro_batches(layout)
    parts: dict[_StageKinds, _Parts] = {}
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
    return _sum(layer_terms(model, layout, work, chosen, has_experts=model.has_experts(layer), imbalance=imbalance))


def explain_memory(
    model: Architecture,
    layout: Layout,
    work: Work,
    *,
    optimizer: str | Optimizer = "adam",
    imbalance: float = 1.0,
    stage: int | None = None,
) -> tuple[Quantity, ...]:
    """Return every figure that a stage's memory is made of, with its formula and values.

    Args:
        model: Its dimensions.
        layout: How it is divided.
        work: What a step processes.
        optimizer: By name, or what it keeps.
        imbalance: Tokens that the busiest expert rank gets, over the mean.
        stage: Which stage; None for the one that needs most.

    Raises:
        UsageError: The optimizer is not known.
    """
    chosen = optimizer_of(optimizer) if isinstance(optimizer, str) else optimizer
    memory = device_memory(model, layout, work, optimizer=chosen, imbalance=imbalance)
    shown = memory.worst if stage is None else memory.stages[stage]
    figures = _figures(model, _divided(layout), work, imbalance)
    makeup, held = figures.stages(layout)[shown.stage]
    formula, inputs = in_flight_formula(layout, shown.stage, work.micro_batches(layout))
    states = state_terms(held, layout, work, chosen)
    return (
        *(quantity(name, STATE_BYTES, **values) for name, values in states.items()),
        quantity("micro-batches in flight", formula, **inputs),
        *_explained(figures.terms_of_layers(makeup)),
        *_explained(outer_terms(model, layout, work, first=makeup.first, last=makeup.last)),
        *_explained([logits_term(model, layout, work)] if makeup.last else []),
        *_explained(figures.standing_terms(makeup)),
        *_explained(figures.momentary_terms(makeup)),
        quantity("margin", MARGIN, share=MARGIN_SHARE, allocated=shown.allocated_bytes),
    )


class _Kind(NamedTuple):
    """Layers that are counted alike."""

    has_experts: bool
    policy: Recompute


class _StageKinds(NamedTuple):
    """What a stage has: how many layers of each kind, and the model's ends."""

    kinds: tuple[tuple[_Kind, int], ...]
    first: bool
    last: bool


def _stage_kinds(model: Architecture, layout: Layout, work: Work) -> tuple[_StageKinds, ...]:
    """Return the makeup of each stage."""
    if work.recompute_layers:
        return _stage_kinds_one_by_one(model, layout, work)
    return tuple(
        _StageKinds(
            tuple(
                (_Kind(has_experts, work.recompute), count)
                for has_experts, count in ((False, stage.dense), (True, stage.experts))
                if count
            ),
            stage.first,
            stage.last,
        )
        for stage in stage_layers(model, layout)
    )


def _stage_kinds_one_by_one(model: Architecture, layout: Layout, work: Work) -> tuple[_StageKinds, ...]:
    found = []
    for chunks, stage in zip(layout.stages(model.layers), stage_layers(model, layout), strict=True):
        layers = (layer for chunk in chunks for layer in chunk)
        counts = Counter(_Kind(model.has_experts(layer), work.policy(layer)) for layer in layers)
        found.append(_StageKinds(tuple(sorted(counts.items())), stage.first, stage.last))
    return tuple(found)


class _Figures:
    """What is kept and needed of one layer of each kind, of the head and around the layers; counted once.

    It depends on what divides a layer, and not on stages, replicas and schedule: a search meets the same again.
    """

    def __init__(self, model: Architecture, layout: Layout, work: Work, imbalance: float) -> None:
        self.model = model
        self.layout = layout
        self.work = work
        self._imbalance = imbalance
        self._kept: dict[_Kind, float] = {}
        self._needed: dict[_Kind, float] = {}
        self._standing: dict[_StageKinds, float] = {}
        self._stages: dict[tuple[object, ...], tuple[tuple[_StageKinds, Held], ...]] = {}
        self.logits_bytes = logits_term(model, layout, work).bytes
        self.head_bytes = head_backward_term(model, layout, work).bytes
        self.outer_bytes = {
            (first, last): _sum(outer_terms(model, layout, work, first=first, last=last))
            for first in (False, True)
            for last in (False, True)
        }

    def stages(self, layout: Layout) -> tuple[tuple[_StageKinds, Held], ...]:
        """Return what each stage of a layout is made of, and the parameters that it holds."""
        key = (layout.pp, layout.vp, layout.schedule, layout.chunk_layers)
        if key not in self._stages:
            makeup, held = _stage_kinds(self.model, layout, self.work), held_by_stage(self.model, layout)
            self._stages[key] = tuple(zip(makeup, held, strict=True))
        return self._stages[key]

    def terms_of_layer(self, kind: _Kind) -> list[Term]:
        """Return what is kept of a layer."""
        return layer_terms(
            self.model, self.layout, self.work, kind.policy, has_experts=kind.has_experts, imbalance=self._imbalance
        )

    def terms_of_layers(self, stage: _StageKinds) -> list[Term]:
        """Return what is kept of a layer of each kind that a stage has."""
        several = len(stage.kinds) > 1
        return [
            Term(f"{term.name} of a layer{_of_kind(kind) if several else ''}", term.formula, term.inputs)
            for kind, _ in stage.kinds
            for term in self.terms_of_layer(kind)
        ]

    def terms_of_backward(self, kind: _Kind) -> list[Term]:
        """Return what the backward passes of a layer's two halves need."""
        return backward_terms(
            self.model, self.layout, self.work, has_experts=kind.has_experts, imbalance=self._imbalance
        )

    def momentary_terms(self, stage: _StageKinds) -> list[Term]:
        """Return what comes and goes with backward passes; of it, only the largest counts."""
        found = [head_backward_term(self.model, self.layout, self.work)] if stage.last else []
        for kind, _ in stage.kinds:
            found += self.terms_of_backward(kind)
            if kind.policy != "none":
                again = self.terms_of_layer(_Kind(kind.has_experts, "none"))
                found += [Term(f"{term.name}, computed again", term.formula, term.inputs) for term in again]
        return found

    def standing_terms(self, stage: _StageKinds) -> list[Term]:
        """Return what stands while a step runs."""
        dense, experts = layer_kinds(self.model)
        present = {kind.has_experts for kind, _ in stage.kinds}
        layers = [layer for has, layer in ((False, dense), (True, experts)) if has in present and layer is not None]
        return standing_terms(self.model, self.layout, self.work, layers, has_matrix=stage.first or stage.last)

    def kept_bytes(self, stage: _StageKinds) -> float:
        """Return what a stage keeps of one micro-batch; modules of further prediction are as its last layer."""
        for kind, _ in stage.kinds:
            if kind not in self._kept:
                self._kept[kind] = _sum(self.terms_of_layer(kind))
        kept = sum(count * self._kept[kind] for kind, count in stage.kinds)
        if stage.last and stage.kinds and self.model.predicted_tokens:
            kept += self.model.predicted_tokens * self._kept[stage.kinds[-1][0]]
        return kept + self.outer_bytes[stage.first, stage.last]

    def needed_bytes(self, stage: _StageKinds) -> float:
        """Return what the hungriest layer's backward pass needs, with what it computes again before."""
        for kind, _ in stage.kinds:
            if kind not in self._needed:
                whole, kept = self.terms_of_layer(_Kind(kind.has_experts, "none")), self.terms_of_layer(kind)
                again = _sum(whole) - (_sum(kept) if kind.policy == "selective" else 0.0)
                passes = max(term.bytes for term in self.terms_of_backward(kind))
                self._needed[kind] = passes + (again if kind.policy != "none" else 0.0)
        return max((self._needed[kind] for kind, _ in stage.kinds), default=0.0)

    def standing_bytes(self, stage: _StageKinds) -> float:
        """Return what stands while a step runs."""
        if stage not in self._standing:
            self._standing[stage] = _sum(self.standing_terms(stage))
        return self._standing[stage]


@lru_cache(maxsize=4096)
def _figures(model: Architecture, layout: Layout, work: Work, imbalance: float) -> _Figures:
    return _Figures(model, layout, work, imbalance)


def _divided(layout: Layout) -> Layout:
    """Return the part of a layout that divides a layer."""
    return Layout(
        tp=layout.tp,
        cp=layout.cp,
        ep=layout.ep,
        etp=layout.etp,
        sp=layout.sp,
        cp_kind=layout.cp_kind,
        zero=3 if layout.zero == 3 else 0,
    )


class _Parts(NamedTuple):
    """A stage's parts that do not depend on how many micro-batches are in flight."""

    layers: int
    states: StateBytes
    kept_bytes: float
    logits_bytes: float
    transient_bytes: float
    buffers_bytes: float


def _parts(figures: _Figures, stage: _StageKinds, layout: Layout, optimizer: Optimizer, held: Held) -> _Parts:
    """Add up what stages of the same makeup have in common."""
    work, model = figures.work, figures.model
    kept = figures.kept_bytes(stage)
    logits = figures.logits_bytes if stage.last else 0.0
    at_head = logits + figures.head_bytes if stage.last else 0.0
    # When the embedding's gradient appears, the layers of that micro-batch have freed what they kept.
    matrix = ELEMENT_BYTES[work.dtype] * model.vocabulary * model.hidden / layout.tp
    at_embedding = matrix - kept if stage.first else 0.0
    momentary = max(at_head, figures.needed_bytes(stage), at_embedding)
    return _Parts(
        layers=sum(count for _, count in stage.kinds),
        states=state_bytes(held, layout, work, optimizer),
        kept_bytes=kept,
        logits_bytes=logits,
        transient_bytes=figures.standing_bytes(stage) + momentary - logits,
        buffers_bytes=CONTEXT_BYTES + (COMMUNICATION_BYTES if layout.world > 1 else 0),
    )


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
    )


def _of_kind(kind: _Kind) -> str:
    return f" ({'experts' if kind.has_experts else 'dense'}, recompute {kind.policy})"


def _sum(terms: Iterable[Term]) -> float:
    return sum(term.bytes for term in terms)


def _explained(terms: Iterable[Term]) -> tuple[Quantity, ...]:
    return tuple(quantity(term.name, term.formula, **term.inputs) for term in terms)
