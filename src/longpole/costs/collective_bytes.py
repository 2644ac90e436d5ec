"""What a step sends: every message of a device, by the dimension that it goes along, with its bytes and how often.

Bytes are the full buffer's, as nccl-tests counts (`collective_time.py` prices them): the input of a reduce-scatter, the
output of an all-gather, what a device sends in an all-to-all or to a neighbour. `Message.wire_bytes` is what one device
sends.

    a layer    tp  ├ attention ┤ all-reduce ├ feed-forward ┤ all-reduce     (with SP: all-gathers, reduce-scatters)
               cp  keys and values around the ring
               ep                           all-to-all ├ experts ┤ all-to-all
    a stage    pp  activations to the next stage, their gradients to the one before
    a step     dp  gradients, once; fsdp: weights and gradients of each layer, for each micro-batch

*Sources:* `layer_messages.py` for layers; Narayanan et al., SC21, arXiv:2104.04473, sections 2.2 and 4.1 (pipeline,
scatter and gather); Rajbhandari et al., ZeRO, arXiv:1910.02054, section 7 (data parallelism).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from longpole.costs.layer_messages import FSDP_STAGE, held_by_kind, layer_messages, messages_of_layers, sharded
from longpole.costs.layout import Layout
from longpole.costs.memory_states import held_by_stage
from longpole.costs.messages import (
    ACTIVATION_BYTES,
    BOUNDARY_BYTES,
    HELD_BYTES,
    LOSS_BYTES,
    NORM_BYTES,
    TIED_BYTES,
    Message,
    Sender,
    Wiring,
)
from longpole.costs.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longpole.costs.architecture import Architecture
    from longpole.costs.cluster import Dimension
    from longpole.costs.layout import Recompute, Work
    from longpole.costs.messages import Along, Often

__all__ = ["Message", "Wiring", "layer_messages", "sends", "step_messages"]


def step_messages(
    model: Architecture, layout: Layout, work: Work, wiring: Wiring | None = None, *, stage: int | None = None
) -> list[Message]:
    """Return what one device sends in a step.

    The layout must divide (`layout.check`). DualPipe holds each stage twice; the reduction between the two copies is
    left out, for no source says how it is done.

    Args:
        model: Whose layers they are.
        layout: How it is divided.
        work: What a step processes.
        wiring: How the framework sends; None for its defaults.
        stage: Pipeline stage of the device; None for the one that sends most.
    """
    sender = Sender(model, layout, work, wiring)
    if stage is not None or layout.pp == 1:
        return _of_stage(sender, stage or 0)
    stages = [_of_stage(sender, at) for at in sorted({0, layout.pp // 2, layout.pp - 1})]
    return max(stages, key=lambda messages: sum(message.step_wire_bytes for message in messages))


def sends(layout: Layout, stage: int) -> tuple[float, float]:
    """Return how often a stage sends activations on, and gradients back, for each micro-batch.

    >>> from longpole.costs.layout import Layout
    >>> sends(Layout(pp=4), 0), sends(Layout(pp=4), 1), sends(Layout(pp=4, vp=2, schedule="interleaved"), 3)
    ((1.0, 0.0), (1.0, 1.0), (1.0, 2.0))
    """
    return _sends(layout.pp, layout.vp, layout.schedule, stage)


class _Owned(NamedTuple):
    """What a stage has of the model: its layers, and how many of them have experts or none."""

    chunks: tuple[range, ...]
    counts: tuple[tuple[bool, int], ...]
    has_first: bool
    has_last: bool
    replicated: float


def _of_stage(sender: Sender, stage: int) -> list[Message]:
    model, layout = sender.model, sender.layout
    owned = _owned(model, (layout.pp, layout.vp, layout.schedule, layout.chunk_layers), stage)
    # DualPipe holds every stage twice, and each copy sees half of the micro-batches.
    share = 0.5 if layout.schedule == "dualpipe" else 1.0
    found: list[Message] = []
    for (has_experts, policy), layers in _makes(sender, owned):
        found += messages_of_layers(sender, policy, layers * share, has_experts=has_experts)
    if owned.has_first and layout.tp > 1:
        found += _embedding(sender, share)
    if owned.has_last:
        found += _head(sender, share)
    if layout.pp > 1:
        found += _boundaries(sender, stage)
    found += _data_parallel(sender, stage, owned)
    if layout.tp > 1 and layout.sp:
        inputs = {"replicated": owned.replicated, "each": sender.work.gradient_bytes}
        found.append(sender.once("gradients of norms", ("tp", "all_reduce", layout.tp), (NORM_BYTES, inputs)))
    if model.tied and owned.has_first != owned.has_last:
        inputs = {"V": model.vocabulary, "h": model.hidden, "t": layout.tp, "each": sender.work.gradient_bytes}
        found.append(sender.once("gradient of the tied matrix", ("embedding", "all_reduce", 2), (TIED_BYTES, inputs)))
    return found


@lru_cache(maxsize=4096)
def _owned(model: Architecture, placed: tuple[int, int, str, tuple[int, ...]], stage: int) -> _Owned:
    """Return what a stage has: the same for all layouts of one pipeline."""
    pp, vp, schedule, chunk_layers = placed
    chunks = Layout(pp=pp, vp=vp, schedule=schedule, chunk_layers=chunk_layers).stages(model.layers)[stage]
    layers = [layer for chunk in chunks for layer in chunk]
    counted = parameters(model).layers
    return _Owned(
        chunks,
        tuple(Counter(model.has_experts(layer) for layer in layers).items()),
        0 in layers,
        model.layers - 1 in layers,
        float(sum(counted[layer].replicated for layer in layers)),
    )


def _makes(sender: Sender, owned: _Owned) -> Iterable[tuple[tuple[bool, Recompute], int]]:
    """Count the layers of a stage that send the same."""
    model, work = sender.model, sender.work
    if not work.recompute_layers:
        return [((has_experts, work.recompute), count) for has_experts, count in owned.counts]
    layers = (layer for chunk in owned.chunks for layer in chunk)
    return Counter((model.has_experts(layer), work.policy(layer)) for layer in layers).items()


def _embedding(sender: Sender, share: float) -> Iterator[Message]:
    tp, size = sender.layout.tp, (ACTIVATION_BYTES, sender.hidden)
    if not sender.layout.sp:
        yield from sender.sent("embedding", ("tp", "all_reduce", tp), size, {"forward": share})
        return
    yield from sender.sent("embedding", ("tp", "reduce_scatter", tp), size, {"forward": share})
    yield from sender.sent("embedding", ("tp", "all_gather", tp), size, {"backward": share})


def _head(sender: Sender, share: float) -> Iterator[Message]:
    """Yield those of head and loss, and as many again for each module that predicts a further token."""
    layout, model, work = sender.layout, sender.model, sender.work
    times = share * (1 + model.predicted_tokens)
    if model.predicted_tokens:
        last = model.layers - 1
        modules = model.predicted_tokens * share
        yield from messages_of_layers(sender, work.policy(last), modules, has_experts=model.has_experts(last))
    if layout.tp == 1:
        return
    size = (ACTIVATION_BYTES, sender.hidden)
    gather: Along = ("tp", "all_gather", layout.tp)
    whole: Along = ("tp", "all_reduce", layout.tp)
    if layout.sp:
        yield from sender.sent("head", gather, size, {"forward": times})
        yield from sender.sent("head", ("tp", "reduce_scatter", layout.tp), size, {"backward": times})
        yield from sender.sent("head, once more", gather, size, {"backward": times}, "gradients of inputs")
    else:
        yield from sender.sent("head", whole, size, {"backward": times})
    # The largest logit, the target's logit, and the sum of the exponentials.
    yield from sender.sent("loss", whole, (LOSS_BYTES, sender.shape), {"forward": 3 * times})


def _boundaries(sender: Sender, stage: int) -> Iterator[Message]:
    layout = sender.layout
    forward, backward = sends(layout, stage)
    shares = sender.wiring.scatter_gather and not layout.sp
    inputs = {**sender.hidden, "t": layout.tp if layout.sp or shares else 1}
    often: Often = {"forward": forward, "backward": backward}
    yield from sender.sent(
        "activations, gradients", ("pp", "send_recv", 2), (BOUNDARY_BYTES, inputs), often, "other micro-batches"
    )
    if shares and layout.tp > 1:  # what came in shares is put together again: as often as it came
        came: Often = {"forward": backward, "backward": forward}
        size = (ACTIVATION_BYTES, sender.hidden)
        yield from sender.sent("activations, gradients received", ("tp", "all_gather", layout.tp), size, came)


def _data_parallel(sender: Sender, stage: int, owned: _Owned) -> Iterator[Message]:
    layout = sender.layout
    held = held_by_stage(sender.model, layout)[stage]
    if layout.zero < FSDP_STAGE or layout.keeps_gathered:
        yield from _reduced(sender, held.dense, ("dp", layout.dp * layout.cp), "")
        yield from _reduced(sender, held.routed, ("edp", layout.expert_dp), " of experts")
    elif layout.world > layout.pp:
        dense, routed = held.dense, held.routed
        for has_experts, count in owned.counts:
            layer = held_by_kind(sender.model, layout, has_experts=has_experts)
            dense -= count * layer.dense
            routed -= count * layer.routed
        # Sums of fractions leave less than a parameter where nothing is left.
        yield from sharded(sender, "embedding, head and others", round(dense), round(routed), 1.0)


def _reduced(sender: Sender, held: float, among: tuple[Dimension, int], of: str) -> Iterator[Message]:
    """Yield the reduction of gradients, and what brings divided weights together again."""
    (dimension, group), zero = among, sender.layout.zero
    if group == 1 or not held:
        return
    gradients = (HELD_BYTES, {"held": held, "each": sender.work.gradient_bytes})
    scatter: Along = (dimension, "reduce_scatter", group)
    if zero == 0:
        yield sender.once(f"gradients{of}", (dimension, "all_reduce", group), gradients, "the last backward pass")
        return
    if zero in (1, 2) and not sender.layout.divides_gradients:
        yield sender.once(f"gradients{of}", scatter, gradients, "the last backward pass")
    elif sender.layout.keeps_gathered:  # one module after the other, behind all passes
        yield sender.once(f"gradients{of}", scatter, gradients)
    else:
        yield from sender.sent(f"gradients{of}", scatter, gradients, {"backward": 1.0}, "the backward pass")
    weights = (HELD_BYTES, {"held": held, "each": sender.weight})
    yield sender.once(f"weights{of}", (dimension, "all_gather", group), weights, "the next forward pass")


@lru_cache(maxsize=1024)
def _sends(stages: int, chunks: int, schedule: str, stage: int) -> tuple[float, float]:
    if stages == 1:
        return 0.0, 0.0
    if schedule == "dualpipe":  # half of the micro-batches go one way, half the other
        both = (float(stage < stages - 1) + float(stage > 0)) / 2
        return both, both
    places = []
    for chunk in range(stages * chunks):
        lap, place = divmod(chunk, stages)
        places.append(stages - 1 - place if schedule == "zbv" and lap % 2 else place)
    hops = [(here, there) for here, there in pairwise(places) if here != there]
    return float(sum(here == stage for here, _ in hops)), float(sum(there == stage for _, there in hops))
