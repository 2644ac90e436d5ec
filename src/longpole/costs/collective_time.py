"""What a collective takes, from the best source that there is, each with its known error.

In this order: the user's own record (measured by `longpole bench collectives`, or read from a log of nccl-tests); the
shipped fits to measured systems (`hardware/nccl_fits.csv`), also between and a little beyond the numbers of devices
that were measured; NCCL's own model (`hardware/nccl.py`); line rates. Sizes are the full buffer's in bytes, as
nccl-tests counts: the input of a reduce-scatter, the output of an all-gather, what a device sends in an all-to-all.

Dividing bytes by line rates is off by 94 % (median), below 16 MB by 99 %: latency and the pieces that a message goes
in decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2, sqrt
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from longpole.costs.cluster import Group
from longpole.costs.formula import Formula
from longpole.errors import UsageError
from longpole.hardware.devices import match_device
from longpole.hardware.nccl import ARCHITECTURES, Fabric, Variant, variants
from longpole.hardware.nccl_fits import MEASURED_BYTES, Fit, all_fits, measured_ranks, system_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from longpole.costs.cluster import Cluster, Dimension
    from longpole.costs.layout import Layout

Source: TypeAlias = Literal["record", "shipped", "nccl_model", "generic", "nothing"]

FIT_SECONDS: Final = Formula(
    "alpha + gamma*sqrt(S) + S/rate", "s", "three-parameter fit; the root is the cost of splitting S into pieces"
)
MODEL_SECONDS: Final = Formula(
    "1.1*latency + 5e-9*sqrt(S) + S/rate",
    "s",
    "github NVIDIA/nccl src/graph/tuning.cc (5067397c) for what is chosen, its latency and rate; 1.1 and the root are"
    " what measured points of A100 and H100 nodes took longer (docs/decisions/0033)",
)
GENERIC_SECONDS: Final = Formula(
    "latency + S*factor/rate", "s", "bytes on the wire over the slowest link, nccl-tests doc/PERFORMANCE.md for factor"
)
# Bus bandwidth over algorithm bandwidth among n devices: github NVIDIA/nccl-tests doc/PERFORMANCE.md (a0b82b22).
_ROUNDS: Final = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1, "all_to_all": 1}
ONCE: Final = ("broadcast", "reduce", "send_recv")
KINDS: Final = (*_ROUNDS, *ONCE)

GENERIC_LATENCY_S: Final = 10e-6  # of one operation within a node
GENERIC_HOP_S: Final = 5e-6  # of each further hop over a network: NCCL's constant for a tree with protocol LL
# What NCCL's own expectation lacks: the least mean |log(predicted / measured)| on 378 points of A100 and H100 nodes, to
# the nearest tenth and nanosecond.
MODEL_LATENCY_FACTOR: Final = 1.1
MODEL_ROOT_S: Final = 5e-9
# Median errors, measured against 1,428 points of single nodes (tests/oracles/nccl_measured_single_node.csv):
# fits left out and found again between their neighbours, or from the two below; NCCL's model on the systems that its
# constants were not chosen on; line rates.
BETWEEN_ERROR_SHARE: Final = 0.06
BEYOND_ERROR_SHARE: Final = 0.07
MODEL_ERROR_SHARE: Final = 0.17
GENERIC_ERROR_SHARE: Final = 0.28
# NCCL's model between nodes, against 92 points of six clusters (tests/oracles/nccl_measured_multi_node.csv): from
# this size on, and below, where networks of clouds were up to ten times slower than the InfiniBand of its constants.
NETWORK_ERROR_SHARE: Final = 0.16
NETWORK_SMALL_ERROR_SHARE: Final = 0.37
NETWORK_SMALL_BYTES: Final = 16 << 20
_BEYOND_MOST: Final = 2  # times the largest number of devices that was measured


class Curve(Protocol):
    """Time over size."""

    def seconds(self, size_bytes: float) -> float:
        """Return what an operation of a size takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFit:
    """What a user measured of one kind.

    Attributes:
        kind: As in a report: `all_reduce`, …
        ranks: How many took part.
        nodes: On how many machines; None where a log does not say: as many as these ranks fill.
        fit: Time over size.
        says: Which record.
        device: What it was measured on; empty where not known.
    """

    kind: str
    ranks: int
    nodes: int | None
    fit: Fit
    says: str
    device: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime:
    """What one operation takes, and how well that is known.

    Attributes:
        seconds: From all devices ready to the result on all of them.
        source: `record`, `shipped`, `nccl_model` or `generic`; `nothing` where nothing is sent.
        error_share: Median |predicted / measured - 1| of the source where that was measured; None where it was not.
        latency_s: The part that an operation of no size takes.
        says: Which record, fit or algorithm, and what to know about it.
        formula: What was computed, with its values.
    """

    seconds: float
    source: Source
    error_share: float | None
    latency_s: float
    says: str
    formula: str


def bus_factor(kind: str, devices: int) -> float:
    """Return bytes that a device sends over bytes of the buffer: bus bandwidth over algorithm bandwidth.

    Source: nccl-tests, doc/PERFORMANCE.md. It describes rings; reduction in a switch (NVLS, SHARP) sends less.

    >>> bus_factor("all_reduce", 4), bus_factor("all_gather", 4), bus_factor("send_recv", 2)
    (1.5, 0.75, 1.0)

    Raises:
        UsageError: The kind is none of `KINDS`.
    """
    if kind in _ROUNDS:
        return _ROUNDS[kind] * (devices - 1) / devices
    if kind in ONCE:
        return 1.0
    msg = f"collective {kind!r}: expected one of {', '.join(KINDS)}"
    raise UsageError(msg)


class CollectiveCosts:
    """Times of collectives on one cluster; curves are found once for each kind and group, and kept."""

    def __init__(self, cluster: Cluster, recorded: Iterable[RecordedFit] = ()) -> None:
        """Take the cluster, and what the user measured on it."""
        self.cluster = cluster
        self._families = _families(cluster, recorded)
        self._curves: dict[tuple[str, Group], _Answer] = {}

    def seconds(
        self, kind: str, devices: int, size_bytes: float, *, crosses_nodes: bool = False, per_node: int | None = None
    ) -> float:
        """Return what one operation takes.

        Args:
            kind: One of `KINDS`.
            devices: How many take part.
            size_bytes: Of the full buffer.
            crosses_nodes: Whether they lie on several nodes although one would hold them.
            per_node: Then, how many on each; else one.
        """
        return self.seconds_in(kind, self._placed(devices, per_node, crosses=crosses_nodes), size_bytes)

    def seconds_in(self, kind: str, group: Group, size_bytes: float) -> float:
        """Return what one operation takes in a group of the cluster."""
        return self._answer(kind, group).curve.seconds(size_bytes) if group.devices > 1 else 0.0

    def seconds_along(self, kind: str, layout: Layout, dimension: Dimension, size_bytes: float) -> float:
        """Return what one operation takes along a dimension of a layout."""
        return self.seconds_in(kind, self.cluster.group(layout, dimension), size_bytes)

    def estimate(self, kind: str, group: Group, size_bytes: float) -> CollectiveTime:
        """Return what one operation takes in a group of the cluster, from where, and how well it is known."""
        if group.devices < 2:
            return CollectiveTime(
                seconds=0.0,
                source="nothing",
                error_share=0.0,
                latency_s=0.0,
                says="one device sends nothing",
                formula="",
            )
        answer = self._answer(kind, group)
        says = answer.says
        if answer.source in ("record", "shipped") and size_bytes > answer.largest_bytes > 0:
            says += f"; {size_bytes / 1e9:.3g} GB is more than was measured"
        is_small = answer.small_error_share is not None and size_bytes < NETWORK_SMALL_BYTES
        return CollectiveTime(
            seconds=answer.curve.seconds(size_bytes),
            source=answer.source,
            error_share=answer.small_error_share if is_small else answer.error_share,
            latency_s=answer.curve.seconds(0.0),
            says=says,
            formula=_explain(answer.curve, size_bytes),
        )

    def _placed(self, devices: int, per_node: int | None, *, crosses: bool) -> Group:
        natural = self.cluster.spread(devices, world=devices)  # from the beginning of a node on
        if not crosses or devices == 1:
            return natural
        at = next((level for level in range(len(self.cluster.levels)) if self.cluster.kind(level) == "network"), None)
        if at is None:
            msg = "a group that crosses nodes: no network is stated; state its rate per device, one direction"
            raise UsageError(msg)
        each = per_node or 1
        inner = [level.size or each for level in self.cluster.levels[:at]]
        members = tuple(min(each, size) for size in inner)
        return Group(devices, members if natural.level <= at else (*members, *natural.members[at:]))

    def _answer(self, kind: str, group: Group) -> _Answer:
        key = (kind, group)
        found = self._curves.get(key)
        if found is None:
            found = self._curves[key] = self._find(kind, group)
        return found

    def _find(self, kind: str, group: Group) -> _Answer:
        bus_factor(kind, group.devices)  # refuses what is no kind
        cluster = self.cluster
        shape = cluster.per_node(group) if cluster.crosses_nodes(group) else 0
        recorded = _among(self._families.get((kind, shape), {}), group.devices, "record")
        return (
            recorded
            or _shipped(cluster, kind, group)
            or _modelled(cluster, kind, group)
            or _generic(cluster, kind, group)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    curve: Curve
    source: Source
    error_share: float | None
    says: str
    largest_bytes: float = 0.0
    small_error_share: float | None = None


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The variant that NCCL would take at each size, and what it takes longer than NCCL expects."""

    variants: tuple[Variant, ...]

    def seconds(self, size_bytes: float) -> float:
        expected_s, best = self.best(size_bytes)
        return expected_s + (MODEL_LATENCY_FACTOR - 1) * best.latency_s + MODEL_ROOT_S * sqrt(size_bytes)

    def best(self, size_bytes: float) -> tuple[float, Variant]:
        best = self.variants[0]
        expected_s = best.seconds(size_bytes)
        for variant in self.variants[1:]:
            seconds = variant.seconds(size_bytes)
            if seconds < expected_s:
                expected_s, best = seconds, variant
        return expected_s, best


@dataclass(frozen=True, slots=True)
class _Straight:
    """A latency, and bytes on the wire over a rate."""

    latency_s: float
    factor: float
    bytes_per_s: float

    def seconds(self, size_bytes: float) -> float:
        return self.latency_s + size_bytes * self.factor / self.bytes_per_s


def _families(cluster: Cluster, recorded: Iterable[RecordedFit]) -> dict[tuple[str, int], dict[int, tuple[Fit, str]]]:
    """Sort records by kind and by how many ranks shared a node (0 where all did), and in each by ranks."""
    found: dict[tuple[str, int], dict[int, tuple[Fit, str]]] = {}
    for one in recorded:
        nodes = one.nodes or ceil(one.ranks / (cluster.node_size or one.ranks))
        shape = 0 if nodes == 1 else ceil(one.ranks / nodes)
        measured_on = match_device(one.device) if one.device else None
        fit, says = one.fit, one.says
        if measured_on is not None and measured_on.name != cluster.device.name:
            fit, says = replace(fit, error_share=None), f"{says}; not measured on {cluster.device.name}"
        found.setdefault((one.kind, shape), {}).setdefault(one.ranks, (fit, says))
    return found


def _shipped(cluster: Cluster, kind: str, group: Group) -> _Answer | None:
    """Return the shipped fit: the whole group shares one node and its scale-up link, or PCIe where there is none."""
    system = system_of(cluster.device.name)
    if system is None or group.level > 0 or cluster.crosses_nodes(group):
        return None
    if cluster.kind(0) == "scale_up" and cluster.levels[0].bytes_per_s_one_way != cluster.device.scaleup_bytes_per_s:
        return None  # the user's links are not those that were measured
    fits = all_fits()
    family = {
        ranks: (fits[system, kind, ranks], f"{system}, {kind}, {ranks} devices of one node")
        for ranks in measured_ranks(system, kind)
    }
    return _among(family, group.devices, "shipped")


def _among(family: Mapping[int, tuple[Fit, str]], devices: int, source: Source) -> _Answer | None:
    """Return the fit for a number of devices, or one made from those of its neighbours; None where they are too far.

    Between two numbers latency goes straight with the number and bus bandwidth with its logarithm; beyond the largest
    latency goes on as it went, and bus bandwidth stays.
    """
    largest = MEASURED_BYTES[1] if source == "shipped" else 0.0
    if devices in family:
        fit, says = family[devices]
        return _Answer(curve=fit, source=source, error_share=fit.error_share, says=says, largest_bytes=largest)
    below = [ranks for ranks in sorted(family) if ranks < devices]
    above = [ranks for ranks in sorted(family) if ranks > devices]
    if below and above:
        pair, share = (below[-1], above[0]), BETWEEN_ERROR_SHARE
        how = f"between {pair[0]} and {pair[1]} devices"
    elif len(below) >= 2 and devices <= _BEYOND_MOST * below[-1]:
        pair, share = (below[-2], below[-1]), BEYOND_ERROR_SHARE
        how = f"beyond {pair[1]} devices"
    else:
        return None
    says = family[pair[1]][1].rsplit(", ", 1)[0] if source == "shipped" else family[pair[1]][1]
    curve = _interpolated(family[pair[0]][0], family[pair[1]][0], pair, devices)
    return _Answer(curve=curve, source=source, error_share=share, says=f"{says}, {how}", largest_bytes=largest)


def _interpolated(low: Fit, high: Fit, pair: tuple[int, int], devices: int) -> Fit:
    few, many = pair
    straight = (devices - few) / (many - few)
    bent = min((log2(devices) - log2(few)) / (log2(many) - log2(few)), 1.0)
    # Of one kind the factors differ by (n - 1) / n only, so that bus bandwidth can be compared without the kind.
    low_bus, high_bus = low.bytes_per_s * (few - 1) / few, high.bytes_per_s * (many - 1) / many
    bus = low_bus + (high_bus - low_bus) * bent
    return Fit(
        alpha_s=max(low.alpha_s + (high.alpha_s - low.alpha_s) * straight, 0.0),
        gamma_s=low.gamma_s + (high.gamma_s - low.gamma_s) * bent,
        bytes_per_s=bus * devices / (devices - 1),
    )


def _modelled(cluster: Cluster, kind: str, group: Group) -> _Answer | None:
    """Return NCCL's own model, for devices that NCCL knows."""
    architecture = ARCHITECTURES.get(cluster.device.arch)
    if architecture is None or cluster.device.vendor != "NVIDIA":
        return None
    crosses = cluster.crosses_nodes(group)
    per_node = cluster.per_node(group)
    inside = max((at for at in range(group.level + 1) if cluster.kind(at) != "network"), default=None)
    is_nvlink = inside is not None and cluster.kind(inside) == "scale_up"
    fabric = Fabric(
        architecture=architecture,
        is_nvlink=is_nvlink or inside is None,
        bytes_per_s=cluster.reached_bytes_per_s(inside or 0),
        network_bytes_per_s=cluster.reached_bytes_per_s(group.level) if crosses else None,
        hop_us=cluster.levels[group.level].hop_s * 1e6 if crosses else 0.0,
    )
    choices = variants(kind, group.devices, per_node, fabric)
    if not choices:
        return None
    says = f"NCCL's own model of {cluster.device.name}, {kind}, {group.devices} devices"
    if crosses:
        return _Answer(
            curve=_Chosen(choices),
            source="nccl_model",
            error_share=NETWORK_ERROR_SHARE,
            small_error_share=NETWORK_SMALL_ERROR_SHARE,
            says=f"{says}, {per_node} a node; its latencies are InfiniBand's, others were up to ten times longer",
        )
    if not is_nvlink:
        says += " over PCIe; hosts were measured that are many times slower from 4 devices on"
        return _Answer(curve=_Chosen(choices), source="nccl_model", error_share=None, says=says)
    return _Answer(curve=_Chosen(choices), source="nccl_model", error_share=MODEL_ERROR_SHARE, says=says)


def _generic(cluster: Cluster, kind: str, group: Group) -> _Answer:
    """Return bytes over the slowest link, as large messages reach it."""
    crosses = cluster.crosses_nodes(group)
    latency_s = GENERIC_LATENCY_S
    if crosses and kind != "send_recv":
        nodes = ceil(group.devices / cluster.per_node(group))
        hops = ceil(log2(max(nodes, 2))) * (2 if kind == "all_reduce" else 1)
        latency_s += (GENERIC_HOP_S + cluster.levels[group.level].hop_s) * hops
    if kind == "all_to_all":
        factor, rate = _exchange(cluster, group)
    else:
        factor, rate = bus_factor(kind, group.devices), _ring_bytes_per_s(cluster, group, kind)
    link = cluster.levels[group.level].name
    is_checked = not crosses and "NVLink" in link
    return _Answer(
        curve=_Straight(latency_s, factor, rate),
        source="generic",
        error_share=GENERIC_ERROR_SHARE if is_checked else None,
        says=f"line rates of {link}, {kind}, {group.devices} devices"
        + ("" if is_checked else "; not checked against measurements"),
    )


def _ring_bytes_per_s(cluster: Cluster, group: Group, kind: str) -> float:
    """Return the bus bandwidth of a ring: the slowest level's, where members of a domain share the links out of it."""
    if kind == "send_recv":
        return cluster.reached_bytes_per_s(group.level, 2)
    counts = (*group.members, group.devices)
    rates = []
    for level, members in enumerate(counts):
        inner = counts[level - 1] if level else 1
        if members > inner:
            rates.append(cluster.reached_bytes_per_s(level, members) * inner)
    return min(rates)


def _exchange(cluster: Cluster, group: Group) -> tuple[float, float]:
    """Return the share of its buffer that a device sends over the level that takes longest, and that level's rate."""
    counts = (*group.members, group.devices)
    parts = []
    for level, members in enumerate(counts):
        inner = counts[level - 1] if level else 1
        if members > inner:
            rate = cluster.reached_bytes_per_s(level, members)
            parts.append(((members - inner) / group.devices, rate))
    return max(parts, key=lambda part: part[0] / part[1])


def _explain(curve: Curve, size_bytes: float) -> str:
    if isinstance(curve, Fit):
        return FIT_SECONDS.explain(alpha=curve.alpha_s, gamma=curve.gamma_s, S=size_bytes, rate=curve.bytes_per_s)
    if isinstance(curve, _Straight):
        return GENERIC_SECONDS.explain(
            latency=curve.latency_s, S=size_bytes, factor=curve.factor, rate=curve.bytes_per_s
        )
    if isinstance(curve, _Chosen):
        expected_s, best = curve.best(size_bytes)
        latency_s = best.latency_s
        rate = size_bytes / (expected_s - latency_s) if size_bytes else best.bytes_per_s
        named = MODEL_SECONDS.explain(latency=latency_s, S=size_bytes, rate=rate)
        return f"{best.algorithm}, {best.protocol}: {named}"
    return ""
