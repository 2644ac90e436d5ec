"""The collectives of the steady units as one table: what moved, how long, how much of it showed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from longpole.advice.places import span
from longpole.advice.removal import span_lengths, transfer_lengths
from longpole.analyses.name_book import STAGE_CODE
from longpole.digest.members import steady_members
from longpole.records.findings import Place
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.advice.scene import Scene
    from longpole.advice.suspect import Removal

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations of the steady units, by start; columns `[N]` int64.

    Attributes:
        operation: Place among the run's matched operations.
        kind: Code into COLLECTIVE_KINDS.
        group: Place among the run's groups, -1 where not known.
        unit: Number of the unit, ascending in time.
        size_bytes: The full buffer, -1 where not known.
        start_ns: When the first member began, on the run's clock.
        end_ns: When the last member ended.
        transfer_ns: What the bytes took once all had arrived; the shortest member where that cannot be told.
        exposed_ns: The part of the transfer that no compute covers, on the member where it is largest.
        stage: Code into STAGES of the first member's launch, -1 where not known.
        backward: 1 where it was launched in backward: by its stage, or by a thread other than the main one.
        split: 1 where waiting and moving could be told apart.
    """

    operation: Ints
    kind: Ints
    group: Ints
    unit: Ints
    size_bytes: Ints
    start_ns: Ints
    end_ns: Ints
    transfer_ns: Ints
    exposed_ns: Ints
    stage: Ints
    backward: Ints
    split: Ints

    def __len__(self) -> int:
        return len(self.operation)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Self:
        """Return some of the operations."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def of_kind(self, *kinds: str) -> Self:
        """Return the operations of some kinds."""
        return self.take(np.isin(self.kind, [COLLECTIVE_KINDS.index(kind) for kind in kinds]))

    def by_kind_and_group(self) -> list[Self]:
        """Return the operations of each kind and group, the longest exposed first."""
        key = self.kind * (1 << 32) + self.group
        parts = [self.take(key == one) for one in np.unique(key).tolist()]
        return sorted(parts, key=lambda part: -int(part.exposed_ns.sum()))

    @property
    def kind_name(self) -> str:
        """Kind of the first operation."""
        return COLLECTIVE_KINDS[int(self.kind[0])] or "collective"

    @property
    def n_units(self) -> int:
        """Number of units that hold any of them, at least 1."""
        return max(len(np.unique(self.unit)), 1)


def operations_of(scene: Scene) -> Operations | None:
    """Return the collectives of the steady units; None where there are none."""
    if "operations" not in scene.kept:
        scene.kept["operations"] = _operations(scene)
    found: Operations | None = scene.kept["operations"]
    return found


def _operations(scene: Scene) -> Operations | None:
    if scene.across is None or len(scene.across.matched) == 0:
        return None
    members = steady_members(scene.digests, scene.across, scene.steady)
    if len(members.place) == 0:
        return None
    matched, split = scene.across.matched, scene.across.split
    operation, low = np.unique(members.operation, return_index=True)
    k = members.place
    transfer_ns = np.where(split.transfer_ns[k] >= 0, split.transfer_ns[k], split.end_ns[k] - split.start_ns[k])
    is_split = split.how[operation] > 0
    transfer = np.where(is_split, np.maximum.reduceat(transfer_ns, low), np.minimum.reduceat(transfer_ns, low))
    # Of a member that waits the waiting shows first; what shows of the transfer is at most what shows of its end.
    shown = np.minimum(members.exposed_ns, transfer_ns)
    order = np.argsort(np.minimum.reduceat(split.start_ns[k], low), kind="stable")
    table = Operations(
        operation=operation.astype(np.int64),
        kind=matched.kind[operation].astype(np.int64),
        group=matched.group_of[operation].astype(np.int64),
        unit=members.unit[low].astype(np.int64),
        size_bytes=matched.bytes[operation].astype(np.int64),
        start_ns=np.minimum.reduceat(split.start_ns[k], low),
        end_ns=np.maximum.reduceat(split.end_ns[k], low),
        transfer_ns=transfer.astype(np.int64),
        exposed_ns=np.maximum.reduceat(shown, low),
        stage=members.stage[low].astype(np.int64),
        backward=_in_backward(scene, operation, members.stage[low]).astype(np.int64),
        split=is_split.astype(np.int64),
    )
    return table.take(order)


def _in_backward(scene: Scene, operation: Ints, stage: Ints) -> NDArray[np.bool_]:
    """Tell which operations were launched in backward: by their stage, or by another thread than the main one.

    What a hook launches on the autograd engine's thread lies in no operator of backward.
    """
    found = np.asarray(stage == STAGE_CODE["backward"])
    if scene.across is None:
        return found
    matched = scene.across.matched
    first = matched.first[operation]
    for view in scene.views:
        if not view.graph.has_device or view.main < 0:
            continue
        own = view.instances
        mine = np.flatnonzero(matched.rank[first] == view.rank)
        instance = matched.instance[first[mine]]
        on_device = own.on_device[instance] > 0
        launch = view.graph.spans.launch[np.where(on_device, own.row[instance], 0)]
        elsewhere = on_device & (launch >= 0) & (view.graph.host.track[np.maximum(launch, 0)] != view.main)
        found[mine] |= elsewhere
    return found


def members(scene: Scene, part: Operations) -> list[int]:
    """Return the ranks present that take part in some operations."""
    if scene.across is None:
        return []
    matched = scene.across.matched
    ranks = {int(r) for m in part.operation.tolist() for r in matched.rank[matched.first[m] : matched.first[m + 1]]}
    return sorted(ranks)


def where(scene: Scene, operation: int) -> Place:
    """Return the first member of an operation."""
    if scene.across is None:
        return Place()
    matched = scene.across.matched
    k = int(matched.first[operation])
    rank, instance = int(matched.rank[k]), int(matched.instance[k])
    view = scene.view_of.get(rank)
    own = scene.across.instances[rank]
    if view is None or not own.on_device[instance] or not view.graph.has_device:
        return Place(rank, COLLECTIVE_KINDS[int(matched.kind[operation])])
    return span(view, int(own.row[instance]))


def in_other_times(scene: Scene, part: Operations, new_ns: NDArray[np.int64]) -> list[Removal]:
    """Return the changes by which operations take other times, whether they could be split or not."""
    split = part.split > 0
    changes: list[Removal] = []
    if split.any():
        changes.append(transfer_lengths(dict(zip(part.operation[split].tolist(), new_ns[split].tolist(), strict=True))))
    if not split.all() and scene.across is not None:
        matched = scene.across.matched
        rows: dict[int, tuple[list[int], list[int]]] = {}
        for m, ns in zip(part.operation[~split].tolist(), new_ns[~split].tolist(), strict=True):
            for k in range(int(matched.first[m]), int(matched.first[m + 1])):
                view = scene.view_of[int(matched.rank[k])]
                own = scene.across.instances[view.rank]
                if own.on_device[matched.instance[k]]:
                    place_rows, lengths = rows.setdefault(view.place, ([], []))
                    place_rows.append(int(own.row[matched.instance[k]]))
                    lengths.append(ns)
        changes.append(span_lengths({p: (np.array(r, np.int64), np.array(n, np.int64)) for p, (r, n) in rows.items()}))
    return changes
