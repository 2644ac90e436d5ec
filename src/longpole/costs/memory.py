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
from typing import TYPE_CHECKING, Final

from longpole.costs.formula import Formula, Quantity, quantity
from longpole.costs.memory_activations import (
    Term,
    backward_terms,
    head_backward_term,
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
    held_by_layer,
    held_by_stage,
    optimizer_of,
    state_bytes,
    state_terms,
)
from longpole.costs.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.costs.architecture import Architecture
    from longpole.costs.layout import Layout, Recompute, Work

MARGIN_SHARE: Final = 0.05  # of what the allocator holds: Megatron's real allocation and fragments, decision 0032
CONTEXT_BYTES: Final = 500_000_000  # of a device's context and kernels, outside the allocator
COMMUNICATION_BYTES: Final = 400_000_000  # NCCL's buffers of a job's communicators, outside the allocator

PLACEHOLDERS: Final = Formula(
    "e*(dense + expert)",
    "B",
    "Transformer Engine from 2.3 keeps one empty gradient per shape of weight where gradients are summed into a buffer"
    " of their own",
)
LARGEST_GRADIENT: Final = Formula(
    "e*largest", "B", "the gradient of one weight, before it is added to the one that is kept"
)
GATHERED: Final = Formula(
    "live*e*layer + (e + gradient_bytes)*layer",
    "B",
    "arXiv:2304.11277, section 4: the layer that is computed and the one fetched ahead, whole; a layer's gradient"
    " before and while it is reduced",
)
MARGIN: Final = Formula("share*allocated", "B", "one-sided: see decision 0032")
_LIVE_LAYERS: Final = 2


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
    counting = _Counting(model, layout, work, imbalance)
    return DeviceMemory(
        stages=tuple(
            _stage_memory(counting, chosen, stage, chunks, held)
            for stage, (chunks, held) in enumerate(
                zip(layout.stages(model.layers), held_by_stage(model, layout), strict=True)
            )
        )
    )


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
    terms = layer_terms(
        model,
        layout,
        work,
        has_experts=model.has_experts(layer),
        policy=work.policy(layer) if policy is None else policy,
        imbalance=imbalance,
    )
    return _sum(terms)


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
    counting = _Counting(model, layout, work, imbalance)
    chunks, held = layout.stages(model.layers)[shown.stage], held_by_stage(model, layout)[shown.stage]
    formula, inputs = in_flight_formula(layout, shown.stage, work.micro_batches(layout))
    first, last = _ends(chunks, model.layers)
    states = state_terms(held, layout, work, chosen).items()
    kinds = counting.kinds(chunks)
    return (
        *(quantity(name, STATE_BYTES, **values) for name, values in states),
        quantity("micro-batches in flight", formula, **inputs),
        *(
            quantity(f"{term.name} of a layer{_of_kind(kind, kinds)}", term.formula, **term.inputs)
            for kind in kinds
            for term in counting.layer(*kind)
        ),
        *_explained(outer_terms(model, layout, work, first=first, last=last)),
        *_explained([logits_term(model, layout, work)] if last else []),
        *_explained(counting.standing(chunks, held)),
        *_explained(counting.momentary(chunks)),
        *_explained([head_backward_term(model, layout, work)] if last else []),
        quantity("margin", MARGIN, share=MARGIN_SHARE, allocated=shown.allocated_bytes),
    )


class _Counting:
    """What is the same for all stages of a layout, counted once."""

    def __init__(self, model: Architecture, layout: Layout, work: Work, imbalance: float) -> None:
        self.model = model
        self.layout = layout
        self.work = work
        self._imbalance = imbalance
        self._kept: dict[tuple[bool, Recompute], float] = {}
        self._needed: dict[bool, float] = {}

    def kinds(self, chunks: Iterable[range]) -> dict[tuple[bool, Recompute], int]:
        """Return how many layers of each kind there are: whether they have experts, and their policy."""
        found: dict[tuple[bool, Recompute], int] = {}
        for chunk in chunks:
            for layer in chunk:
                kind = (self.model.has_experts(layer), self.work.policy(layer))
                found[kind] = found.get(kind, 0) + 1
        return found

    def layer(self, has_experts: bool, policy: Recompute) -> list[Term]:  # noqa: FBT001 a kind of layer, as `kinds` gives it
        """Return what is kept of a layer."""
        return layer_terms(
            self.model, self.layout, self.work, has_experts=has_experts, policy=policy, imbalance=self._imbalance
        )

    def kept_bytes(self, kind: tuple[bool, Recompute]) -> float:
        """Return what is kept of a layer of a kind for one micro-batch."""
        if kind not in self._kept:
            self._kept[kind] = _sum(self.layer(*kind))
        return self._kept[kind]

    def needed_bytes(self, kind: tuple[bool, Recompute]) -> float:
        """Return what a layer's backward pass needs besides what is kept of it."""
        has_experts, policy = kind
        if has_experts not in self._needed:
            terms = backward_terms(
                self.model, self.layout, self.work, has_experts=has_experts, imbalance=self._imbalance
            )
            self._needed[has_experts] = max(term.bytes for term in terms)
        again = 0.0
        if policy == "full":
            again = self.kept_bytes((has_experts, "none"))
        elif policy == "selective":
            again = self.kept_bytes((has_experts, "none")) - self.kept_bytes(kind)
        return self._needed[has_experts] + again

    def momentary(self, chunks: Iterable[range]) -> list[Term]:
        """Return what the layers' backward passes need for a moment."""
        found = []
        for has_experts, policy in self.kinds(chunks):
            found += backward_terms(
                self.model, self.layout, self.work, has_experts=has_experts, imbalance=self._imbalance
            )
            if policy != "none":
                found += [
                    Term(f"{term.name}, computed again", term.formula, term.inputs)
                    for term in self.layer(has_experts, "none")
                ]
        return found

    def standing(self, chunks: Iterable[range], held: Held) -> list[Term]:
        """Return gathered weights, and gradients of weights before they are added."""
        counted = parameters(self.model)
        layers = {id(layer): layer for chunk in chunks for layer in counted.layers[chunk.start : chunk.stop]}
        by_layer = [held_by_layer(layer, self.layout) for layer in layers.values()]
        if not by_layer:
            return []
        element_bytes = ELEMENT_BYTES[self.work.dtype]
        if self.layout.zero == 3:
            largest = max(*(layer.total for layer in by_layer), held.vocabulary)
            inputs = {"e": element_bytes, "layer": largest, "gradient_bytes": self.work.gradient_bytes}
            return [Term("gathered weights and gradients", GATHERED, {**inputs, "live": _LIVE_LAYERS})]
        if self.work.gradient_bytes > element_bytes:
            dense = max(layer.dense for layer in by_layer)
            expert = max(layer.routed for layer in by_layer) / _experts_held(self.model, self.layout)
            inputs = {"e": element_bytes, "dense": dense, "expert": expert}
            return [Term("placeholders of gradients", PLACEHOLDERS, inputs)]
        model, layout = self.model, self.layout
        matrix = model.hidden * max(model.feed_forward, model.heads * model.head_dim) / layout.tp
        return [Term("one weight's gradient", LARGEST_GRADIENT, {"e": element_bytes, "largest": matrix})]


def _stage_memory(
    counting: _Counting, optimizer: Optimizer, stage: int, chunks: tuple[range, ...], held: Held
) -> StageMemory:
    """Add one stage up."""
    model, layout, work = counting.model, counting.layout, counting.work
    first, last = _ends(chunks, model.layers)
    kinds = counting.kinds(chunks)
    states = state_bytes(held, layout, work, optimizer)
    flying = in_flight(layout, stage, work.micro_batches(layout))
    kept = sum(count * counting.kept_bytes(kind) for kind, count in kinds.items())
    kept += _sum(outer_terms(model, layout, work, first=first, last=last))
    logits = logits_term(model, layout, work).bytes if last else 0.0
    at_head = logits + head_backward_term(model, layout, work).bytes if last else 0.0
    at_layer = max((counting.needed_bytes(kind) for kind in kinds), default=0.0)
    # When the embedding's gradient appears, the layers of that micro-batch have freed what they kept.
    at_embedding = ELEMENT_BYTES[work.dtype] * model.vocabulary * model.hidden / layout.tp - kept if first else 0.0
    standing = _sum(counting.standing(chunks, held))
    return StageMemory(
        stage=stage,
        layers=sum(len(chunk) for chunk in chunks),
        in_flight=flying,
        weights_bytes=states.weights,
        gradients_bytes=states.gradients,
        optimizer_bytes=states.optimizer,
        activations_bytes=flying * kept,
        logits_bytes=logits,
        transient_bytes=standing + max(at_head, at_layer, at_embedding) - logits,
        buffers_bytes=CONTEXT_BYTES + (COMMUNICATION_BYTES if layout.world > 1 else 0),
    )


def _ends(chunks: Iterable[range], layers: int) -> tuple[bool, bool]:
    """Tell whether a stage has the first layer, and the last one."""
    chunks = tuple(chunks)
    return any(0 in chunk for chunk in chunks), any(layers - 1 in chunk for chunk in chunks)


def _experts_held(model: Architecture, layout: Layout) -> int:
    return max(model.experts.count // layout.ep, 1) if model.experts is not None else 1


def _of_kind(kind: tuple[bool, Recompute], kinds: Iterable[tuple[bool, Recompute]]) -> str:
    """Say which layers are meant, where there are several kinds."""
    if len(tuple(kinds)) == 1:
        return ""
    has_experts, policy = kind
    return f" ({'experts' if has_experts else 'dense'}, recompute {policy})"


def _sum(terms: Iterable[Term]) -> float:
    return sum(term.bytes for term in terms)


def _explained(terms: Iterable[Term]) -> tuple[Quantity, ...]:
    return tuple(quantity(term.name, term.formula, **term.inputs) for term in terms)
