"""The parts of a plan's document, each made from what the cost models say."""

from __future__ import annotations

from dataclasses import asdict, fields
from math import ceil
from typing import TYPE_CHECKING, Final

from longpole.costs.architecture import Architecture
from longpole.costs.conventions import CONVENTIONS
from longpole.costs.flops import counts, hardware_flops_per_token
from longpole.costs.parameters import parameters
from longpole.report.plan import (
    DIMENSIONS,
    MEMORY_PARTS,
    STEP_PARTS,
    PlanHardware,
    PlanLayout,
    PlanLink,
    PlanMemory,
    PlanMessage,
    PlanModel,
    PlanPart,
    PlanStage,
    PlanStep,
    PlanTraining,
    PlanUtilisation,
)
from longpole.units import BYTES_PER_GB, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.costs.cluster import Dimension
    from longpole.costs.collective_bytes import Message
    from longpole.costs.collective_time import CollectiveCosts
    from longpole.costs.layout import Layout, Work
    from longpole.costs.memory import DeviceMemory, StageMemory
    from longpole.costs.step import StepTime
    from longpole.pipeline.plan_config import Ground, Planned

_TERA: Final = 10**12
_DAY_S: Final = 86_400
_EXPOSED: Final = "exposed_"
_RUNS_WRITTEN: Final = 4
COMPUTED: Final = "computed"
_RECOMPUTED: Final = {"palm_hw": "full", "sc21_hw": "full", "selective_hw": "selective"}
"""Convention that counts what is computed again -> the policy of which that is true."""
MEMORY_ERROR: Final = "measured allocators took 2 to 9 % more than the peak: that is what the margin is for"
"""Decision 0032: 23 measured stages."""


def add_up(parts: Mapping[str, float], whole: int) -> dict[str, int]:
    """Round parts to whole numbers that add up to a whole (largest remainder).

    >>> add_up({"a": 1.4, "b": 1.4, "c": 1.2}, 4)
    {'a': 2, 'b': 1, 'c': 1}
    """
    floors = {name: int(value // 1) for name, value in parts.items()}
    left = whole - sum(floors.values())
    by_rest = sorted(parts, key=lambda name: floors[name] - parts[name])
    for name in by_rest[: max(left, 0)]:
        floors[name] += 1
    return floors


def describe_model(planned: Ground) -> PlanModel:
    """Say what is trained."""
    model = planned.model
    counted = parameters(model)
    plain = {
        field.name: getattr(model, field.name)
        for field in fields(Architecture)
        if field.name not in ("name", "latent", "experts") and getattr(model, field.name) != field.default
    }
    inner = {name: asdict(part) for name in ("latent", "experts") if (part := getattr(model, name)) is not None}
    return PlanModel(
        name=model.name,
        source=planned.model_source,
        parameters=round(counted.total),
        active_parameters=round(counted.active),
        embedding_parameters=round(counted.embedding + counted.head),
        dimensions=plain | inner,
    )


def describe_hardware(planned: Ground, layout: Layout | None, dtype: str) -> PlanHardware:
    """Say what it runs on, and which messages cross which link."""
    device, cluster = planned.cluster.device, planned.cluster
    crossing: dict[int, list[str]] = {}
    for dimension, degree in _degrees(layout):
        if degree > 1 and layout is not None:
            crossing.setdefault(cluster.group(layout, dimension).level, []).append(dimension)
    links = [
        PlanLink(
            name=level.name,
            devices=level.size,
            gb_per_s=level.bytes_per_s_one_way / BYTES_PER_GB,
            dimensions=crossing.get(place, []),
        )
        for place, level in enumerate(cluster.levels)
    ]
    return PlanHardware(
        device=device.name,
        devices=planned.devices,
        devices_per_node=cluster.node_size,
        dtype=dtype,
        peak_tflops=device.peak(dtype) / _TERA,
        memory_bytes=round(device.memory_bytes or 0),
        limit_bytes=round(planned.limit_bytes),
        memory_gb_per_s=(device.memory_bytes_per_s or 0.0) / BYTES_PER_GB,
        links=links,
        source=device.source,
    )


def _degrees(layout: Layout | None) -> tuple[tuple[Dimension, int], ...]:
    if layout is None:
        return ()
    data: Dimension = "fsdp" if layout.zero == 3 else "dp"
    return (
        ("tp", layout.tp),
        ("cp", layout.cp),
        ("ep", layout.ep),
        ("etp", layout.etp),
        (data, layout.dp * layout.cp),
        ("pp", layout.pp),
    )


def describe_layout(layout: Layout, work: Work, optimizer: str) -> PlanLayout:
    """Say how the model is divided, and what a step processes."""
    own = ("tp", "pp", "dp", "cp", "ep", "etp", "vp", "sp", "zero", "schedule")
    return PlanLayout(
        label=layout.label(),
        devices=layout.world,
        **{name: getattr(layout, name) for name in own},
        sequence=work.sequence,
        micro_batch=work.micro_batch,
        global_batch=work.global_batch,
        micro_batches=work.micro_batches(layout),
        tokens=work.tokens,
        recompute=policy_text(work),
        optimizer=optimizer,
        gradient_bytes=work.gradient_bytes,
        flash=work.flash,
        fused_loss=work.fused_loss,
    )


def policy_text(work: Work) -> str:
    """Write the policy of all layers, or of each run of layers that has one.

    >>> from longpole.costs.layout import Work
    >>> policy_text(Work(sequence=1, micro_batch=1, global_batch=1, recompute_layers=("full", "full", "none")))
    'full 0-1, none 2'
    """
    if not work.recompute_layers:
        return work.recompute
    runs: list[tuple[str, int, int]] = []
    for layer, policy in enumerate(work.recompute_layers):
        if runs and runs[-1][0] == policy:
            runs[-1] = (policy, runs[-1][1], layer)
        else:
            runs.append((policy, layer, layer))
    return ", ".join(
        f"{policy} {first}-{last}" if last > first else f"{policy} {first}" for policy, first, last in runs
    )


def describe_memory(memory: DeviceMemory, limit_bytes: float) -> PlanMemory:
    """Say what a device of each stage needs, and whether it fits."""
    stages = [_stage(stage) for stage in memory.stages]
    worst = max(stages, key=lambda stage: stage.peak_bytes + stage.margin_bytes)
    free = round(limit_bytes) - worst.peak_bytes - worst.margin_bytes
    return PlanMemory(
        verdict="fits" if free >= 0 else "tight" if worst.peak_bytes <= limit_bytes else "does not fit",
        worst_stage=worst.stage,
        peak_bytes=worst.peak_bytes,
        margin_bytes=worst.margin_bytes,
        limit_bytes=round(limit_bytes),
        free_bytes=free,
        stages=stages,
        known_error=MEMORY_ERROR,
    )


def _stage(stage: StageMemory) -> PlanStage:
    parts = {name: getattr(stage, f"{name}_bytes") for name in MEMORY_PARTS}
    peak = round(sum(parts.values()))
    return PlanStage(
        stage=stage.stage,
        layers=stage.layers,
        in_flight=stage.in_flight,
        parts_bytes=add_up(parts, peak),
        peak_bytes=peak,
        margin_bytes=round(stage.margin_bytes),
    )


def describe_step(step: StepTime, devices: int, error_share: float, why: str) -> PlanStep:
    """Say what a step takes; its parts add up to it to the nanosecond."""
    period_ns = round(step.total_s * NS_PER_S)
    exposed = add_up({name: seconds * NS_PER_S for name, seconds in step.parts_s.items()}, period_ns)
    hidden = {f"{_EXPOSED}{name}": round(seconds * NS_PER_S) for name, seconds in step.hidden_s.items()}
    names = list(dict.fromkeys([*exposed, *hidden]))
    tokens_per_s = step.tokens * NS_PER_S / period_ns
    return PlanStep(
        period_ns=period_ns,
        low_ns=round(period_ns * (1 - error_share)),
        high_ns=round(period_ns * (1 + error_share)),
        parts=[
            PlanPart(
                name=name.removeprefix(_EXPOSED),
                says=part_says(name),
                exposed_ns=exposed.get(name, 0),
                hidden_ns=hidden.get(name, 0),
            )
            for name in names
        ],
        tokens_per_s=tokens_per_s,
        tokens_per_s_per_device=tokens_per_s / devices,
        known_error=f"±{error_share:.0%}: {why}",
    )


def describe_training(planned: Planned, step: PlanStep) -> PlanTraining | None:
    """Say how long the whole training takes; nothing where its tokens are not stated.

    *Formula:* steps · period, with steps rounded up. `utilisation.TRAINING_DAYS` gives the same from an MFU.
    """
    if not planned.training_tokens:
        return None
    steps = ceil(planned.training_tokens / planned.work.tokens)
    days = steps * step.period_ns / NS_PER_S / _DAY_S
    return PlanTraining(
        tokens=planned.training_tokens, steps=steps, days=days, device_hours=days * 24 * planned.layout.world
    )


def part_says(name: str) -> str:
    """Return what a person calls a part of a step."""
    plain = name.removeprefix(_EXPOSED)
    return STEP_PARTS.get(plain) or DIMENSIONS.get(plain) or plain


def describe_utilisation(planned: Planned, tokens_per_s: float) -> list[PlanUtilisation]:
    """Say how much of the peak is used, under every convention, and with what is really computed."""
    work, model = planned.work, planned.model
    peak = planned.cluster.device.peak(work.dtype)
    counted = counts(model, work.sequence)
    devices = planned.layout.world

    def use(name: str, title: str, used_by: str, flops: float, *, hardware: bool) -> PlanUtilisation:
        achieved = tokens_per_s * flops / devices
        return PlanUtilisation(
            convention=name,
            counts=title,
            used_by=used_by,
            hardware=hardware,
            flops_per_token=flops,
            share=achieved / peak,
            tflops_per_device=achieved / _TERA,
            asked=name == planned.convention.name,
            applies=not hardware or name == COMPUTED or work.recompute == _RECOMPUTED.get(name),
        )

    found = [
        use(one.name, one.title, one.used_by, counted.under(one), hardware=one.hardware) for one in CONVENTIONS.values()
    ]
    policy = work.recompute_layers or work.recompute
    computed = hardware_flops_per_token(model, work.sequence, policy, flash=work.flash)
    return [*found, use(COMPUTED, "what this plan really computes", "this plan itself", computed, hardware=True)]


def describe_messages(planned: Planned, messages: Sequence[Message], costs: CollectiveCosts) -> list[PlanMessage]:
    """Say what a device sends in a step, and what each operation takes."""
    return [_message(planned, message, costs) for message in messages]


def _message(planned: Planned, message: Message, costs: CollectiveCosts) -> PlanMessage:
    group = planned.cluster.group(planned.layout, message.dimension)
    estimate = costs.estimate(message.kind, group, message.bytes)
    return PlanMessage(
        name=message.name,
        dimension=message.dimension,
        kind=message.kind,
        phase=message.phase,
        devices=message.group,
        link=planned.cluster.levels[group.level].name,
        bytes=round(message.bytes),
        count=message.count,
        each_ns=round(estimate.seconds * NS_PER_S),
        total_ns=round(estimate.seconds * message.count * NS_PER_S),
        hides_under=message.hides_behind,
        source=estimate.source,
        source_says=estimate.says,
        error_share=estimate.error_share,
    )
