"""What a device needs for a moment: when a layer's or the head's backward pass runs, and while weights are gathered.

Two kinds: what stands while a step runs (placeholders of gradients, gathered weights), and what comes and goes with a
backward pass, of which only the largest counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.costs.formula import Formula
from longpole.costs.memory_activations import Term, heads_of, matrices_of, size_of, visits_of
from longpole.costs.memory_states import ELEMENT_BYTES, held_by_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.costs.architecture import Architecture
    from longpole.costs.layout import Layout, Work
    from longpole.costs.parameters import LayerParameters

# What is needed for a moment, when a layer's or the head's backward pass runs.
FEED_FORWARD_BACKWARD: Final = Formula(
    "e*b*s*((matrices - 1)*f/t + h*(1 + gathered))",
    "B",
    "gradients of the inner activations less the one that is freed; the output's gradient and, with sequence"
    " parallelism, the gathered input",
)
ROUTED_BACKWARD: Final = Formula(
    "e*b*s*visits*imbalance*((matrices - 1)*f + 4*h*etp)/q",
    "B",
    "the same for visited experts; gradients of dispatched tokens as they leave the experts, sorted for the exchange,"
    " exchanged, and sorted back",
)
ATTENTION_BACKWARD: Final = Formula(
    "e*b*s*(dk + dv)*(copies*a/t + key_copies*max(k/t, 1)) + e*b*s*scores*a/t",
    "B",
    "gradients of queries, keys, values and output, in as many copies as context parallelism's exchange holds; of"
    " scores where these are written",
)
HEAD_BACKWARD: Final = Formula(
    "e*V*h/t + e*b*s*h*(1 + gathered)", "B", "gradient of the head's weight before it is added, and of its input"
)
PLACEHOLDERS: Final = Formula(
    "e*(dense + expert)",
    "B",
    "Transformer Engine from 2.3 keeps one empty gradient per shape of weight where gradients are summed into a buffer"
    " of their own",
)
LARGEST_GRADIENT: Final = Formula("e*largest", "B", "the gradient of one weight, before it is added to what is kept")
GATHERED: Final = Formula(
    "e*(current + ahead) + (e + gradient_bytes)*current",
    "B",
    "arXiv:2304.11277, section 4: the unit that is computed and the one fetched ahead, whole; a unit's gradient before"
    " and while it is reduced",
)
KEPT_GATHERED: Final = Formula(
    "(e + gradient_bytes)*held + e*largest",
    "B",
    "torch.distributed.pipelining.stage: a stage gathers its weights once a step, and sums whole gradients until they"
    " are reduced behind the last micro-batch; the largest module's gradient comes in the weights' type and is added",
)
# Copies of queries, output and their gradients, and of keys, values and theirs, that an exchange of context parallelism
# holds at once; an all-gather holds as many as it has ranks.
_COPIES: Final = {"ring": (1.0, 4.0), "all_gather": (1.0, 2.0), "all_to_all": (4.0, 4.0)}


def backward_terms(
    model: Architecture, layout: Layout, work: Work, *, has_experts: bool, imbalance: float = 1.0
) -> list[Term]:
    """Return what the backward passes of attention and feed-forward need for a moment; the larger one counts."""
    size = size_of(layout, work)
    attention = {
        **size.divided,
        **heads_of(model),
        **_copies(layout),
        "scores": 0 if work.flash else work.sequence,
    }
    terms = [Term("attention's backward", ATTENTION_BACKWARD, attention)]
    if has_experts and model.experts is not None:
        routed = visits_of(model, model.experts, layout, imbalance)
        return [*terms, Term("experts' backward", ROUTED_BACKWARD, {**size.whole, **routed})]
    feed_forward = {
        **size.divided,
        "matrices": matrices_of(model),
        "f": model.feed_forward,
        "h": model.hidden,
        "gathered": _gathered(layout),
    }
    return [*terms, Term("feed-forward's backward", FEED_FORWARD_BACKWARD, feed_forward)]


def head_backward_term(model: Architecture, layout: Layout, work: Work) -> Term:
    """Return what the head's backward pass needs for a moment besides the logits."""
    inputs = {
        **size_of(layout, work).divided,
        "V": model.vocabulary,
        "h": model.hidden,
        "gathered": _gathered(layout),
    }
    return Term("head's backward", HEAD_BACKWARD, inputs)


def _gathered(layout: Layout) -> int:
    return 1 if layout.sp and layout.tp > 1 else 0


def standing_terms(
    model: Architecture,
    layout: Layout,
    work: Work,
    layers: Sequence[LayerParameters],
    *,
    has_matrix: bool,
    of_stage: float = 0.0,
) -> list[Term]:
    """Return what stands while a step runs: gathered weights, or gradients of weights before they are added.

    Args:
        model: Its dimensions.
        layout: How it is divided.
        work: Types of weights and gradients.
        layers: Each kind of layer that the stage has.
        has_matrix: Whether the stage has the embedding or the head.
        of_stage: Parameters of the whole stage.
    """
    element_bytes = ELEMENT_BYTES[work.dtype]
    held = [held_by_layer(layer, layout) for layer in layers]
    matrix = model.vocabulary * model.hidden / layout.tp if has_matrix else 0.0
    if layout.keeps_gathered:
        largest = max((layer.total for layer in held), default=0.0)
        kept = {"e": element_bytes, "held": of_stage, "largest": max(largest, matrix)}
        kept["gradient_bytes"] = work.gradient_bytes
        return [Term("weights and gradients kept whole", KEPT_GATHERED, kept)]
    if layout.zero == 3:
        ahead = max((layer.total for layer in held), default=0.0)
        inputs = {"e": element_bytes, "current": max(ahead, matrix), "ahead": ahead}
        inputs["gradient_bytes"] = work.gradient_bytes
        return [Term("gathered weights and gradients", GATHERED, inputs)]
    if work.gradient_bytes > element_bytes:
        experts = max(model.experts.count // layout.ep, 1) if model.experts is not None else 1
        inputs = {
            "e": element_bytes,
            "dense": max((layer.dense for layer in held), default=0.0),
            "expert": max((layer.routed for layer in held), default=0.0) / experts,
        }
        return [Term("placeholders of gradients", PLACEHOLDERS, inputs)]
    largest = model.hidden * max(model.feed_forward, model.heads * model.value_dim) / layout.tp
    return [Term("one weight's gradient", LARGEST_GRADIENT, {"e": element_bytes, "largest": largest})]


def _copies(layout: Layout) -> dict[str, float]:
    if layout.cp == 1:
        return {"copies": 1.0, "key_copies": 1.0}
    copies, keys = _COPIES[layout.cp_kind]
    return {"copies": copies, "key_copies": keys * (layout.cp if layout.cp_kind == "all_gather" else 1)}
