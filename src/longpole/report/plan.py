"""A plan as one value; the page and the JSON document pour it out (`longpole.plan/1`).

Times are integer nanoseconds of one step, and its parts add up to it to the nanosecond. Bytes are of one device. Rates
of links are one way and per device. Nothing here is measured unless its source says so.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from longpole.report.document import UnknownEntry
from longpole.report.plan_asked import PlanAgainst, PlanSaving, PlanSearch, PlanServing
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

SCHEMA: Final = "longpole.plan/1"

MEMORY_PARTS: Final = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer states",
    "activations": "activations",
    "logits": "logits and loss",
    "transient": "transients",
    "buffers": "buffers and context",
}
"""Part of a device's memory -> what a person calls it."""

DIMENSIONS: Final = {
    "tp": "tensor parallel",
    "cp": "context parallel",
    "ep": "expert parallel",
    "etp": "experts' tensor",
    "pp": "pipeline transfers",
    "dp": "data parallel",
    "edp": "experts' data",
    "fsdp": "sharded data",
    "embedding": "tied embedding",
}
"""Dimension of a layout -> what a person calls its communication."""

STEP_PARTS: Final = {
    "compute": "compute",
    "recompute": "computed again",
    "contention": "slowed by messages",
    "bubble": "pipeline bubble",
    "optimizer": "optimizer",
}
"""Part of a step that is no communication -> what a person calls it."""


class PlanModel(msgspec.Struct, kw_only=True):
    """What is trained.

    Attributes:
        name: What the plan calls it.
        source: Where its dimensions come from.
        parameters, active_parameters: All of them; what one token visits.
        embedding_parameters: Of these the embedding, and the head where it is a matrix of its own.
        dimensions: Name -> value of what is not left at its default.
    """

    name: str
    source: str
    parameters: int
    active_parameters: int
    embedding_parameters: int
    dimensions: dict[str, Any]


class PlanLink(msgspec.Struct, kw_only=True):
    """One level of links.

    Attributes:
        name: What it is.
        devices: How many it joins; null for all.
        gb_per_s: Line rate, one way, per device.
        dimensions: Dimensions of the layout whose messages stay within it or cross it, and no level further out.
    """

    name: str
    devices: int | None
    gb_per_s: float
    dimensions: list[str]


class PlanHardware(msgspec.Struct, kw_only=True):
    """What it runs on.

    Attributes:
        device: As the table calls it.
        devices: How many.
        devices_per_node: How many share a node; null where there is no end to it.
        dtype: Of the computation.
        peak_tflops: Dense peak of one device for that data type.
        memory_bytes: Of one device.
        limit_bytes: What a plan may use of it.
        memory_gb_per_s: Rate of that memory.
        links: From the innermost level outwards.
        source: Where these figures come from.
    """

    device: str
    devices: int
    devices_per_node: int | None
    dtype: str
    peak_tflops: float
    memory_bytes: int
    limit_bytes: int
    memory_gb_per_s: float
    links: list[PlanLink]
    source: str


class PlanLayout(msgspec.Struct, kw_only=True):
    """How the model is divided, and what a replica processes.

    Attributes:
        label: The way people write it.
        devices: How many it needs.
        tp, pp, dp, cp, ep, etp, vp, sp, zero, schedule: As in a plan's `[layout]`.
        sequence, micro_batch, global_batch, micro_batches: Of a step; micro-batches of one replica.
        tokens: Of a step.
        recompute: A policy, or `policy layers` for each run of layers with one.
        optimizer, gradient_bytes, flash, fused_loss: As in a plan's `[training]`.
    """

    label: str
    devices: int
    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    etp: int
    vp: int
    sp: bool
    zero: int
    schedule: str
    sequence: int
    micro_batch: int
    global_batch: int
    micro_batches: int
    tokens: int
    recompute: str
    optimizer: str
    gradient_bytes: int
    flash: bool
    fused_loss: bool


class PlanStage(msgspec.Struct, kw_only=True):
    """Memory of one device of a pipeline stage.

    Attributes:
        stage: From 0.
        layers: How many it holds.
        in_flight: Micro-batches whose activations it holds at once, at most.
        parts_bytes: `MEMORY_PARTS` -> bytes; they add up to the peak.
        peak_bytes: The most that it holds.
        margin_bytes: What measured runs took beyond such a figure; one-sided.
    """

    stage: int
    layers: int
    in_flight: float
    parts_bytes: dict[str, int]
    peak_bytes: int
    margin_bytes: int


class PlanMemory(msgspec.Struct, kw_only=True):
    """Memory of one device.

    Attributes:
        verdict: `fits` (with its margin), `tight` (only without it) or `does not fit`.
        worst_stage: The stage that needs most.
        peak_bytes, margin_bytes: Of that stage.
        limit_bytes: What may be used.
        free_bytes: Of the limit, beyond peak and margin; negative where they are more.
        stages: All stages.
        known_error: How far such figures were from measured ones.
    """

    verdict: Literal["fits", "tight", "does not fit"]
    worst_stage: int
    peak_bytes: int
    margin_bytes: int
    limit_bytes: int
    free_bytes: int
    stages: list[PlanStage]
    known_error: str


class PlanPart(msgspec.Struct, kw_only=True):
    """One part of a step.

    Attributes:
        name: `compute`, a dimension's communication, `bubble`, `optimizer` or what else the model tells apart.
        says: What a person calls it.
        exposed_ns: What the step waits for it; these add up to the step.
        hidden_ns: What of it runs under computation.
    """

    name: str
    says: str
    exposed_ns: int
    hidden_ns: int


class PlanStep(msgspec.Struct, kw_only=True):
    """What a step takes.

    Attributes:
        period_ns: One step.
        low_ns, high_ns: With the known error of such figures.
        parts: They add up to `period_ns`.
        tokens_per_s: Of all devices.
        tokens_per_s_per_device: Of one.
        known_error: How far such figures were from measured ones.
    """

    period_ns: int
    low_ns: int
    high_ns: int
    parts: list[PlanPart]
    tokens_per_s: float
    tokens_per_s_per_device: float
    known_error: str


class PlanTraining(msgspec.Struct, kw_only=True):
    """The whole training.

    Attributes:
        tokens: Of all steps.
        steps: How many.
        days: From the first to the last, if nothing interrupts them.
        device_hours: Days of all devices, in hours.
    """

    tokens: float
    steps: int
    days: float
    device_hours: float


class PlanUtilisation(msgspec.Struct, kw_only=True):
    """Use of the peak under one convention.

    Attributes:
        convention: Its name.
        counts: What it counts.
        used_by: Who counts so.
        hardware: Whether what is computed again is counted: HFU, not MFU.
        flops_per_token: Forward and backward.
        share: Of the dense peak.
        tflops_per_device: That share of the peak.
        asked: Whether the plan names this one.
        applies: Whether it counts what this plan does; an HFU that counts what is not computed again is no use of it.
    """

    convention: str
    counts: str
    used_by: str
    hardware: bool
    flops_per_token: float
    share: float
    tflops_per_device: float
    asked: bool
    applies: bool


class PlanMessage(msgspec.Struct, kw_only=True):
    """Collectives of one kind along one dimension, of one device in one step.

    Attributes:
        name: What they are for.
        dimension: Of the layout.
        kind: Of the collective.
        phase: When it happens.
        devices: Of its group.
        link: The outermost level that it crosses.
        bytes: Of one.
        count: How many in a step.
        each_ns: What one takes.
        total_ns: All of them, hidden or not.
        hides_under: What may hide them; empty for nothing.
        source: Which cost model: `record` (the user's own), `shipped` (fits to measured systems), `nccl_model` or
            `generic` (line rates).
        source_says: Which of these, and what to know about it.
        error_share: Its median error where that was measured; null where not.
    """

    name: str
    dimension: str
    kind: str
    phase: str
    devices: int
    link: str
    bytes: int
    count: float
    each_ns: int
    total_ns: int
    hides_under: str
    source: str
    source_says: str
    error_share: float | None


class PlanLimit(msgspec.Struct, kw_only=True):
    """What holds a step up most, and what follows.

    Attributes:
        name: The part of the step.
        share: Of the step.
        says: The same in a sentence.
        next_step: What to try.
    """

    name: str
    share: float
    says: str
    next_step: str


class PlanDefault(msgspec.Struct, kw_only=True):
    """A figure that the plan does not state.

    Attributes:
        key: The key of the plan that would state it.
        value: What was taken, with its unit.
        source: Why, or from where.
    """

    key: str
    value: str
    source: str


class PlanFigure(msgspec.Struct, kw_only=True):
    """A figure with its formula.

    Attributes:
        name: What `--explain` calls it.
        value: In `unit`.
        unit: Its unit.
        formula: The formula, with values put in.
        source: Paper, table or file.
    """

    name: str
    value: float
    unit: str
    formula: str
    source: str


class Plan(msgspec.Struct, kw_only=True):
    """The document of `longpole plan --json`.

    Attributes:
        schema: `longpole.plan/1`.
        longpole: Version of the package.
        source: The file.
        name: What the plan calls itself.
        says: The result in a sentence.
        model, hardware, layout: What is planned.
        memory, step, utilisation, limits: What comes out; without a `[batch]` there is no step, only serving.
        messages: Every collective of a step.
        defaults: What the plan does not state, and what was taken for it.
        notes: What looks like a slip, or limits a figure.
        training: The whole training, where the plan says how many tokens it has.
        figures: Figures with their formulas; those asked for with `--explain`, all of them in JSON.
        search, free_memory, against, serving: What else was asked for.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    source: str
    name: str
    says: str
    model: PlanModel
    hardware: PlanHardware
    layout: PlanLayout | None
    memory: PlanMemory | None
    step: PlanStep | None
    utilisation: list[PlanUtilisation]
    limits: list[PlanLimit]
    messages: list[PlanMessage]
    defaults: list[PlanDefault]
    notes: list[str]
    training: PlanTraining | None = None
    figures: list[PlanFigure] = []
    search: PlanSearch | None = None
    free_memory: list[PlanSaving] | None = None
    against: PlanAgainst | None = None
    serving: PlanServing | None = None
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)

    def check(self) -> list[str]:
        """Return which laws do not hold: parts that do not add up."""
        broken = [
            f"the parts of stage {stage.stage} do not add up to its peak"
            for stage in (self.memory.stages if self.memory is not None else ())
            if sum(stage.parts_bytes.values()) != stage.peak_bytes
        ]
        if self.step is not None and sum(part.exposed_ns for part in self.step.parts) != self.step.period_ns:
            broken.append("the parts of a step do not add up to it")
        return broken


def plan_schema() -> bytes:
    """Return the JSON Schema of `longpole plan --json`."""
    return document_schema(Plan, SCHEMA)
