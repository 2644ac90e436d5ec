"""From replays to the document about a job of timed operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.records.ledger import Unknown
from longpole.records.operations import OperationKind
from longpole.report import operations as doc
from longpole.report.operations_culprit import find_culprit
from longpole.timeline.integrity import Example, Finding
from longpole.units import format_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.operations.build import OperationGraph
    from longpole.report.document import SourceEntry
    from longpole.settings import Settings
    from longpole.whatif.operations import Explained, Stragglers

    Ints: TypeAlias = NDArray[np.int64]

_LIMITED: Final = ["/slowdown", "/explained_by_worker", "/explained_by_last_stage"]
_NO_SLOWDOWN: Final = Unknown("the replay is not slower than the ideal, so there is nothing to explain")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTables:
    """What the reader says of the tables beside their operations.

    Attributes:
        sources: The files.
        left_out: Steps that are not counted, with the reason.
        missing: Places of the layout without a rank; at most the first few.
        n_missing: How many there are.
        findings: What is wrong.
    """

    sources: list[SourceEntry]
    left_out: list[tuple[int, str]]
    missing: list[str]
    n_missing: int
    findings: list[Finding]


def build_operations_document(
    tables: ReadTables, graph: OperationGraph, found: Stragglers, settings: Settings, version: str
) -> doc.Operations:
    """Return the document.

    Args:
        tables: What the reader says.
        graph: The job.
        found: What the replays say.
        settings: Thresholds of the verdict.
        version: Of the package.
    """
    worst = _worst_in_steps(graph, found)
    return doc.Operations(
        schema=doc.SCHEMA,
        longpole=version,
        sources=tables.sources,
        layout=_layout(tables, graph),
        steps=_steps(tables, graph, found, worst),
        slowdown=found.slowdown,
        culprit=find_culprit(found, graph.table, tables.n_missing, settings),
        explained_by_worker=_share(found.one_worker, graph),
        explained_by_workers=_share(found.few_workers, graph),
        explained_by_last_stage=_last_stage(found),
        persistent_share=_NO_SLOWDOWN if found.persistent is None else found.persistent,
        by_optype=_types(graph, found),
        by_stage=_stages(graph, found),
        by_dp_rank=_data_ranks(found, worst),
        by_rank=_ranks(graph, found, worst),
        worst_changes=len({dp for _, dp, _ in worst}),
        integrity=[
            *tables.findings,
            *graph_findings(graph, tables.sources[0].path),
            *_replay_findings(found, tables.sources[0].path, settings),
        ],
    )


def graph_findings(graph: OperationGraph, path: str) -> list[Finding]:
    """Return what matching found wrong with a job's operations.

    Args:
        graph: The job.
        path: What an example is called after.
    """
    what: tuple[tuple[str, Ints, str, list[str]], ...] = (
        (
            "operation.unmatched",
            graph.instances.unmatched,
            "sends and receives without the other end; each is kept as recorded, waiting included",
            _LIMITED,
        ),
        (
            "operation.collective_incomplete",
            graph.instances.incomplete,
            "members of collectives of which another is missing; what they waited for it counts as transfer",
            _LIMITED,
        ),
        (
            "operation.members_unknown",
            graph.instances.unknown_members,
            "collectives of which the table does not say who takes part; each is kept as recorded, waiting included",
            _LIMITED,
        ),
        (
            "operation.ends_early",
            graph.instances.early,
            "operations that end before the last member of their collective starts; their transfer counts as none",
            [],
        ),
    )
    found = []
    if len(graph.circular_steps):
        named = ", ".join(str(step) for step in graph.circular_steps[:5])
        message = f"{format_count(len(graph.circular_steps), 'step')} whose times contradict each other: {named}"
        found.append(
            Finding("operation.circular", "warn", None, len(graph.circular_steps), Example(path), message, ["/steps"])
        )
    return found + [
        Finding(
            code,
            "warn" if voids else "note",
            None,
            len(rows),
            Example(path, event=int(graph.table.row[rows].min())),
            f"{len(rows):,} {text}",
            voids,
        )
        for code, rows, text, voids in what
        if len(rows)
    ]


def _replay_findings(found: Stragglers, path: str, settings: Settings) -> list[Finding]:
    if abs(found.error) <= settings.operation_error_max:
        return []
    message = f"the unchanged replay is off by {doc.say_error(found.error)}: what takes that time was not timed"
    return [Finding("operation.replay_off", "void", None, 1, Example(path), message, ["/slowdown", "/culprit"])]


def _layout(tables: ReadTables, graph: OperationGraph) -> doc.Layout:
    table = graph.table
    forward = np.array([t.kind == OperationKind.COMPUTE and t.direction > 0 for t in table.types])[table.optype]
    lanes = graph.step_of_row[forward].astype(np.int64) * len(table.workers) + table.worker[forward]
    counts = np.bincount(lanes)
    return doc.Layout(
        data_parallel=max(worker.dp_rank for worker in table.workers) + 1,
        stages=max(worker.stage for worker in table.workers) + 1,
        tensor_parallel=max(worker.tp_rank for worker in table.workers) + 1,
        ranks=sorted(worker.rank for worker in table.workers),
        missing=tables.missing,
        missing_count=tables.n_missing,
        micro_batches=int(np.median(counts[counts > 0])) if (counts > 0).any() else 0,
        operations=len(table),
        asynchronous=list(graph.order.asynchronous),
    )


def _worst_in_steps(graph: OperationGraph, found: Stragglers) -> list[tuple[int, int, int | None]]:
    """Return for each step the worst stage, the worst data-parallel rank, and the rank at that place."""
    at = {(w.stage, w.dp_rank): w.rank for w in reversed(graph.table.workers)}
    stages = np.argmax(np.stack([part.step_slowdown for part in found.by_stage]), axis=0)
    dps = np.argmax(np.stack([part.step_slowdown for part in found.by_dp_rank]), axis=0)
    places = [
        (found.by_stage[stage].number, found.by_dp_rank[dp].number)
        for stage, dp in zip(stages.tolist(), dps.tolist(), strict=True)
    ]
    return [(stage, dp, at.get((stage, dp))) for stage, dp in places]


def _steps(
    tables: ReadTables, graph: OperationGraph, found: Stragglers, worst: list[tuple[int, int, int | None]]
) -> doc.Steps:
    circular = [(int(step), "its times contradict each other") for step in graph.circular_steps]
    errors = found.replayed_ns / np.maximum(found.measured_ns, 1) - 1
    slowdowns = found.replayed_ns / np.maximum(found.ideal_ns, 1)
    each = [
        doc.StepEntry(
            step=int(step),
            measured_ns=int(found.measured_ns[at]),
            replayed_ns=int(found.replayed_ns[at]),
            error=float(errors[at]),
            slowdown=float(slowdowns[at]),
            worst_stage=worst[at][0],
            worst_dp_rank=worst[at][1],
            worst_rank=worst[at][2],
        )
        for at, step in enumerate(graph.steps)
    ]
    return doc.Steps(
        count=len(each),
        left_out=[doc.LeftOut(step, why) for step, why in sorted([*tables.left_out, *circular])],
        measured_ns=round(found.measured_ns.mean()),
        replayed_ns=round(found.replayed_ns.mean()),
        ideal_ns=round(found.ideal_ns.mean()),
        error=found.error,
        error_largest=float(errors[np.argmax(np.abs(errors))]),
        each=each,
    )


def _last_stage(found: Stragglers) -> doc.Share | Unknown:
    if len(found.by_stage) == 1:
        return Unknown("the job has one stage")
    last = next((part for part in found.stages if part.numbers[0] == found.by_stage[-1].number), None)
    return _NO_SLOWDOWN if last is None else doc.Share([], last.removed, last.added)


def _share(part: Explained | None, graph: OperationGraph) -> doc.Share | Unknown:
    if part is None:
        return _NO_SLOWDOWN
    return doc.Share([graph.table.workers[number].rank for number in part.numbers], part.removed, part.added)


def _types(graph: OperationGraph, found: Stragglers) -> list[doc.TypeEntry]:
    table = graph.table
    waiting = table.duration_ns - graph.work_ns
    entries = []
    for part in found.by_type:
        first = table.types[part.number]
        p2p = first.kind in (OperationKind.SEND, OperationKind.RECV)
        codes = [
            code
            for code, kind in enumerate(table.types)
            if code == part.number
            or (
                p2p and kind.direction == first.direction != 0 and kind.kind in (OperationKind.SEND, OperationKind.RECV)
            )
        ]
        rows = np.isin(table.optype, codes)
        kind_name = "p2p" if p2p else first.kind.name.lower()
        mean_ns, waiting_ns = round(table.duration_ns[rows].mean()), round(waiting[rows].mean())
        entries.append(doc.TypeEntry(part.label, kind_name, int(rows.sum()), mean_ns, waiting_ns, part.slowdown))
    return entries


def _stages(graph: OperationGraph, found: Stragglers) -> list[doc.StageEntry]:
    compute_ns, _ = _per_worker(graph)
    explains = {part.numbers[0]: part.removed for part in found.stages}
    entries = []
    for part in found.by_stage:
        own = [place for place, worker in enumerate(graph.table.workers) if worker.stage == part.number]
        share = explains.get(part.number, _NO_SLOWDOWN)
        entries.append(doc.StageEntry(part.number, part.slowdown, share, round(compute_ns[own].mean())))
    return entries


def _data_ranks(found: Stragglers, worst: list[tuple[int, int, int | None]]) -> list[doc.DataRankEntry]:
    turns = [dp for _, dp, _ in worst]
    entries = [doc.DataRankEntry(part.number, part.slowdown, turns.count(part.number)) for part in found.by_dp_rank]
    return sorted(entries, key=lambda entry: -entry.slowdown)


def _ranks(graph: OperationGraph, found: Stragglers, worst: list[tuple[int, int, int | None]]) -> list[doc.RankEntry]:
    compute_ns, waiting_ns = _per_worker(graph)
    turns = [rank for _, _, rank in worst]
    n_swept = sum(part.slowdown is not None for part in found.workers)
    unknown = Unknown(f"only the {format_count(n_swept, 'rank')} with the largest bound are replayed each")
    return [
        doc.RankEntry(
            rank=(worker := graph.table.workers[part.worker]).rank,
            dp_rank=worker.dp_rank,
            stage=worker.stage,
            tp_rank=worker.tp_rank,
            slowdown=unknown if part.slowdown is None else part.slowdown,
            slowdown_bound=part.bound,
            compute_ns=round(compute_ns[part.worker]),
            waiting_ns=round(waiting_ns[part.worker]),
            steps_worst=turns.count(worker.rank),
        )
        for part in found.workers
    ]


def _per_worker(graph: OperationGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return `[W]` float64 ns each: a worker's computation and its waiting, means over steps."""
    table, n_steps = graph.table, len(graph.steps)
    compute = table.kind == OperationKind.COMPUTE
    size = len(table.workers)
    computed = np.bincount(table.worker[compute], weights=table.duration_ns[compute], minlength=size)
    waited = np.bincount(table.worker, weights=table.duration_ns - graph.work_ns, minlength=size)
    return computed / n_steps, waited / n_steps
