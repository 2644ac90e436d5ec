"""What serving a model takes: a roofline of prefill and decode, operator by operator.

A decode step reads all weights once and the cache of every sequence, and computes next to nothing with them; a prefill
computes with each weight once per token. So the one is ruled by memory and the other by arithmetic, and a batch in
between by both. A roofline over the whole pass would take one of the two for all operators; here each has its own:

    product of rows × k × n     compute  2·rows·k·n / (peak · share)       memory  k·n·bytes / (rate · share)
    attention of a prefill      compute  2·heads·(d_score + d_value)·pairs / (peak · share)
    attention of a decode step  memory   the cache of every token that is looked at / (rate · share)

How far the shorter of the two hides under the longer does not follow from dimensions: all of it is the least time,
nothing of it the greatest, and half of it what is said. Shares and their comparison with measurements: decision 0037.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.formula import Formula, Quantity, Range, quantity
from longpole.costs.kv_cache import KEYS_AND_VALUES, LATENT, kv_bytes_of_sequence
from longpole.costs.serving_operators import (
    EXPERTS_READ,
    ServedBatch,
    Server,
    held_weight_bytes,
    launches,
    pass_operators,
)
from longpole.errors import UsageError
from longpole.hardware.matmul_ceilings import find_ceiling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.costs.architecture import Architecture
    from longpole.costs.cluster import Cluster
    from longpole.costs.serving_operators import Operator
    from longpole.hardware.devices import Device

LIMITS: Final = ("compute", "weights", "cache", "activations", "communication", "launch")
"""What can rule an operator: arithmetic, reading one of three things, messages, or starting it."""

_LARGEST: Final = 1 << 40
_UNMEASURED_CEILING: Final = 0.75  # of the peak: between B200's and GB200's, the newest parts that were measured
_NOT_NAME: Final = re.compile(r"\W+")
_WIDEST_BYTES: Final = 8  # of an element
CRITICAL_BATCH: Final = Formula(
    "peak_flops*weight_bytes/(2*memory_bytes_per_s)",
    "rows",
    "rows at which a product computes for as long as it reads its weights: 2·rows FLOPs a weight (arXiv:2402.16363)",
)
TOKENS_PER_S: Final = Formula(
    "batch*output_tokens/(batch*prefill_s + output_tokens*step_s)",
    "tokens/s",
    "each sequence is prefilled once, alone or among others, and then gets one token of every step of the batch",
)
CACHE_ROOM: Final = Formula(
    "memory_bytes*(1 - reserve_share) - held_bytes",
    "B",
    "of a device: what weights, and the reserve for activations and the runtime, leave to caches",
)
REQUESTS_THAT_FIT: Final = Formula(
    "floor(max(room_bytes, 0)/sequence_bytes)*replicas",
    "requests",
    "at their full length; replicas of the attention part hold different requests",
)
EXCHANGE: Final = Formula(
    "(dispatch_bytes + combine_bytes)*tokens*experts*hidden/bytes_per_s",
    "s",
    "arXiv:2505.09343, on the limits of inference speed: messages of a layer to experts and back, at the link's rate",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What is served.

    Attributes:
        prompt_tokens: Of a request.
        output_tokens: That it gets.
        batch: Requests that are decoded at once, over all devices; None for as many as fit.
        prefill_tokens: Tokens of prompts that an engine takes into one pass, of a replica (8192 is a usual setting).
    """

    prompt_tokens: int
    output_tokens: int
    batch: int | None = None
    prefill_tokens: int = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRates:
    """How much of a peak is reached, and what a launch costs.

    Attributes:
        product_of_ceiling: By matrix products with many rows, of the best product that was measured on the device.
        attention_of_product: By attention kernels of a prefill, of what products of 16 bits reach: scores are computed
            in 16 bits whatever the weights are stored in.
        memory_share: Of the memory's peak rate, by reading weights and cache (reference figure 0.80).
        overlap: Which part of the shorter of compute and memory time of an operator hides under the longer one.
        launch_s: From one kernel to the next (4 µs; about 1 µs where a graph was captured).
        reserve_share: Of memory that is left to activations, buffers and the runtime (as serving engines do).
    """

    product_of_ceiling: float = 0.9
    attention_of_product: float = 0.6
    memory_share: float = 0.80
    overlap: float = 0.5
    launch_s: float = 4e-6
    reserve_share: float = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTime:
    """What one forward pass takes.

    Attributes:
        seconds: With the least (compute and memory overlap fully) and the greatest time (not at all).
        parts_s: By operator; they add up to the value.
        limits_s: By what rules an operator, one of `LIMITS`; they add up to the value.
    """

    seconds: Range
    parts_s: Mapping[str, float]
    limits_s: Mapping[str, float]

    @property
    def limited_by(self) -> str:
        """What rules most of the time."""
        return max(self.limits_s, key=lambda name: self.limits_s[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPoint:
    """A batch size, and what it gives.

    Attributes:
        batch: Sequences that are decoded at once, over all devices.
        step_s: Time of a decode step: between two tokens of a request.
        tokens_per_s: Output tokens of all devices, prefills counted.
    """

    batch: int
    step_s: float
    tokens_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What serving a model takes.

    Attributes:
        devices: Of one server.
        batch: Requests that are decoded at once.
        most_sequences: Requests whose cache fits at full length; 0 where not even the weights do.
        weight_bytes: On a device.
        sequence_cache_bytes: On a device, of a request at its full length.
        memory_bytes, cache_room_bytes: Of a device; what of it is left to caches (negative where weights do not fit).
        prefill: Of one prompt in each replica of the attention part: what a request waits for its first token, if no
            other one is before it.
        decode: A step of the batch at half of the output.
        tokens_per_s: Output tokens of all devices, each request prefilled once, with its range.
        critical_batch: Rows at which products compute for as long as they read their weights.
        curve: Batches by doubling, up to what fits.
        quantities: The figures with their formulas.
    """

    devices: int
    batch: int
    most_sequences: int
    weight_bytes: float
    sequence_cache_bytes: float
    memory_bytes: float
    cache_room_bytes: float
    prefill: PassTime
    decode: PassTime
    tokens_per_s: Range
    critical_batch: float
    curve: tuple[ServingPoint, ...]
    quantities: tuple[Quantity, ...] = field(default=())

    @property
    def fits(self) -> bool:
        """Whether the weights and the caches of the batch fit."""
        return self.most_sequences >= self.batch

    @property
    def tokens_per_s_per_device(self) -> float:
        """Output tokens of one device."""
        return self.tokens_per_s.value / self.devices

    @property
    def time_between_tokens_s(self) -> Range:
        """What a request waits for its next token."""
        return self.decode.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """Everything that does not change from pass to pass."""

    model: Architecture
    server: Server
    rates: ServingRates
    peak_flops: float
    product_flops_per_s: float
    attention_flops_per_s: float
    memory_bytes_per_s: float
    costs: CollectiveCosts


def serving(
    model: Architecture,
    cluster: Cluster,
    requests: Requests,
    *,
    server: Server | None = None,
    rates: ServingRates | None = None,
    costs: CollectiveCosts | None = None,
) -> Serving:
    """Say what serving a model takes on devices of a cluster.

    Args:
        model: What is served.
        cluster: Its device, and the links between them.
        requests: What is asked of it.
        server: Over which devices, and in which formats; one device and 16 bits unless given.
        rates: How much of the peaks is reached.
        costs: What collectives take; as the cluster's links have it unless given.

    Raises:
        UsageError: A figure is none, the layout does not divide the model, or the device's peaks are not known.
    """
    server, rates = server or Server(), rates or ServingRates()
    _check(model, requests, server)
    machine = _Machine(
        model=model,
        server=server,
        rates=rates,
        peak_flops=cluster.device.peak(server.dtype),
        product_flops_per_s=_product_flops_per_s(cluster.device, server.dtype, rates),
        attention_flops_per_s=_attention_flops_per_s(cluster.device, server.dtype, rates),
        memory_bytes_per_s=_known(cluster.device, "memory_bytes_per_s"),
        costs=costs or CollectiveCosts(cluster),
    )
    return _serve(machine, requests, _known(cluster.device, "usable_memory_bytes"))


def _serve(machine: _Machine, requests: Requests, memory_bytes: float) -> Serving:
    model, server = machine.model, machine.server
    full = requests.prompt_tokens + requests.output_tokens
    weights = held_weight_bytes(model, server)
    room = CACHE_ROOM(memory_bytes=memory_bytes, reserve_share=machine.rates.reserve_share, held_bytes=weights)
    each = kv_bytes_of_sequence(model, full, server.cache_bytes, server.layout.tp)
    most = int(REQUESTS_THAT_FIT(room_bytes=room, sequence_bytes=each, replicas=server.layout.dp))
    batch = requests.batch or max(most, 1)
    speed = _speed(machine, requests, batch)
    prefill = _pass_time(machine, server.layout.dp, requests.prompt_tokens, requests.prompt_tokens)
    critical = quantity(
        "critical batch",
        CRITICAL_BATCH,
        peak_flops=machine.peak_flops,
        weight_bytes=server.weight_bytes,
        memory_bytes_per_s=machine.memory_bytes_per_s,
    )
    room_figure = quantity(
        "room for caches",
        CACHE_ROOM,
        memory_bytes=memory_bytes,
        reserve_share=machine.rates.reserve_share,
        held_bytes=weights,
    )
    fitting = quantity(
        "requests that fit",
        REQUESTS_THAT_FIT,
        room_bytes=room,
        sequence_bytes=each,
        replicas=server.layout.dp,
    )
    return Serving(
        devices=server.devices,
        batch=batch,
        most_sequences=most,
        weight_bytes=weights,
        sequence_cache_bytes=each,
        memory_bytes=memory_bytes,
        cache_room_bytes=room,
        prefill=prefill,
        decode=speed.decode,
        tokens_per_s=speed.tokens_per_s.value,
        critical_batch=critical.value.value,
        curve=_curve(machine, requests, most),
        quantities=(
            _cache_figure(model, server),
            room_figure,
            fitting,
            critical,
            *_expert_figures(machine, batch),
            _sum_figure("prefill", prefill),
            _sum_figure("decode step", speed.decode),
            speed.tokens_per_s,
        ),
    )


def _cache_figure(model: Architecture, server: Server) -> Quantity:
    if model.latent is not None:
        rank, rope = model.latent.key_value_rank, model.latent.rope_dim
        inputs: dict[str, float] = {"L": model.layers, "kv_rank": rank, "rope_dim": rope}
        return quantity("cache of a token", LATENT, **inputs, element_bytes=server.cache_bytes)
    inputs = {"L": model.layers, "k": model.key_value_heads, "tp": server.layout.tp, "d": model.head_dim}
    return quantity("cache of a token", KEYS_AND_VALUES, **inputs, element_bytes=server.cache_bytes)


def _expert_figures(machine: _Machine, batch: int) -> list[Quantity]:
    """Return how many experts of a layer a decode step reads, over all devices that share them."""
    experts = machine.model.experts
    if experts is None:
        return []
    together = batch * min(machine.server.expert_group / machine.server.devices, 1.0)
    return [quantity("experts read", EXPERTS_READ, E=experts.count, k=experts.per_token, tokens=together)]


def _sum_figure(name: str, one: PassTime) -> Quantity:
    """Return what a pass takes as the sum of its operators."""
    parts = {_NOT_NAME.sub("_", part): seconds for part, seconds in one.parts_s.items() if seconds > 0}
    summed = quantity(
        name, Formula(" + ".join(parts), "s", "a roofline of each operator, all layers together"), **parts
    )
    return replace(summed, value=one.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Speed:
    decode: PassTime
    tokens_per_s: Quantity


def _speed(machine: _Machine, requests: Requests, batch: int) -> _Speed:
    """Return a decode step at half of the output, and the output tokens of all devices.

    Each request is prefilled once, together with as many others as an engine takes into one pass; replicas of the
    attention part prefill different prompts at once.
    """
    at_once = requests.prefill_tokens // requests.prompt_tokens * machine.server.layout.dp
    together = min(max(at_once, machine.server.layout.dp), batch)
    prefill = _pass_time(machine, together, requests.prompt_tokens, requests.prompt_tokens)
    decode = _pass_time(machine, batch, 1, requests.prompt_tokens + (requests.output_tokens + 1) / 2)
    rate = quantity(
        "output tokens per second",
        TOKENS_PER_S,
        batch=batch,
        output_tokens=requests.output_tokens,
        prefill_s=prefill.seconds.scaled(1 / together),
        step_s=decode.seconds,
    )
    return _Speed(decode=decode, tokens_per_s=rate)


def _curve(machine: _Machine, requests: Requests, most: int) -> tuple[ServingPoint, ...]:
    """Return batches by doubling, and the largest that fits."""
    sizes = {1 << power for power in range(max(most, 1).bit_length())} | {max(most, 1)}
    points = []
    for batch in sorted(sizes):
        speed = _speed(machine, requests, batch)
        rate = speed.tokens_per_s.value.value
        points.append(ServingPoint(batch=batch, step_s=speed.decode.seconds.value, tokens_per_s=rate))
    return tuple(points)


def _pass_time(machine: _Machine, sequences: float, rows: int, context: float) -> PassTime:
    """Return what one pass takes: so many tokens of each sequence, which look at so many."""
    batch = ServedBatch(sequences=sequences, rows=rows, context=context)
    least = said = greatest = launches(machine.model) * machine.rates.launch_s
    parts, limits = {"launches": said}, dict.fromkeys(LIMITS, 0.0) | {"launch": said}
    for operator in pass_operators(machine.model, machine.server, batch):
        low, high, ruled_by = _operator_s(machine, operator)
        value = (high - machine.rates.overlap * (high - low)) * operator.count
        least, said, greatest = least + low * operator.count, said + value, greatest + high * operator.count
        parts[operator.name] = parts.get(operator.name, 0.0) + value
        limits[ruled_by] += value
    return PassTime(seconds=Range(said, min(least, said), max(greatest, said)), parts_s=parts, limits_s=limits)


def _operator_s(machine: _Machine, operator: Operator) -> tuple[float, float, str]:
    """Return the least and the greatest time of one operator, and what rules it."""
    if operator.message:
        layout = machine.server.layout
        seconds = machine.costs.seconds_along(operator.message, layout, operator.dimension, operator.message_bytes)
        return seconds, seconds, "communication"
    compute_s = operator.flops / (machine.attention_flops_per_s if operator.attention else machine.product_flops_per_s)
    moved = {
        "weights": operator.weight_bytes,
        "cache": operator.cache_bytes,
        "activations": operator.activation_bytes,
    }
    memory_s = sum(moved.values()) / (machine.memory_bytes_per_s * machine.rates.memory_share)
    ruled_by = "compute" if compute_s >= memory_s else max(moved, key=lambda name: moved[name])
    return max(compute_s, memory_s), compute_s + memory_s, ruled_by


def _product_flops_per_s(device: Device, dtype: str, rates: ServingRates) -> float:
    ceiling = find_ceiling(device.name, dtype)
    return device.peak(dtype) * (ceiling.share if ceiling else _UNMEASURED_CEILING) * rates.product_of_ceiling


def _attention_flops_per_s(device: Device, dtype: str, rates: ServingRates) -> float:
    in_16_bits = next((one for one in ("bf16", "fp16") if one in device.peak_flops), dtype)
    return _product_flops_per_s(device, in_16_bits, rates) * rates.attention_of_product


def _check(model: Architecture, requests: Requests, server: Server) -> None:
    """Refuse what cannot be served so.

    Raises:
        UsageError: With every complaint.
    """
    counts = {
        "prompt_tokens": requests.prompt_tokens,
        "output_tokens": requests.output_tokens,
        "prefill_tokens": requests.prefill_tokens,
        "batch": 1 if requests.batch is None else requests.batch,
        **{name: getattr(server.layout, name) for name in ("tp", "dp", "ep", "etp")},
    }
    found = [
        f"{name}: expected a positive whole number, found {value!r}"
        for name, value in counts.items()
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LARGEST
    ]
    found += [
        f"{name}: expected bytes of an element above 0 and up to {_WIDEST_BYTES}, found {getattr(server, name)!r}"
        for name in ("weight_bytes", "cache_bytes", "dispatch_bytes")
        if not 0 < getattr(server, name) <= _WIDEST_BYTES
    ]
    found = found or _of_layout(model, server)
    if found:
        msg = "; ".join(found)
        raise UsageError(msg)


def _of_layout(model: Architecture, server: Server) -> list[str]:
    layout = server.layout
    found = [
        f"{name}={getattr(layout, name)}: a server is described by tp, dp, ep and etp; leave it at 1"
        for name in ("pp", "cp", "vp")
        if getattr(layout, name) != 1
    ]
    if model.heads % layout.tp:
        found.append(f"tp={layout.tp} does not divide {model.heads} heads")
    if layout.ep > 1 and model.experts is None:
        found.append(f"ep={layout.ep}: the model has no experts")
    if model.experts is not None:
        if model.experts.count % layout.ep:
            found.append(f"ep={layout.ep} does not divide {model.experts.count} experts")
        if server.devices % (layout.ep * server.expert_parts):
            parts = f"ep={layout.ep} · etp={server.expert_parts}"
            found.append(f"{parts} does not divide tp · dp = {server.devices} devices")
    return found


def _known(device: Device, field_name: str) -> float:
    value: float | None = getattr(device, field_name)
    if value is None:
        msg = f"{device.name}: {field_name} is in no source of the device table; state it"
        raise UsageError(msg)
    return value
