"""What one layer sends, for each micro-batch: tensor, context and expert parallelism, and sharded weights.

*Sources:* Korthikanti et al., arXiv:2205.05198, section 4 (tensor and sequence parallelism); Rajbhandari et al., ZeRO,
arXiv:1910.02054, section 7; Liu et al., Ring Attention, arXiv:2310.01889; Llama 3, arXiv:2407.21783, section 3.3.2
(all-gather of keys and values); Jacobs et al., Ulysses, arXiv:2309.14509; DeepSeek-V3, arXiv:2412.19437, section 3.2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from longpole.costs.memory_states import held_by_layer
from longpole.costs.messages import (
    ACTIVATION_BYTES,
    EXPERT_SHARE_BYTES,
    GATHERED_BYTES,
    HEADS_IN_BYTES,
    HEADS_OUT_BYTES,
    HELD_BYTES,
    RING_BYTES,
    ROUTED_BYTES,
    Sender,
)
from longpole.costs.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.costs.architecture import Architecture
    from longpole.costs.cluster import Dimension
    from longpole.costs.layout import Layout, Recompute, Work
    from longpole.costs.memory_states import Held
    from longpole.costs.messages import Along, Message, Often, Wiring

FSDP_STAGE: Final = 3  # of ZeRO: weights are divided, too
_INPUT_GRADIENTS: Final = "gradients of inputs"


def layer_messages(
    model: Architecture, layout: Layout, work: Work, layer: int, wiring: Wiring | None = None
) -> list[Message]:
    """Return what one layer sends for one micro-batch; `count` is for all micro-batches of a step.

    Args:
        model: Whose layer it is.
        layout: How it is divided.
        work: What a step processes.
        layer: Counted from 0.
        wiring: How the framework sends; None for its defaults.
    """
    sender = Sender(model, layout, work, wiring)
    return list(messages_of_layers(sender, work.policy(layer), 1.0, has_experts=model.has_experts(layer)))


def messages_of_layers(sender: Sender, policy: Recompute, layers: float, *, has_experts: bool) -> Iterator[Message]:
    """Yield what so many layers of one make send for each micro-batch."""
    layout = sender.layout
    if layout.tp > 1:
        yield from _tensor(sender, policy, layers, has_experts=has_experts)
    if layout.cp > 1:
        yield from _context(sender, policy, layers)
    if has_experts:
        yield from _experts(sender, policy, layers)
    if layout.zero == FSDP_STAGE and not layout.keeps_gathered:
        held = held_by_kind(sender.model, layout, has_experts=has_experts)
        yield from sharded(sender, "a layer", held.dense, held.routed, layers)


def held_by_kind(model: Architecture, layout: Layout, *, has_experts: bool) -> Held:
    """Return what a device holds of a layer that has experts, or of one that has none."""
    return held_by_layer(parameters(model).layers[_first(model, has_experts)], layout)


@lru_cache(maxsize=512)
def _first(model: Architecture, has_experts: bool) -> int:  # noqa: FBT001 - a key of the cache
    return next(layer for layer in range(model.layers) if model.has_experts(layer) == has_experts)


def sharded(sender: Sender, what: str, dense: float, routed: float, times: float) -> Iterator[Message]:
    """Yield what fully sharded parameters send: weights gathered for each pass, gradients reduced after the last.

    Args:
        sender: Of the device.
        what: Which parameters.
        dense: How many on a device, as tensor parallelism leaves them.
        routed: How many of routed experts.
        times: In how many pieces of this size.
    """
    layout = sender.layout
    passes: Often = {"forward": times, "backward": times} if sender.wiring.reshard else {"forward": times}
    groups: tuple[tuple[str, Dimension, int, float], ...] = (
        ("", "fsdp", layout.dp * layout.cp, dense),
        (" (experts)", "edp", layout.expert_dp, routed),
    )
    for of, dimension, group, held in groups:
        if group == 1 or held <= 0:
            continue
        weights = (HELD_BYTES, {"held": held, "each": sender.weight})
        gradients = (HELD_BYTES, {"held": held, "each": sender.work.gradient_bytes})
        gather, reduce = (dimension, "all_gather", group), (dimension, "reduce_scatter", group)
        yield from sender.sent(f"weights of {what}{of}", gather, weights, passes, "the layer before")
        yield from sender.sent(f"gradients of {what}{of}", reduce, gradients, {"backward": times}, "the layer after")


def _tensor(sender: Sender, policy: Recompute, layers: float, *, has_experts: bool) -> Iterator[Message]:
    """Two blocks a layer; where experts are routed, the second one has only the shared ones."""
    tp, experts = sender.layout.tp, sender.model.experts
    blocks = layers * (1 if has_experts and experts is not None and not experts.shared else 2)
    again = blocks if policy == "full" else 0.0
    often: Often = {"forward": blocks, "recompute": again, "backward": blocks}
    size = (ACTIVATION_BYTES, sender.hidden)
    if not sender.layout.sp:
        yield from sender.sent("outputs of blocks", ("tp", "all_reduce", tp), size, often)
        return
    gather: Along = ("tp", "all_gather", tp)
    yield from sender.sent("inputs of blocks", gather, size, often)
    yield from sender.sent("outputs of blocks", ("tp", "reduce_scatter", tp), size, often)
    yield from sender.sent("inputs of blocks, once more", gather, size, {"backward": blocks}, _INPUT_GRADIENTS)


def _context(sender: Sender, policy: Recompute, layers: float) -> Iterator[Message]:
    layout, model = sender.layout, sender.model
    again = 0.0 if policy == "none" else layers  # selective recompute is that of attention
    often: Often = {"forward": layers, "recompute": again, "backward": layers}
    heads = model.heads / layout.tp
    kept = heads if model.latent is not None else max(model.key_value_heads / layout.tp, 1.0)
    inputs: dict[str, float] = {**sender.shape, "k": kept, "dk": model.score_dim, "dv": model.value_dim}
    inputs["e"] = sender.element
    if layout.cp_kind == "ring":
        hops = layout.cp - 1
        turns: Often = {"forward": hops * layers, "recompute": hops * again, "backward": 2 * hops * layers}
        ring: Along = ("cp", "send_recv", layout.cp)
        yield from sender.sent("keys and values", ring, (RING_BYTES, inputs), turns, "attention")
    elif layout.cp_kind == "all_gather":
        size = (GATHERED_BYTES, {name: value for name, value in inputs.items() if name != "c"})
        scatter: Along = ("cp", "reduce_scatter", layout.cp)
        yield from sender.sent("keys and values", ("cp", "all_gather", layout.cp), size, often)
        yield from sender.sent("gradients of keys and values", scatter, size, {"backward": layers})
    else:
        deal: Along = ("cp", "all_to_all", layout.cp)
        yield from sender.sent("queries, keys and values", deal, (HEADS_IN_BYTES, {**inputs, "a": heads}), often)
        given = {**sender.shape, "a": heads, "dv": model.value_dim, "e": sender.element}
        yield from sender.sent("what attention gives", deal, (HEADS_OUT_BYTES, given), often)


def _experts(sender: Sender, policy: Recompute, layers: float) -> Iterator[Message]:
    layout, experts = sender.layout, sender.model.experts
    if experts is None:
        return
    again = layers if policy == "full" else 0.0
    often: Often = {"forward": layers, "recompute": again, "backward": layers}
    tokens: dict[str, float] = {**sender.hidden, "t": layout.tp if layout.sp else 1}
    tokens["visits"] = min(experts.per_token, sender.wiring.routed_nodes or experts.per_token)
    if layout.ep > 1:
        deal: Along = ("ep", "all_to_all", layout.ep)
        yield from sender.sent("tokens to experts", deal, (ROUTED_BYTES, {**tokens, "e": sender.dispatch}), often)
        yield from sender.sent("tokens from experts", deal, (ROUTED_BYTES, {**tokens, "e": sender.combine}), often)
    if layout.etp > 1:
        size = (EXPERT_SHARE_BYTES, {**tokens, "etp": layout.etp})
        yield from sender.sent("tokens of shared-out experts", ("etp", "all_gather", layout.etp), size, often)
        yield from sender.sent("results of shared-out experts", ("etp", "reduce_scatter", layout.etp), size, often)
