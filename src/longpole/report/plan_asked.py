"""What a plan can be asked beside its own figures: a search, memory that would be saved, a real run, serving."""

from __future__ import annotations

from typing import Any

import msgspec

from longpole.records.ledger import Unknown


class PlanChoice(msgspec.Struct, kw_only=True):
    """A layout that a search found.

    Attributes:
        label: The way people write it.
        layout: Keys of `[layout]`, as a plan would have them.
        micro_batch: Sequences that a replica processes at once.
        recompute: Policy of all layers, or how many are computed again.
        devices: How many it needs.
        period_ns: One step.
        ns_per_token_device: Device time of one token: period times devices per token.
        peak_bytes: Memory, with its margin.
        share: MFU under the plan's convention.
        is_plan: Whether it is the layout that the plan states.
    """

    label: str
    layout: dict[str, Any]
    micro_batch: int
    recompute: str
    devices: int
    period_ns: int
    ns_per_token_device: float
    peak_bytes: int
    share: float
    is_plan: bool


class PlanSearch(msgspec.Struct, kw_only=True):
    """What a search over layouts found.

    Attributes:
        considered: Combinations of degrees that were looked at.
        divide: Of these, layouts that divide.
        fit: Of these, layouts that fit the memory.
        limit_bytes: The memory that they had to fit.
        plan: The plan's own layout.
        best: The layout of the shortest step; null where none fits.
        front: Pareto front of time, memory and devices: of each, no other is better in one and as good in the others.
        near: What came closest where nothing fits.
    """

    considered: int
    divide: int
    fit: int
    limit_bytes: int
    plan: PlanChoice
    best: PlanChoice | None
    front: list[PlanChoice]
    near: PlanChoice | None


class PlanSaving(msgspec.Struct, kw_only=True):
    """What would fit if something of a device's memory were saved.

    Attributes:
        saved: What is saved.
        how: `none of it` (a bound: as if it took nothing), or the change that saves it.
        saves_bytes: On the worst stage, at the plan's micro-batch.
        micro_batch: The fastest micro-batch of those that then fit and divide the global batch.
        recompute: Its policy: where the plan computes again, saved memory may let it compute less again.
        fits_at_most: The largest micro-batch that then fits with as many micro-batches as the plan has, dividing or
            not; 0 where none does.
        period_ns: A step at `micro_batch`.
        ns_per_token: Time of one token there.
        change_share: Of the time of one token, against the plan as it is (as if it fitted); negative is faster.
        bound: Whether it is a bound.
    """

    saved: str
    how: str
    saves_bytes: int
    micro_batch: int | Unknown
    recompute: str | Unknown
    fits_at_most: int
    period_ns: int | Unknown
    ns_per_token: float | Unknown
    change_share: float | Unknown
    bound: bool


class PlanBeside(msgspec.Struct, kw_only=True):
    """One object of a real run's ledger beside the plan.

    Attributes:
        object: Of the ledger.
        planned_ns: Exposed time of a step. A plan assumes input that is there, and a host that is never waited for.
        measured_ns: Exposed time of a unit, mean over steady units and ranks.
        difference_ns: Measured less planned.
        says: What is compared with what, where that is not plain.
    """

    object: str
    planned_ns: int
    measured_ns: int
    difference_ns: int
    says: str


class PlanBesideCollective(msgspec.Struct, kw_only=True):
    """Collectives of one kind: what the plan expects of a device in a step, and what a run recorded.

    Attributes:
        kind: Of the collective.
        planned_count, measured_count: Operations.
        planned_bytes, measured_bytes: All of them together.
        planned_ns, measured_ns: All of them together, hidden or not; the measured one with its waiting.
    """

    kind: str
    planned_count: float
    measured_count: float
    planned_bytes: float
    measured_bytes: float | Unknown
    planned_ns: int
    measured_ns: int


class PlanAgainst(msgspec.Struct, kw_only=True):
    """The plan beside a real run.

    Attributes:
        paths: Of the run.
        ranks: With a file.
        devices: Of the run; unknown where no file says so.
        units: Steady units that were compared.
        planned_period_ns, measured_period_ns: Of a step; the measured one is the median.
        measured_unit_ns: Mean of the units, which the objects add up to.
        error_share: Planned less measured period, of the measured one.
        measured_tokens_per_s: Of all devices: items of the run's units where these are said to be tokens, else the
            plan's tokens, over the measured period.
        planned_mfu, measured_mfu: Under the plan's convention.
        objects: They add up to the planned period and to the measured unit.
        collectives: By kind.
        planned_peak_bytes, measured_peak_bytes: What an allocator holds at most, buffers outside of it left out.
        notes: What makes the two differ before anything is measured.
        says: The result in a sentence.
    """

    paths: list[str]
    ranks: int
    devices: int | Unknown
    units: int
    planned_period_ns: int
    measured_period_ns: int | Unknown
    measured_unit_ns: int
    error_share: float | Unknown
    measured_tokens_per_s: float
    planned_mfu: float
    measured_mfu: float
    objects: list[PlanBeside]
    collectives: list[PlanBesideCollective]
    planned_peak_bytes: int
    measured_peak_bytes: int | Unknown
    notes: list[str]
    says: str


class PlanPass(msgspec.Struct, kw_only=True):
    """One forward pass of serving.

    Attributes:
        dur_ns: What it takes; `low_ns` where computing and reading overlap fully, `high_ns` where they do not.
        parts_ns: By operator; they add up to `dur_ns`.
        limits_ns: By what rules an operator; they add up to `dur_ns`.
        limited_by: What rules most of it.
    """

    dur_ns: int
    low_ns: int
    high_ns: int
    parts_ns: dict[str, int]
    limits_ns: dict[str, int]
    limited_by: str


class PlanServingPoint(msgspec.Struct, kw_only=True):
    """A batch, and what it gives.

    Attributes:
        batch: Requests that are decoded at once.
        step_ns: Between two tokens of a request.
        tokens_per_s: Output tokens of all devices.
    """

    batch: int
    step_ns: int
    tokens_per_s: float


class PlanServing(msgspec.Struct, kw_only=True):
    """What serving the model takes on the devices of one server.

    Attributes:
        says: The result in a sentence.
        label: How the model is divided.
        devices: Of one server.
        prompt_tokens, output_tokens: Of a request.
        batch: Requests that are decoded at once.
        fits: Whether weights and caches of the batch fit.
        most_requests: Requests whose cache fits at full length; 0 where not even the weights do.
        weight_bytes: On a device.
        cache_bytes_per_token, request_cache_bytes: On a device.
        limit_bytes, cache_room_bytes: Of a device; what of it is left to caches.
        first_token_ns: Of one prompt alone, without queueing: the prefill.
        prefill, decode: Their passes.
        tokens_per_s, tokens_per_s_low, tokens_per_s_high: Output tokens of all devices.
        tokens_per_s_per_device: Of one.
        critical_batch: Rows from which on products compute for longer than they read weights.
        curve: Batches by doubling.
        known_error: How far such figures were from measured ones.
    """

    says: str
    label: str
    devices: int
    prompt_tokens: int
    output_tokens: int
    batch: int
    fits: bool
    most_requests: int
    weight_bytes: int
    cache_bytes_per_token: float
    request_cache_bytes: int
    limit_bytes: int
    cache_room_bytes: int
    first_token_ns: int
    prefill: PlanPass
    decode: PlanPass
    tokens_per_s: float
    tokens_per_s_low: float
    tokens_per_s_high: float
    tokens_per_s_per_device: float
    critical_batch: float
    curve: list[PlanServingPoint]
    known_error: str
