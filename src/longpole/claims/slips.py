"""Slips that are made again and again, as a table: which figure, by which factor, and how it is then to be read.

A factor is a number (1000 for a unit of time), a degree of the statement itself (the devices, TP, the accumulation),
or something that the model or the device says (the share of active experts, the peak of another data type).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from longpole.claims.fields import FIELDS
from longpole.claims.figures import Figure
from longpole.claims.models import SIZES_B
from longpole.claims.words import shown, title_of
from longpole.costs.parameters import parameters
from longpole.hardware.devices import all_devices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from longpole.claims.evaluate import Evaluation

_GIB: Final = 1.073741824
_SAME_PEAK: Final = 0.002
_ALIKE_SHOWN: Final = 2
_FEW_FIELDS: Final = 3  # a contradiction of so few figures may need a slip in what rests on them too
_WHOLE: Final = 1e-6
_MODELS_APART: Final = 4.0  # nobody takes a model for one of four times its size
_MODELS_ALIKE: Final = 0.1
_USUAL_NODE: Final = 8.0  # devices of a node, where it is not stated
_TWO_IN_ONE: Final = ("MI250X", "TPUv4", "TPUv5p")  # frameworks see dies, slice names count cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """A figure that may have been meant otherwise.

    Attributes:
        field: Which.
        factor: What it has to be multiplied by.
        says: How it is to be read, as in "tokens/s is per device".
        cost: How far-fetched it is.
        figure: What it then is, where its own rounding falls away.
        alone: Whether it explains by itself or not at all: among many devices, one nearly always fits.
        searched: What was searched for, such as a size among many; the nearest one is kept.
    """

    field: str
    factor: float
    says: str
    cost: int = 1
    figure: Figure | None = None
    alone: bool = False
    searched: str = ""

    def apply(self, figures: Mapping[str, Figure]) -> dict[str, Figure]:
        """Return the figures as they would be."""
        return {**figures, self.field: self.figure or figures[self.field].scaled(self.factor)}


@dataclass(frozen=True, slots=True)
class _Row:
    """A slip of the table; in `says`, `{what}` is the figure, `{n}` the degree, `{then}` what it becomes."""

    fields: str
    by: float | str
    says: str
    cost: int = 1
    power: float = 1.0


_STEPS: Final = "step_s ideal_step_s comm_s baseline_step_s"
_RATES: Final = "tok_s seq_s baseline_tok_s"
_EACH: Final = "tok_s_gpu flops_gpu hw_flops_gpu"
_SHARES: Final = "mfu hfu"
_SIZES: Final = "message comm_bytes"
_HELD: Final = "message weights comm_bytes kv_token kv_cache"
_LINKS: Final = "link algbw busbw"
_COUNTED: Final = f"{_RATES} {_EACH} {_SHARES}"
_TABLE: Final[tuple[_Row, ...]] = (
    # Units of time
    _Row(_STEPS, 1e3, "the {what} of {text} is 1000 times as long (seconds written as ms)"),
    _Row(_STEPS, 1e-3, "the {what} of {text} is a thousandth of it (ms written as seconds)"),
    _Row("comm_s", 1e6, "the {what} is in seconds, not µs", 2),
    _Row("comm_s", 1e-6, "the {what} is in µs, not seconds", 2),
    _Row("time_s", 60.0, "the {what} is in minutes or hours, one step up", 2),
    _Row("time_s gpu_s", 24.0, "the {what} is in days, not hours"),
    _Row("time_s gpu_s", 1 / 24.0, "the {what} is in hours, not days"),
    # Per device, or of all
    _Row(_RATES, "gpus", "{what} is per device ({then} in all)"),
    _Row(_RATES, "nodes", "{what} is per node", 2),
    _Row(_RATES, "dp", "{what} is per replica (DP {n})"),
    _Row(_EACH, "gpus", "{what} is of all devices, not of one", 1, -1),
    _Row(_EACH, "per_node", "{what} is per node of {n}, not per device", 2, -1),
    _Row("flops_total", "gpus", "{what} is of one device, not of all"),
    _Row("gpu_s", "gpus", "the {what} is the time of one device, not of all", 2),
    _Row("time_s", "gpus", "the {what} is device time of all, not the time", 2, -1),
    _Row(_SHARES, "gpus", "{what} was taken against the peak of one device, not of {n}", 1, -1),
    _Row(_SHARES, "gpus", "{what} was taken for one device's tokens against the peak of {n}", 2),
    _Row("gpus", "per_node", "the devices are nodes of {n}", 2),
    # Counted on several ranks, or on too few
    _Row(_COUNTED, "cp", "{what} counts the same tokens on each of {n} CP ranks", 1, -1),
    _Row(_COUNTED, "tp", "{what} counts the same tokens on each of {n} TP ranks", 1, -1),
    _Row(_COUNTED, "pp", "{what} counts the same tokens on each of {n} PP ranks", 1, -1),
    _Row(_COUNTED, "replica", "{what} counts the same tokens on each of {n} ranks of a replica", 1, -1),
    _Row(_COUNTED, "replica", "{what} leaves out all ranks of a replica but one ({n})", 2),
    _Row(_COUNTED, "ga", "{what} counts one of {n} micro-batches of a step (accumulation)"),
    _Row(_COUNTED, "ga", "{what} counts every token {n} times (accumulation)", 2, -1),
    # What is counted
    _Row(_SHARES, 2.0, "{what} was taken against the sparse peak, twice the dense one"),
    _Row(f"{_SHARES} flops_gpu hw_flops_gpu", 3.0, "{what} counts the forward pass only", 2),
    _Row("mfu flops_gpu", 0.75, "{what} counts full recomputation (4/3): it is that of the hardware"),
    _Row("hfu hw_flops_gpu", 4 / 3, "{what} leaves full recomputation out (4/3)"),
    _Row("flops_gpu hw_flops_gpu", 2.0, "{what} counts a multiply-add as one", 2),
    _Row("flops_gpu hw_flops_gpu", 0.5, "{what} counts a multiply-add as two twice over", 2),
    _Row("flops_token forward_flops_token flops_step", 3.0, "the {what} are those of the forward pass, a third"),
    _Row("flops_token forward_flops_token flops_step", 1.5, "the {what} are those of the backward pass, two thirds", 2),
    _Row("forward_flops_token", 1 / 3, "the {what} are those of forward and backward pass"),
    _Row("flops_token forward_flops_token flops_step", 2.0, "the {what} count a multiply-add as one"),
    _Row("flops_token forward_flops_token flops_step", 0.5, "the {what} count a multiply-add twice too often", 2),
    _Row("flops_token flops_step flops_run", 0.75, "the {what} include full recomputation (4/3)"),
    _Row("flops_token flops_step flops_run", 4 / 3, "the {what} leave full recomputation out (4/3)"),
    _Row("flops_run", 3.0, "the {what} are those of the forward pass, a third"),
    _Row("counted_flops_token counted_hw_flops_token", 4 / 3, "FLOPs count full recomputation (4/3)"),
    _Row("counted_flops_token counted_hw_flops_token", 1 / 3, "FLOPs count the forward pass only", 2),
    _Row("counted_flops_token counted_hw_flops_token", 0.5, "FLOPs count a multiply-add as one", 2),
    # Prefixes
    _Row("flops_gpu hw_flops_gpu flops_total flops_token flops_step flops_run tokens steps", 1e3,
         "the {what} is off by a prefix (1000)", 2),
    _Row("flops_gpu hw_flops_gpu flops_total flops_token flops_step flops_run tokens steps", 1e-3,
         "the {what} is off by a prefix (1000)", 2),
    _Row(f"{_RATES} gbs tokens_step", 1e3, "{what} is in thousands", 2),
    # Bytes
    _Row(f"{_SIZES} {_LINKS}", 8.0, "the {what} is in bytes, not bits (8)"),
    _Row(f"{_SIZES} {_LINKS}", 0.125, "the {what} is in bits, not bytes (8)"),
    _Row(f"{_SIZES} {_LINKS} memory weights kv_token kv_cache", _GIB, "the {what} is in powers of 1024 (GiB)"),
    _Row(f"{_SIZES} {_LINKS} memory weights kv_token kv_cache", 1 / _GIB, "the {what} is in powers of 1000, not 1024"),
    _Row(f"{_SIZES} kv_token kv_cache", 1.048576, "the {what} is in powers of 1024 (MiB)"),
    _Row(f"{_SIZES} kv_token kv_cache", 1.024, "the {what} is in powers of 1024 (KiB)"),
    _Row(f"{_SIZES} {_LINKS} weights memory kv_token kv_cache", 1e3, "the {what} is off by a prefix (1000)", 2),
    _Row(f"{_SIZES} {_LINKS} weights memory kv_token kv_cache", 1e-3, "the {what} is off by a prefix (1000)", 2),
    _Row(f"{_LINKS} memory_rate", 0.5, "the {what} is that of both directions together"),
    _Row(_LINKS, 2.0, "the {what} is that of one direction", 2),
    _Row(_HELD, 2.0, "the {what} counts half the bytes of an element (8 bits for 16)"),
    _Row(_HELD, 0.5, "the {what} counts twice the bytes of an element (32 bits for 16)"),
    # Communication
    _Row("comm_s", "bus_factor", "the {n} times that a ring sends, 2(n-1)/n, were left out"),
    _Row("comm_s", 2.0, "the backward pass was left out"),
    _Row("comm_s", "twice_bus_factor", "the ring's {n_half} and the backward pass were left out", 2),
    _Row("comm_s", "pp", "PP {n} divides the layers, which was left out", 1, -1),
    _Row("collectives", 2.0, "the {what} are those of the forward pass only"),
    _Row("busbw", "bus_factor", "the {what} is the algorithm bandwidth (factor {n})"),
    _Row("algbw", "bus_factor", "the {what} is the bus bandwidth (factor {n})", 1, -1),
    # The batch
    _Row("gbs tokens_step", "dp", "the {what} is per replica (factor {n})"),
    _Row("gbs tokens_step", "gpus", "the {what} is per device (factor {n})"),
    _Row("gbs tokens_step", "ga", "the {what} is of one micro-batch of each step (factor {n})"),
    _Row("mbs batch_per_dp", "dp", "the {what} is that of all replicas", 1, -1),
    _Row("gbs", "seq", "the {what} is in tokens, not in sequences", 1, -1),
    _Row("seq", "cp", "the {what} is that of one context-parallel rank"),
    _Row("seq", "cp", "the {what} is divided by CP already", 2, -1),
    _Row("ga", "dp", "the {what} is that of all replicas together", 2, -1),
    # Scaling
    _Row("efficiency", 0.01, "the {what} is a percentage, not a fraction"),
)  # fmt: skip
_SPOKEN: Final = {
    "tok_s": "tokens/s", "baseline_tok_s": "tokens/s", "tok_s_gpu": "tokens/s", "seq_s": "sequences/s",
    "flops_gpu": "FLOP/s", "hw_flops_gpu": "FLOP/s", "flops_total": "FLOP/s", "mfu": "MFU", "hfu": "HFU",
}  # fmt: skip


def slips_of(evaluation: Evaluation) -> list[Slip]:
    """Return every slip that could touch what is wrong, those that are alike put together."""
    wrong = {name for check in evaluation.failed for name in check.residual.powers}
    wrong |= {name for one in evaluation.breaches if one.ratio is not None for name in one.ratio.powers}
    if len(wrong) <= _FEW_FIELDS:
        held = [check.residual.powers.keys() for check in evaluation.solution.checks if check.level is not None]
        wrong |= {name for powers in held if wrong & powers for name in powers}
    found: dict[tuple[str, float], list[Slip]] = {}
    for slip in _all(evaluation):
        key = (slip.field, round(math.log(slip.factor), 6))
        if slip.field in wrong and abs(key[1]) > _WHOLE and _stays_count(slip, evaluation.figures):
            found.setdefault(key, []).append(slip)
    return [_merged(alike) for alike in found.values()]


def _all(evaluation: Evaluation) -> Iterable[Slip]:
    yield from _of_table(evaluation)
    yield from _of_share(evaluation)
    yield from _of_peak(evaluation)
    yield from _of_experts(evaluation)
    yield from _of_size(evaluation)
    yield from _of_growth(evaluation)


def _stays_count(slip: Slip, figures: Mapping[str, Figure]) -> bool:
    """Tell whether a counted figure stays a whole number of at least 1."""
    if slip.field not in FIELDS or not FIELDS[slip.field].exact:
        return True
    value = figures[slip.field].value * slip.factor
    return value > 1 - _WHOLE and abs(value - round(value)) < _WHOLE * max(value, 1.0)


def _merged(alike: list[Slip]) -> Slip:
    """Put slips together that multiply one figure by one factor: which of them it was cannot be told."""
    ordered = sorted(alike, key=lambda one: one.cost)
    says = list(dict.fromkeys(one.says for one in ordered))[:_ALIKE_SHOWN]
    return replace(ordered[0], says=", or ".join(says))


def _of_table(evaluation: Evaluation) -> Iterator[Slip]:
    degrees = _degrees(evaluation)
    growth_only = not evaluation.failed and all(one.code != "R7" for one in evaluation.breaches)
    for row in _TABLE:
        degree = degrees.get(row.by, 0.0) if isinstance(row.by, str) else row.by
        if degree <= 0 or (isinstance(row.by, str) and degree == 1.0) or (growth_only and row.fields == "gpus"):
            continue
        for name in row.fields.split():
            if name in evaluation.figures:
                factor = degree**row.power
                says = _said(row, name, degree, factor, evaluation)
                yield Slip(field=name, factor=factor, says=says, cost=row.cost, alone=row.by == "per_node")


def _said(row: _Row, name: str, degree: float, factor: float, evaluation: Evaluation) -> str:
    figure = evaluation.figures[name]
    return row.says.format(
        what=_SPOKEN.get(name, title_of(name)),
        text=shown(name, figure.text, figure.value),
        n=f"{degree:.4g}",
        n_half=f"{degree / 2:.4g}",
        then=f"{figure.value * factor:,.5g}" if figure.value * factor < 1e5 else f"{figure.value * factor:,.0f}",
    )


def _degrees(evaluation: Evaluation) -> dict[str, float]:
    value = evaluation.solution.value
    degrees = {
        name: value(name) or 0.0 for name in ("gpus", "dp", "cp", "tp", "pp", "ga", "seq", "bus_factor", "nodes")
    }
    degrees["per_node"] = value("gpus_per_node") or _USUAL_NODE
    if not degrees["nodes"] and degrees["gpus"] > degrees["per_node"] and degrees["gpus"] % degrees["per_node"] == 0:
        degrees["nodes"] = degrees["gpus"] / degrees["per_node"]
    degrees["replica"] = max(degrees["cp"], 1.0) * max(degrees["tp"], 1.0) * max(degrees["pp"], 1.0)
    degrees["twice_bus_factor"] = 2 * degrees["bus_factor"]
    return degrees


def _of_share(evaluation: Evaluation) -> Iterator[Slip]:
    """Fractions for percentages, where neither was written out."""
    for name in ("mfu", "hfu"):
        figure = evaluation.figures.get(name)
        if figure is not None and "%" not in figure.text:
            yield Slip(field=name, factor=100.0, says=f"{name.upper()} is a fraction, not a percentage")
            yield Slip(field=name, factor=0.01, says=f"{name.upper()} is a percentage, not a fraction")


def _of_peak(evaluation: Evaluation) -> Iterator[Slip]:
    """Try the peak of another data type or device, a sparse one, and that of all devices."""
    figure = evaluation.figures.get("peak")
    if figure is None:
        return
    peak, devices = figure.value, evaluation.solution.value("gpus") or 1.0
    if not _is_dense_peak(peak):
        yield Slip(field="peak", factor=0.5, says="the peak is the sparse figure, twice the dense one")
        yield Slip(field="peak", factor=2.0, says="the peak is half of the dense one")
        yield Slip(field="peak", factor=1e3, says="the peak is off by a prefix (1000)", cost=2)
        yield Slip(field="peak", factor=1e-3, says="the peak is off by a prefix (1000)", cost=2)
        yield Slip(field="peak", factor=1 / devices, says="the peak is that of all devices, not of one")
    device = evaluation.reading.statement.device
    if device is not None and device.name == "MI250X":
        yield Slip(field="peak", factor=0.5, says="a device is half of a MI250X, as frameworks count")
    for dtype, other in (device.peak_flops if device is not None else {}).items():
        if dtype == "int8":
            continue
        says = f"the peak is that of {dtype} ({other / 1e12:g} TFLOP/s)"
        yield Slip(field="peak", factor=other / peak, says=says)
    for part in all_devices():
        for dtype in ("bf16", "fp16"):
            if dtype in part.peak_flops:
                other = part.peak_flops[dtype]
                says = f"the peak is that of {part.name} ({other / 1e12:g} TFLOP/s)"
                exact = Figure.exactly(other)
                yield Slip(field="peak", factor=other / peak, says=says, cost=3, figure=exact, alone=True)


def _is_dense_peak(peak: float) -> bool:
    """Tell whether a device of the table has it for 16-bit numbers."""
    peaks = (part.peak_flops.get(dtype) for part in all_devices() for dtype in ("bf16", "fp16"))
    return any(other is not None and abs(peak / other - 1) < _SAME_PEAK for other in peaks)


def _of_experts(evaluation: Evaluation) -> Iterator[Slip]:
    """All parameters of a mixture of experts, where a token visits some of them; all heads, where keys have fewer."""
    model, figures = evaluation.reading.statement.model, evaluation.figures
    for share in _active_shares(evaluation):
        for name in ("mfu", "hfu", "flops_gpu", "flops_token"):
            if name in figures:
                says = f"the {title_of(name)} counts all experts, not those that a token visits"
                yield Slip(field=name, factor=share, says=says)
        if "active_params" in figures:
            says = "all parameters were counted, not the active ones"
            yield Slip(field="active_params", factor=1 / share, says=says)
    if model is not None and model.latent is None and model.heads != model.key_value_heads:
        says = f"the cache counts all {model.heads} heads, not the {model.key_value_heads} of keys and values"
        for name in ("kv_token", "kv_cache"):
            if name in figures:
                yield Slip(field=name, factor=model.key_value_heads / model.heads, says=says)


def _active_shares(evaluation: Evaluation) -> set[float]:
    model, figures = evaluation.reading.statement.model, evaluation.figures
    shares = set()
    if "params" in figures and "active_params" in figures:
        shares.add(figures["active_params"].value / figures["params"].value)
    if model is not None and model.experts is not None:
        held = parameters(model)
        shares.add(held.active / held.total)
        if "counted_flops_token" in figures:
            shares.add(figures["counted_flops_token"].value / (6.0 * held.total))
    return shares


def _of_size(evaluation: Evaluation) -> Iterator[Slip]:
    """Another size of model, among those that are published."""
    name = "active_params" if "active_params" in evaluation.figures else "params"
    figure = evaluation.figures.get(name)
    if figure is None:
        return
    for size in SIZES_B:
        factor = size * 1e9 / figure.value
        if _MODELS_ALIKE < abs(math.log(factor)) < math.log(_MODELS_APART):
            says = f"the model has {f'{size:g}B' if size >= 1 else f'{1e3 * size:g}M'} parameters"
            exact = Figure.exactly(size * 1e9, says.split()[-2])
            yield Slip(field=name, factor=factor, says=says, cost=3, figure=exact, searched="size")


def _of_growth(evaluation: Evaluation) -> Iterator[Slip]:
    """Try a gain or time saved for a speed-up, and dies or cores for devices."""
    figures, device = evaluation.figures, evaluation.reading.statement.device
    if "gpus" in figures and device is not None and device.name in _TWO_IN_ONE:
        yield Slip(field="gpus", factor=0.5, says=f"each {device.name} counts as two devices")
        yield Slip(field="gpus", factor=2.0, says=f"two halves of a {device.name} count as one device")
    speedup = figures["speedup"].value if "speedup" in figures else 0.0
    if speedup > 0:
        says = "it is what was gained (+100 % is twice as fast)"
        yield Slip(field="speedup", factor=(1 + speedup) / speedup, says=says)
    if 1 < speedup < 2:
        yield Slip(field="speedup", factor=1 / (2 - speedup) / speedup, says="it is the time saved, not the speed-up")
    elif 0 < speedup < 1:
        yield Slip(field="speedup", factor=1 / (1 - speedup) / speedup, says="it is the time saved, not the speed-up")
