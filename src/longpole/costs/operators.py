"""The operators of a transformer on one device: FLOPs and bytes of each, and what a roofline says that they take.

An operator is bound by arithmetic or by memory, whichever takes longer, and each kernel costs a launch. Shapes are
those of one device and one micro-batch: divided by tensor parallelism, by context parallelism, and among experts.
`step.py` adds the operators up to a step; what is moved between devices is `collective_bytes.py`.

*Source:* the layer of arXiv:2104.04473 and arXiv:2205.05198 (matrix products and what is kept of them), with the bytes
that the element-wise kernels in between move, counted by hand below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from longpole.costs.formula import Formula

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture, Experts, Latent
    from longpole.costs.layout import Layout, Work

Kind: TypeAlias = Literal["matmul", "attention", "head", "memory"]
KINDS: Final[tuple[Kind, ...]] = ("matmul", "attention", "head", "memory")

MATMUL_FLOPS: Final = Formula("2*M*K*N", "FLOP", "one multiplication and one addition per product")
ATTENTION_FLOPS: Final = Formula(
    "2*tokens*keys*(score_dim + value_dim)*heads/tp",
    "FLOP",
    "scores and their product with values; arXiv:2205.05198 §4.1. keys = s, or half of it where the kernel skips what"
    " causality hides",
)
OPERATOR_S: Final = Formula(
    "max(flops/flops_per_s, moved_bytes/memory_bytes_per_s) + launches*launch_s",
    "s",
    "roofline (Williams et al. 2009) and a fixed cost per kernel",
)
TILE_SHARE: Final = Formula(
    "tiles/(tiles + half_tiles)",
    "",
    "a product of few tiles leaves processors idle; the hyperbola's constant is calibrated. A tile is 128 · 256 of the"
    " result",
)

# Bytes that element-wise kernels move, per token and unit of width, forward, in 16-bit elements.
_NORM: Final = 4.0  # reads and writes
_RESIDUAL: Final = 6.0  # two reads and a write
_RESIDUAL_WITH_DROPOUT: Final = 10.0  # bias, dropout and residual: three reads, a mask, and a write that is read again
_GELU: Final = 8.0  # bias and GeLU, two kernels, each reads and writes
_GATED: Final = 6.0  # reads gate and value, writes the product
_ROTARY: Final = 4.0  # reads and writes queries and keys
_SOFTMAX: Final = 4.0  # per score: scaled, masked softmax, where scores are written to memory
_SOFTMAX_WITH_DROPOUT: Final = 9.0  # and dropout: reads, writes, and a mask of one byte
_EXCHANGE: Final = 8.0  # per routed token and unit of width: gather and scatter, each reads and writes
_LOSS: Final = 18.0  # per logit and direction: the cross-entropy in 32 bits, from arXiv:2104.04473's implementation
_FUSED_LOSS: Final = 4.0  # per logit and direction: one pass over 16-bit logits
_EMBEDDING: Final = 4.0  # per token and unit of width: a row is read, and written
_MEMORY_BACKWARD: Final = 1.8  # bytes of an element-wise kernel's backward over its forward: output's gradient, inputs
_FLASH_BACKWARD: Final = 2.5  # five products where the forward pass has two: scores are computed again
_TILE: Final = 128 * 256
_RESULT_BYTES: Final = 2  # products give 16-bit results, and head and router are not computed in fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator on one device, for one micro-batch.

    Attributes:
        name: What it is, such as `qkv` or `softmax`.
        kind: Whose rate it runs at.
        flops: Forward.
        moved_bytes: Forward, to and from the device's memory.
        launches: Kernels, forward.
        backward: FLOPs and bytes of the backward pass over those of the forward pass.
        tiles: Of 128 · 256 results, all of its products together; 0 where it is not a product.
        scores: Whether selective recomputation computes it again: the core of attention.
    """

    name: str
    kind: Kind
    flops: float = 0.0
    moved_bytes: float = 0.0
    launches: int = 1
    backward: float = 2.0
    tiles: float = 0.0
    scores: bool = False


class Shard(NamedTuple):
    """What of a layout and its work decides the shapes on one device."""

    tp: int
    cp: int
    ep: int
    etp: int
    sp: bool
    micro_batch: int
    sequence: int
    element_bytes: int
    flash: bool
    fused_loss: bool
    dropout: bool

    @property
    def tokens(self) -> float:
        """Tokens of a micro-batch on one device, T."""
        return self.micro_batch * self.sequence / self.cp

    @property
    def own_tokens(self) -> float:
        """Tokens that a device works on where tensor parallelism leaves the width whole."""
        return self.tokens / self.tp if self.sp else self.tokens


class Rates(NamedTuple):
    """What a device reaches: rates in FLOP/s and bytes/s, and seconds."""

    matmul_flops_per_s: float
    attention_flops_per_s: float
    head_flops_per_s: float
    memory_bytes_per_s: float
    launch_s: float
    half_tiles: float = 0.0
    host_s: float = 0.0


class PassTime(NamedTuple):
    """What some operators take on one device for one micro-batch.

    `matmul_s` to `launch_s` split all three passes by what they spend time on; together they are the passes. `weight_s`
    is the part of the backward pass that computes gradients of weights, for which no other device waits.
    """

    forward_s: float = 0.0
    backward_s: float = 0.0
    recompute_s: float = 0.0
    matmul_s: float = 0.0
    attention_s: float = 0.0
    memory_s: float = 0.0
    launch_s: float = 0.0
    weight_s: float = 0.0

    @property
    def total_s(self) -> float:
        """All three passes."""
        return self.forward_s + self.backward_s + self.recompute_s

    def plus(self, other: PassTime, times: float = 1.0) -> PassTime:
        """Add another so many times."""
        return PassTime(*(one + times * two for one, two in zip(self, other, strict=True)))


def shard_of(layout: Layout, work: Work) -> Shard:
    """Return what decides the shapes on one device."""
    return Shard(
        tp=layout.tp,
        cp=layout.cp,
        ep=layout.ep,
        etp=layout.etp,
        sp=layout.sp,
        micro_batch=work.micro_batch,
        sequence=work.sequence,
        element_bytes=1 if work.dtype in ("fp8", "int8") else 2,
        flash=work.flash,
        fused_loss=work.fused_loss,
        dropout=work.dropout,
    )


@lru_cache(maxsize=4096)
def layer_operators(model: Architecture, shard: Shard, *, experts: bool) -> tuple[Operator, ...]:
    """Return the operators of one layer.

    Where some layers see a sliding window only, attention is that of the average layer.

    Args:
        model: Whose layer.
        shard: Shapes on one device.
        experts: Whether the layer's feed-forward part is a mixture of experts.
    """
    found = [*_projections(model, shard), *_attention(model, shard), _norms(model, shard)]
    if experts and model.experts is not None:
        found += _mixture(model, shard, model.experts)
    else:
        found += _feed_forward(model, shard, model.feed_forward / shard.tp, shard.tokens)
    return tuple(found)


@lru_cache(maxsize=1024)
def embedding_operators(model: Architecture, shard: Shard) -> tuple[Operator, ...]:
    """Return the operators before the first layer."""
    moved_bytes = _EMBEDDING * shard.own_tokens * model.hidden * (2 if model.positions else 1)
    return (Operator(name="embedding", kind="memory", moved_bytes=moved_bytes, launches=2),)


@lru_cache(maxsize=1024)
def head_operators(model: Architecture, shard: Shard) -> tuple[Operator, ...]:
    """Return the operators after the last layer: final norm, logits and loss."""
    own = model.vocabulary / shard.tp
    per_logit = _FUSED_LOSS if shard.fused_loss else _LOSS
    norm_bytes = 4.0 * shard.own_tokens * model.hidden
    return (
        _memory("final norm", norm_bytes),
        _product("logits", Product(shard.tokens, model.hidden, own), _RESULT_BYTES, kind="head"),
        Operator(name="loss", kind="memory", moved_bytes=per_logit * shard.tokens * own, launches=3, backward=1.0),
    )


@lru_cache(maxsize=1024)
def predictor_operators(model: Architecture, shard: Shard) -> tuple[Operator, ...]:
    """Return the operators of one further predicted token beside its layer and head: two norms and a projection."""
    return (
        _memory("predictor norms", 8.0 * shard.own_tokens * model.hidden),
        _product(
            "predictor projection", Product(shard.own_tokens, 2.0 * model.hidden, model.hidden), shard.element_bytes
        ),
    )


def time_of(operators: tuple[Operator, ...], rates: Rates, recompute: str = "none") -> PassTime:
    """Return what operators take in their three passes.

    Each operator takes what its roofline says. Launches come on top, as far as they leave gaps between kernels; where
    the host launches more slowly than the device works, a pass takes as long as its launches do.

    Args:
        operators: Of one device and micro-batch.
        rates: What the device reaches.
        recompute: `none`, `selective` (what is marked `scores` again) or `full` (everything again).
    """
    by_kind = {
        "matmul": rates.matmul_flops_per_s,
        "attention": rates.attention_flops_per_s,
        "head": rates.head_flops_per_s,
        "memory": rates.attention_flops_per_s,
    }
    spent = {"matmul": 0.0, "attention": 0.0, "head": 0.0, "memory": 0.0}
    forward_s = backward_s = again_s = weight_s = 0.0
    launches = launches_back = launches_again = 0
    for one in operators:
        work_s = max(one.flops / by_kind[one.kind], one.moved_bytes / rates.memory_bytes_per_s)
        if one.tiles:
            work_s *= 1.0 + rates.half_tiles / one.tiles
            weight_s += work_s
        again = recompute == "full" or (one.scores and recompute == "selective")
        forward_s += work_s
        backward_s += work_s * one.backward
        launches += one.launches
        launches_back += one.launches if one.kind == "memory" else 2 * one.launches
        if again:
            again_s += work_s
            launches_again += one.launches
        spent[one.kind] += work_s * (1.0 + one.backward + again)
    gaps = [
        max(count * rates.launch_s, count * rates.host_s - pass_s)
        for count, pass_s in ((launches, forward_s), (launches_back, backward_s), (launches_again, again_s))
    ]
    return PassTime(
        forward_s=forward_s + gaps[0],
        backward_s=backward_s + gaps[1],
        recompute_s=again_s + gaps[2],
        matmul_s=spent["matmul"] + spent["head"],
        attention_s=spent["attention"],
        memory_s=spent["memory"],
        launch_s=sum(gaps),
        weight_s=weight_s,
    )


class Product(NamedTuple):
    """A matrix product's dimensions: rows by inner times inner by columns."""

    rows: float
    inner: float
    columns: float


def _product(name: str, shape: Product, element_bytes: int, *, kind: Kind = "matmul", count: float = 1.0) -> Operator:
    """Return `count` matrix products of one shape: each operand and result is moved once, the result in 16 bits."""
    rows, inner, columns = shape
    moved_bytes = element_bytes * (rows * inner + inner * columns) + _RESULT_BYTES * rows * columns
    return Operator(
        name=name,
        kind=kind,
        flops=2.0 * rows * inner * columns * count,
        moved_bytes=moved_bytes * count,
        tiles=max(rows * columns * count / _TILE, 1.0),
    )


def _memory(name: str, moved_bytes: float, launches: int = 1) -> Operator:
    return Operator(name=name, kind="memory", moved_bytes=moved_bytes, launches=launches, backward=_MEMORY_BACKWARD)


def _projections(model: Architecture, shard: Shard) -> list[Operator]:
    if model.latent is not None:
        return _latent_projections(model, shard, model.latent)
    width = model.head_dim * model.heads / shard.tp
    # Key-value heads are replicated where there are fewer of them than tensor-parallel ranks.
    keys = model.head_dim * max(model.key_value_heads / shard.tp, 1.0)
    return [
        _product("qkv", Product(shard.tokens, model.hidden, width + 2 * keys), shard.element_bytes),
        _product("attention output", Product(shard.tokens, width, model.hidden), shard.element_bytes),
    ]


def _latent_projections(model: Architecture, shard: Shard, latent: Latent) -> list[Operator]:
    """Return the products of latent attention.

    The ones that compress are not divided over tensor-parallel ranks, but under sequence parallelism their tokens are.
    """
    heads = model.heads / shard.tp
    queries = heads * (latent.plain_dim + latent.rope_dim)
    found = []
    if latent.query_rank:
        found.append(
            _product("query down", Product(shard.own_tokens, model.hidden, latent.query_rank), shard.element_bytes)
        )
        found.append(_product("query up", Product(shard.tokens, latent.query_rank, queries), shard.element_bytes))
    else:
        found.append(_product("query", Product(shard.tokens, model.hidden, queries), shard.element_bytes))
    key_width = latent.key_value_rank + latent.rope_dim
    up = heads * (latent.plain_dim + latent.value_dim)
    return [
        *found,
        _product("key-value down", Product(shard.own_tokens, model.hidden, key_width), shard.element_bytes),
        _product("key-value up", Product(shard.tokens, latent.key_value_rank, up), shard.element_bytes),
        _product(
            "attention output", Product(shard.tokens, heads * latent.value_dim, model.hidden), shard.element_bytes
        ),
    ]


def seen_keys(sequence: int, window: int, *, skips: bool) -> float:
    """Return how many keys a query meets on average in the kernel.

    Args:
        sequence: Tokens, s.
        window: Of a sliding window, 0 for none.
        skips: Whether the kernel leaves out what causality and the window hide; else it computes the whole square.
    """
    if not skips:
        return float(sequence)
    reach = min(window or sequence, sequence)
    # Query i meets min(i, w) keys: w²/2 for the first w queries, w for each further one.
    return reach * (sequence - reach / 2) / sequence


def _average_keys(model: Architecture, shard: Shard) -> float:
    everywhere = seen_keys(shard.sequence, 0, skips=shard.flash)
    if not model.windowed_layers:
        return everywhere
    share = model.windowed_layers / model.layers
    return share * seen_keys(shard.sequence, model.window, skips=shard.flash) + (1 - share) * everywhere


def _attention(model: Architecture, shard: Shard) -> list[Operator]:
    keys = _average_keys(model, shard)
    heads = model.heads / shard.tp
    flops = 2.0 * shard.tokens * keys * heads * (model.score_dim + model.value_dim)
    own_keys = max(model.key_value_heads / shard.tp, 1.0) if model.latent is None else heads
    moved_bytes = 2.0 * shard.tokens * (heads + own_keys) * (model.score_dim + model.value_dim)
    found = [
        Operator(
            name="attention",
            kind="attention",
            flops=flops,
            moved_bytes=moved_bytes,
            launches=1 if shard.flash else 2,
            backward=_FLASH_BACKWARD if shard.flash else 2.0,
            scores=True,
        )
    ]
    if not shard.flash:
        scores = shard.tokens * shard.sequence * heads
        per_score = _SOFTMAX_WITH_DROPOUT if shard.dropout else _SOFTMAX
        found.append(replace(_memory("softmax", per_score * scores, launches=2), scores=True))
    if not model.positions:
        turned = model.score_dim if model.latent is None else model.latent.rope_dim
        passes = 2.0 if model.query_key_norm else 1.0
        found.append(_memory("rotary", passes * _ROTARY * shard.tokens * (heads + own_keys) * turned))
    return found


def _norms(model: Architecture, shard: Shard) -> Operator:
    residual = _RESIDUAL_WITH_DROPOUT if shard.dropout else _RESIDUAL
    per_unit = model.norms_per_layer * _NORM + 2 * residual
    return _memory("norms and residual", per_unit * shard.own_tokens * model.hidden, launches=4)


def _feed_forward(
    model: Architecture, shard: Shard, width: float, rows: float, *, count: float = 1.0, name: str = "feed-forward"
) -> list[Operator]:
    """Return a feed-forward part of some width on some tokens, `count` times side by side (grouped, so one launch)."""
    matrices = 2 if model.gated else 1
    per_unit = _GATED if model.gated else _GELU
    return [
        _product(f"{name} in", Product(rows, model.hidden, matrices * width), shard.element_bytes, count=count),
        _memory(f"{name} activation", per_unit * rows * width * count),
        _product(f"{name} out", Product(rows, width, model.hidden), shard.element_bytes, count=count),
    ]


def _mixture(model: Architecture, shard: Shard, experts: Experts) -> list[Operator]:
    """Return the router, the experts that a device holds, and those that every token visits.

    Expert parallelism trades tokens and does not remove them: a device processes as many routed tokens as it sends.
    """
    own = shard.tokens / shard.tp  # tokens that this device routes: its share of the tensor-parallel group's
    routed = own * experts.per_token
    held = experts.count / shard.ep
    rows = routed * shard.etp * shard.ep / experts.count  # of one expert, if all are equally popular
    found = [
        _product("router", Product(shard.own_tokens, model.hidden, experts.count), _RESULT_BYTES),
        _memory("dispatch and combine", _EXCHANGE * routed * model.hidden, launches=4),
        *_feed_forward(model, shard, experts.width / shard.etp, rows, count=held, name="experts"),
    ]
    if experts.shared:
        width = experts.shared * experts.shared_width / shard.tp
        found += _feed_forward(model, shard, width, shard.tokens, name="shared experts")
    return found
