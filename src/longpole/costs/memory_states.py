"""Model states on a device: weights, their gradients and the optimizer's state, after every kind of parallelism.

Per parameter, mixed-precision Adam keeps 2 bytes of weight, 2 or 4 of gradient, 4 of a weight in 32 bits and 8 of
moments. Megatron sums gradients in 32 bits and so needs 18; the ZeRO paper has 16-bit gradients and needs 16. That
difference is `Work.gradient_bytes`, and it is why estimates that leave it out are 6 to 11 % low on Megatron.

*Sources:* Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054, section 3.1 and figure 1 (K = 12 for Adam); Megatron-LM's
distributed optimizer (6 + 12/D bytes); Korthikanti et al. 2022, arXiv:2205.05198, figure 1, which 18 bytes reproduce.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.costs.formula import Formula
from longpole.costs.layout import Layout
from longpole.costs.parameters import parameters
from longpole.errors import UsageError

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture
    from longpole.costs.layout import Work
    from longpole.costs.parameters import LayerParameters

STATE_BYTES: Final = Formula(
    "bytes_each*(dense/dense_shards + routed/routed_shards)",
    "B",
    "arXiv:1910.02054, figure 1. Shards are 1 for what the ZeRO stage leaves whole; else dp·cp for dense parameters,"
    " and the replicas of an expert for routed ones",
)
ELEMENT_BYTES: Final = {"bf16": 2, "fp16": 2, "fp8": 2, "fp32": 4}
"""Of a weight and of an activation as it is kept; fp8 products are computed from 16-bit weights and activations."""
_WHOLE: Final = (1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """What an optimizer keeps of each parameter, besides weight and gradient.

    Attributes:
        name: What users write.
        master_bytes: Of a weight in 32 bits; not needed where the weights themselves have 32.
        moment_bytes: Of moments and the like.
        source: Where that comes from.
    """

    name: str
    master_bytes: float
    moment_bytes: float
    source: str

    def state_bytes(self, dtype: str) -> float:
        """Return what it keeps of one parameter, in bytes, where weights have a type."""
        return self.moment_bytes + (0.0 if dtype == "fp32" else self.master_bytes)


OPTIMIZERS: Final = {
    one.name: one
    for one in (
        Optimizer(name="adam", master_bytes=4, moment_bytes=8, source="arXiv:1910.02054, section 3.1: K = 12"),
        Optimizer(
            name="adam-fsdp",
            master_bytes=2,
            moment_bytes=8,
            source="PyTorch FSDP, arXiv:2304.11277, 4.4: shards of weights have 32 bits, and 16 once gathered",
        ),
        Optimizer(name="adam-8bit", master_bytes=4, moment_bytes=2, source="arXiv:2110.02861: moments of 8 bits"),
        Optimizer(name="adam-bf16", master_bytes=4, moment_bytes=4, source="arXiv:2412.19437, 3.3.1: moments in BF16"),
        Optimizer(name="adam-16bit", master_bytes=0, moment_bytes=4, source="weights and both moments of 16 bits only"),
        Optimizer(name="lion", master_bytes=4, moment_bytes=4, source="arXiv:2302.06675: one moment"),
        Optimizer(name="muon", master_bytes=4, moment_bytes=4, source="arXiv:2502.16982: one moment"),
        Optimizer(name="sgd-momentum", master_bytes=4, moment_bytes=4, source="one moment"),
        Optimizer(name="sgd", master_bytes=4, moment_bytes=0, source="no moment"),
    )
}


def optimizer_of(name: str) -> Optimizer:
    """Return an optimizer by its name.

    Raises:
        UsageError: It is none that is known; the known ones are listed.
    """
    if name not in OPTIMIZERS:
        msg = f"optimizer: expected one of {', '.join(OPTIMIZERS)}; found {name!r}"
        raise UsageError(msg)
    return OPTIMIZERS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Parameters that one device holds, before ZeRO shards them.

    Attributes:
        dense: Of layers without their routed experts, of embedding and head.
        routed: Of routed experts.
        vocabulary: Of `dense`, embedding and head.
    """

    dense: float
    routed: float
    vocabulary: float = 0.0

    @property
    def total(self) -> float:
        """All of them."""
        return self.dense + self.routed


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """Model states of one device.

    Attributes:
        weights, gradients, optimizer: Bytes.
    """

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """All three."""
        return self.weights + self.gradients + self.optimizer


def held_by_layer(layer: LayerParameters, layout: Layout) -> Held:
    """Return what a device holds of one layer of its stage.

    Attention and dense feed-forward are divided by tp, routed experts by ep · etp; norms and router are on every
    rank.
    """
    routed = layer.routed / (layout.ep * layout.etp)
    return Held(dense=layer.held(layout.tp, ep=layout.ep, etp=layout.etp) - routed, routed=routed)


class StageLayers(NamedTuple):
    """What of the model a pipeline stage has.

    Attributes:
        dense, experts: Its layers without and with experts.
        first, last: Whether the model's first and last layer are among them, and so the embedding and the head.
    """

    dense: int
    experts: int
    first: bool
    last: bool

    @property
    def layers(self) -> int:
        """All of them."""
        return self.dense + self.experts


def stage_layers(model: Architecture, layout: Layout) -> tuple[StageLayers, ...]:
    """Return what of the model each pipeline stage has."""
    return _stage_layers(model, layout.pp, layout.vp, layout.schedule, layout.chunk_layers)


@lru_cache(maxsize=4096)
def _stage_layers(
    model: Architecture, pp: int, vp: int, schedule: str, chunk_layers: tuple[int, ...]
) -> tuple[StageLayers, ...]:
    layout = Layout(pp=pp, vp=vp, schedule=schedule, chunk_layers=chunk_layers)
    with_experts = [0, *accumulate(model.has_experts(layer) for layer in range(model.layers))]
    stages = []
    for chunks in layout.stages(model.layers):
        layers = sum(len(chunk) for chunk in chunks)
        experts = sum(with_experts[chunk.stop] - with_experts[chunk.start] for chunk in chunks)
        first, last = (any(layer in chunk for chunk in chunks) for layer in (0, model.layers - 1))
        stages.append(StageLayers(layers - experts, experts, first, last))
    return tuple(stages)


@lru_cache(maxsize=4096)
def held_by_stage(model: Architecture, layout: Layout) -> tuple[Held, ...]:
    """Return what a device of each pipeline stage holds.

    The embedding is with the first layer, the final norm, the head and modules that predict further tokens with the
    last; both matrices are divided by tp along the vocabulary. A tied head is a second copy where first and last
    layer are on different devices.
    """
    makeup = stage_layers(model, layout)
    found = {stage: _held(model, layout, stage) for stage in set(makeup)}
    return tuple(found[stage] for stage in makeup)


def state_bytes(held: Held, layout: Layout, work: Work, optimizer: Optimizer) -> StateBytes:
    """Return what the states of these parameters take on a device.

    *Formula:* `STATE_BYTES`, with shards by ZeRO stage: from 1 the optimizer, from 2 the gradients (under a
    pipeline from 3), from 3 the weights.
    """
    terms = state_terms(held, layout, work, optimizer)
    return StateBytes(
        weights=STATE_BYTES(**terms["weights"]),
        gradients=STATE_BYTES(**terms["gradients"]),
        optimizer=STATE_BYTES(**terms["optimizer"]),
    )


def state_terms(held: Held, layout: Layout, work: Work, optimizer: Optimizer) -> dict[str, dict[str, float]]:
    """Return the inputs of `STATE_BYTES` for weights, gradients and optimizer."""
    sharded = (layout.dp * layout.cp, layout.expert_dp)
    return {
        "weights": _inputs(held, ELEMENT_BYTES[work.dtype], sharded if layout.zero >= 3 else _WHOLE),
        "gradients": _inputs(held, work.gradient_bytes, sharded if layout.divides_gradients else _WHOLE),
        "optimizer": _inputs(held, optimizer.state_bytes(work.dtype), sharded if layout.zero >= 1 else _WHOLE),
    }


def _inputs(held: Held, bytes_each: float, shards: tuple[int, int]) -> dict[str, float]:
    return {
        "bytes_each": bytes_each,
        "dense": held.dense,
        "dense_shards": shards[0],
        "routed": held.routed,
        "routed_shards": shards[1],
    }


def _held(model: Architecture, layout: Layout, stage: StageLayers) -> Held:
    """Return what a device holds of a stage's layers, and of embedding, head, final norm and further prediction."""
    counted = parameters(model)
    matrix = model.vocabulary * model.hidden / layout.tp
    vocabulary = dense = routed = 0.0
    for layer, count in zip(layer_kinds(model), (stage.dense, stage.experts), strict=True):
        if layer is not None and count:
            each = held_by_layer(layer, layout)
            dense, routed = dense + count * each.dense, routed + count * each.routed
    if stage.first:
        vocabulary += matrix
        dense += model.positions * model.hidden
    if stage.last:
        vocabulary += 0.0 if model.tied and stage.first else matrix
        dense += counted.final_norm
    if stage.last and model.predicted_tokens:
        layer = counted.layers[-1]
        module = held_by_layer(layer, layout)
        joins = counted.prediction / model.predicted_tokens - layer.total
        dense += model.predicted_tokens * (module.dense + joins / layout.tp)
        routed += model.predicted_tokens * module.routed
    return Held(dense=dense + vocabulary, routed=routed, vocabulary=vocabulary)


@lru_cache(maxsize=512)
def layer_kinds(model: Architecture) -> tuple[LayerParameters | None, LayerParameters | None]:
    """Return the parameters of a layer without and of one with experts, None where the model has none of the kind."""
    counted = parameters(model)
    kinds = {model.has_experts(layer): counted.layers[layer] for layer in range(model.layers)}
    return kinds.get(False), kinds.get(True)
