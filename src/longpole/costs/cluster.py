"""Devices and the links between them, level by level, and which level a group of a layout has to cross.

Ranks are numbered in the order tp, cp, ep, dp, pp, the first running fastest (Megatron-LM's default `tp-cp-ep-dp-pp`).
Expert groups are carved out of the same ranks: etp, ep, then an expert's own data parallelism, then pp. A group of g
ranks at a stride s lies in blocks of s·g neighbouring ranks; it stays inside domains of z devices where s·g divides z.

Rates are one direction of one device's links: 900 GB/s of an H100 are both directions, and twice what a ring can have.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from longpole.errors import UsageError

if TYPE_CHECKING:
    from longpole.costs.layout import Layout
    from longpole.hardware.devices import Device

LinkKind: TypeAlias = Literal["scale_up", "pcie", "network"]
Dimension: TypeAlias = Literal["tp", "cp", "dp", "fsdp", "ep", "etp", "edp", "pp", "embedding"]
# Share of the line rate that large messages reach. Scale-up: what NCCL's search gives a ring on V100, A100, H100 and
# B200 (120 of 150, 240 of 300, 360 of 450, 720 of 900 GB/s; github NVIDIA/nccl, src/graph/search.cc and topo.h), and
# 160 of 200 measured on H800 (arXiv:2505.09343). PCIe: 12 of 15.75 GB/s (topo.h). Network: 0.80 to 0.93 measured over
# InfiniBand and Slingshot, 0.65 to 0.9 in clouds (tests/oracles/nccl_measured_multi_node.csv).
EFFICIENCY: Final[dict[str, float]] = {"scale_up": 0.8, "pcie": 0.76, "network": 0.9}
_PCIE_DEVICES: Final = 8  # of a node whose devices share no scale-up link


@dataclass(frozen=True, slots=True)
class Level:
    """Links of one kind.

    Attributes:
        name: What reports call it.
        size: How many devices it joins; None where it joins all.
        bytes_per_s_one_way: Line rate of one device's links in one direction.
        kind: `scale_up`, `pcie` or `network`; empty: the first level is scale-up, all others are network.
        pair_bytes_per_s: What two of its devices get between them, where that is less (full mesh, torus).
        efficiency: Share of the line rate that large messages reach; None for `EFFICIENCY` of its kind.
        hop_s: What a hop takes beyond what InfiniBand's takes: some 50 µs were seen in clouds.
    """

    name: str
    size: int | None
    bytes_per_s_one_way: float
    kind: LinkKind | Literal[""] = ""
    pair_bytes_per_s: float | None = None
    efficiency: float | None = None
    hop_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no link has."""
        if self.size is not None and (isinstance(self.size, bool) or self.size < 2):
            msg = f"link {self.name}: size: expected at least 2 devices, found {self.size!r}"
            raise UsageError(msg)
        if not 0 < self.bytes_per_s_one_way < float("inf"):
            msg = f"link {self.name}: expected bytes per second above 0, found {self.bytes_per_s_one_way!r}"
            raise UsageError(msg)
        if self.efficiency is not None and not 0 < self.efficiency <= 1:
            msg = f"link {self.name}: efficiency: expected a share above 0 and up to 1, found {self.efficiency!r}"
            raise UsageError(msg)
        if not 0 <= self.hop_s < 1:
            msg = f"link {self.name}: hop: expected seconds from 0 and below 1, found {self.hop_s!r}"
            raise UsageError(msg)


@dataclass(frozen=True, slots=True)
class Group:
    """Devices that communicate, and how they lie.

    Attributes:
        devices: How many.
        members: How many of them lie in one domain of each level that they do not all lie in, the innermost first;
            empty where one domain of the first level holds them all.
    """

    devices: int
    members: tuple[int, ...] = ()

    @property
    def level(self) -> int:
        """Index of the outermost level that its messages cross."""
        return len(self.members)


@dataclass(frozen=True, slots=True)
class Cluster:
    """One kind of device and its links, the innermost level first."""

    device: Device
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        """Refuse levels that do not lie in each other."""
        sizes = [level.size for level in self.levels]
        for inner, outer in pairwise(sizes):
            if inner is None or (outer is not None and (outer <= inner or outer % inner)):
                msg = f"links: expected each level to join a multiple of the level before it, found {sizes}"
                raise UsageError(msg)

    @property
    def node_size(self) -> int | None:
        """Devices of one node: of the outermost level that is no network; None where there is no end to it."""
        inside = [level.size for at, level in enumerate(self.levels) if self.kind(at) != "network"]
        return inside[-1] if inside else 1

    def kind(self, level: int) -> LinkKind:
        """Return what a level is made of."""
        return self.levels[level].kind or ("scale_up" if level == 0 else "network")

    def reached_bytes_per_s(self, level: int, devices: int | None = None) -> float:
        """Return what large messages of a device get of a level, one direction.

        Args:
            level: Which.
            devices: How many talk to each other over it, all with all; None for as many as it takes.
        """
        link = self.levels[level]
        rate = link.bytes_per_s_one_way
        if link.pair_bytes_per_s is not None and devices is not None:
            rate = min(rate, link.pair_bytes_per_s * max(devices - 1, 1))
        return rate * (EFFICIENCY[self.kind(level)] if link.efficiency is None else link.efficiency)

    def crosses_nodes(self, group: Group) -> bool:
        """Tell whether a group's messages go over a network."""
        return self.kind(group.level) == "network"

    def per_node(self, group: Group) -> int:
        """Return how many devices of a group share a node."""
        inside = sum(self.kind(level) != "network" for level in range(group.level))
        if group.level < len(self.levels) and not self.crosses_nodes(group):
            return group.devices
        return group.members[inside - 1] if inside else 1

    def group(self, layout: Layout, dimension: Dimension) -> Group:
        """Return the group that a device is in along a dimension, the worst placed of them.

        `dp` and `fsdp` reduce gradients, so theirs spans dp · cp; `edp` is an expert's own data parallelism; `pp` is a
        pair of neighbouring stages, `embedding` the pair of the first and the last.

        Raises:
            UsageError: It would need a link that the cluster does not have.
        """
        stride, devices = _extent(layout, dimension)
        if dimension not in ("pp", "embedding"):
            return self.spread(devices, stride, layout.world)
        pair = self.spread(devices, stride, layout.world)
        return Group(min(devices, 2), (1,) * pair.level) if devices > 1 else pair

    def spread(self, devices: int, stride: int = 1, world: int | None = None) -> Group:
        """Return a group of devices whose ranks lie a stride apart, of so many ranks in all.

        >>> from longpole.hardware.devices import find_device
        >>> nodes = Cluster(find_device("H100"), (Level("NVLink", 8, 450e9), Level("InfiniBand", None, 50e9)))
        >>> nodes.spread(8).members, nodes.spread(16).members, nodes.spread(16, stride=4).members
        ((), (8,), (2,))

        Raises:
            UsageError: It would need a link that the cluster does not have.
        """
        if devices == 1:
            return Group(1)
        block, ranks = stride * devices, world or inf
        members: list[int] = []
        for level in self.levels:
            if level.size is None or level.size % block == 0 or ranks <= level.size:
                return Group(devices, tuple(members))
            members.append(max(min(level.size // stride, devices - 1), 1))
        largest = self.levels[-1].size if self.levels else 1
        msg = (
            f"{devices} ranks {stride} apart do not lie within {largest} devices, and no link beyond is stated:"
            " state the network's rate per device, one direction"
        )
        raise UsageError(msg)


def cluster_of(
    device: Device,
    network_bytes_per_s: float | None = None,
    node_size: int | None = None,
    *,
    network_hop_s: float = 0.0,
    network_share: float | None = None,
) -> Cluster:
    """Return nodes of a device as its row in the table describes them.

    Args:
        device: Of the table.
        network_bytes_per_s: Line rate of the network for each device, one direction; None where there is one node only.
        node_size: Devices of a node; None for the scale-up domain's, or 8 where that is a pair or nothing.
        network_hop_s: What a hop between nodes takes beyond what InfiniBand's takes.
        network_share: Of the network's line rate, what large messages reach; None for `EFFICIENCY`.

    Raises:
        UsageError: The table has no rate for its scale-up link.
    """
    levels = _inside(device, node_size)
    if network_bytes_per_s is not None:
        levels.append(
            Level("network", None, network_bytes_per_s, "network", efficiency=network_share, hop_s=network_hop_s)
        )
    return Cluster(device, tuple(levels))


def _inside(device: Device, node_size: int | None) -> list[Level]:
    levels: list[Level] = []
    domain = device.scaleup_domain or 1
    reach = domain if node_size is None else min(domain, node_size)
    if domain > 1 and device.scaleup_bytes_per_s is None:
        msg = f"no source states the rate of {device.name}'s {device.fabric}: state it, one direction"
        raise UsageError(msg)
    if reach > 1 and device.scaleup_bytes_per_s is not None:
        levels.append(
            Level(
                device.fabric, reach, device.scaleup_bytes_per_s, "scale_up", pair_bytes_per_s=device.pair_bytes_per_s
            )
        )
    size = node_size if node_size is not None else (reach if reach > 2 else _PCIE_DEVICES)
    if size > reach and size > 1 and device.pcie_bytes_per_s is not None:
        levels.append(Level("PCIe", size, device.pcie_bytes_per_s, "pcie"))
    return levels


def _extent(layout: Layout, dimension: Dimension) -> tuple[int, int]:
    """Return how far apart the ranks of a dimension lie, and how many they are."""
    if dimension == "tp":
        return 1, layout.tp
    if dimension in ("dp", "fsdp"):
        return layout.tp, layout.cp * layout.dp
    if dimension in ("pp", "embedding"):
        return layout.tp * layout.cp * layout.dp, layout.pp
    if dimension == "cp":
        return layout.tp, layout.cp
    if dimension == "ep":
        return layout.etp, layout.ep
    return (1, layout.etp) if dimension == "etp" else (layout.etp * layout.ep, layout.expert_dp)
