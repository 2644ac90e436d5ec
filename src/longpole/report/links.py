"""Who sends how much to whom directly, at what rate, and which pairs are slow; and the pipeline that this shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.ranks.split import How, what_is_missing, why_not_split
from longpole.records.collectives import LinkRow, PipelineEntry
from longpole.records.instances import RECEIVE, SEND
from longpole.records.ledger import Unknown
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.digest.members import Members
    from longpole.digest.rank_digest import RankDigest
    from longpole.settings import Settings

_SHOWN: Final = 256
_PAIR: Final = 2


def link_rows(members: Members, settings: Settings) -> list[LinkRow]:
    """Return the communication matrix as far as sends and receives that name their peers show it."""
    sender, receiver, operations = _pairs(members)
    if len(operations) == 0:
        return []
    matched, split = members.across.matched, members.across.split
    pairs, which = np.unique(np.stack([sender, receiver]), axis=1, return_inverse=True)
    which = which.reshape(-1)
    rows = []
    for number in range(pairs.shape[1]):
        mine = operations[which == number]
        sizes = matched.bytes[mine]
        known = split.how[mine] != int(How.UNKNOWN)
        transfer_ns = _receiver_transfers(members, mine, int(pairs[1, number]))
        good = known & (sizes > 0) & (transfer_ns > 0)
        why = Unknown(why_not_split(matched, split, mine), what_is_missing(matched, split, mine))
        no_size = Unknown("sizes are not recorded", ["collective metadata (torch 2.4 or later)"])
        rate = float(sizes[good].sum()) / float(transfer_ns[good].sum()) if good.any() else None
        rows.append(
            LinkRow(
                from_rank=int(pairs[0, number]),
                to_rank=int(pairs[1, number]),
                count=len(mine),
                bytes=int(sizes.sum()) if (sizes >= 0).all() else no_size,
                transfer_ns=int(transfer_ns[known].sum()) if known.all() else why,
                gb_per_s=rate if rate is not None else (why if not known.all() else no_size),
            )
        )
    _mark_slow(rows, settings)
    return sorted(rows, key=lambda row: (not row.slow, row.from_rank, row.to_rank))[:_SHOWN]


def _mark_slow(rows: list[LinkRow], settings: Settings) -> None:
    """Mark pairs whose rate is far below the median pair's; two pairs have no median worth the name."""
    rates = sorted(row.gb_per_s for row in rows if not isinstance(row.gb_per_s, Unknown))
    if len(rates) <= _PAIR:
        return
    median = rates[len(rates) // 2]
    for row in rows:
        row.slow = not isinstance(row.gb_per_s, Unknown) and row.gb_per_s * settings.slow_link_factor < median


def _pairs(members: Members) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return sender, receiver and operation of each pair whose direction is known."""
    matched = members.across.matched
    instances = members.across.instances
    is_pair = matched.kind == COLLECTIVE_KINDS.index("send_recv")
    k = members.place[is_pair[members.operation]]
    operation = matched.operation_of_member()[k]
    rank = matched.rank[k].astype(np.int64)
    direction, peer = matched.column(instances, "direction")[k], matched.column(instances, "peer")[k]
    known = (peer >= 0) & np.isin(direction, (SEND, RECEIVE))
    sender = np.where(direction == SEND, rank, peer)[known]
    receiver = np.where(direction == SEND, peer, rank)[known]
    ops, first = np.unique(operation[known], return_index=True)
    return sender[first], receiver[first], ops


def _receiver_transfers(members: Members, operations: NDArray[np.int64], receiver: int) -> NDArray[np.int64]:
    """Return the transfer of each operation on the receiving side, -1 where not known."""
    matched, split = members.across.matched, members.across.split
    operation = matched.operation_of_member()
    out = np.full(len(matched), -1, np.int64)
    mine = matched.rank == receiver
    out[operation[mine]] = split.transfer_ns[mine]
    return out[operations]


def _sent_ns(members: Members, sender: NDArray[np.int64], operations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when the sender of each operation began; when its first member did where the sender is not there."""
    matched, split = members.across.matched, members.across.split
    sent_ns = split.start_ns[matched.first[:-1]]
    operation = matched.operation_of_member()
    of_operation = np.full(len(matched), -1, np.int64)
    of_operation[operations] = sender
    mine = matched.rank == of_operation[operation]
    sent_ns[operation[mine]] = split.start_ns[mine]
    return sent_ns[operations]


def pipeline_entry(members: Members, digests: Sequence[RankDigest]) -> PipelineEntry | None:
    """Read a pipeline off the sends: stages, micro-batches, bubble and imbalance; None where there is none.

    The first send between two ranks in a unit goes down the pipeline, for forward comes before backward. A receive may
    be posted long before there is anything to send.
    """
    sender, receiver, operations = _pairs(members)
    if len(operations) == 0:
        return None
    matched = members.across.matched
    start_ns = _sent_ns(members, sender, operations)
    unit_of = np.full(len(matched), -1, np.int64)
    unit_of[members.operation] = members.unit
    unit = unit_of[operations]
    order = np.argsort(start_ns, kind="stable")
    down: dict[frozenset[int], tuple[int, int]] = {}
    for i in order.tolist():
        down.setdefault(frozenset((int(sender[i]), int(receiver[i]))), (int(sender[i]), int(receiver[i])))
    stage = _depths(set(down.values()))
    if stage is None or max(stage.values()) == 0:
        return None
    forward = np.array([(int(s), int(r)) in set(down.values()) for s, r in zip(sender, receiver, strict=True)])
    n_units = max(len(np.unique(unit)), 1)
    n_pairs = max(len(down), 1)
    micro_batches = round(int(forward.sum()) / n_units / n_pairs)
    if micro_batches < 1:
        return None
    return _bubble(stage, micro_batches, members, digests)


def _depths(edges: set[tuple[int, int]]) -> dict[int, int] | None:
    """Return each rank's distance from the first stage, None where the sends run in a circle."""
    ranks = {rank for edge in edges for rank in edge}
    depth = dict.fromkeys(ranks, 0)
    for _ in range(len(ranks) + 1):
        changed = False
        for sender, receiver in edges:
            if depth[receiver] < depth[sender] + 1:
                depth[receiver] = depth[sender] + 1
                changed = True
        if not changed:
            return depth
    return None


def _bubble(
    stage: dict[int, int], micro_batches: int, members: Members, digests: Sequence[RankDigest]
) -> PipelineEntry | None:
    names = set(members.units)
    compute: dict[int, list[int]] = {}
    share: list[float] = []
    for digest in digests:
        if digest.rank not in stage:
            continue
        mine = [u for u in digest.rows[0].units if u.name in names]
        wall_ns = sum(u.ledger.wall_ns for u in mine)
        if not wall_ns:
            continue
        busy_ns = sum(u.ledger.device.compute_ns for u in mine)
        compute.setdefault(stage[digest.rank], []).append(busy_ns // len(mine))
        share.append(1 - busy_ns / wall_ns)
    if len(compute) < _PAIR:
        return None
    means = [sum(compute[s]) // len(compute[s]) for s in sorted(compute)]
    mean = sum(means) / len(means)
    stages = [sorted(rank for rank, s in stage.items() if s == number) for number in sorted(set(stage.values()))]
    imbalance = max(means) / mean - 1 if mean else 0.0
    return PipelineEntry(stages, micro_batches, sum(share) / len(share), imbalance, means)
