"""What a layer's messages take, by dimension and pass, and what of it can hide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture
    from longpole.costs.collective_time import CollectiveCosts
    from longpole.costs.layout import Layout, Work

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlapping:
    """Which communication a framework lets run beside computation.

    Attributes:
        tp: Products are split so that their communication runs beside them (asynchronous tensor parallelism).
        cp: Ring attention sends the next keys and values while it computes.
        ep: Two micro-batches take turns: one computes while the other's tokens travel.
        pp: A stage goes on while it sends; else it waits until what it sent has arrived.
        dp: Gradients are reduced in buckets beside the backward pass, and weights gathered beside the forward pass.
        bucket_bytes: Cap of a bucket.
    """

    tp: bool = False
    cp: bool = True
    ep: bool = False
    pp: bool = True
    dp: bool = True
    bucket_bytes: float = 25 * MIB


class LayerTraffic(NamedTuple):
    """Seconds of one layer's messages for one micro-batch, by dimension and pass; `beside` hides behind products."""

    tp_forward_s: float = 0.0
    tp_backward_s: float = 0.0
    tp_again_s: float = 0.0
    tp_beside_s: float = 0.0
    cp_forward_s: float = 0.0
    cp_backward_s: float = 0.0
    ep_forward_s: float = 0.0
    ep_backward_s: float = 0.0


def layer_traffic(model: Architecture, layout: Layout, work: Work, costs: CollectiveCosts, *, experts: bool) -> LayerTraffic:
    """Return what the messages of one layer take."""
    tokens = work.micro_batch * work.sequence / layout.cp
    size = 2.0 * tokens * model.hidden
    tp_s = beside = 0.0
    if layout.tp > 1:
        if layout.sp:
            gather = costs.seconds_along("all_gather", layout, "tp", size)
            tp_s = 2 * (gather + costs.seconds_along("reduce_scatter", layout, "tp", size))
            beside = 2 * gather
        else:
            tp_s = 2 * costs.seconds_along("all_reduce", layout, "tp", size)
    cp_f = cp_b = 0.0
    if layout.cp > 1:
        keys = 2 * 2.0 * tokens * max(model.key_value_heads / layout.tp, 1) * model.head_dim
        cp_f = (layout.cp - 1) * costs.seconds_along("send_recv", layout, "cp", keys)
        cp_b = 2 * cp_f
    ep_f = 0.0
    if experts and model.experts is not None and layout.ep > 1:
        own = tokens / layout.tp
        ep_f = 2 * costs.seconds_along("all_to_all", layout, "ep", 2.0 * own * model.experts.per_token * model.hidden)
    return LayerTraffic(tp_s, tp_s, tp_s, beside, cp_f, cp_b, ep_f, ep_f)
