"""The report's collectives: for each kind, group and element type what was waited, moved and shown (DESIGN 3.8)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.ranks.cost_model import Model, bus_factor, fit_model, shipped_model
from longpole.ranks.split import How, what_is_missing, why_not_split
from longpole.records.collectives import CollectiveEntry, CostModel, SizeRow, StageRow, WaitRow
from longpole.records.ledger import Unknown
from longpole.vocabulary.objects import COLLECTIVE_KINDS, STAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.digest.across import Across
    from longpole.digest.members import Members
    from longpole.digest.rank_digest import RankDigest
    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]

_WAITS_SHOWN: Final = 32
_SIZES_SHOWN: Final = 64
_NODE_MAX: Final = 8  # ranks that the shipped fits were measured with: one node's
_ROLES: Final = {
    "dp": "data parallel",
    "ddp": "data parallel",
    "data": "data parallel",
    "fsdp": "sharded data parallel",
    "shard": "sharded data parallel",
    "replicate": "replicated data parallel",
    "tp": "tensor parallel",
    "tensor": "tensor parallel",
    "pp": "pipeline parallel",
    "pipeline": "pipeline parallel",
    "cp": "context parallel",
    "context": "context parallel",
    "ep": "expert parallel",
    "expert": "expert parallel",
    "sp": "sequence parallel",
    "default": "all ranks",
}
_WORDS: Final = re.compile(r"[a-z]+")


def collective_entries(members: Members, digests: Sequence[RankDigest], settings: Settings) -> list[CollectiveEntry]:
    """Sum the operations of steady units by kind, group and element type, the longest first."""
    matched = members.across.matched
    if len(members.place) == 0:
        return []
    low = matched.first[:-1]
    dtype, names = _dtypes(members.across)
    key = np.stack([matched.kind.astype(np.int64), matched.group_of.astype(np.int64), dtype[low]])
    chosen = np.unique(members.operation)
    keys, which = np.unique(key[:, chosen], axis=1, return_inverse=True)
    which = which.reshape(-1)
    # Sorted once by kind and group: there may be hundreds of groups, and millions of members.
    number_of = np.full(len(matched), -1, np.int64)
    number_of[chosen] = which
    by_number = np.argsort(number_of[members.operation], kind="stable")
    cuts = np.searchsorted(number_of[members.operation][by_number], np.arange(1, keys.shape[1]))
    places = np.split(by_number, cuts)
    transfer_ns = _transfers(members.across)
    entries = [
        _entry(_Part(members, places[number], transfer_ns, settings), digests, names[int(keys[2, number])])
        for number in range(keys.shape[1])
    ]
    return sorted(entries, key=lambda entry: (-entry.duration_ns, entry.kind, entry.group))


def _dtypes(across: Across) -> tuple[Ints, list[str]]:
    """Return the element type of each member by a common number, `[K]` int64, and the names by number, "" for none."""
    numbers: dict[str, int] = {}
    matched = across.matched
    out = np.full(len(matched.rank), -1, np.int64)
    for rank, places in matched.by_rank().items():
        mine = across.instances[rank]
        codes = np.array([numbers.setdefault(name, len(numbers)) for name in mine.dtypes] + [-1], np.int64)
        out[places] = codes[mine.dtype[matched.instance[places]]]
    return out, [*numbers, ""]


class _Part:
    """The members of some operations, and the sums over them."""

    def __init__(self, members: Members, chosen: NDArray[np.intp], transfer_ns: Ints, settings: Settings) -> None:
        self.members, self.settings = members, settings
        operations = np.unique(members.operation[chosen])
        self.operations = operations
        self.place = members.place[chosen]
        self.operation = members.operation[chosen]
        self.duration_ns = members.duration_ns[chosen]
        self.exposed_ns = members.exposed_ns[chosen]
        self.unit = members.unit[chosen]
        self.first = np.searchsorted(self.operation, operations)
        self.stage = members.stage[chosen]
        self.on_device = members.on_device[chosen]
        across = members.across
        self.matched, self.split = across.matched, across.split
        self.rank = self.matched.rank[self.place]
        self.skew_ns = self.split.skew_ns[self.place]
        self.bytes = self.matched.bytes[operations]
        self.is_split = self.split.how[operations] != int(How.UNKNOWN)
        self.transfer_ns = transfer_ns[operations]
        unsplit_ns = int(self.duration_ns[self.skew_ns < 0].sum())
        self.known = unsplit_ns <= settings.unsplit_max_share * int(self.duration_ns.sum()) and self.is_split.any()

    def why_unknown(self) -> Unknown:
        """Say why the operations could not be split."""
        return _why(self, self.operations)


def _why(part: _Part, operations: Ints) -> Unknown:
    """Say why some operations were not split, and what would have to be recorded."""
    missing = what_is_missing(part.matched, part.split, operations)
    return Unknown(why_not_split(part.matched, part.split, operations), missing)


def _transfers(across: Across) -> Ints:
    """Return the transfer of each operation: the last arriver's, which needs no clock; -1 where not known."""
    matched, split = across.matched, across.split
    transfer = split.transfer_ns.astype(np.float64)
    # The last arriver is the member that waited least; between equal ones, the shortest.
    order = np.lexsort((transfer, split.skew_ns, matched.operation_of_member()))
    first = order[matched.first[:-1]] if len(matched) else np.empty(0, np.int64)
    return split.transfer_ns[first]


def _entry(part: _Part, digests: Sequence[RankDigest], dtype: str) -> CollectiveEntry:
    matched = part.matched
    one = int(part.operations[0])
    kind = COLLECTIVE_KINDS[int(matched.kind[one])]
    group = matched.group[int(matched.group_of[one])] if matched.group_of[one] >= 0 else None
    present = sorted({int(rank) for rank in part.rank})
    members = sorted(group.members) if group is not None else _assumed_members(part, present)
    n = _size(part)
    model = _model(part, kind, n, present, digests)
    algbw, rate_from = _rate(part)
    factor = bus_factor(kind, n)
    known = part.known
    skew_ns = int(part.skew_ns[part.skew_ns >= 0].sum())
    why = part.why_unknown() if not known else None
    culprit = _culprits(part)
    no_bus = Unknown("the size of the group or the kind's factor is not known", [])
    entry = CollectiveEntry(
        kind=kind or "unknown",
        group=group.name if group is not None else "",
        role=_role(group.description) if group is not None else "",
        members=members,
        members_present=present,
        dtype=dtype,
        count=len(part.operations),
        count_split=int(part.is_split.sum()),
        bytes=int(part.bytes.sum()) if (part.bytes >= 0).all() else _NO_SIZES,
        duration_ns=int(part.duration_ns.sum()),
        split="known" if known else "unknown",
        transfer_ns=int(part.transfer_ns[part.is_split].sum()) if why is None else why,
        skew_ns=skew_ns if why is None else why,
        exposed_ns=int(part.exposed_ns.sum()),
        model=written_model(model) if model is not None else _NO_MODEL,
        algbw_gb_per_s=algbw,
        busbw_gb_per_s=algbw * factor if factor is not None and not isinstance(algbw, Unknown) else no_bus,
        rate_from=rate_from,
        bound=_bound(part, model, skew_ns),
        by_size=_by_size(part),
        by_stage=_by_stage(part),
        culprit_rank=culprit.rank,
        culprit_share=culprit.share,
        culprit_by_unit=culprit.by_unit,
        waiting_ns_by_rank=_waiting(part, why),
        waits=_waits(part) if why is None else [],
    )
    if isinstance(algbw, Unknown):
        entry.busbw_gb_per_s = algbw
    if not part.on_device.any():
        entry.on_host = True
    return entry


_NO_SIZES: Final = Unknown("sizes are not recorded", ["collective metadata (torch 2.4 or later)"])
_NO_MODEL: Final = Unknown(
    "too few sizes for a fit, and no shipped fit for this device, kind and number of ranks of one node",
    [],
)


def _assumed_members(part: _Part, present: list[int]) -> list[int]:
    """Return the members of a group that nobody names: those that hold the operations, where they are complete."""
    return present if part.matched.complete[part.operations].any() else []


def _role(description: str) -> str:
    words = _WORDS.findall(description.lower())
    return next((_ROLES[word] for word in words if word in _ROLES), "")


def _size(part: _Part) -> int | None:
    expected = part.matched.expected[part.operations]
    return int(expected.max()) if expected.max() > 0 else None


def _known_transfers(part: _Part) -> tuple[Ints, Ints]:
    """Return sizes and transfers of the operations that have both."""
    good = part.is_split & (part.bytes > 0) & (part.transfer_ns > 0)
    return part.bytes[good], part.transfer_ns[good]


def _model(part: _Part, kind: str, n: int | None, present: list[int], digests: Sequence[RankDigest]) -> Model | None:
    fitted = fit_model(*_known_transfers(part), part.settings)
    if fitted is not None or n is None:
        return fitted
    given = part.members.across.recorded
    recorded = given.find(kind, n) if given is not None else None
    if recorded is not None:
        return recorded
    mine = [digest for digest in digests if digest.rank in present]
    hosts = {digest.host for digest in mine}
    world = max((digest.world_size or 0 for digest in digests), default=0)
    # Old records name no host: a job of no more ranks than a node has devices is taken to run on one node.
    one_node = len(hosts) == 1 and ("" not in hosts or 0 < world <= _NODE_MAX)
    names = {row.device_name for digest in mine for row in digest.rows}
    return shipped_model(names.pop(), kind, n) if one_node and len(names) == 1 else None


def written_model(model: Model) -> CostModel:
    """Return a cost model as it is stored."""
    return CostModel(round(model.alpha_ns), model.gamma, model.rate, model.source, model.says)


def _rate(part: _Part) -> tuple[float | Unknown, str]:
    """Return bytes over transfer time; where that is not known, over the shortest member's duration."""
    sizes, transfers_ns = _known_transfers(part)
    if len(sizes):
        return float(sizes.sum()) / float(transfers_ns.sum()), "transfer"
    shortest_ns = np.minimum.reduceat(part.duration_ns, part.first)
    good = (part.bytes > 0) & (shortest_ns > 0)
    if not good.any():
        return Unknown(_NO_SIZES.unknown, _NO_SIZES.missing), "duration"
    return float(part.bytes[good].sum()) / float(shortest_ns[good].sum()), "duration"


def _bound(part: _Part, model: Model | None, skew_ns: int) -> str:
    """Say what bounds the operations: waiting, else the larger part of the model (DESIGN 3.8)."""
    if not part.known:
        return "unknown"
    if 2 * skew_ns >= int(part.duration_ns[part.skew_ns >= 0].sum()) and skew_ns > 0:
        return "skew"
    sizes, transfers_ns = _known_transfers(part)
    if model is None or len(sizes) == 0:
        return "unknown"
    latency_ns, moving_ns = model.parts_ns(sizes)
    half_ns = float(transfers_ns.sum()) / 2
    if latency_ns >= half_ns:
        return "latency"
    return "bandwidth" if moving_ns >= half_ns else "mixed"


def _by_size(part: _Part) -> list[SizeRow]:
    rows = []
    size_of_member = part.matched.bytes[part.operation]
    for size in np.unique(part.bytes[part.bytes >= 0]).tolist():
        ops, members = part.bytes == size, size_of_member == size
        split = part.is_split[ops]
        why = None if split.all() else _why(part, part.operations[ops])
        skews = part.skew_ns[members]
        rows.append(
            SizeRow(
                bytes=size,
                count=int(ops.sum()),
                transfer_ns=int(part.transfer_ns[ops].sum()) if why is None else why,
                exposed_ns=int(part.exposed_ns[members].sum()),
                duration_ns=int(part.duration_ns[members].sum()),
                skew_ns=int(skews.sum()) if why is None else why,
            )
        )
    return sorted(rows, key=lambda row: -row.duration_ns)[:_SIZES_SHOWN]


def _by_stage(part: _Part) -> list[StageRow]:
    rows = []
    for code in np.unique(part.stage).tolist():
        mine = part.stage == code
        name = STAGES[code] if code >= 0 else "unknown"
        count = len(np.unique(part.operation[mine]))
        rows.append(StageRow(name, count, int(part.duration_ns[mine].sum()), int(part.exposed_ns[mine].sum())))
    return rows


def _waiting(part: _Part, why: Unknown | None) -> dict[str, int | Unknown]:
    if why is not None:
        return {str(rank): why for rank in np.unique(part.rank).tolist()}
    skew_ns = np.maximum(part.skew_ns, 0)
    return {str(rank): int(skew_ns[part.rank == rank].sum()) for rank in np.unique(part.rank).tolist()}


def _waits(part: _Part) -> list[WaitRow]:
    """Return who waited how long for whom."""
    culprit = part.split.culprit[part.operation]
    waited = (culprit >= 0) & (part.skew_ns > 0) & (culprit != part.rank)
    if not waited.any():
        return []
    width = int(max(part.rank.max(), culprit.max())) + 1
    pair = part.rank[waited].astype(np.int64) * width + culprit[waited]
    order = np.argsort(pair, kind="stable")
    pairs, first, counts = np.unique(pair[order], return_index=True, return_counts=True)
    total_ns = np.add.reduceat(part.skew_ns[waited][order], first)
    found = zip(pairs.tolist(), total_ns.tolist(), counts.tolist(), strict=True)
    rows = [WaitRow(one // width, one % width, waiting_ns, count) for one, waiting_ns, count in found]
    return sorted(rows, key=lambda row: (-row.waiting_ns, row.rank, row.for_rank))[:_WAITS_SHOWN]


@dataclass(frozen=True, slots=True)
class _Culprit:
    rank: int | Unknown
    share: float | Unknown
    by_unit: list[int | None] | Unknown


def _culprits(part: _Part) -> _Culprit:
    """Name the rank that caused most of the waiting, where it is one rank's doing."""
    if not part.known:
        why = part.why_unknown()
        return _Culprit(why, why, why)
    culprits = part.split.culprit[part.operations]
    caused = np.where(culprits >= 0, np.add.reduceat(np.maximum(part.skew_ns, 0), part.first), 0)
    by_unit = _by_unit(part, culprits, caused)
    total_ns = int(np.maximum(part.skew_ns, 0).sum())
    late = np.unique(culprits[culprits >= 0]).tolist()
    if not late:
        why = Unknown("no rank arrived later than the others by more than the clocks' uncertainty", [])
        return _Culprit(why, why, by_unit)
    by_rank = {rank: int(caused[culprits == rank].sum()) for rank in late}
    rank = max(by_rank, key=lambda r: (by_rank[r], -r))
    if by_rank[rank] < part.settings.culprit_min_share * total_ns:
        most = f"rank {rank} causes {by_rank[rank] / total_ns:.0%} of it" if total_ns else "nobody waits"
        why = Unknown(f"the waiting is not one rank's doing: {most}", [])
        return _Culprit(why, why, by_unit)
    return _Culprit(rank, float((culprits == rank).sum()) / len(culprits), by_unit)


def _by_unit(part: _Part, culprits: NDArray[np.int32], caused_ns: Ints) -> list[int | None]:
    """Return, for each unit, the rank whose lateness was waited for longest, None where no rank was late."""
    units = part.unit[part.first]
    named: list[int | None] = []
    for unit in np.unique(units).tolist():
        mine = (units == unit) & (culprits >= 0)
        ranks, which = np.unique(culprits[mine], return_inverse=True)
        total_ns = np.bincount(which.reshape(-1), weights=caused_ns[mine])
        named.append(int(ranks[int(total_ns.argmax())]) if len(ranks) else None)
    return named
