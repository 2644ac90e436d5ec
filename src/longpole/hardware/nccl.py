"""What NCCL itself expects a collective to take: the model by which it picks its algorithm and its protocol.

For each pair of algorithm and protocol that a collective can use, NCCL holds a latency and a bandwidth, and expects

    time_us = latency_us + bytes / (1000 · algorithm bandwidth in GB/s)

and takes the pair with the least. Constants and rules: github NVIDIA/nccl, src/graph/tuning.cc, commit 5067397c
(Apache-2.0); the numbers are facts of that commit and change from release to release. How far it is off, within a node
and between nodes, is measured in tests/unit/hardware/test_nccl.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Final, Literal, TypeAlias

Protocol: TypeAlias = Literal["LL", "LL128", "Simple"]
Algorithm: TypeAlias = Literal["ring", "tree", "NVLS", "NVLS tree", "PAT"]
PROTOCOLS: Final[tuple[Protocol, ...]] = ("LL", "LL128", "Simple")

# Per protocol, in µs: LL, LL128, Simple.
BASE_LATENCY_US: Final = {"tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4), "pat": (8.0, 8.0, 8.0)}
HOP_LATENCY_US: Final = {
    "nvlink": {"tree": (0.6, 1.25, 4.0), "ring": (0.6, 1.9, 3.4)},
    "pci": {"tree": (1.0, 1.9, 4.0), "ring": (1.0, 2.5, 5.7)},
    "net": {"tree": (5.0, 8.5, 14.0), "ring": (2.7, 4.0, 14.0), "pat": (0.0, 0.0, 14.0)},
}
NVLS_LATENCY_US: Final = 25.0
NVLS_TREE_HOP_US: Final = 20.9  # between nodes; within one as NVLS
# Per architecture, in GB/s: on one node, on two, on four and more.
LL_MAX_GB_PER_S: Final = {
    "volta": (39.0, 39.0, 20.4),
    "ampere": (87.7, 22.5, 19.0),
    "hopper": (141.0, 45.0, 35.0),
    "blackwell": (282.0, 90.0, 70.0),
}
# Of one channel, likewise; there is one for each device of a node.
NVLS_TREE_MAX_GB_PER_S: Final = {"hopper": (0.0, 57.7, 45.5), "blackwell": (0.0, 96.0, 80.0)}
NVLS_EFFICIENCY: Final = {"hopper": 0.85, "blackwell": 0.74}
# Devices from which on a library was seen to reduce in the switch (nccl-tests on H200 and B200, stas00/ml-engineering).
NVLS_MIN_DEVICES: Final = {"hopper": 5, "blackwell": 6}
NET_OVERHEAD_US: Final = 1.0  # of an Intel host; AMD hosts have 2.0
PCI_GB_PER_S: Final = {3: 12.0, 4: 24.0, 5: 48.0}  # generation 3 is in the source; the others double
PLATEAU: Final = {"volta": 1.9, "ampere": 1.4, "hopper": 1.4, "blackwell": 1.4}
_PLATEAU_BYTES: Final = 64  # of each channel and rank
_RING_CHANNELS: Final = 12
# Tree only: what is left of its bandwidth at 64 B, 128 B, … 256 MB, per protocol.
TREE_CORRECTION: Final = {
    "LL": (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    "LL128": (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    "Simple": (
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
        0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9,
    ),
}  # fmt: skip
_STEPS: Final = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}
ARCHITECTURES: Final = {
    "Volta": "volta",
    "Ampere": "ampere",
    "Ada": "ampere",
    "Hopper": "hopper",
    "Blackwell": "blackwell",
}
_US: Final = 1e-6
_G: Final = 1e9


@dataclass(frozen=True, slots=True)
class Variant:
    """One algorithm with one protocol.

    Attributes:
        algorithm, protocol: As NCCL calls them.
        latency_s: What an operation of no size takes.
        bytes_per_s: Algorithm bandwidth: bytes of the full buffer over time.
        correction: What is left of the bandwidth at each power of two from 64 B on; empty for all of it.
        plateau: Factor on the latency once the message fills the ring.
        plateau_bytes: From this size on.
    """

    algorithm: Algorithm
    protocol: Protocol
    latency_s: float
    bytes_per_s: float
    correction: tuple[float, ...] = ()
    plateau: float = 1.0
    plateau_bytes: float = 0.0

    def seconds(self, size_bytes: float) -> float:
        """Return what NCCL expects an operation of a size to take."""
        rate = self.bytes_per_s
        if self.correction and size_bytes >= 64:
            place = int(size_bytes // 64).bit_length() - 1
            rate *= self.correction[place] if place < len(self.correction) else 1.0
        latency_s = self.latency_s * (self.plateau if size_bytes >= self.plateau_bytes else 1.0)
        return latency_s + size_bytes / rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What the model is told of the machine.

    Attributes:
        architecture: `volta`, `ampere`, `hopper` or `blackwell`.
        is_nvlink: Whether devices of a node are joined by NVLink (else PCIe).
        bytes_per_s: Bus bandwidth of a ring within a node.
        network_bytes_per_s: Of one device's share of the network, one direction; None where there is none.
        hop_us: What a hop between nodes takes beyond NCCL's constants, which are those of InfiniBand.
    """

    architecture: str
    is_nvlink: bool
    bytes_per_s: float
    network_bytes_per_s: float | None = None
    hop_us: float = 0.0


def variants(kind: str, devices: int, per_node: int, fabric: Fabric) -> tuple[Variant, ...]:
    """Return what NCCL can choose from for a collective, empty for kinds that its model does not price.

    Args:
        kind: `all_reduce`, `all_gather` or `reduce_scatter`.
        devices: How many take part.
        per_node: How many of them on each node.
        fabric: The machine.
    """
    if kind not in _STEPS or devices < 2:
        return ()
    shape = _Shape(kind, devices, per_node, -(-devices // per_node), fabric)
    found = [_ring(shape, place) for place in range(len(PROTOCOLS)) if shape.may_use(place)]
    if kind == "all_reduce":
        found += [_tree(shape, place) for place in range(len(PROTOCOLS)) if shape.may_use(place)]
        found += _nvls(shape)
    elif per_node == 1 and shape.nodes > 1:
        found.append(_pat(shape))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Shape:
    kind: str
    devices: int
    per_node: int
    nodes: int
    fabric: Fabric

    @property
    def steps(self) -> int:
        return _STEPS[self.kind] * (self.devices - 1)

    @property
    def at_nodes(self) -> int:
        """Return the column of a table by nodes."""
        return min(self.nodes - 1, 2) if self.nodes <= 2 else 2

    def bus_bytes_per_s(self, over_network: float = 1.0) -> float:
        """Return the rate of a ring: the node's own, or what all members of a node have of the network together.

        Args:
            over_network: Of what a ring sends between nodes, an algorithm sends one in so many.
        """
        if self.nodes == 1 or self.fabric.network_bytes_per_s is None:
            return self.fabric.bytes_per_s
        network = self.fabric.network_bytes_per_s * self.per_node * over_network
        return network if self.per_node == 1 else min(self.fabric.bytes_per_s, network)

    @property
    def saved(self) -> float:
        """How many times less a tree sends between nodes than a ring: half between two nodes, else the same."""
        return 2.0 if self.nodes == 2 else 1.0

    def may_use(self, place: int) -> bool:
        """LL128 needs NVLink: it relies on stores of 128 bytes that stay whole."""
        return PROTOCOLS[place] != "LL128" or self.fabric.is_nvlink

    def hop_us(self, algorithm: str, place: int) -> float:
        return HOP_LATENCY_US["nvlink" if self.fabric.is_nvlink else "pci"][algorithm][place]

    def net_us(self, algorithm: str, place: int) -> float:
        """Return the latency of a hop between nodes; with one device a node it is exposed, and the tree's."""
        return HOP_LATENCY_US["net"]["tree" if self.per_node == 1 else algorithm][place] + self.fabric.hop_us


def _ring(shape: _Shape, place: int) -> Variant:
    protocol = PROTOCOLS[place]
    rate = shape.bus_bytes_per_s()
    if protocol == "LL":
        rate = min(LL_MAX_GB_PER_S[shape.fabric.architecture][shape.at_nodes] * _G, rate / 2)
    elif protocol == "LL128":
        rate *= 0.92  # 120 of 128 bytes carry data, and a little is lost besides
    hop_us, between = shape.hop_us("ring", place), 0
    if shape.nodes > 1:
        hop_us = max(hop_us, NET_OVERHEAD_US * (3 if protocol == "Simple" else 1))
        between = _STEPS[shape.kind] * (shape.nodes - 1)
    latency_us = BASE_LATENCY_US["ring"][place]
    latency_us += (shape.steps - between) * hop_us + between * shape.net_us("ring", place)
    fills = shape.nodes > 1 and protocol == "Simple" and shape.kind == "all_reduce"
    return Variant(
        "ring",
        protocol,
        latency_us * _US,
        rate * shape.devices / shape.steps,
        plateau=PLATEAU[shape.fabric.architecture] if fills else 1.0,
        plateau_bytes=_PLATEAU_BYTES * _RING_CHANNELS * shape.devices,
    )


def _tree(shape: _Shape, place: int) -> Variant:
    protocol = PROTOCOLS[place]
    rate = shape.bus_bytes_per_s(shape.saved if shape.per_node > 1 else 1.0) * 0.92
    if protocol == "LL":
        rate = min(rate / 3.8, LL_MAX_GB_PER_S[shape.fabric.architecture][shape.at_nodes] * _G)
    elif protocol == "LL128":
        rate *= 7 / 9 if shape.nodes == 1 else 120 / 128
    hops_us = (shape.per_node - 1) * shape.hop_us("tree", place)
    hops_us += int(log2(shape.nodes)) * shape.net_us("tree", place)
    latency_us = BASE_LATENCY_US["tree"][place] + 2 * hops_us
    return Variant("tree", protocol, latency_us * _US, rate / 2, TREE_CORRECTION[protocol])


def _nvls(shape: _Shape) -> list[Variant]:
    """Reduction in the switch, within a node; between nodes a tree of such nodes."""
    architecture, per_node = shape.fabric.architecture, shape.per_node
    least = NVLS_MIN_DEVICES.get(architecture)
    if least is None or per_node < least or not shape.fabric.is_nvlink:
        return []
    pulling = (per_node - 1) / per_node  # a channel for each device
    rate = shape.fabric.bytes_per_s * NVLS_EFFICIENCY[architecture] * pulling * 2
    latency_us, ratio = NVLS_LATENCY_US, shape.devices / shape.steps
    if shape.nodes == 1 or shape.fabric.network_bytes_per_s is None:
        return [Variant("NVLS", "Simple", latency_us * _US, rate * ratio)]
    network = shape.fabric.network_bytes_per_s * per_node * shape.saved
    most = NVLS_TREE_MAX_GB_PER_S[architecture][shape.at_nodes] * _G * per_node
    latency_us += 2 * int(log2(shape.nodes)) * (NVLS_TREE_HOP_US + shape.fabric.hop_us)
    return [Variant("NVLS tree", "Simple", latency_us * _US, min(rate, network, most) * ratio)]


def _pat(shape: _Shape) -> Variant:
    """Parallel aggregated trees, for one device a node; the linear term is the source's own."""
    latency_us = BASE_LATENCY_US["pat"][2] + int(log2(shape.nodes)) * shape.net_us("pat", 2) / 3.5
    latency_us += shape.devices * 2.8
    return Variant("PAT", "Simple", latency_us * _US, shape.bus_bytes_per_s() * 0.75)
