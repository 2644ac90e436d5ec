"""Who holds a job of timed operations up: one worker, a stage, nobody in particular, and the sentence for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.records.ledger import Unknown
from longpole.records.operations import OperationKind
from longpole.report.operations import Culprit, say_error
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from longpole.records.operations import OperationTable
    from longpole.settings import Settings
    from longpole.whatif.operations import Explained, Stragglers


def find_culprit(found: Stragglers, table: OperationTable, n_missing: int, settings: Settings) -> Culprit | Unknown:
    """Return the verdict.

    The order of the questions is that of the evidence: is there a slowdown, does it persist, is it one worker, a few,
    one stage.

    Args:
        found: What the replays say.
        table: The operations.
        n_missing: Places of the layout that no rank holds.
        settings: `operation_error_max`, `operation_slowdown_min`, `operation_share_min`.
    """
    withheld = _withheld(found, n_missing, settings)
    if withheld is not None:
        return withheld
    worker, workers, persistent = found.one_worker, found.few_workers, found.persistent
    if worker is None or workers is None or persistent is None or found.slowdown < settings.operation_slowdown_min:
        return Culprit("none", f"nobody holds the job up: {_cost(found)}")
    least = settings.operation_share_min
    stage = max(found.stages, key=lambda part: part.removed)
    if persistent < least:
        return _moving(found, table, stage if stage.removed >= least else None)
    if worker.removed >= least or workers.removed >= least:
        return _workers(found, table, worker if worker.removed >= least else workers)
    if stage.removed >= least and len(found.stages) > 1:
        return _stage(found, table, stage)
    says = f"no single worker and no single stage holds the job up: {_cost(found)}, spread over several of them"
    return Culprit("spread", says)


def _withheld(found: Stragglers, n_missing: int, settings: Settings) -> Unknown | None:
    """Say why no verdict can be given; None where one can."""
    if n_missing:
        places = format_count(n_missing, "place")
        why = f"{places} of the layout without a rank; the one that holds the job up may be there"
        return Unknown(why, ["the operations of all ranks"])
    if abs(found.error) > settings.operation_error_max:
        why = f"the unchanged replay is off by {say_error(found.error)}: what takes that time was not timed"
        return Unknown(why, ["operations that fill a step without gaps, on one clock"])
    return None


def _cost(found: Stragglers) -> str:
    replayed, ideal = format_ns(found.replayed_ns.mean(), 4), format_ns(found.ideal_ns.mean(), 4)
    return f"a step takes {replayed}, and {ideal} if nobody straggled ({found.slowdown:.2f} times)"


def _workers(found: Stragglers, table: OperationTable, explained: Explained) -> Culprit:
    workers = [table.workers[number] for number in explained.numbers]
    first, alone = workers[0], len(workers) == 1
    numbers = ", ".join(str(rank) for rank in sorted(worker.rank for worker in workers))
    names = f"rank {numbers}" if alone else f"ranks {numbers}"
    place = f" (stage {first.stage}, data-parallel rank {first.dp_rank}) holds" if alone else " hold"
    rest = f"{_percent(explained.removed)} of the difference goes if {'it' if alone else 'they'} alone kept pace"
    says = f"{names}{place} the job up: {_cost(found)}; {rest}{_slow_types(table, explained.numbers)}"
    return Culprit("worker" if alone else "workers", says, sorted(worker.rank for worker in workers))


def _stage(found: Stragglers, table: OperationTable, explained: Explained) -> Culprit:
    number = explained.numbers[0]
    ranks = sorted(worker.rank for worker in table.workers if worker.stage == number)
    is_last = number == max(worker.stage for worker in table.workers)
    others = [worker.stage for worker in table.workers if worker.stage != number]
    longer = _times_longer(table, number) if others else 0.0
    name = f"stage {number}{', the last one,' if is_last else ''}"
    how = f"; its computation takes {longer:.2f} times as long as that of the others" if longer else ""
    one = found.one_worker
    alone = f"; no single worker does (the worst explains {_percent(one.removed)})" if one is not None else ""
    says = f"{name} holds the job up, on all of its {format_count(len(ranks), 'rank')}: {_cost(found)}{how}{alone}"
    return Culprit("stage", says, ranks, number)


def _moving(found: Stragglers, table: OperationTable, stage: Explained | None) -> Culprit:
    persistent = found.persistent or 0.0
    worst = np.argmax(np.stack([part.step_slowdown for part in found.by_dp_rank]), axis=0)
    n_worst, n_steps = len(np.unique(worst)), format_count(len(found.ideal_ns), "step")
    turns = f" ({n_worst} different data-parallel ranks were the worst in {n_steps})" if n_worst > 1 else ""
    says = (
        f"no rank is persistently slow: {_cost(found)}, and {_percent(1 - persistent)} of the difference moves between"
        f" ranks, from step to step and micro-batch to micro-batch{turns}, as unequal sequence lengths do"
    )
    if stage is not None and len(found.by_stage) > 1:
        number = stage.numbers[0]
        longer = f"{_times_longer(table, number):.2f} times as long as on the others"
        says += f"; stage {number} pays most of it, as a step's computation takes {longer}"
    return Culprit("moving", says)


def _slow_types(table: OperationTable, numbers: tuple[int, ...]) -> str:
    """Say which computation of some workers takes how much longer than that of the others."""
    own = np.isin(table.worker, numbers)
    factors = []
    for code, kind in enumerate(table.types):
        rows = table.optype == code
        if kind.kind != OperationKind.COMPUTE or not (rows & own).any() or not (rows & ~own).any():
            continue
        others = float(np.median(table.duration_ns[rows & ~own]))
        total = float(table.duration_ns[rows & own].sum())
        if others > 0:
            factors.append((total, kind.name, float(np.median(table.duration_ns[rows & own])) / others))
    if not factors:
        return ""
    _, name, factor = max(factors)
    whose = "its" if len(numbers) == 1 else "their"
    return f"; {whose} {name} takes {factor:.2f} times as long as that of the others" if factor > 1 else ""


def _times_longer(table: OperationTable, stage: int) -> float:
    """Return how much more a worker of a stage computes in a step than the median worker of the other stages."""
    compute = table.kind == OperationKind.COMPUTE
    per_worker = np.bincount(table.worker[compute], weights=table.duration_ns[compute], minlength=len(table.workers))
    own = np.array([worker.stage == stage for worker in table.workers])
    others = float(np.median(per_worker[~own]))
    return float(np.median(per_worker[own])) / others if others else 0.0


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.0f} %"
