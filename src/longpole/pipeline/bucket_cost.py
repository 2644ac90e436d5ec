"""What an all-reduce of gradients costs: the first model that exists, held against the buckets that were recorded."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from longpole.costs.cluster import Cluster, Group, Level
from longpole.costs.collective_time import CollectiveCosts
from longpole.digest.transfer_costs import TransferCosts
from longpole.hardware.devices import match_device
from longpole.ranks.cost_model import Model, shipped_model
from longpole.records.ledger import Unknown
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from longpole.analyses.gradients import GradientPass
    from longpole.digest.across import Across
    from longpole.ranks.cost_model import RecordedModels
    from longpole.settings import Settings
    from longpole.whatif.bucket_sweep import Gradients

KIND: Final = "all_reduce"
_LARGE_BYTES: Final = 1 << 28  # where a curve's rate is taken
_ASSUMED_LATENCY_NS: Final = 20_000.0  # of `buckets`: measured on nodes of A100 (tests/oracles/nccl_fit_...csv)
_RATES_APART_MAX: Final = 2.0  # recorded rates that differ by more do not go with bytes: they hold waiting
_LARGE_SHARE: Final = 4  # buckets of at least a quarter of the largest tell the rate …
_SMALL_SHARE: Final = 64  # … and those of less than this part of it the latency
MISSING: Final = ["a record of bench collectives (--collective-record)", "or latency and rate (--cost US:GB_PER_S)"]


class RecordedTimes:
    """What each recorded bucket took: its transfer where waiting could be taken off, else its shortest duration."""

    def __init__(self, gradients: Gradients, rank: int, across: Across | None) -> None:
        """Look every bucket of every pass up."""
        transfers = _transfers(rank, across)
        self._waits = {instance: wait_ns for instance, (_, _, wait_ns) in transfers.items()}
        self.across = across
        self.operation = -1
        by_place: list[list[int]] = [[] for _ in gradients.passes[0].buckets]
        durations: list[list[int]] = [[] for _ in by_place]
        for one in gradients.passes:
            for place, bucket in enumerate(one.buckets[: len(by_place)]):
                durations[place].append(bucket.end_ns - bucket.start_ns)
                if bucket.instance in transfers:
                    self.operation, transfer_ns, _ = transfers[bucket.instance]
                    by_place[place].append(transfer_ns)
        self.is_split = all(by_place)
        sizes = [bucket.bytes for bucket in gradients.recorded_buckets(gradients.passes[0])]
        times = [median(found) for found in by_place] if self.is_split else [min(found) for found in durations]
        self.points = [(size, float(ns)) for size, ns in zip(sizes, times, strict=True) if size > 0 and ns > 0]

    def waiting_ns(self, one: GradientPass) -> int | Unknown:
        """Return how much of a pass's exposed time its buckets waited for other ranks."""
        if not self.is_split:
            return Unknown("waiting for other ranks cannot be told from moving", ["the traces of all ranks"])
        waited_ns, until_ns = 0, one.end_ns
        for bucket in sorted(one.buckets, key=lambda bucket: bucket.start_ns):
            start_ns, end_ns = bucket.start_ns, bucket.start_ns + self._waits.get(bucket.instance, 0)
            waited_ns += max(end_ns - max(start_ns, until_ns), 0)
            until_ns = max(until_ns, end_ns)
        return waited_ns

    def over(self, model: Model) -> float | Unknown:
        """Return what was recorded over what a model says, the median over the buckets."""
        ratios = [ns / (model.alpha_ns + model.gamma * size**0.5 + size / model.rate) for size, ns in self.points]
        return median(ratios) if ratios else Unknown("the recorded buckets have no known size and time")


def _transfers(rank: int, across: Across | None) -> dict[int, tuple[int, int, int]]:
    """Return instance -> (operation, transfer, waiting) of a rank's operations that could be split."""
    if across is None:
        return {}
    matched, split = across.matched, across.split
    found = {}
    for operation in range(len(matched)):
        members = slice(int(matched.first[operation]), int(matched.first[operation + 1]))
        mine = matched.rank[members] == rank
        if split.how[operation] and mine.any():
            transfer_ns = int(split.transfer_ns[members].max())
            waited_ns = max(int(split.skew_ns[members][mine][0]), 0)
            found[int(matched.instance[members][mine][0])] = (operation, transfer_ns, waited_ns)
    return found


def find_model(
    device: tuple[str, int],
    ranks: int,
    times: RecordedTimes,
    recorded: RecordedModels | None,
    settings: Settings,
) -> Model | Unknown:
    """Return the first cost model that exists for the all-reduces of a rank's gradients.

    In this order: a fit to the run's own transfers, the user's record, a shipped fit, NCCL's own model of devices that
    share one node, a rate from the recorded buckets themselves.

    Args:
        device: Name of the rank's device, and how many devices its host lists.
        ranks: How many take part.
        times: What the recorded buckets took.
        recorded: What the user measured.
        settings: From how many sizes a model is fitted.
    """
    name, on_node = device
    if times.across is not None and times.operation >= 0:
        costs = TransferCosts(times.across, {}, settings)
        costs(times.operation, 1)
        fitted = [model for _, _, model in costs.used() if model.source == "fit"]
        if fitted:
            return fitted[0]
    own = recorded.find(KIND, ranks) if recorded is not None else None
    if own is not None and own.rate <= 0:  # a record of small sizes only: it says nothing of a bucket's
        own = None
    return own or shipped_model(name, KIND, ranks) or _nccl_model(name, ranks, on_node) or _own_rate(times)


def _nccl_model(device_name: str, ranks: int, on_node: int) -> Model | None:
    """Return NCCL's own model where all ranks share a node and the device is one that the model was checked for."""
    device = match_device(device_name)
    if device is None or device.scaleup_bytes_per_s is None or not 1 < ranks <= on_node:
        return None
    cluster = Cluster(device, (Level("scale-up", on_node, device.scaleup_bytes_per_s, "scale_up"),))
    costs, group = CollectiveCosts(cluster), Group(ranks)
    found = costs.estimate(KIND, group, _LARGE_BYTES)
    if found.error_share is None:
        return None
    alpha_ns = found.latency_s * NS_PER_S
    return Model(alpha_ns, 0.0, _LARGE_BYTES / (found.seconds * NS_PER_S - alpha_ns), "nccl_model", found.says)


def _own_rate(times: RecordedTimes) -> Model | Unknown:
    """Return what the recorded buckets say: the rate of the large ones, and a latency from small ones or assumed.

    Where waiting for other ranks is in their times, both are no better than this, and maybe worse than they are.
    """
    what = "recorded buckets" if times.is_split else "recorded buckets, waiting for other ranks included"
    largest = max((size for size, _ in times.points), default=0.0)
    rates = [
        size / (ns - _ASSUMED_LATENCY_NS)
        for size, ns in times.points
        if size * _LARGE_SHARE >= largest and ns > 2 * _ASSUMED_LATENCY_NS
    ]
    if not rates:
        return Unknown("no cost of an all-reduce is known for this device and number of ranks", MISSING)
    if max(rates) > _RATES_APART_MAX * min(rates):
        why = f"{what} moved {min(rates):.3g} to {max(rates):.3g} GB/s: their times do not go with their bytes"
        return Unknown(f"no cost of an all-reduce is known for this device and number of ranks, and {why}", MISSING)
    rate = median(rates)
    latencies = [ns - size / rate for size, ns in times.points if size * _SMALL_SHARE < largest]
    if latencies:
        return Model(max(*latencies, _ASSUMED_LATENCY_NS), 0.0, rate, "buckets", f"latency and rate of the {what}")
    return Model(_ASSUMED_LATENCY_NS, 0.0, rate, "buckets", f"rate of the {what}; latency assumed")
