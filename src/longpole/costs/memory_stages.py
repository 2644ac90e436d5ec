"""What pipeline stages are made of, and what is kept and needed of their layers; counted once for stages alike."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from longpole.costs.layout import Layout
from longpole.costs.memory_activations import layer_terms, logits_term, outer_terms
from longpole.costs.memory_states import held_by_stage, layer_kinds, stage_layers
from longpole.costs.memory_transients import backward_terms, head_backward_term, standing_terms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.costs.architecture import Architecture
    from longpole.costs.layout import Recompute, Work
    from longpole.costs.memory_activations import Term
    from longpole.costs.memory_states import Held


class LayerKind(NamedTuple):
    """Layers that are counted alike."""

    has_experts: bool
    policy: Recompute


class StageMakeup(NamedTuple):
    """What a stage has: how many layers of each kind, and the model's ends."""

    kinds: tuple[tuple[LayerKind, int], ...]
    first: bool
    last: bool


def _makeup(model: Architecture, layout: Layout, work: Work) -> tuple[StageMakeup, ...]:
    """Return the makeup of each stage."""
    if work.recompute_layers:
        return _makeup_one_by_one(model, layout, work)
    return tuple(
        StageMakeup(
            tuple(
                (LayerKind(has_experts, work.recompute), count)
                for has_experts, count in ((False, stage.dense), (True, stage.experts))
                if count
            ),
            stage.first,
            stage.last,
        )
        for stage in stage_layers(model, layout)
    )


def _makeup_one_by_one(model: Architecture, layout: Layout, work: Work) -> tuple[StageMakeup, ...]:
    found = []
    for chunks, stage in zip(layout.stages(model.layers), stage_layers(model, layout), strict=True):
        layers = (layer for chunk in chunks for layer in chunk)
        counts = Counter(LayerKind(model.has_experts(layer), work.policy(layer)) for layer in layers)
        found.append(StageMakeup(tuple(sorted(counts.items())), stage.first, stage.last))
    return tuple(found)


class StageFigures:
    """What is kept and needed of one layer of each kind, of the head and around the layers; counted once.

    It depends on what divides a layer, and not on stages, replicas and schedule: a search meets the same again.
    """

    def __init__(self, model: Architecture, layout: Layout, work: Work, imbalance: float) -> None:
        self.model = model
        self.layout = layout
        self.work = work
        self._imbalance = imbalance
        self._kept: dict[LayerKind, float] = {}
        self._needed: dict[LayerKind, float] = {}
        self._standing: dict[StageMakeup, float] = {}
        self._stages: dict[tuple[object, ...], tuple[tuple[StageMakeup, Held], ...]] = {}
        self.logits_bytes = logits_term(model, layout, work).bytes
        self.head_bytes = head_backward_term(model, layout, work).bytes
        self._outer_bytes = {
            (first, last): sum_of(outer_terms(model, layout, work, first=first, last=last))
            for first in (False, True)
            for last in (False, True)
        }

    def stages(self, layout: Layout) -> tuple[tuple[StageMakeup, Held], ...]:
        """Return what each stage of a layout is made of, and the parameters that it holds."""
        key = (layout.pp, layout.vp, layout.schedule, layout.chunk_layers)
        if key not in self._stages:
            makeup, held = _makeup(self.model, layout, self.work), held_by_stage(self.model, layout)
            self._stages[key] = tuple(zip(makeup, held, strict=True))
        return self._stages[key]

    def terms_of_layer(self, kind: LayerKind) -> list[Term]:
        """Return what is kept of a layer."""
        return layer_terms(
            self.model, self.layout, self.work, kind.policy, has_experts=kind.has_experts, imbalance=self._imbalance
        )

    def terms_of_backward(self, kind: LayerKind) -> list[Term]:
        """Return what the backward passes of a layer's two halves need."""
        return backward_terms(
            self.model, self.layout, self.work, has_experts=kind.has_experts, imbalance=self._imbalance
        )

    def standing_terms(self, stage: StageMakeup, held: Held) -> list[Term]:
        """Return what stands while a step runs."""
        dense, experts = layer_kinds(self.model)
        present = {kind.has_experts for kind, _ in stage.kinds}
        layers = [layer for has, layer in ((False, dense), (True, experts)) if has in present and layer is not None]
        has_matrix = stage.first or stage.last
        return standing_terms(self.model, self.layout, self.work, layers, has_matrix=has_matrix, of_stage=held.total)

    def layer_bytes(self, kind: LayerKind) -> float:
        """Return what is kept of a layer for one micro-batch."""
        if kind not in self._kept:
            self._kept[kind] = sum_of(self.terms_of_layer(kind))
        return self._kept[kind]

    def around_bytes(self, stage: StageMakeup) -> float:
        """Return what is kept around the layers; modules of further prediction are as the stage's last layer."""
        around = self._outer_bytes[stage.first, stage.last]
        if stage.last and stage.kinds and self.model.predicted_tokens:
            around += self.model.predicted_tokens * self.layer_bytes(stage.kinds[-1][0])
        return around

    def kept_bytes(self, stage: StageMakeup) -> float:
        """Return what a stage keeps of one micro-batch."""
        return sum(count * self.layer_bytes(kind) for kind, count in stage.kinds) + self.around_bytes(stage)

    def again_bytes(self, kind: LayerKind) -> float:
        """Return what a layer computes again before its backward pass, and then holds."""
        if kind.policy == "none":
            return 0.0
        whole = self.layer_bytes(LayerKind(kind.has_experts, "none"))
        return whole - (self.layer_bytes(kind) if kind.policy == "selective" else 0.0)

    def needed_bytes(self, kind: LayerKind) -> float:
        """Return what a layer's backward pass needs, with what it computes again before."""
        if kind not in self._needed:
            passes = max(term.bytes for term in self.terms_of_backward(kind))
            self._needed[kind] = passes + self.again_bytes(kind)
        return self._needed[kind]

    def standing_bytes(self, stage: StageMakeup, held: Held) -> float:
        """Return what stands while a step runs."""
        if stage not in self._standing:
            self._standing[stage] = sum_of(self.standing_terms(stage, held))
        return self._standing[stage]


def figures_of(model: Architecture, layout: Layout, work: Work, imbalance: float) -> StageFigures:
    """Return the figures of a layout's stages; those of another layout that divides a layer alike are the same."""
    return _figures(model, _divided(layout), work, imbalance)


@lru_cache(maxsize=4096)
def _figures(model: Architecture, layout: Layout, work: Work, imbalance: float) -> StageFigures:
    return StageFigures(model, layout, work, imbalance)


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
        pp=2 if layout.keeps_gathered else 1,
    )


def sum_of(terms: Iterable[Term]) -> float:
    """Add terms up, in bytes."""
    return sum(term.bytes for term in terms)
