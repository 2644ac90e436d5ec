"""Which operations of different workers are one: the members of a collective, a send and its receive.

All members of an instance wait for the last one to arrive; what each took after that is its transfer time (DESIGN 3.8).
A send may also be handed over and done, whether it is received yet or not. Then only the receive waits, for its end:

    send      ====                 send   ==
    recv    ======                 recv      ===
    both end together              the send did not wait
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.records.operations import NONE_ID, Members, OperationKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.records.operations import OperationTable
    from longpole.settings import Settings

    Rows: TypeAlias = NDArray[np.int64]
    Codes: TypeAlias = NDArray[np.int32]
    Flags: TypeAlias = NDArray[np.bool_]

_MANY = 1 << 62
ALONE = -1  # an operation that waits for nobody


@dataclass(frozen=True, slots=True)
class Instances:
    """Who runs together.

    Attributes:
        of_row: `[N]` int32: the instance of each operation, ALONE for none.
        count: Number of instances.
        sent: `[K]` int64: rows of sends that did not wait for their receive.
        received: `[K]` int64: rows of the receives that waited for the end of these, each an instance of its own.
        unmatched: `[U]` int64: rows of sends and receives without the other end.
        incomplete: `[U]` int64: rows of collectives of which a member is missing.
        unknown_members: `[U]` int64: rows of collectives whose members the table does not say.
        early: `[U]` int64: rows that ended before the last member of their instance started.
    """

    of_row: Codes
    count: int
    sent: Rows
    received: Rows
    unmatched: Rows
    incomplete: Rows
    unknown_members: Rows
    early: Rows


def match_instances(table: OperationTable, settings: Settings) -> Instances:
    """Bring together what ran together.

    Collectives are matched by step, type, number and members; a send with the receive of the neighbouring stage by
    model chunk and micro-batch where both are written, else by number.

    Args:
        table: The operations.
        settings: `operation_overlap_max_ns`.
    """
    key = np.full((len(table), 6), 0, np.int64)
    own = np.arange(len(table), dtype=np.int64)
    matched = _collective_keys(table, key) | _pair_keys(table, key)
    unknown = (table.kind == OperationKind.COLLECTIVE) & ~matched & ~_is_known(table)
    rows = own[matched]
    _, instance, size = np.unique(key[rows], axis=0, return_inverse=True, return_counts=True)
    complete = size[instance] == _wanted_sizes(table)[rows]
    is_pair = table.kind[rows] != OperationKind.COLLECTIVE
    sent, received = _handed_over(table, *_both_ends(table, rows, instance, is_pair & complete), settings)
    joined = (complete | ~is_pair) & (size[instance] > 1) & ~np.isin(rows, sent)
    _, numbers = np.unique(instance[joined], return_inverse=True)
    of_row = np.full(len(table), ALONE, np.int32)
    of_row[rows[joined]] = numbers
    lonely = np.isin(table.kind, (OperationKind.SEND, OperationKind.RECV)) & ~matched
    lonely[rows[is_pair & ~complete]] = True
    found = Instances(
        of_row=of_row,
        count=int(numbers.max(initial=-1)) + 1,
        sent=sent,
        received=received,
        unmatched=own[lonely],
        incomplete=rows[~is_pair & ~complete],
        unknown_members=own[unknown],
        early=own[:0],
    )
    return replace(found, early=_early(table, found, settings))


def arrival_ns(table: OperationTable, instances: Instances) -> Rows:
    """Return `[count]` int64 ns: when the last member of each instance started, or what it waits for was sent."""
    latest = np.full(instances.count, -(1 << 62), np.int64)
    together = instances.of_row != ALONE
    np.maximum.at(latest, instances.of_row[together], table.start_ns[together])
    np.maximum.at(latest, instances.of_row[instances.received], table.end_ns[instances.sent])
    return latest


def transfer_ns(table: OperationTable, instances: Instances) -> Rows:
    """Return `[N]` int64 ns: what an operation took after its last member arrived; its duration where it is alone."""
    latest = arrival_ns(table, instances)
    together = instances.of_row != ALONE
    work = table.duration_ns.copy()
    work[together] = np.maximum(table.end_ns[together] - latest[instances.of_row[together]], 0)
    return work


def _is_known(table: OperationTable) -> Flags:
    return np.array([kind.known for kind in table.types], bool)[table.optype]


def _members_of(table: OperationTable) -> Codes:
    return np.array([kind.members for kind in table.types], np.int32)[table.optype]


def _collective_keys(table: OperationTable, key: Rows) -> Flags:
    """Write the key of every collective's instance; return which rows have one."""
    members = _members_of(table)
    written = table.group != NONE_ID
    collective = (table.kind == OperationKind.COLLECTIVE) & ((members != Members.ALONE) | written)
    place = {name: table.of_worker(name).astype(np.int64) for name in ("dp_rank", "stage", "tp_rank")}
    per = {  # the parts of a worker's place that its instance is particular to
        Members.DATA: ("stage", "tp_rank"),
        Members.TENSOR: ("stage", "dp_rank"),
        Members.ENDS: ("dp_rank", "tp_rank"),
        Members.ALL: (),
    }
    key[collective, 0] = table.step[collective]
    key[collective, 1] = table.optype[collective]
    key[collective, 2] = table.sequence[collective]
    for scope, names in per.items():
        rows = collective & ~written & (members == scope)
        for column, name in enumerate(names, start=3):
            key[rows, column] = place[name][rows] + 1
    key[collective & written, 5] = table.group[collective & written] + 1
    return collective


def _pair_keys(table: OperationTable, key: Rows) -> Flags:
    """Write the key of every send and receive: the boundary that it crosses; return which rows have one."""
    pair = (table.kind == OperationKind.SEND) | (table.kind == OperationKind.RECV)
    direction = np.array([kind.direction for kind in table.types], np.int64)[table.optype]
    written = pair & (table.group != NONE_ID)
    by_chunk = pair & ~written & (table.model_chunk != NONE_ID) & (table.micro_batch != NONE_ID) & (direction != 0)
    # Without chunks on both ends, only a pipeline of one chunk a stage can be matched by number.
    by_number = pair & ~written & ~by_chunk & (direction != 0) & (table.chunk <= 0)
    stage = table.of_worker("stage").astype(np.int64)
    sends = table.kind == OperationKind.SEND
    at = np.where(by_chunk, table.model_chunk.astype(np.int64), stage)
    boundary = np.where(sends, at + (direction > 0), at + (direction < 0))
    key[pair, 0] = table.step[pair]
    key[pair, 1] = -2 - direction[pair]
    key[pair, 2] = np.where(by_chunk, table.micro_batch, table.sequence)[pair]
    key[pair, 3] = np.where(by_chunk, -boundary - 1, boundary)[pair]
    worker = table.of_worker("dp_rank").astype(np.int64) * (1 << 20) + table.of_worker("tp_rank")
    key[pair, 4] = worker[pair]
    key[written, 1:] = 0
    key[written, 1] = -5
    key[written, 2] = table.sequence[written]
    key[written, 5] = table.group[written] + 1
    return written | by_chunk | by_number


def _wanted_sizes(table: OperationTable) -> Rows:
    """Return `[N]` int64: how many members an operation's instance has where nothing is missing."""
    sizes = {name: max(getattr(w, name) for w in table.workers) + 1 for name in ("dp_rank", "stage", "tp_rank")}
    wanted = {
        Members.ALONE: 2,
        Members.DATA: sizes["dp_rank"],
        Members.TENSOR: sizes["tp_rank"],
        Members.ENDS: min(sizes["stage"], 2),
        Members.ALL: min(sizes["dp_rank"] * sizes["stage"] * sizes["tp_rank"], _MANY),
    }
    of_type = np.array([wanted[kind.members] for kind in table.types], np.int64)[table.optype]
    written = (table.kind == OperationKind.COLLECTIVE) & (table.group != NONE_ID)
    if written.any():
        ranks: dict[int, set[int]] = {}
        for group, rank in zip(table.group[written].tolist(), table.rank[written].tolist(), strict=True):
            ranks.setdefault(group, set()).add(rank)
        of_type[written] = [len(ranks[group]) for group in table.group[written].tolist()]
    return of_type


def _both_ends(table: OperationTable, rows: Rows, instance: Rows, pairs: Flags) -> tuple[Rows, Rows]:
    """Return the rows of sends and of their receives; two of a kind in one instance are no pair."""
    sends = np.flatnonzero(pairs & (table.kind[rows] == OperationKind.SEND))
    receives = np.flatnonzero(pairs & (table.kind[rows] == OperationKind.RECV))
    _, first, second = np.intersect1d(instance[sends], instance[receives], return_indices=True)
    return rows[sends[first]], rows[receives[second]]


def _handed_over(table: OperationTable, sent: Rows, received: Rows, settings: Settings) -> tuple[Rows, Rows]:
    """Return the pairs whose send did not wait for the receive.

    How a direction sends is one thing for all of its pairs: among those whose receive came clearly later than the
    send, did the send of most end before? A pair of another direction counts alone, if its send ended well before.
    """
    gap_ns = table.start_ns[received] - table.end_ns[sent]
    tells = table.start_ns[received] > table.start_ns[sent] + settings.operation_overlap_max_ns
    n_types = len(table.types)
    telling = np.bincount(table.optype[sent[tells]], minlength=n_types)
    before = np.bincount(table.optype[sent[tells & (gap_ns > 0)]], minlength=n_types)
    over = (2 * before > telling)[table.optype[sent]] | (gap_ns > settings.operation_overlap_max_ns)
    return sent[over], received[over]


def _early(table: OperationTable, instances: Instances, settings: Settings) -> Rows:
    latest = arrival_ns(table, instances)
    together = np.flatnonzero(instances.of_row != ALONE)
    late = latest[instances.of_row[together]] - settings.operation_overlap_max_ns
    return together[table.end_ns[together] < late]
