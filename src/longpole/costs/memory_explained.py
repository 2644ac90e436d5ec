"""Every figure of a stage's memory with its formula, its values and its source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from longpole.costs.formula import Formula, quantity
from longpole.costs.memory import CONTEXT_BYTES, MARGIN, TRANSIENT, device_memory, moments_of
from longpole.costs.memory_activations import in_flight_formula, logits_term, outer_terms
from longpole.costs.memory_stages import LayerKind, figures_of
from longpole.costs.memory_states import STATE_BYTES, optimizer_of, state_terms
from longpole.costs.memory_transients import head_backward_term

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.costs.architecture import Architecture
    from longpole.costs.formula import Quantity
    from longpole.costs.layout import Layout, Work
    from longpole.costs.memory import StageMemory
    from longpole.costs.memory_activations import Term
    from longpole.costs.memory_stages import StageFigures, StageMakeup
    from longpole.costs.memory_states import Held, Optimizer

LAYERS: Final = Formula("count*layer", "B", "layers of a kind, and what is kept of one for a micro-batch")
ACTIVATIONS: Final = Formula(
    "in_flight*(layers + around)", "B", "micro-batches in flight, and what is kept of one in and around the layers"
)
BUFFERS: Final = Formula(
    "context + communication", "B", "outside the allocator; measured sizes of contexts and of NCCL's buffers, rounded"
)
PEAK: Final = Formula(
    "weights + gradients + optimizer + activations + logits + transient + buffers", "B", "the sum of all parts"
)


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
    figures = figures_of(model, layout, work, imbalance)
    makeup, held = figures.stages(layout)[shown.stage]
    formula, inputs = in_flight_formula(layout, shown.stage, work.micro_batches(layout))
    states = state_terms(held, layout, work, chosen)
    found = [
        *(quantity(name, STATE_BYTES, **values) for name, values in states.items()),
        quantity("micro-batches in flight", formula, **inputs),
        *_of_layers(figures, makeup),
        *_explained(outer_terms(model, layout, work, first=makeup.first, last=makeup.last)),
        _of_activations(figures, makeup, shown),
        *_explained([logits_term(model, layout, work)] if makeup.last else []),
        *_of_transients(figures, makeup, shown, held),
        _of_buffers(shown),
        quantity("peak", PEAK, **shown.parts()),
        quantity("margin", MARGIN, share=shown.margin_share, allocated=shown.allocated_bytes),
    ]
    return tuple(replace(one, name=f"memory of stage {shown.stage}: {one.name}") for one in found)


def _of_layers(figures: StageFigures, makeup: StageMakeup) -> list[Quantity]:
    """Explain what is kept of a layer of each kind, and of all of that kind."""
    found = []
    for kind, count in makeup.kinds:
        which = f" ({_named(kind)})" if len(makeup.kinds) > 1 else ""
        found += [
            quantity(f"{term.name} of a layer{which}", term.formula, **term.inputs)
            for term in figures.terms_of_layer(kind)
        ]
        found.append(quantity(f"layers{which}", LAYERS, count=count, layer=figures.layer_bytes(kind)))
    return found


def _of_activations(figures: StageFigures, makeup: StageMakeup, shown: StageMemory) -> Quantity:
    layers = sum(count * figures.layer_bytes(kind) for kind, count in makeup.kinds)
    around = figures.around_bytes(makeup)
    return quantity("activations", ACTIVATIONS, in_flight=shown.in_flight, layers=layers, around=around)


def _of_transients(figures: StageFigures, makeup: StageMakeup, shown: StageMemory, held: Held) -> list[Quantity]:
    """Explain what stands, what comes and goes, and their sum; what layers of several kinds need alike is told once."""
    terms = figures.standing_terms(makeup, held)
    if makeup.last:
        terms.append(head_backward_term(figures.model, figures.layout, figures.work))
    for kind, _ in makeup.kinds:
        terms += figures.terms_of_backward(kind)
        if kind.policy != "none":
            again = figures.terms_of_layer(LayerKind(kind.has_experts, "none"))
            terms += [term._replace(name=f"{term.name}, computed again") for term in again]
    standing, moments = figures.standing_bytes(makeup, held), moments_of(figures, makeup)
    total = quantity("transients", TRANSIENT, standing=standing, logits=shown.logits_bytes, **moments)
    return [*_explained({term.name: term for term in terms}.values()), total]


def _of_buffers(shown: StageMemory) -> Quantity:
    return quantity("buffers", BUFFERS, context=CONTEXT_BYTES, communication=shown.buffers_bytes - CONTEXT_BYTES)


def _named(kind: LayerKind) -> str:
    return f"{'experts' if kind.has_experts else 'dense'}, recompute {kind.policy}"


def _explained(terms: Iterable[Term]) -> tuple[Quantity, ...]:
    return tuple(quantity(term.name, term.formula, **term.inputs) for term in terms)
