"""Bytes that move slowly: a link far slower than its peers, or a protocol made for small messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.operations import in_other_times, members, operations_of, where
from longpole.advice.suspect import Suspect
from longpole.advice.words import listed
from longpole.ranks.cost_model import bus_factor
from longpole.records.findings import Evidence, Place
from longpole.units import format_bytes
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.advice.operations import Operations
    from longpole.advice.scene import Scene

_LOW_LATENCY: Final = ("LL", "LL128")
_SHOWN_MIN: Final = 0.5  # of the transfers: a protocol matters where they show
_STAKE_MIN: Final = 0.2  # our choice, of the period: NCCL 2.19 and later name every kernel so
_FAST_GB_PER_S: Final = 50.0  # 16 lanes of PCIe 5 less its overhead: slower links explain slower rates by themselves
_FLOOR_GB_PER_S: Final = 1.0  # our choice: below what any fabric between devices is sold with
_LARGE_BYTES: Final = 1 << 20


def find(scene: Scene) -> list[Suspect]:
    """Suspect slow pairs, slow groups, and low-latency protocols for large messages."""
    operations = operations_of(scene)
    if operations is None or scene.ground is None:
        return []
    return [*_slow_pairs(scene, operations), *_slow_groups(scene, operations), *_protocol(scene, operations)]


def _slow_pairs(scene: Scene, operations: Operations) -> list[Suspect]:
    """Suspect pairs of ranks whose sends and receives are far slower than the median pair's."""
    slow = [row for row in scene.tables.links if row.slow and isinstance(row.gb_per_s, float)]
    usual = sorted(row.gb_per_s for row in scene.tables.links if isinstance(row.gb_per_s, float))
    if not slow or scene.across is None:
        return []
    rate = usual[len(usual) // 2]
    matched = scene.across.matched
    pairs = {frozenset((row.from_rank, row.to_rank)) for row in slow}
    part = operations.of_kind("send_recv")
    chosen = [
        place
        for place, m in enumerate(part.operation.tolist())
        if frozenset(matched.rank[matched.first[m] : matched.first[m + 1]].tolist()) in pairs
    ]
    part = part.take(np.array(chosen, np.intp))
    if len(part) == 0:
        return []
    ranks = sorted({rank for pair in pairs for rank in pair})
    new_ns = np.minimum(np.rint(part.size_bytes / rate).astype(np.int64), part.transfer_ns)
    return [_link(scene, part, ranks, new_ns, slow[0].gb_per_s, rate)]  # type: ignore[arg-type]


def _link(
    scene: Scene, part: Operations, ranks: list[int], new_ns: NDArray[np.int64], rate: float, usual: float
) -> Suspect:
    less_ns = int((part.transfer_ns - new_ns).sum()) // part.n_units
    return Suspect(
        cause="slow_link",
        ranks=ranks,
        says=f"{part.kind_name} between {listed(ranks)} moves {rate:.3g} GB/s where"
        f" {usual:.3g} GB/s is usual: {{cost}}",
        evidence=[
            Evidence("gb_per_s", rate, where(scene, int(part.operation[0]))),
            Evidence("gb_per_s, usual", usual, Place()),
            Evidence("exposed_ns per unit", int(part.exposed_ns.sum()) // part.n_units, Place()),
        ],
        remove=in_other_times(scene, part, new_ns),
        ledger_ns=min(less_ns, int(part.exposed_ns.sum()) // part.n_units),
        what_if=[f"--set kind:{part.kind_name}={max(usual and rate / usual, 0.01):.3g}x"],
    )


def _bus_rate(scene: Scene, part: Operations, *, split_only: bool = True) -> float:
    """Return bus bandwidth in GB/s over operations of at least 1 MiB, 0 where it is not known or nothing moves."""
    good = (part.size_bytes >= _LARGE_BYTES) & (part.transfer_ns > 0) & ((part.split > 0) | (not split_only))
    if not good.any() or scene.across is None:
        return 0.0
    n = int(scene.across.matched.expected[int(part.operation[0])])
    factor = bus_factor(part.kind_name, n if n > 0 else None)
    rate = float(part.size_bytes[good].sum()) / float(part.transfer_ns[good].sum())
    return rate if factor is None else factor * rate


def _slow_groups(scene: Scene, operations: Operations) -> list[Suspect]:
    """Suspect groups far slower than other groups that do the same, and rates below what any fabric has."""
    parts = [part for part in operations.by_kind_and_group() if part.kind_name not in ("send_recv", "barrier")]
    rated = [(part, _bus_rate(scene, part)) for part in parts]
    rated = [(part, rate) for part, rate in rated if rate > 0]
    least_ns = scene.settings.finding_min_share * scene.period_ns / 2
    found = []
    for part, rate in rated:
        if part.exposed_ns.sum() / part.n_units < least_ns:
            continue
        peers = sorted(r for other, r in rated if other is not part and other.kind_name == part.kind_name)
        usual = peers[len(peers) // 2] if peers else 0.0
        if usual < scene.settings.slow_link_factor * rate:
            usual = _FLOOR_GB_PER_S if rate * scene.settings.slow_link_factor < _FLOOR_GB_PER_S else 0.0
            if any(view.graph.has_device for view in scene.views) is False:
                usual = 0.0
        if usual == 0.0:
            continue
        new_ns = np.rint(part.transfer_ns * (rate / usual)).astype(np.int64)
        found.append(_link(scene, part, members(scene, part), new_ns, rate, usual))
    return found


def _protocol(scene: Scene, operations: Operations) -> list[Suspect]:
    """Suspect large operations whose kernels' names claim a protocol made for small ones.

    A name alone proves nothing (NCCL names the entry kernel): so they must show throughout, for a good part of the
    period, no name of the run may claim another protocol for operations as large, and the rate must be one that only
    fast links reach.
    """
    protocols = _protocols(scene, operations)
    large = operations.size_bytes > scene.settings.low_latency_max_bytes
    claimed = np.array([one in _LOW_LATENCY for one in protocols], np.bool_)
    simple = np.array([one == "SIMPLE" for one in protocols], np.bool_)
    part = operations.take(large & claimed & (operations.kind != COLLECTIVE_KINDS.index("send_recv")))
    if len(part) == 0 or bool((large & simple).any()):
        return []
    shown, all_ns = int(part.exposed_ns.sum()), int(part.transfer_ns.sum())
    groups = part.by_kind_and_group()
    stake_ns = max(int(one.exposed_ns.sum()) // one.n_units for one in groups)
    rate = max(_bus_rate(scene, one, split_only=False) for one in groups)
    if shown < _SHOWN_MIN * all_ns or stake_ns < _STAKE_MIN * scene.period_ns or rate < _FAST_GB_PER_S:
        return []
    new_ns = np.rint(part.transfer_ns / scene.settings.low_latency_loss).astype(np.int64)
    size = int(np.median(part.size_bytes))
    return [
        Suspect(
            cause="protocol",
            ranks=members(scene, part),
            says=f"{part.kind_name} of {format_bytes(size)} runs kernels named for a low-latency protocol, which wastes"
            " the link above 1 MiB: {cost} if so; check NCCL_PROTO, NCCL_ALGO and NCCL_DEBUG=INFO",
            evidence=[
                Evidence("bytes, median", size, where(scene, int(part.operation[0]))),
                Evidence("transfer_ns, median", int(np.median(part.transfer_ns)), where(scene, int(part.operation[0]))),
                Evidence("exposed_ns per unit", shown // part.n_units, Place()),
            ],
            remove=in_other_times(scene, part, new_ns),
            ledger_ns=shown // part.n_units // 2,
            what_if=[f"--set kind:{part.kind_name}={1 / scene.settings.low_latency_loss:g}x"],
            grade="inferred",
            hypothesis=True,
        )
    ]


def _protocols(scene: Scene, operations: Operations) -> list[str]:
    """Return what the kernel's name of each operation's first member claims."""
    result = []
    for m in operations.operation.tolist():
        name = where(scene, m).name
        result.append(scene.vocabulary.kernel(name).protocol if name else "")
    return result
