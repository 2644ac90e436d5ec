"""What would make a contradiction vanish: one slip of a known kind, or two.

Every contradiction is a product that should be 1. A slip multiplies one of its figures by a known factor: 1000 for a
wrong unit of time, the number of devices for a rate that is per device, 2 for a sparse peak. So each slip is tried on
each figure, then pairs of them, and those are kept under which every relation of the statement holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from longpole.costs.claims.algebra import level_of
from longpole.costs.claims.evaluate import is_apart
from longpole.costs.claims.fields import FIELDS
from longpole.costs.claims.figures import CUT, Figure
from longpole.costs.claims.models import SIZES_B
from longpole.costs.parameters import parameters
from longpole.hardware.devices import all_devices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.costs.claims.algebra import Check
    from longpole.costs.claims.bounds import Breach
    from longpole.costs.claims.evaluate import Evaluation

SHOWN: Final = 4
_PAIRS_MOST: Final = 20_000
_GIB: Final = 1.073741824
_LEAST_SHARE: Final = 0.005  # a utilisation below it explains nothing
_SAME_PEAK: Final = 0.002
_MODELS_APART: Final = 4.0  # nobody takes a model for one of four times its size
_TIMES: Final = ("step_s", "ideal_step_s", "comm_s", "time_s", "baseline_step_s", "gpu_s")
_TWO_IN_ONE: Final = ("MI250X", "TPUv4", "TPUv5p")  # frameworks see dies, slice names count cores
_SIZES: Final = ("message", "comm_bytes", "memory", "weights")
_RATES: Final = ("link", "algbw", "busbw", "memory_rate")


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
    """

    field: str
    factor: float
    says: str
    cost: int
    figure: Figure | None = None
    alone: bool = False

    def apply(self, figures: Mapping[str, Figure]) -> dict[str, Figure]:
        """Return the figures as they would be."""
        return {**figures, self.field: self.figure or figures[self.field].scaled(self.factor)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Slips under which everything holds.

    Attributes:
        slips: One, or two.
        distance: How far the worst residual is from 1 then, as a logarithm.
    """

    slips: tuple[Slip, ...]
    distance: float

    @property
    def cost(self) -> int:
        """How far-fetched it is, both together."""
        return sum(one.cost for one in self.slips)

    @property
    def says(self) -> str:
        """How the statement is to be read."""
        return " and ".join(one.says for one in self.slips)


def explain(evaluation: Evaluation) -> tuple[list[Explanation], int]:
    """Return the simplest slips that would make a statement hold, and how many were tried.

    Where no one slip (or pair) repairs everything, those that repair the first contradiction are returned.
    """
    slips = list(_slips(evaluation))
    every = (*evaluation.failed,), (*evaluation.breaches,)
    found, tried = _search(evaluation, slips, *every)
    several = len(evaluation.failed) + len(evaluation.breaches) > 1
    if not found and several:
        for check in evaluation.failed:
            found, more = _search(evaluation, slips, (check,), ())
            tried += more
            if found:
                break
    return found[:SHOWN], tried


def _search(
    evaluation: Evaluation, slips: Sequence[Slip], failed: tuple[Check, ...], breached: tuple[Breach, ...]
) -> tuple[list[Explanation], int]:
    if not failed and all(one.ratio is None for one in breached):
        return [], 0
    repair = _Repair(evaluation, failed, breached)
    singles = [found for slip in slips if (found := repair.under((slip,))) is not None]
    tried = len(slips)
    if not singles and not (breached and not failed):
        pairs = list(_pairs(slips))
        tried += len(pairs)
        singles = _nearest(found for pair in pairs if (found := repair.under(pair)) is not None)
    return _distinct(sorted(singles, key=lambda one: (one.cost, one.distance))), tried


def _pairs(slips: Sequence[Slip]) -> Iterable[tuple[Slip, Slip]]:
    number = 0
    for one, other in combinations(slips, 2):
        if one.field != other.field and not (one.alone or other.alone) and number < _PAIRS_MOST:
            number += 1
            yield one, other


def _nearest(found: Iterable[Explanation]) -> list[Explanation]:
    """Keep of explanations that differ only in what was searched for (a size) the one that fits best."""
    best: dict[tuple[str, ...], Explanation] = {}
    for one in found:
        key = tuple(slip.says if slip.figure is None else slip.field for slip in one.slips)
        if key not in best or one.distance < best[key].distance:
            best[key] = one
    return list(best.values())


def _distinct(found: Iterable[Explanation]) -> list[Explanation]:
    return list({one.says: one for one in reversed(list(found))}.values())[::-1]


class _Repair:
    """Tells whether slips make a statement hold."""

    def __init__(self, evaluation: Evaluation, failed: tuple[Check, ...], breached: tuple[Breach, ...]) -> None:
        self.figures = evaluation.figures
        self.failed = failed
        self.held = [check for check in evaluation.solution.checks if check not in evaluation.failed]
        self.breached = [one for one in breached if one.ratio is not None]
        self.known = evaluation.solution.known

    def under(self, slips: tuple[Slip, ...]) -> Explanation | None:
        """Return the explanation, None where something does not hold under it."""
        fields = {slip.field for slip in slips}
        if not all(fields & check.residual.powers.keys() for check in self.failed):
            return None
        figures: Mapping[str, Figure] = self.figures
        for slip in slips:
            figures = slip.apply(figures)
        distance = 0.0
        for check in self.failed:
            if level_of(check.residual, figures) is None:
                return None
            distance = max(distance, abs(math.log(max(check.residual.value(figures), 1e-300))))
        touched = [check for check in self.held if fields & check.residual.powers.keys()]
        if any(
            level_of(check.residual, figures) is None and not is_apart(check.residual, dict(figures))
            for check in touched
        ):
            return None
        if not self._within_limits(figures):
            return None
        return Explanation(slips=slips, distance=distance)

    def _within_limits(self, figures: Mapping[str, Figure]) -> bool:
        for one in self.breached:
            assert one.ratio is not None
            low, high = one.ratio.ends(figures, CUT)
            if low > 1.0 or (one.code == "R7" and high < _LEAST_SHARE):
                return False
        shares = [self.known[name] for name in ("mfu", "hfu") if name in self.known]
        return all(term.ends(figures, CUT)[0] <= 1.0 for term in shares)


def _slips(evaluation: Evaluation) -> Iterable[Slip]:
    """Return every slip that could touch what is wrong, single ones that are alike told once."""
    wrong = {name for check in evaluation.failed for name in check.residual.powers}
    wrong |= {name for one in evaluation.breaches if one.ratio is not None for name in one.ratio.powers}
    value = evaluation.solution.value
    seen: set[tuple[str, float]] = set()
    for make in (_of_time, _of_rate, _of_share, _of_flops, _of_peak, _of_model, _of_batch, _of_bytes, _of_devices):
        for slip in make(evaluation, value):
            key = (slip.field, round(math.log(slip.factor), 6)) if slip.factor > 0 else (slip.field, 0.0)
            if slip.field in wrong and abs(key[1]) > 1e-6 and key not in seen:
                seen.add(key)
                yield slip


def _what(name: str) -> str:
    return FIELDS[name].what if name in FIELDS else name


def _slip(field: str, factor: float, says: str, cost: int = 1) -> Slip:
    return Slip(field=field, factor=factor, says=says, cost=cost)


def _of_time(evaluation, value):  # type: ignore[no-untyped-def]
    for name in _TIMES:
        if name in evaluation.figures:
            what, text = _what(name), evaluation.figures[name].text
            yield _slip(name, 1e3, f"the {what} of {text} is 1000 times as long (seconds written as ms)")
            yield _slip(name, 1e-3, f"the {what} of {text} is a thousandth of it (ms written as seconds)")
            yield _slip(name, 60.0, f"the {what} is in minutes", 2)
            yield _slip(name, 1 / 60.0, f"the {what} is in seconds, not minutes", 2)
            yield _slip(name, 24.0, f"the {what} is in days, not hours", 2)
            yield _slip(name, 1 / 24.0, f"the {what} is in hours, not days", 2)
            yield _slip(name, 1e6, f"the {what} is in seconds, not µs", 2)
            yield _slip(name, 1e-6, f"the {what} is in µs, not seconds", 2)
    if "comm_s" in evaluation.figures:
        factor = value("bus_factor")
        if factor:
            yield _slip("comm_s", factor, f"the {factor:.4g} that a ring sends, 2(n-1)/n, was left out")
            yield _slip("comm_s", 2 * factor, f"the ring factor {factor:.4g} and the backward pass were left out")
        yield _slip("comm_s", 2.0, "the backward pass was left out")
        stages = value("pp")
        if stages and stages > 1:
            yield _slip("comm_s", 1 / stages, f"PP {stages:g} divides the layers, which was left out")
    nodes = value("gpus")
    for name in ("gpu_s", "time_s"):
        if nodes and name in evaluation.figures:
            other = "the time of one device, not of all" if name == "gpu_s" else "device time of all, not the time"
            yield _slip(name, nodes if name == "gpu_s" else 1 / nodes, f"the {_what(name)} is {other}", 2)


def _of_rate(evaluation, value):  # type: ignore[no-untyped-def]
    devices, per_node = value("gpus"), value("gpus_per_node") or 8.0
    for name in ("tok_s", "seq_s", "baseline_tok_s"):
        if name not in evaluation.figures:
            continue
        unit = "sequences/s" if name == "seq_s" else "tokens/s"
        if devices and devices > 1:
            total = evaluation.figures[name].value * devices
            yield _slip(name, devices, f"{unit} is per device ({total:,.5g} in all)")
            if devices > per_node and devices % per_node == 0:
                yield _slip(name, devices / per_node, f"{unit} is per node of {per_node:g}", 2)
        yield from _counted_often(name, unit, value)
        yield _slip(name, 1e3, f"{unit} is in thousands", 2)
        replicas = value("dp")
        if replicas and replicas > 1:
            yield _slip(name, replicas, f"{unit} is per replica (DP {replicas:g})")
    for name in ("tok_s_gpu",):
        if name not in evaluation.figures:
            continue
        if devices and devices > 1:
            yield _slip(name, 1 / devices, "tokens/s is of all devices, not of one")
            if devices > per_node:
                yield _slip(name, 1 / per_node, f"tokens/s is per node of {per_node:g}, not per device", 2)
        yield from _counted_often(name, "tokens/s", value)
    for name in ("flops_gpu", "hw_flops_gpu"):
        if name in evaluation.figures and devices and devices > 1:
            yield _slip(name, 1 / devices, "FLOP/s is of all devices, not of one")
            yield from _counted_often(name, "FLOP/s", value)
    for name in ("flops_total",):
        if name in evaluation.figures and devices:
            yield _slip(name, devices, "FLOP/s is of one device, not of all")
            yield _slip(name, 1e3, "FLOP/s is off by a prefix (1000)", 2)
            yield _slip(name, 1e-3, "FLOP/s is off by a prefix (1000)", 2)


def _counted_often(name, unit, value):  # type: ignore[no-untyped-def]
    """Tokens that several ranks hold, counted on each of them."""
    degrees = {key: value(key) or 1.0 for key in ("cp", "tp", "pp", "ga")}
    for key in ("cp", "tp", "pp"):
        if degrees[key] > 1:
            yield _slip(name, 1 / degrees[key], f"{unit} counts the same tokens on each of {degrees[key]:g} {key.upper()} ranks")
    replica = degrees["cp"] * degrees["tp"] * degrees["pp"]
    if replica > max(degrees["cp"], degrees["tp"], degrees["pp"]):
        yield _slip(name, 1 / replica, f"{unit} counts the same tokens on each of {replica:g} ranks of a replica")
        yield _slip(name, replica, f"{unit} leaves out all ranks of a replica but one ({replica:g})", 2)
    if degrees["ga"] > 1:
        yield _slip(name, degrees["ga"], f"{unit} counts one of {degrees['ga']:g} micro-batches of a step (accumulation)")
        yield _slip(name, 1 / degrees["ga"], f"{unit} counts every token {degrees['ga']:g} times (accumulation)", 2)


def _of_share(evaluation, value):  # type: ignore[no-untyped-def]
    devices = value("gpus")
    for name in ("mfu", "hfu"):
        if name not in evaluation.figures:
            continue
        title = name.upper()
        if devices and devices > 1:
            yield _slip(name, 1 / devices, f"{title} was taken against the peak of one device, not of {devices:g}")
            yield _slip(name, devices, f"{title} was taken for one device's tokens against the peak of {devices:g}", 2)
        if "%" not in evaluation.figures[name].text:
            yield _slip(name, 100.0, f"{title} is a fraction, not a percentage")
            yield _slip(name, 0.01, f"{title} is a percentage, not a fraction")
        yield from _counted_often(name, title, value)
        yield _slip(name, 2.0, f"{title} was taken against the sparse peak, twice the dense one")
        yield _slip(name, 3.0, f"{title} counts the forward pass only", 2)
        if name == "mfu":
            yield _slip(name, 0.75, "it is HFU with full recomputation (4/3 of MFU), not MFU")
        else:
            yield _slip(name, 4 / 3, "it is MFU, not HFU with full recomputation")
    if "efficiency" in evaluation.figures:
        yield _slip("efficiency", 0.01, "the efficiency is a percentage, not a fraction")


def _of_flops(evaluation, value):  # type: ignore[no-untyped-def]
    del value
    for name in ("flops_token", "forward_flops_token", "flops_step"):
        if name not in evaluation.figures:
            continue
        what = _what(name)
        yield _slip(name, 3.0, f"the {what} are those of the forward pass, a third")
        yield _slip(name, 1.5, f"the {what} are those of the backward pass, two thirds", 2)
        yield _slip(name, 1 / 3, f"the {what} are three times those that are meant", 2)
        yield _slip(name, 2.0, f"the {what} count a multiply-add as one")
        yield _slip(name, 0.5, f"the {what} count a multiply-add twice too often", 2)
        yield _slip(name, 0.75, f"the {what} include full recomputation (4/3)")
        yield _slip(name, 4 / 3, f"the {what} leave full recomputation out (4/3)")
        yield _slip(name, 1e3, f"the {what} are off by a prefix (1000)", 2)
        yield _slip(name, 1e-3, f"the {what} are off by a prefix (1000)", 2)
    for name in ("flops_gpu", "hw_flops_gpu"):
        if name in evaluation.figures:
            yield _slip(name, 0.75, "FLOP/s count full recomputation (4/3)")
            yield _slip(name, 2.0, "FLOP/s count a multiply-add as one", 2)
            yield _slip(name, 0.5, "FLOP/s count a multiply-add as two twice over", 2)
            yield _slip(name, 3.0, "FLOP/s count the forward pass only", 2)
            yield _slip(name, 1e3, "FLOP/s is off by a prefix (1000)", 2)
            yield _slip(name, 1e-3, "FLOP/s is off by a prefix (1000)", 2)


def _of_peak(evaluation, value):  # type: ignore[no-untyped-def]
    if "peak" not in evaluation.figures:
        return
    peak = evaluation.figures["peak"].value
    devices = value("gpus")
    if not _is_dense_peak(peak):
        yield _slip("peak", 0.5, "the peak is the sparse figure, twice the dense one")
        yield _slip("peak", 2.0, "the peak is half of the dense one")
        yield _slip("peak", 1e3, "the peak is off by a prefix (1000)", 2)
        yield _slip("peak", 1e-3, "the peak is off by a prefix (1000)", 2)
        if devices and devices > 1:
            yield _slip("peak", 1 / devices, "the peak is that of all devices, not of one")
    device = evaluation.reading.statement.device
    if device is not None:
        for dtype, other in device.peak_flops.items():
            yield _slip("peak", other / peak, f"the peak is that of {dtype} ({other / 1e12:g} TFLOP/s)")
    for part in all_devices():
        for dtype in ("bf16", "fp16"):
            if dtype in part.peak_flops:
                other = part.peak_flops[dtype]
                says = f"the peak is that of {part.name} ({other / 1e12:g} TFLOP/s)"
                figure = Figure.exactly(other)
                yield Slip(field="peak", factor=other / peak, says=says, cost=3, figure=figure, alone=True)


def _is_dense_peak(peak: float) -> bool:
    """Tell whether a device of the table has it for 16-bit numbers."""
    peaks = (part.peak_flops.get(dtype) for part in all_devices() for dtype in ("bf16", "fp16"))
    return any(other is not None and abs(peak / other - 1) < _SAME_PEAK for other in peaks)


def _of_model(evaluation, value):  # type: ignore[no-untyped-def]
    statement = evaluation.reading.statement
    figures = evaluation.figures
    key = "active_params" if "active_params" in figures else "params"
    if statement.model is not None and statement.model.experts is not None and "counted_flops_token" in figures:
        held = parameters(statement.model)
        yield _slip(
            "counted_flops_token", held.total / held.active, "all parameters were counted, not the active ones"
        )
    if "params" in figures and "active_params" in figures:
        ratio = figures["params"].value / figures["active_params"].value
        yield _slip("active_params", ratio, "all parameters were counted, not the active ones")
    counted = [name for name in ("counted_flops_token", "counted_hw_flops_token") if name in figures]
    for name in counted:
        yield _slip(name, 0.5, "FLOPs count a multiply-add as one", 2)
        yield _slip(name, 1 / 3, "FLOPs count the forward pass only", 2)
        yield _slip(name, 4 / 3, "FLOPs count full recomputation (4/3)")
        yield _slip(name, 2.0, "FLOPs count a multiply-add twice too often", 3)
    if key in figures:
        for size in SIZES_B:
            factor = size * 1e9 / figures[key].value
            if 0.1 < abs(math.log(factor)) < math.log(_MODELS_APART):
                says = f"the model has {_size(size)} parameters"
                yield Slip(field=key, factor=factor, says=says, cost=3, figure=Figure.exactly(size * 1e9))
    del value


def _size(size_b: float) -> str:
    return f"{size_b:g}B" if size_b >= 1 else f"{1e3 * size_b:g}M"


def _of_batch(evaluation, value):  # type: ignore[no-untyped-def]
    degrees = {key: value(key) or 1.0 for key in ("dp", "ga", "gpus", "mbs", "tp", "pp", "cp")}
    sequence = value("seq")
    for name in ("gbs", "tokens_step", "batch_per_dp", "mbs"):
        if name not in evaluation.figures:
            continue
        what = _what(name)
        for key, of in (("dp", "per replica"), ("gpus", "per device"), ("ga", "of one micro-batch of each step")):
            if degrees[key] > 1 and name in ("gbs", "tokens_step"):
                yield _slip(name, degrees[key], f"the {what} is {of} (factor {degrees[key]:g})")
        if degrees["dp"] > 1 and name in ("mbs", "batch_per_dp"):
            yield _slip(name, 1 / degrees["dp"], f"the {what} is that of all replicas")
        if sequence and name == "gbs":
            yield _slip(name, 1 / sequence, "the global batch is in tokens, not in sequences")
        yield _slip(name, 1e3, f"the {what} is in thousands", 2)
    if "ga" in evaluation.figures:
        for key in ("dp", "pp", "tp", "cp"):
            if degrees[key] > 1:
                yield _slip("ga", degrees[key], f"accumulation was divided by {key.upper()} {degrees[key]:g} too often", 2)
                yield _slip("ga", 1 / degrees[key], f"accumulation leaves {key.upper()} {degrees[key]:g} out", 2)
    for name in ("tokens", "steps"):
        if name in evaluation.figures:
            yield _slip(name, 1e3, f"{_what(name)} are off by a prefix (1000)", 2)
            yield _slip(name, 1e-3, f"{_what(name)} are off by a prefix (1000)", 2)
    if "seq" in evaluation.figures and degrees["cp"] > 1:
        yield _slip("seq", degrees["cp"], "the sequence is that of one context-parallel rank")
        yield _slip("seq", 1 / degrees["cp"], "the sequence is divided by CP already", 2)


def _of_bytes(evaluation, value):  # type: ignore[no-untyped-def]
    for name in (*_SIZES, *_RATES):
        if name not in evaluation.figures:
            continue
        what = _what(name)
        yield _slip(name, 8.0, f"the {what} is in bytes, not bits (8)")
        yield _slip(name, 0.125, f"the {what} is in bits, not bytes (8)")
        yield _slip(name, _GIB, f"the {what} is in powers of 1024 (GiB)")
        yield _slip(name, 1 / _GIB, f"the {what} is in powers of 1000, not 1024")
        yield _slip(name, 1e3, f"the {what} is off by a prefix (1000)", 2)
        yield _slip(name, 1e-3, f"the {what} is off by a prefix (1000)", 2)
    for name in _RATES:
        if name in evaluation.figures:
            yield _slip(name, 0.5, f"the {_what(name)} is that of both directions together")
            yield _slip(name, 2.0, f"the {_what(name)} is that of one direction", 2)
    factor = value("bus_factor")
    for name, power in (("busbw", -1.0), ("algbw", 1.0), ("link", -1.0)):
        if name in evaluation.figures and factor:
            says = "the algorithm bandwidth" if name == "busbw" else "the bus bandwidth"
            yield _slip(name, factor**-power, f"the {_what(name)} is {says} (factor {factor:.4g})")
    for name in ("message", "weights", "comm_bytes"):
        if name in evaluation.figures:
            yield _slip(name, 2.0, f"the {_what(name)} is at half the bytes of an element", 2)
            yield _slip(name, 0.5, f"the {_what(name)} is at twice the bytes of an element", 2)
    if "collectives" in evaluation.figures:
        yield _slip("collectives", 2.0, "the collectives are those of the forward pass only")


def _of_devices(evaluation, value):  # type: ignore[no-untyped-def]
    figures = evaluation.figures
    per_node = value("gpus_per_node") or 8.0
    device = evaluation.reading.statement.device
    if "gpus" in figures:
        yield _slip("gpus", per_node, f"the devices are nodes of {per_node:g}", 2)
        if device is not None and device.name in _TWO_IN_ONE:
            yield _slip("gpus", 0.5, f"each {device.name} counts as two devices")
            yield _slip("gpus", 2.0, f"two halves of a {device.name} count as one device")
    if "speedup" in figures:
        speedup = figures["speedup"].value
        if 0 < speedup < 1:
            yield _slip("speedup", 1 / (1 - speedup) / speedup, "it is time saved, not a speed-up")
        yield _slip("speedup", (1 + speedup) / speedup, "it is what was gained (+100 % is twice as fast)")
        if speedup > 1:
            yield _slip("speedup", 1 / (2 - speedup) / speedup if speedup < 2 else 1.0, "it is time saved, not a speed-up")
