"""Which links a group crosses, by the order of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.cluster import Cluster, Group, Level, cluster_of
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.layout import Layout
from longpole.errors import UsageError
from longpole.hardware.devices import all_devices, find_device
from tests.plans import planned
from tests.published_tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

NODES = cluster_of(find_device("H100"), network_bytes_per_s=50e9)


def _members(devices: int, stride: int, domain: int, world: int) -> list[int]:
    """Count, for every group there is, the members in each domain that it touches: the slow way."""
    counts = []
    for first in range(world):
        if (first // stride) % devices:
            continue
        ranks = [first + stride * at for at in range(devices)]
        domains = {rank // domain for rank in ranks}
        counts.append(max(sum(rank // domain == one for rank in ranks) for one in domains))
    return counts


@given(
    tp=st.sampled_from([1, 2, 4, 8, 16]),
    cp=st.sampled_from([1, 2, 4]),
    dp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4]),
    domain=st.sampled_from([4, 8, 16]),
)
def test_a_group_lies_where_its_ranks_do(tp: int, cp: int, dp: int, pp: int, domain: int) -> None:
    """Against counting the ranks of every group, for degrees that are powers of two."""
    cluster = Cluster(find_device("H100"), (Level("NVLink", domain, 450e9), Level("network", None, 50e9)))
    layout = Layout(tp=tp, cp=cp, dp=dp, pp=pp)
    for dimension, stride, devices in (("tp", 1, tp), ("cp", tp, cp), ("dp", tp, cp * dp)):
        group = cluster.group(layout, dimension)  # type: ignore[arg-type]
        counted = _members(devices, stride, domain, layout.world)
        assert group.devices == devices
        assert cluster.crosses_nodes(group) == (devices > 1 and min(counted) < devices)
        assert set(counted) == {cluster.per_node(group)}


@pytest.mark.parametrize(
    ("dimension", "devices", "per_node", "crosses"),
    [("tp", 4, 4, False), ("cp", 2, 2, False), ("dp", 8, 2, True), ("ep", 8, 8, False), ("edp", 4, 1, True),
     ("pp", 2, 1, True), ("embedding", 2, 1, True)],
)  # fmt: skip
def test_ranks_are_numbered_tp_cp_ep_dp_pp(dimension: str, devices: int, per_node: int, crosses: bool) -> None:
    """TP4·CP2 fill a node of eight, so that gradients, expert replicas and stages go over the network."""
    group = NODES.group(Layout(tp=4, cp=2, dp=4, pp=4, ep=8), dimension)  # type: ignore[arg-type]

    assert (group.devices, NODES.per_node(group), NODES.crosses_nodes(group)) == (devices, per_node, crosses)


def test_stages_that_share_a_node_cross_nothing() -> None:
    assert not NODES.crosses_nodes(NODES.group(Layout(tp=2, pp=4), "pp"))
    assert NODES.crosses_nodes(NODES.group(Layout(tp=4, pp=4), "pp"))


def test_degrees_that_do_not_fill_a_node_cross_it_only_where_there_is_more_than_one() -> None:
    assert not NODES.crosses_nodes(NODES.group(Layout(tp=3, dp=2), "tp"))
    assert NODES.crosses_nodes(NODES.group(Layout(tp=3, dp=4), "tp"))


def test_one_device_crosses_nothing_even_without_a_link() -> None:
    alone = Cluster(find_device("H100"), ())

    assert alone.group(Layout(), "tp") == Group(1)


def test_a_group_beyond_the_last_link_is_refused_and_told_what_to_state() -> None:
    node = cluster_of(find_device("H100"))

    assert node.node_size == 8
    with pytest.raises(UsageError, match="state the network's rate per device, one direction"):
        node.group(Layout(tp=8, dp=2), "dp")


def test_a_bridged_pair_is_a_level_below_pcie() -> None:
    """TP8 on PCIe cards with bridges: NVLink joins pairs only, and the rest goes over PCIe."""
    cards = cluster_of(find_device("A100-PCIe-80GB"), network_bytes_per_s=25e9)

    assert [(level.size, level.kind) for level in cards.levels] == [(2, "scale_up"), (8, "pcie"), (None, "network")]
    assert cards.spread(2).level == 0
    assert cards.spread(8).members == (2,)
    assert not cards.crosses_nodes(cards.spread(8))
    assert cards.spread(16).members == (2, 8)
    assert cards.per_node(cards.spread(16)) == 8


def test_a_mesh_gives_a_pair_one_link() -> None:
    mesh = cluster_of(find_device("MI300X"))

    assert mesh.reached_bytes_per_s(0, 2) == pytest.approx(0.8 * 64e9)
    assert mesh.reached_bytes_per_s(0, 8) == pytest.approx(0.8 * 448e9)


WITHOUT_A_RATE = {"Ascend-910B": "HCCS full mesh", "V100-DGXS-32GB": "NVLink2"}


@pytest.mark.parametrize(("name", "fabric"), WITHOUT_A_RATE.items())
def test_a_part_without_a_stated_rate_asks_for_it(name: str, fabric: str) -> None:
    with pytest.raises(UsageError, match=f"no source states the rate of {name}'s {fabric}"):
        cluster_of(find_device(name))


@pytest.mark.parametrize(
    "device", [one for one in all_devices() if one.name not in WITHOUT_A_RATE], ids=lambda one: one.name
)
def test_every_part_with_a_stated_rate_makes_nodes(device: object) -> None:
    cluster = cluster_of(device, network_bytes_per_s=25e9)  # type: ignore[arg-type]

    assert cluster.levels[-1].kind == "network"
    assert (cluster.node_size or 0) >= 4  # a station's, and of parts joined by a bridge


@pytest.mark.parametrize(
    ("level", "wrong"),
    [
        ({"size": 1}, "at least 2 devices"),
        ({"bytes_per_s_one_way": 0}, "bytes per second above 0"),
        ({"bytes_per_s_one_way": -450e9}, "bytes per second above 0"),
        ({"bytes_per_s_one_way": float("inf")}, "bytes per second above 0"),
        ({"efficiency": 1.2}, "a share above 0 and up to 1"),
        ({"hop_s": -1.0}, "seconds from 0"),
    ],
)
def test_a_link_that_cannot_be_is_refused(level: dict[str, float], wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        Level(**{"name": "NVLink", "size": 8, "bytes_per_s_one_way": 450e9, **level})  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [(8, 8), (8, 4), (8, 12), (None, 8)])
def test_levels_lie_in_each_other(sizes: tuple[int | None, ...]) -> None:
    with pytest.raises(UsageError, match="a multiple of the level before it"):
        Cluster(find_device("H100"), tuple(Level(f"level {at}", size, 1e9) for at, size in enumerate(sizes)))


def test_a_plan_can_state_how_slow_its_network_is() -> None:
    """Clouds answer later than InfiniBand and reach less of their line rate; both are keys of a plan's hardware."""
    network = planned(hardware={"network_hop_us": 54, "network_share": 0.65}).cluster.levels[-1]
    plain = planned().cluster.levels[-1]

    assert network.hop_s == pytest.approx(54e-6)
    assert network.efficiency == 0.65
    assert (plain.hop_s, plain.efficiency) == (0.0, None)


def test_a_stated_hop_brings_the_model_to_a_clouds_measured_latencies(oracles: Path) -> None:
    """Sixteen H100 over TCPXO, 1 to 16 KiB: 127 to 147 µs measured, 24 µs by InfiniBand's constants."""
    rows = [row for row in read_table(oracles, "nccl_measured_multi_node") if row["system"] == "gcp-a3-mega"][:3]
    cloud = CollectiveCosts(cluster_of(find_device("H100"), 25e9, network_hop_s=50e-6))
    for row in rows:
        seconds = cloud.seconds_in("all_reduce", Group(16, (8,)), float(row["bytes"]))
        assert seconds * 1e6 == pytest.approx(float(row["latency_us"]), rel=0.2)
