"""What one forward pass of a served model makes a device do: operators with their FLOPs, bytes and messages.

A replica of the attention part is `tp` devices; `dp` of them take turns over the sequences. Experts are spread over
`ep` groups of `etp` devices (all of a replica's devices divide each expert where `ep` is 1), and tokens of all replicas
that share a group of experts meet there: `dp` enlarges the batch that an expert sees.

In a decode step each sequence has one row. Latent attention is taken as absorbed there: scores are formed with the
compressed keys, of which one copy serves all heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from longpole.costs.formula import Formula
from longpole.costs.kv_cache import kv_bytes_per_token
from longpole.costs.layout import Layout
from longpole.costs.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.costs.architecture import Architecture, Experts, Latent

FLOAT_BYTES: Final = 2.0
"""Bytes of an activation: 16-bit floats between operators, whatever weights and cache are stored in."""

EXPERTS_READ: Final = Formula(
    "E*(1 - (1 - k/E)**tokens)",
    "experts",
    "expected number of distinct experts where each token visits k of E, drawn evenly and independently",
)

_ONE_DEVICE: Final = Layout()
_LAUNCHES_DENSE: Final = 8  # as engines fuse: norm, qkv, rope and cache, attention, output, norm, up, down
_LAUNCHES_LATENT: Final = 3  # two more products and a norm of the compressed part
_LAUNCHES_EXPERTS: Final = 4  # router, choice, permutation there and back


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator of a pass on one device, so many times.

    Attributes:
        name: What it is.
        count: How often in a pass.
        flops: Of one.
        weight_bytes: Of weights that one reads.
        cache_bytes: Of keys and values that one reads or writes.
        activation_bytes: That one reads and writes beside these.
        attention: Whether it runs at the rate of attention kernels rather than of matrix products.
        message: Kind of collective, empty for none.
        message_bytes: As nccl-tests counts the size of that kind.
        dimension: Along which its group lies: `tp` or `ep`.
    """

    name: str
    count: int = 1
    flops: float = 0.0
    weight_bytes: float = 0.0
    cache_bytes: float = 0.0
    activation_bytes: float = 0.0
    attention: bool = False
    message: str = ""
    message_bytes: float = 0.0
    dimension: Literal["tp", "ep"] = "tp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBatch:
    """What goes through in one pass, over all replicas.

    Attributes:
        sequences: How many.
        rows: Tokens of each that are computed: its prompt in a prefill, 1 in a decode step.
        context: Tokens of each that are looked at, its own included.
    """

    sequences: float
    rows: int
    context: float

    @property
    def is_decode(self) -> bool:
        """Whether each sequence has one row."""
        return self.rows == 1

    def pairs(self, window: int) -> float:
        """Return how many (query, key) pairs one sequence has in a layer: causal, within a window if there is one."""
        if self.is_decode:
            return min(self.context, window) if window else self.context
        if window and window < self.rows:
            return window * self.rows - window * (window - 1) / 2
        return self.rows * (self.rows + 1) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """How a model is served: over which devices, and in which formats.

    Attributes:
        layout: `tp`, `dp` (replicas of the attention part that share experts), `ep` and `etp`; pipelines are not
            described.
        weight_bytes: Of a weight.
        cache_bytes: Of a cached key or value.
        dispatch_bytes: Of what is sent to experts; 1 where it is sent in 8 bits.
        dtype: Of the products, which decides the peak.
    """

    layout: Layout = _ONE_DEVICE
    weight_bytes: float = FLOAT_BYTES
    cache_bytes: float = FLOAT_BYTES
    dispatch_bytes: float = FLOAT_BYTES
    dtype: str = "bf16"

    @property
    def devices(self) -> int:
        """Devices of it."""
        return self.layout.tp * self.layout.dp

    @property
    def expert_group(self) -> int:
        """Devices that share one set of experts."""
        return self.layout.ep * self.expert_parts

    @property
    def expert_parts(self) -> int:
        """Into how many parts each expert is divided: `etp`, or all of `tp` where experts are not spread."""
        return self.layout.etp if self.layout.ep > 1 else max(self.layout.etp, self.layout.tp)


def pass_operators(model: Architecture, server: Server, batch: ServedBatch) -> list[Operator]:
    """Return all operators of one forward pass on the device with most to do.

    Args:
        model: What is served.
        server: Over which devices, and in which formats.
        batch: What goes through.
    """
    on = _Pass(model=model, server=server, batch=batch)
    found = [*_attention(on)]
    dense = model.layers - model.expert_layers
    if dense:
        found += _feed_forward(on, "feed-forward", model.feed_forward, dense)
        found += _reductions(on, "feed-forward", dense)
    if model.experts is not None and model.expert_layers:
        found += _experts(on, model.experts)
    # Only the last token of a sequence is asked for the next one.
    head = model.hidden * model.vocabulary / server.layout.tp
    found.append(Operator(name="head", flops=2 * on.sequences * head, weight_bytes=head * server.weight_bytes))
    return found


def launches(model: Architecture) -> int:
    """Return how many kernels a pass launches, as engines fuse them."""
    each = _LAUNCHES_DENSE + (_LAUNCHES_LATENT if model.latent is not None else 0)
    return each * model.layers + _LAUNCHES_EXPERTS * model.expert_layers + 1


def held_weight_bytes(model: Architecture, server: Server) -> float:
    """Return the bytes of weights on one device: its share of layers, embedding and head, and all experts it holds.

    Modules that predict further tokens are left out.
    """
    count, layout = parameters(model), server.layout
    layers = sum(layer.held(layout.tp, ep=layout.ep, etp=server.expert_parts) for layer in count.layers)
    return (layers + (count.embedding + count.head) / layout.tp + count.final_norm) * server.weight_bytes


def layer_cache_bytes(model: Architecture, server: Server) -> float:
    """Return the bytes that one token leaves in the cache of one layer on one device."""
    return kv_bytes_per_token(model, server.cache_bytes, server.layout.tp) / model.layers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """One pass on one device."""

    model: Architecture
    server: Server
    batch: ServedBatch

    @property
    def sequences(self) -> float:
        """Of this replica."""
        return self.batch.sequences / self.server.layout.dp

    @property
    def rows(self) -> float:
        """Tokens of this replica."""
        return self.sequences * self.batch.rows

    @property
    def matrices(self) -> int:
        """Of a feed-forward part."""
        return 3 if self.model.gated else 2

    def product(self, name: str, count: int, weights: float) -> Operator:
        """Return the product of all rows with so many weights."""
        moved = weights * self.server.weight_bytes
        return Operator(name=name, count=count, flops=2 * self.rows * weights, weight_bytes=moved)


def _attention(on: _Pass) -> Iterator[Operator]:
    model = on.model
    yield on.product("attention products", model.layers, _attention_weights(model, on.server.layout.tp))
    windowed = model.windowed_layers if model.window else 0
    for count, window in ((model.layers - windowed, 0), (windowed, model.window)):
        if count:
            yield _core(on, count, window)
    # Twice a layer: read the residual and what is added, write both the sum and its norm.
    yield Operator(name="norms", count=model.layers, activation_bytes=8 * on.rows * model.hidden * FLOAT_BYTES)
    yield from _reductions(on, "attention", model.layers)


def _core(on: _Pass, count: int, window: int) -> Operator:
    """Return scores and their product with the values: a prefill computes, a decode step reads the cache."""
    model, batch = on.model, on.batch
    pairs = on.sequences * batch.pairs(window)
    if batch.is_decode and model.latent is not None:
        width = 2 * model.latent.key_value_rank + model.latent.rope_dim
    else:
        width = model.score_dim + model.value_dim
    touched = pairs if batch.is_decode else on.rows
    return Operator(
        name="attention",
        count=count,
        flops=2 * model.heads / on.server.layout.tp * width * pairs,
        cache_bytes=touched * layer_cache_bytes(model, on.server),
        attention=True,
    )


def _attention_weights(model: Architecture, tp: int) -> float:
    """Return the weights of one layer's attention that one device reads."""
    h, heads = model.hidden, model.heads / tp
    if model.latent is None:
        cached_heads = max(model.key_value_heads / tp, 1)
        width = heads * (model.score_dim + model.value_dim) + cached_heads * (model.score_dim + model.value_dim)
        return h * width
    return _latent_weights(model.latent, h, heads)


def _latent_weights(latent: Latent, h: int, heads: float) -> float:
    score_dim = latent.plain_dim + latent.rope_dim
    if latent.query_rank:
        queries = h * latent.query_rank + latent.query_rank * heads * score_dim
    else:
        queries = h * heads * score_dim
    compressed = h * (latent.key_value_rank + latent.rope_dim)
    unfolded = latent.key_value_rank * heads * (latent.plain_dim + latent.value_dim)
    return queries + compressed + unfolded + heads * latent.value_dim * h


def _feed_forward(on: _Pass, name: str, width: float, count: int) -> Iterator[Operator]:
    inner = width / on.server.layout.tp
    yield on.product(name, count, on.matrices * on.model.hidden * inner)
    yield Operator(name="activation", count=count, activation_bytes=on.matrices * on.rows * inner * FLOAT_BYTES)


def _experts(on: _Pass, experts: Experts) -> Iterator[Operator]:
    """Return router, shared and routed experts, and the messages that bring tokens there and back."""
    layout, count, h = on.server.layout, on.model.expert_layers, on.model.hidden
    yield on.product("router", count, h * experts.count)
    if experts.shared:
        yield from _feed_forward(on, "shared experts", experts.shared * experts.shared_width, count)
    # Tokens of all devices that share this group of experts, and how many of its experts they wake.
    together = on.rows * layout.dp * min(on.server.expert_group / on.server.devices, 1.0)
    woken = EXPERTS_READ(E=experts.count, k=experts.per_token, tokens=together)
    inner = experts.width / on.server.expert_parts
    visits, weights = together * experts.per_token / layout.ep, on.matrices * h * inner
    yield Operator(
        name="routed experts",
        count=count,
        flops=2 * visits * weights,
        weight_bytes=woken / layout.ep * weights * on.server.weight_bytes,
    )
    yield Operator(name="activation", count=count, activation_bytes=on.matrices * visits * inner * FLOAT_BYTES)
    if layout.ep == 1:
        yield from _reductions(on, "feed-forward", count)
        return
    sent = on.rows / layout.tp * experts.per_token * h
    for name, element_bytes in (("dispatch", on.server.dispatch_bytes), ("combine", FLOAT_BYTES)):
        size = sent * element_bytes
        yield Operator(name=name, count=count, message="all_to_all", message_bytes=size, dimension="ep")


def _reductions(on: _Pass, after: str, count: int) -> Iterator[Operator]:
    """Return the all-reduce of tensor parallelism behind attention or feed-forward, nothing on one device."""
    if on.server.layout.tp > 1:
        size = on.rows * on.model.hidden * FLOAT_BYTES
        yield Operator(
            name=f"all-reduce after {after}", count=count, message="all_reduce", message_bytes=size, dimension="tp"
        )
