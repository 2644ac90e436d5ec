"""Collectives that show although they need not: the last bucket, gathers issued when they are needed, extra ones.

compute  ══ backward ═══════════╗            ══ forward 1 ══╗          ══ forward 2 ══
stream      ═ b1 ═  ═ b2 ═       ═ last ═                    ═ gather 2 ═
                                ╰ exposed ╯                 ╰ exposed, though nothing of it needs forward 1
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.findings.reductions import behind_backward, micro_batches, tells_backward
from longpole.advice.operations import in_other_times, members, operations_of, where
from longpole.advice.removal import transfer_lengths
from longpole.advice.suspect import Suspect
from longpole.analyses.name_book import STAGE_CODE
from longpole.records.findings import Evidence, Place
from longpole.units import format_bytes, format_ns
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from longpole.whatif.change import IssueEarly
from longpole.whatif.selector import Selector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.advice.operations import Operations
    from longpole.advice.scene import Scene

_REDUCES: Final = ("all_reduce", "reduce_scatter", "reduce")
_GATHERS: Final = ("all_gather", "broadcast")
_HALF: Final = 0.5
_LARGE_BYTES: Final = 1 << 20  # norms and flags are smaller
_AS_MUCH: Final = 0.5  # of the gradients' bytes: what is reduced besides them (norms, tied weights) is smaller


def find(scene: Scene) -> list[Suspect]:
    """Suspect the last bucket, late gathers, and reductions that are done over again."""
    all_of_them = operations_of(scene)
    if all_of_them is None:
        return []
    # Where a member is missing, waiting cannot be told from moving, and nothing may rest on either (DESIGN 3.8).
    operations = all_of_them.take((all_of_them.split > 0) | _one_way(all_of_them))
    least_ns = scene.settings.finding_min_share * scene.period_ns / 2
    found = []
    for part in operations.of_kind(*_REDUCES).by_kind_and_group():
        if _per_unit_ns(part) >= least_ns:
            found += _repeated(scene, part) or _last_bucket(scene, part) or behind_backward(scene, part)
    for part in operations.of_kind(*_GATHERS).by_kind_and_group():
        if _per_unit_ns(part) < least_ns:
            continue
        spread = _spread(scene, part)
        found += spread or ([_late(scene, part)] if len(part) > part.n_units else [])
    return found


def _one_way(operations: Operations) -> NDArray[np.bool_]:
    """Tell which operations do not wait for all members, so that they need no split."""
    return np.asarray(operations.kind == COLLECTIVE_KINDS.index("broadcast"))


def _per_unit_ns(part: Operations) -> float:
    return float(part.exposed_ns.sum()) / part.n_units if len(part) else 0.0


def _last_of_units(part: Operations) -> NDArray[np.intp]:
    """Return the place of the last operation of each unit."""
    last = np.ones(len(part), np.bool_)
    order = np.lexsort((part.end_ns, part.unit))
    last[order[:-1]] = part.unit[order][:-1] != part.unit[order][1:]
    return np.flatnonzero(last)


def _last_bucket(scene: Scene, part: Operations) -> list[Suspect]:
    if len(part) < 2 * part.n_units:
        return []
    last = part.take(_last_of_units(part))
    total_ns, own_ns = int(part.exposed_ns.sum()), int(last.exposed_ns.sum())
    if own_ns < scene.settings.last_bucket_share * total_ns:
        return []
    rest_ns = max(int(part.transfer_ns.sum() - last.transfer_ns.sum()), 1)
    if total_ns - own_ns > _HALF * rest_ns:
        return []  # the others show as well: nothing is hidden at all
    size = int(np.median(last.size_bytes))
    sized = f" ({format_bytes(size)})" if size > 0 else ""
    says = (
        f"the last {part.kind_name} of the unit{sized} runs when nothing is left to hide it: {{cost}} of"
        f" {format_ns(own_ns // last.n_units)} that show"
    )
    return [
        Suspect(
            cause="exposed_last_bucket",
            ranks=members(scene, part),
            says=says,
            evidence=[
                Evidence("exposed_ns per unit, last one", own_ns // last.n_units, where(scene, int(last.operation[0]))),
                Evidence("exposed_ns per unit, all", total_ns // part.n_units, Place()),
                Evidence("bytes", size, where(scene, int(last.operation[0]))),
            ],
            remove=[transfer_lengths(dict.fromkeys(last.operation.tolist(), 0))],
            ledger_ns=own_ns // last.n_units,
            stage="backward",
        )
    ]


def _late(scene: Scene, part: Operations) -> Suspect:
    exposed_ns = round(_per_unit_ns(part))
    first = int(part.operation[int(part.exposed_ns.argmax())])
    return Suspect(
        cause="late_issue",
        ranks=members(scene, part),
        says=f"{part.kind_name} is issued when its result is needed, not before: {{cost}} of"
        f" {format_ns(exposed_ns)} that show",
        evidence=[
            Evidence("exposed_ns per unit", exposed_ns, where(scene, first)),
            Evidence("operations per unit", round(len(part) / part.n_units), where(scene, first)),
        ],
        remove=[IssueEarly(Selector(kind=part.kind_name))],
        ledger_ns=exposed_ns,
        what_if=[f"--issue-early kind:{part.kind_name}"],
        grade="inferred",
    )


def _repeated(scene: Scene, part: Operations) -> list[Suspect]:
    """Suspect reductions that are done over again: for every micro-batch of a unit, or once more behind backward."""
    in_backward = part.backward > 0
    if not in_backward.any():
        return [] if any(tells_backward(view) for view in scene.views) else _untold_micro_batches(scene, part)
    return _every_micro_batch(scene, part.take(in_backward)) or _once_more(scene, part, in_backward)


def _every_micro_batch(scene: Scene, part: Operations) -> list[Suspect]:
    """Suspect successive rounds of the same sizes with forward computing between them: the last round would do."""
    extra: list[int] = []
    rounds = 0
    for unit in np.unique(part.unit).tolist():
        mine = part.take(part.unit == unit)
        groups = _rounds(scene, mine)
        sizes = [sorted(mine.size_bytes[rows].tolist()) for rows in groups]
        if len(groups) < 2 or any(size != sizes[-1] for size in sizes):
            return []
        rounds = len(groups)
        extra += [int(m) for rows in groups[:-1] for m in mine.operation[rows].tolist()]
    says = f"runs {rounds} times in a unit, once for each micro-batch, where the last time would do: {{cost}}"
    return _extra(scene, part.take(np.isin(part.operation, extra)), says, f"--set kind:{part.kind_name}=0.5x")


def _untold_micro_batches(scene: Scene, part: Operations) -> list[Suspect]:
    """Suspect rounds of all-reduces of the same sizes where nothing tells forward from backward."""
    if part.kind_name != "all_reduce" or (part.size_bytes < _LARGE_BYTES).any():
        return []
    units = [part.take(part.unit == unit) for unit in np.unique(part.unit).tolist()]
    rounds = {micro_batches(mine) for mine in units}
    if len(rounds) != 1 or rounds == {1}:
        return []
    (n,) = rounds
    extra = [int(m) for mine in units for m in mine.operation[: len(mine) - len(mine) // n].tolist()]
    says = f"runs {n} times in a unit, it seems once for each micro-batch, where the last time would do: {{cost}}"
    suspects = _extra(scene, part.take(np.isin(part.operation, extra)), says, f"--set kind:{part.kind_name}=0.5x")
    return [replace(suspect, grade="inferred") for suspect in suspects]


def _once_more(scene: Scene, part: Operations, in_backward: NDArray[np.bool_]) -> list[Suspect]:
    """Suspect operations behind backward that move about as many bytes as those within it moved already."""
    again = part.take(~in_backward)
    if len(again) == 0 or (part.size_bytes <= 0).any():
        return []
    first, second = int(part.size_bytes[in_backward].sum()), int(again.size_bytes.sum())
    if second < _AS_MUCH * first:
        return []
    return _extra(scene, again, "runs again behind backward over bytes that were reduced already: {cost}", "")


def _spread(scene: Scene, part: Operations) -> list[Suspect]:
    """Suspect broadcasts in a job that reduces its gradients everywhere: all ranks hold the same already."""
    operations = operations_of(scene)
    if operations is None or part.kind_name != "broadcast":
        return []
    reduced = operations.of_kind("all_reduce")
    in_backward = reduced.take(reduced.backward > 0)
    if not any(tells_backward(view) for view in scene.views):
        in_backward = _behind_all(reduced.take(reduced.size_bytes >= _LARGE_BYTES), part)
    if not set(in_backward.group.tolist()) & set(part.group.tolist()):
        return []
    return _extra(scene, part, "of buffers that every rank could compute itself: {cost}", "--set kind:broadcast=0")


def _behind_all(reduced: Operations, part: Operations) -> Operations:
    """Return reductions where all of a unit's lie behind its broadcasts: gradients, for buffers begin a unit."""
    last_ns = {unit: int(part.start_ns[part.unit == unit].max()) for unit in np.unique(part.unit).tolist()}
    behind = [
        last_ns.get(unit, -1) < ns for unit, ns in zip(reduced.unit.tolist(), reduced.start_ns.tolist(), strict=True)
    ]
    return reduced if all(behind) else reduced.take(np.zeros(len(reduced), np.bool_))


def _extra(scene: Scene, part: Operations, says: str, what_if: str) -> list[Suspect]:
    per_unit = len(part) / part.n_units
    first = where(scene, int(part.operation[0]))
    return [
        Suspect(
            cause="extra_collective",
            ranks=members(scene, part),
            says=f"{part.kind_name} {says}",
            evidence=[
                Evidence("extra operations per unit", round(per_unit, 2), first),
                Evidence("exposed_ns per unit, extra ones", round(_per_unit_ns(part)), first),
            ],
            remove=in_other_times(scene, part, np.zeros(len(part), np.int64)),
            ledger_ns=round(_per_unit_ns(part)),
            what_if=[what_if] if what_if else [],
        )
    ]


def _rounds(scene: Scene, part: Operations) -> list[list[int]]:
    """Split a unit's operations where forward computing was launched between two of them."""
    assert scene.across is not None
    matched = scene.across.matched
    rank = int(matched.rank[matched.first[int(part.operation[0])]])
    view = scene.view_of.get(rank)
    if view is None or not view.graph.has_device:
        return [list(range(len(part)))]
    spans = view.graph.spans
    forward = np.sort(view.device_start_ns[spans.compute & (spans.stage == STAGE_CODE["forward"])]) + view.offset_ns
    rounds: list[list[int]] = [[0]]
    for place in range(1, len(part)):
        low, high = np.searchsorted(forward, [part.start_ns[place - 1], part.start_ns[place]])
        if high > low:
            rounds.append([])
        rounds[-1].append(place)
    return rounds
