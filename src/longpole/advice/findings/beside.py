"""Work that hampers work: overlap that slows both, and operations queued behind what they do not need.

compute  ══ slower beside it ══     stream a  ══ spins for its peer ══╗
stream   ══ slower beside it ══     stream b                          ═ could have run long ago ═
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.operations import operations_of
from longpole.advice.places import span
from longpole.advice.removal import span_lengths, transfer_lengths
from longpole.advice.suspect import Suspect
from longpole.advice.words import on_ranks
from longpole.analyses.name_book import STAGE_CODE
from longpole.graph.kinds import EdgeKind
from longpole.records.findings import Evidence, Place
from longpole.timeline.intervals import covered_before, union
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.advice.operations import Operations
    from longpole.advice.scene import RankView, Scene
    from longpole.advice.suspect import Removal
    from longpole.whatif.draft import Draft

    Ints = NDArray[np.int64]

_BESIDE: Final = 0.9
_ALONE_MIN: Final = 2
_TIGHT: Final = 0.2
_NEXT_NS: Final = 20_000
_LONG_NS: Final = 1 << 62
_UNLIKE: Final = 0.2  # how far apart hidden shares must lie for a fit to tell anything
_SLOWEST: Final = 0.1


def find(scene: Scene) -> list[Suspect]:
    """Suspect contention between computing and communicating, and orders of queues that hold work up."""
    if scene.ground is None or scene.ground.replayed.why_refused:
        return []
    return [*_contention(scene), *_queue(scene)]


@dataclass(frozen=True, slots=True)
class _Beside:
    """How much slower one rank's kernels run beside collectives, and what they would take alone."""

    view: RankView
    rows: Ints
    alone_ns: Ints
    slower: float


def _contention(scene: Scene) -> list[Suspect]:
    found = [one for one in (_kernels(view) for view in scene.views) if one is not None]
    factors = [one.slower for one in found]
    slow = max(factors, default=1.0)
    # Where no transfer also ran alone, the one kind of work is taken to suffer as the other does.
    moved, transfer_factor = _transfers(scene, assumed=slow)
    if slow < scene.settings.beside_factor and transfer_factor < scene.settings.beside_factor:
        return []
    remove: list[Removal] = [span_lengths({one.view.place: (one.rows, one.alone_ns) for one in found})] if found else []
    if moved and transfer_factor >= scene.settings.beside_factor:
        remove.append(transfer_lengths(moved))
    if not remove:
        return []
    ranks = [one.view.rank for one in found] or [view.rank for view in scene.views]
    evidence = [
        Evidence(
            "kernels beside collectives take times as long", round(one.slower, 3), span(one.view, int(one.rows[0]))
        )
        for one in found[:4]
    ]
    evidence.append(Evidence("collectives beside kernels take times as long", round(transfer_factor, 3), Place()))
    return [
        Suspect(
            cause="contention",
            ranks=ranks,
            says=f"computing and communicating slow each other down where they overlap, {slow:.2f} and"
            f" {transfer_factor:.2f} times: {{cost}}{on_ranks(scene, ranks)}",
            evidence=evidence,
            remove=remove,
            ledger_ns=0,
            grade="inferred",
        )
    ]


def _kernels(view: RankView) -> _Beside | None:
    """Compare kernels beside collectives with those of the same name, stage and stream that run alone.

    On a stream of its own, a kernel of the same name may do other work; backward does about twice what forward does.
    """
    spans = view.graph.spans
    start_ns, end_ns = view.device_start_ns, view.device_end_ns
    moving = union(start_ns[spans.collective], end_ns[spans.collective])
    mine = np.flatnonzero(spans.compute & (end_ns > start_ns))
    if len(moving.start_ns) == 0 or len(mine) == 0:
        return None
    dur_ns = (end_ns - start_ns)[mine]
    covered_ns = covered_before(moving, end_ns[mine]) - covered_before(moving, start_ns[mine])
    beside, alone = covered_ns >= _BESIDE * dur_ns, covered_ns == 0
    disturbed = reference = 0.0
    _, kind = np.unique(np.stack([spans.name, spans.lane, spans.stage])[:, mine], axis=1, return_inverse=True)
    kind = kind.reshape(-1)
    for one in np.unique(kind[beside]).tolist():
        same = kind == one
        own = dur_ns[same & alone]
        if len(own) < _ALONE_MIN:
            continue
        low, middle, high = np.percentile(own, [25, 50, 75])
        if high - low > _TIGHT * middle:
            continue
        disturbed += float(dur_ns[same & beside].sum())
        reference += float(middle) * int((same & beside).sum())
    if reference == 0:
        return None
    slower = max(disturbed / reference, 1.0)
    touched = covered_ns > 0
    alone_ns = np.rint(dur_ns - covered_ns * (1 - 1 / slower)).astype(np.int64)
    return _Beside(view, mine[touched].astype(np.int64), alone_ns[touched], slower)


def _transfers(scene: Scene, assumed: float) -> tuple[dict[int, int], float]:
    """Return what hidden transfers would take alone, and how many times longer they take beside computing."""
    operations = operations_of(scene)
    if operations is None:
        return {}, 1.0
    split = operations.take(operations.split > 0)
    if len(split) == 0:
        return {}, 1.0
    hidden_ns = np.maximum(split.transfer_ns - split.exposed_ns, 0)
    share = hidden_ns / np.maximum(split.transfer_ns, 1)
    key = np.stack([split.kind, split.group, split.size_bytes])
    _, which = np.unique(key, axis=1, return_inverse=True)
    which = which.reshape(-1)
    disturbed = reference = 0.0
    for one in np.unique(which).tolist():
        same = which == one
        alone, beside = split.transfer_ns[same & (share <= 1 - _BESIDE)], split.transfer_ns[same & (share >= _BESIDE)]
        if len(alone) >= _ALONE_MIN and len(beside):
            disturbed += float(beside.sum())
            reference += float(np.median(alone)) * len(beside)
    slower = max(disturbed / reference, 1.0) if reference else _slower_by_fit(split, hidden_ns, assumed)
    new_ns = np.rint(split.transfer_ns - hidden_ns * (1 - 1 / slower)).astype(np.int64)
    return dict(zip(split.operation.tolist(), new_ns.tolist(), strict=True)), slower


def _slower_by_fit(split: Operations, hidden_ns: Ints, assumed: float) -> float:
    """Return how many times longer transfers take beside computing, from operations that are hidden in part.

    exposed = bytes · a - hidden / slower: with several sizes and shares of hidden time both unknowns follow by least
    squares; where all are alike, computing and communicating are taken to suffer equally.
    """
    good = split.size_bytes > 0
    shown_ns = (split.transfer_ns - hidden_ns)[good].astype(np.float64)
    columns = np.stack([split.size_bytes[good].astype(np.float64), -hidden_ns[good].astype(np.float64)], axis=1)
    share = hidden_ns[good] / np.maximum(split.transfer_ns[good], 1)
    if len(shown_ns) < 2 * _ALONE_MIN or float(share.max() - share.min()) < _UNLIKE:
        return assumed
    scale = np.maximum(np.abs(columns).max(axis=0), 1.0)
    solved, *_ = np.linalg.lstsq(columns / scale, shown_ns, rcond=None)
    inverse = float(solved[1] / scale[1])
    return 1 / inverse if _SLOWEST < inverse <= 1 else assumed


def _queue(scene: Scene) -> list[Suspect]:
    """Suspect spans that start as an unrelated one ends on another stream, and operations behind a waiting peer."""
    held = {view.place: _held(scene, view) for view in scene.views}
    late_ns = {place: int(ns.sum()) for place, (_, ns) in held.items()}
    places = [place for place, ns in late_ns.items() if ns]
    if not places:
        return []
    edges = {place: held[place][0] for place in places}
    n_units = max(len(scene.units), 1)
    ranks = [scene.views[place].rank for place in places]
    graph = scene.ground.graph  # type: ignore[union-attr]  # asked for in `find`
    evidence = []
    for place in places[:4]:
        view = scene.views[place]
        worst = int(edges[place][int(held[place][1].argmax())])
        row = int(view.graph.row[int(graph.edges.dst[worst]) - int(graph.base[place])])
        evidence.append(Evidence("held_up_ns per unit", late_ns[place] // n_units, span(view, row)))
    return [
        Suspect(
            cause="queue_order",
            ranks=ranks,
            says=f"operations wait in a queue behind others that they do not need: {{cost}}{on_ranks(scene, ranks)}",
            evidence=evidence,
            remove=[_without_order(edges)],
            ledger_ns=max(late_ns.values()) // n_units,
            grade="inferred",
        )
    ]


def _held(scene: Scene, view: RankView) -> tuple[NDArray[np.intp], Ints]:
    """Return edges of queue order that hold communication or computing up, and by how much, in ns."""
    graph = scene.ground.graph  # type: ignore[union-attr]  # asked for in `find`
    edges, rank = graph.edges, view.graph
    low, high = int(graph.base[view.place]), int(graph.base[view.place + 1])
    mine = np.flatnonzero((edges.dst >= low) & (edges.dst < high) & (edges.src >= low) & (edges.src < high))
    kind = edges.kind[mine]
    spans = rank.spans
    if len(spans.point) == 0 or len(rank.host.start_ns) == 0:
        return mine[:0], np.empty(0, np.int64)
    src_row, dst_row = rank.row[edges.src[mine] - low], rank.row[edges.dst[mine] - low]
    guessed = kind == EdgeKind.COINCIDENT
    inferred = np.isin(kind, (EdgeKind.EVENT_CONFIRMED, EdgeKind.EVENT_UNTESTED)) | guessed
    collective = spans.collective
    crossing = guessed & (collective[np.where(guessed, src_row, 0)] != collective[np.where(guessed, dst_row, 0)])
    stream = kind == EdgeKind.STREAM
    behind = stream & _behind_peer(scene, view, np.where(stream, src_row, 0), np.where(stream, dst_row, 0))
    target, source = np.where(inferred, dst_row, 0), np.where(inferred, src_row, 0)
    needless = inferred & _needs_none(view, source, target) & ~_made_to_wait(view, target)
    chosen = (crossing & ~_asked_to_wait(view, target)) | needless | behind
    rows = dst_row[chosen]
    launch = np.where(spans.launch[rows] >= 0, rank.host.start_ns[np.maximum(spans.launch[rows], 0)], 0)
    before = view.device_start_ns[src_row[chosen]]
    late_ns = np.maximum(view.device_start_ns[rows] - np.maximum(launch, before), 0)
    return mine[chosen], np.where(spans.launch[rows] >= 0, late_ns, 0).astype(np.int64)


def _needs_none(view: RankView, before: Ints, row: Ints) -> NDArray[np.bool_]:
    """Tell which spans start behind a reduction of gradients though only the optimizer needs those."""
    spans, own = view.graph.spans, view.instances
    on_device = own.on_device > 0
    reduces = np.zeros(len(spans.point), np.bool_)
    kinds = [COLLECTIVE_KINDS.index(kind) for kind in ("reduce_scatter", "all_reduce", "reduce")]
    # What is reduced in forward is part of the model; what other threads launch in backward are gradients, whether
    # from inside an operator of backward or from a hook, which lies in none.
    reduces[own.row[on_device & np.isin(own.kind, kinds)]] = True
    hooked = (spans.launch >= 0) & (view.graph.host.track[np.maximum(spans.launch, 0)] != view.main) & (view.main >= 0)
    reduces &= ((spans.stage == STAGE_CODE["backward"]) | hooked) & spans.collective
    working = np.isin(spans.stage, (STAGE_CODE["forward"], STAGE_CODE["backward"])) & spans.compute
    gathers = [COLLECTIVE_KINDS.index(kind) for kind in ("all_gather", "broadcast")]
    working[own.row[on_device & np.isin(own.kind, gathers)]] = True
    # What starts long after it was held up by something else.
    next_to = view.device_start_ns[row] - view.device_end_ns[before] < _NEXT_NS
    return np.asarray(reduces[before] & working[row] & next_to)


def _made_to_wait(view: RankView, row: Ints) -> NDArray[np.bool_]:
    """Tell which kernels a wait was asked for right before their launch, with no other launch in between.

    Behind the end of backward the program itself lets the next micro-batch wait for its gradients: that is no queue's
    order. A wait that another launch follows is that one's, as that of a collective for the kernels before it.
    """
    spans, host = view.graph.spans, view.graph.host
    waits_ns = np.sort(host.start_ns[view.rows(view.call == "stream_wait", track=-1)])
    launches_ns = np.sort(host.start_ns[np.unique(spans.launch[spans.launch >= 0])])
    linked = (spans.launch[row] >= 0) & spans.compute[row]
    launch_ns = host.start_ns[np.maximum(spans.launch[row], 0)]
    at = np.searchsorted(launches_ns, launch_ns)
    before_ns = np.where(at > 0, launches_ns[np.maximum(at - 1, 0)], -_LONG_NS) if len(launches_ns) else launch_ns
    return np.asarray(linked & (np.searchsorted(waits_ns, launch_ns) > np.searchsorted(waits_ns, before_ns)))


def _asked_to_wait(view: RankView, row: Ints) -> NDArray[np.bool_]:
    """Tell before which spans a stream was made to wait since the last launch on their own: they may need it.

    By any thread: it is the autograd engine's that asks for the optimizer's kernels, which the main thread launches.
    A wait right before the launch of a collective is the collective's alone.
    """
    spans, host = view.graph.spans, view.graph.host
    waits_ns = np.sort(host.start_ns[view.rows(view.call == "stream_wait", track=-1)])
    taken = _taken_by_collectives(view, waits_ns)
    asked = np.zeros(len(spans.point), np.bool_)
    linked = np.flatnonzero(spans.launch >= 0)
    launch_ns = host.start_ns[spans.launch[linked]]
    order = np.lexsort((launch_ns, spans.lane[linked]))
    lane, launch_ns = spans.lane[linked][order], launch_ns[order]
    before_ns = np.concatenate([launch_ns[:1], launch_ns[:-1]])
    same = np.concatenate([[False], lane[1:] == lane[:-1]])
    before_ns = np.where(same, before_ns, -_LONG_NS)
    after, until = np.searchsorted(waits_ns, before_ns), np.searchsorted(waits_ns, launch_ns)
    own = spans.collective[linked][order]
    free = np.concatenate([[0], np.cumsum(~taken)])
    asked[linked[order]] = np.where(own, until > after, free[until] > free[after])
    return asked[row]


def _taken_by_collectives(view: RankView, waits_ns: Ints) -> NDArray[np.bool_]:
    """Tell which waits, in order of time, the launch of a collective follows before any other launch."""
    spans, host = view.graph.spans, view.graph.host
    linked = np.flatnonzero(spans.launch >= 0)
    launch_ns = host.start_ns[spans.launch[linked]]
    order = np.argsort(launch_ns, kind="stable")
    if len(order) == 0:
        return np.zeros(len(waits_ns), np.bool_)
    at = np.searchsorted(launch_ns[order], waits_ns, side="right")
    follows = linked[order][np.minimum(at, len(order) - 1)]
    return np.asarray((at < len(order)) & spans.collective[follows])


def _behind_peer(scene: Scene, view: RankView, before: Ints, row: Ints) -> NDArray[np.bool_]:
    """Tell which spans are collectives right behind one that waits for its peer, and were launched while it waited."""
    spans = view.graph.spans
    kind = np.full(len(spans.point), -1, np.int64)
    on_device_too = view.instances.on_device > 0
    kind[view.instances.row[on_device_too]] = view.instances.kind[on_device_too]
    both = spans.collective[before] & spans.collective[row] & (kind[before] != kind[row])
    if scene.across is None or not both.any():
        return np.zeros(len(row), np.bool_)
    waits_ns = np.zeros(len(spans.point), np.int64)
    matched, split = scene.across.matched, scene.across.split
    mine = np.flatnonzero(matched.rank == view.rank)
    own = view.instances
    on_device = own.on_device[matched.instance[mine]] > 0
    waits_ns[own.row[matched.instance[mine[on_device]]]] = np.maximum(split.skew_ns[mine[on_device]], 0)
    dur_ns = view.device_end_ns[before] - view.device_start_ns[before]
    launched_ns = view.graph.host.start_ns[np.maximum(spans.launch[row], 0)]
    early = (spans.launch[row] >= 0) & (launched_ns < view.device_end_ns[before] - dur_ns // 2)
    next_to = view.device_start_ns[row] - view.device_end_ns[before] < _NEXT_NS
    return np.asarray(both & early & next_to & (2 * waits_ns[before] > dur_ns) & (dur_ns > 0))


def _without_order(edges: dict[int, NDArray[np.intp]]) -> Removal:
    def change(draft: Draft) -> None:
        """Let the operations start when what they need is there."""
        for some in edges.values():
            draft.drop(some)
            draft.rows += len(some)

    return change
