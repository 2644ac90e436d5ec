"""What a collective takes: which source answers, how well it is known, and measured points."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.cluster import Cluster, Group, Level, cluster_of
from longpole.costs.collective_time import (
    BETWEEN_ERROR_SHARE,
    BEYOND_ERROR_SHARE,
    GENERIC_ERROR_SHARE,
    GENERIC_LATENCY_S,
    KINDS,
    MODEL_ERROR_SHARE,
    NETWORK_ERROR_SHARE,
    NETWORK_SMALL_BYTES,
    NETWORK_SMALL_ERROR_SHARE,
    CollectiveCosts,
    RecordedFit,
    bus_factor,
)
from longpole.costs.layout import Layout
from longpole.errors import UsageError
from longpole.hardware.devices import find_device
from longpole.hardware.nccl_fits import Fit, all_fits
from tests.published_tables import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SYSTEMS = {
    "a100_sxm": "A100-SXM4-80GB",
    "b200_sxm": "B200-SXM-180GB",
    "gb200": "GB200-per-GPU",
    "h100_sxm": "H100-SXM5-80GB",
    "h200_sxm": "H200-SXM-141GB",
    "l40s": "L40S",
}
KIND = {"alltoall": "all_to_all"}


def _nodes(name: str, network_gb_per_s: float = 50.0) -> Cluster:
    return cluster_of(find_device(name), network_gb_per_s * 1e9)


def test_measured_points_of_one_node_are_met_within_five_percent(oracles: Path) -> None:
    """1,428 points on six systems, 2 to 8 devices, 512 B to 512 MiB, four kinds: the median."""
    costs = {system: CollectiveCosts(_nodes(name)) for system, name in SYSTEMS.items()}
    errors = [
        abs(
            costs[row["system"]].seconds(
                KIND.get(row["collective"], row["collective"]), int(row["gpus"]), float(row["bytes"])
            )
            * 1e6
            / float(row["latency_us"])
            - 1
        )
        for row in read_table(oracles, "nccl_measured_single_node")
    ]

    assert len(errors) == 1428
    assert median(errors) < 0.05


@pytest.mark.parametrize(
    ("left_out", "kept", "stated"), [(4, (2, 8), BETWEEN_ERROR_SHARE), (8, (2, 4), BEYOND_ERROR_SHARE)]
)
def test_a_number_of_devices_that_was_not_measured_is_met_as_said(
    oracles: Path, left_out: int, kept: Sequence[int], stated: float
) -> None:
    """Fits of two numbers of devices are given as the user's, and the points of a third are predicted from them."""
    errors = []
    costs = {
        system: CollectiveCosts(
            Cluster(find_device("MI300X"), (Level("link", 16, 1e9),)),
            [
                RecordedFit(kind=kind, ranks=ranks, nodes=1, fit=fit, says=system)
                for (of, kind, ranks), fit in all_fits().items()
                if of == system and ranks in kept
            ],
        )
        for system in ("a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm")
    }
    for row in read_table(oracles, "nccl_measured_single_node"):
        if int(row["gpus"]) != left_out or row["system"] not in costs:
            continue
        kind = KIND.get(row["collective"], row["collective"])
        found = costs[row["system"]].estimate(kind, Group(left_out), float(row["bytes"]))
        assert (found.source, found.error_share) == ("record", stated)
        errors.append(abs(found.seconds * 1e6 / float(row["latency_us"]) - 1))

    assert len(errors) == 336
    assert median(errors) == pytest.approx(stated, abs=0.01)


@pytest.mark.parametrize(
    ("systems", "points", "error"),
    [(("a100_sxm", "h100_sxm"), 378, 0.17), (("h200_sxm", "b200_sxm", "gb200"), 504, MODEL_ERROR_SHARE)],
)
def test_nccls_own_model_is_off_by_what_is_said_of_it(
    oracles: Path, systems: tuple[str, ...], points: int, error: float
) -> None:
    """On the systems that its two constants were chosen on, and, as stated with every answer, on the others."""
    costs = {}
    for system in systems:
        device = find_device(SYSTEMS[system])
        other_link = Level("NVLink", 8, (device.scaleup_bytes_per_s or 0) + 1)  # not the one that was fitted
        costs[system] = CollectiveCosts(Cluster(device, (other_link,)))
    errors = []
    for row in read_table(oracles, "nccl_measured_single_node"):
        if row["system"] in costs and row["collective"] != "alltoall":
            found = costs[row["system"]].estimate(row["collective"], Group(int(row["gpus"])), float(row["bytes"]))
            assert found.source == "nccl_model"
            errors.append(abs(found.seconds * 1e6 / float(row["latency_us"]) - 1))

    assert len(errors) == points
    assert median(errors) == pytest.approx(error, abs=0.01)


def test_line_rates_over_nvlink_are_off_by_what_is_said_of_them(oracles: Path) -> None:
    """As if the devices were no NVIDIA ones, so that nothing but their links is known."""
    errors = []
    for row in read_table(oracles, "nccl_measured_single_node"):
        if row["system"] == "l40s":
            continue
        rate = find_device(SYSTEMS[row["system"]]).scaleup_bytes_per_s or 0
        costs = CollectiveCosts(Cluster(find_device("MI300X"), (Level("NVLink", 8, rate),)))
        kind = KIND.get(row["collective"], row["collective"])
        found = costs.estimate(kind, Group(int(row["gpus"])), float(row["bytes"]))
        assert (found.source, found.error_share) == ("generic", GENERIC_ERROR_SHARE)
        errors.append(abs(found.seconds * 1e6 / float(row["latency_us"]) - 1))

    assert len(errors) == 1176
    assert median(errors) == pytest.approx(GENERIC_ERROR_SHARE, abs=0.01)


def test_between_nodes_the_model_is_off_by_what_is_said_of_it(oracles: Path) -> None:
    """Logs of six clusters, 16 to 64 devices: large messages and small ones each as stated."""
    large: list[float] = []
    small: list[float] = []
    for row in read_table(oracles, "nccl_measured_multi_node"):
        costs = CollectiveCosts(_nodes(row["device"], float(row["network_gb_per_s"])))
        group = Group(int(row["devices"]), (int(row["per_node"]),))
        found = costs.estimate(row["collective"], group, float(row["bytes"]))
        if found.source == "nccl_model":
            error = abs(found.seconds * 1e6 / float(row["latency_us"]) - 1)
            is_large = float(row["bytes"]) >= NETWORK_SMALL_BYTES
            (large if is_large else small).append(error)
            assert found.error_share == (NETWORK_ERROR_SHARE if is_large else NETWORK_SMALL_ERROR_SHARE)

    assert (len(large), len(small)) == (44, 48)
    assert median(large) == pytest.approx(NETWORK_ERROR_SHARE, abs=0.01)
    assert median(small) == pytest.approx(NETWORK_SMALL_ERROR_SHARE, abs=0.01)


@pytest.mark.parametrize(("devices", "rate"), [(16, 250.0), (32, 188.0), (64, 163.0)])
def test_a_gigabyte_between_h100_nodes_goes_at_the_measured_rate(devices: int, rate: float) -> None:
    """NVIDIA/nccl-tests#309, 8 x 400 Gbit/s a node: algorithm bandwidth of 8 GiB, in GB/s."""
    seconds = CollectiveCosts(_nodes("H100")).seconds_in("all_reduce", Group(devices, (8,)), 8 << 30)

    assert (8 << 30) / seconds / 1e9 == pytest.approx(rate, rel=0.15)


def test_large_messages_over_nvlink_reach_the_published_bus_bandwidth(oracles: Path) -> None:
    """stas00/ml-engineering: H200 and B200, and MI300X by line rates alone; 4 to 16 GiB, far beyond what was fitted."""
    errors = {}
    for row in read_table(oracles, "busbw_nvlink_measured"):
        if row["algo"] == "Ring" and int(row["gpus"]) == 8 and row["collective"] == "all_reduce":
            continue  # the library was told not to reduce in the switch, which it does by itself
        devices, size = int(row["gpus"]), int(row["payload_gib"]) << 30
        seconds = CollectiveCosts(_nodes(row["gpu"])).seconds(row["collective"], devices, size)
        busbw = size / seconds * bus_factor(row["collective"], devices) / 1e9
        errors[row["gpu"], devices, row["collective"], row["payload_gib"]] = busbw / float(row["busbw_gbps"]) - 1

    assert len(errors) == 15
    assert median(abs(error) for error in errors.values()) < 0.07
    assert max(abs(error) for error in errors.values()) < 0.15


@pytest.mark.parametrize(
    ("nodes", "kind", "group", "source", "error"),
    [
        (_nodes("H100"), "all_reduce", Group(8), "shipped", 0.038),
        (_nodes("H100"), "all_reduce", Group(6), "shipped", BETWEEN_ERROR_SHARE),
        (_nodes("GB200"), "all_reduce", Group(8), "shipped", BEYOND_ERROR_SHARE),
        (_nodes("GB200"), "all_reduce", Group(16), "nccl_model", MODEL_ERROR_SHARE),
        (_nodes("V100"), "all_gather", Group(8), "nccl_model", MODEL_ERROR_SHARE),
        (_nodes("H100"), "all_gather", Group(16, (8,)), "nccl_model", NETWORK_ERROR_SHARE),
        (_nodes("A100-PCIe-80GB"), "all_reduce", Group(8, (2,)), "nccl_model", None),
        (_nodes("H100"), "broadcast", Group(8), "generic", GENERIC_ERROR_SHARE),
        (_nodes("H100"), "all_to_all", Group(16, (8,)), "generic", None),
        (_nodes("H100"), "send_recv", Group(2, (1,)), "generic", None),
        (_nodes("MI300X"), "all_reduce", Group(8), "generic", None),
        (_nodes("H100"), "all_reduce", Group(1), "nothing", 0.0),
    ],
)
def test_the_first_source_that_there_is_answers(
    nodes: Cluster, kind: str, group: Group, source: str, error: float | None
) -> None:
    found = CollectiveCosts(nodes).estimate(kind, group, 1 << 28)

    assert (found.source, found.error_share) == (source, error)
    assert found.says


def test_the_users_own_record_comes_before_the_shipped_fit() -> None:
    mine = Fit(alpha_s=1e-3, gamma_s=0.0, bytes_per_s=1e9, error_share=0.02)
    record = RecordedFit(kind="all_reduce", ranks=8, nodes=1, fit=mine, says="my cluster")
    costs = CollectiveCosts(_nodes("H100"), [record])

    assert costs.seconds("all_reduce", 8, 1e9) == pytest.approx(1.001)
    assert costs.estimate("all_reduce", Group(8), 1e9).says == "my cluster"
    assert costs.estimate("all_gather", Group(8), 1e9).source == "shipped"
    assert costs.estimate("all_reduce", Group(4), 1e9).source == "shipped"


def test_a_record_of_another_device_says_so_and_its_error_is_not_known() -> None:
    mine = Fit(alpha_s=1e-3, gamma_s=0.0, bytes_per_s=1e9, error_share=0.02)
    record = RecordedFit(
        kind="all_reduce", ranks=8, nodes=1, fit=mine, says="my cluster", device="NVIDIA A100-SXM4-80GB"
    )
    found = CollectiveCosts(_nodes("H100"), [record]).estimate("all_reduce", Group(8), 1e9)

    assert (found.source, found.error_share) == ("record", None)
    assert found.says == "my cluster; not measured on H100-SXM5-80GB"


def test_a_record_of_nodes_answers_for_groups_that_lie_the_same_way_only() -> None:
    """16 ranks on two nodes say nothing of 16 ranks on 16 nodes."""
    mine = Fit(alpha_s=1e-3, gamma_s=0.0, bytes_per_s=1e9, error_share=0.02)
    costs = CollectiveCosts(
        _nodes("H100"), [RecordedFit(kind="all_reduce", ranks=16, nodes=None, fit=mine, says="two nodes")]
    )

    assert costs.estimate("all_reduce", Group(16, (8,)), 1e9).source == "record"
    assert costs.estimate("all_reduce", Group(16, (1,)), 1e9).source == "nccl_model"


def test_links_that_the_user_states_are_not_those_that_were_measured() -> None:
    halved = Cluster(find_device("H100"), (Level("NVLink", 8, 225e9),))

    assert CollectiveCosts(halved).estimate("all_reduce", Group(8), 1e9).source == "nccl_model"


def test_more_than_was_measured_says_so() -> None:
    costs = CollectiveCosts(_nodes("H100"))

    assert "more than was measured" in costs.estimate("all_reduce", Group(8), 8e9).says
    assert "more than was measured" not in costs.estimate("all_reduce", Group(8), 1e8).says


@given(
    kind=st.sampled_from(KINDS),
    devices=st.sampled_from([2, 3, 4, 8, 16, 64, 256]),
    size=st.integers(1, 1 << 36),
    name=st.sampled_from(["H100", "A100", "B200", "GB200", "MI300X", "V100", "TPUv5p"]),
)
def test_no_collective_beats_what_its_links_can_carry(kind: str, devices: int, size: int, name: str) -> None:
    """Time is at least bytes over the fastest thing that there is: both directions of a node's links and switches."""
    nodes = _nodes(name)
    group = nodes.spread(devices)
    seconds = CollectiveCosts(nodes).seconds_in(kind, group, size)
    share = bus_factor(kind, devices) / (2 if kind == "all_reduce" else 1)  # a switch that reduces halves the bytes

    assert seconds > 1e-6
    assert seconds >= size * share / nodes.levels[0].bytes_per_s_one_way / 1.25


@given(kind=st.sampled_from(KINDS), per_node=st.sampled_from([1, 2, 4, 8]), size=st.integers(1, 1 << 34))
def test_crossing_nodes_never_makes_a_collective_faster(kind: str, per_node: int, size: int) -> None:
    costs = CollectiveCosts(_nodes("H100"))
    inside = costs.seconds_in(kind, Group(8), size)
    across = costs.seconds_in(kind, Group(8 if per_node < 8 else 16, (per_node,)), size)

    assert across >= 0.9 * inside


def test_devices_of_a_node_share_its_network() -> None:
    """Of eight devices a node, each with a card, a ring crosses the network once: eight times one card's rate."""
    costs = CollectiveCosts(_nodes("H100"))
    together = costs.seconds_in("all_gather", Group(64, (8,)), 1 << 32)
    apart = costs.seconds_in("all_gather", Group(64, (1,)), 1 << 32)

    assert apart / together == pytest.approx(8.0, rel=0.05)


def test_an_exchange_sends_most_of_its_bytes_over_the_network() -> None:
    """16 H200 of two nodes exchange 1 GiB at 91 GB/s measured: half of the bytes go over 50 GB/s a device."""
    costs = CollectiveCosts(_nodes("H200"))

    assert (1 << 30) / costs.seconds_in("all_to_all", Group(16, (8,)), 1 << 30) / 1e9 == pytest.approx(91, rel=0.05)


def test_a_pair_on_a_mesh_gets_one_link_and_eight_get_seven(oracles: Path) -> None:
    rows = {int(row["gpus"]): row for row in read_table(oracles, "busbw_nvlink_measured") if row["gpu"] == "MI300X"}
    costs = CollectiveCosts(_nodes("MI300X"))
    for devices, row in rows.items():
        seconds = costs.seconds("all_reduce", devices, 4 << 30)
        assert (4 << 30) / seconds * bus_factor("all_reduce", devices) / 1e9 == pytest.approx(
            float(row["busbw_gbps"]), rel=0.15
        )


def test_factors_are_the_published_ones(oracles: Path) -> None:
    for row in read_table(oracles, "nccl_busbw_factors"):
        kind = KIND.get(row["collective"], row["collective"])
        for devices in (2, 4, 8, 16):
            assert bus_factor(kind, devices) == float(row[f"n{devices}"])


def test_a_kind_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="expected one of all_reduce, reduce_scatter"):
        CollectiveCosts(_nodes("H100")).seconds("allreduce", 8, 1e6)


def test_a_group_that_should_cross_nodes_needs_a_network() -> None:
    with pytest.raises(UsageError, match="no network is stated"):
        CollectiveCosts(cluster_of(find_device("H100"))).seconds("all_reduce", 4, 1e6, crosses_nodes=True)


def test_groups_can_be_asked_for_by_number_by_place_and_by_dimension() -> None:
    costs = CollectiveCosts(_nodes("H100"))
    layout = Layout(tp=8, dp=16)

    by_number = costs.seconds("all_reduce", 16, 1e9, crosses_nodes=True, per_node=1)
    assert costs.seconds_in("all_reduce", Group(16, (1,)), 1e9) == by_number
    assert costs.seconds_along("all_reduce", layout, "dp", 1e9) == by_number
    assert costs.seconds("all_reduce", 16, 1e9) == costs.seconds_in("all_reduce", Group(16, (8,)), 1e9)


@pytest.mark.parametrize(
    ("group", "begins"),
    [
        (Group(8), "alpha + gamma*sqrt(S) + S/rate = 1.542e-05 + 9.043e-09*sqrt(1,000,000)"),
        (Group(16, (8,)), "tree, LL128: 1.1*latency + 5e-9*sqrt(S) + S/rate = 1.1*"),
    ],
)
def test_an_answer_shows_its_formula_with_values(group: Group, begins: str) -> None:
    assert CollectiveCosts(_nodes("H100")).estimate("all_reduce", group, 1e6).formula.startswith(begins)


@given(
    size=st.integers(1, 1 << 34),
    group=st.sampled_from([Group(8), Group(6), Group(16, (8,)), Group(64, (1,)), Group(512, (8,))]),
    kind=st.sampled_from(KINDS),
    name=st.sampled_from(["H100", "MI300X", "V100"]),
)
def test_a_formula_ends_in_what_was_computed(size: int, group: Group, kind: str, name: str) -> None:
    found = CollectiveCosts(_nodes(name)).estimate(kind, group, size)

    assert float(found.formula.rsplit("= ", 1)[1].removesuffix(" s")) == pytest.approx(found.seconds, rel=1e-3)


def test_line_rates_add_a_latency() -> None:
    costs = CollectiveCosts(_nodes("MI300X"))

    assert costs.estimate("all_reduce", Group(8), 0.0).seconds == GENERIC_LATENCY_S
    assert costs.estimate("all_reduce", Group(64, (8,)), 0.0).latency_s > GENERIC_LATENCY_S
