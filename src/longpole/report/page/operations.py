"""The page of a job of timed operations: who holds it up, what that costs, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.operations import say_error
from longpole.report.page.charts import Cell, heat_map
from longpole.report.page.markup import Figure, section, share, table, text, time
from longpole.report.page.sections import render_record
from longpole.report.page.shell import made_from, write_page
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from longpole.report.operations import Operations, RankEntry, Share

_PAGE: Final = "docs/guides/operation-tables.md"
_STEP: Final = Figure(
    "step",
    "A step",
    "Measured from a step's first start to its last end; replayed from the recorded durations; and replayed where every"
    " operation takes as long as its like on other ranks: nobody straggles. Slowdown is the second over the third.",
    _PAGE,
)
_PLACES: Final = Figure(
    "places",
    "Who is slow",
    "A cell for each worker, by pipeline stage and data-parallel rank: how much slower the ideal step gets when only"
    " this worker is as it was. A worker that waits for others is not slow.",
    _PAGE,
)
_STEPS: Final = Figure(
    "steps",
    "Step by step",
    "The slowdown of each step. One that is dark on its own had its own trouble; a dark row is a lasting one.",
    _PAGE,
)
_TYPES: Final = Figure(
    "types",
    "By operation",
    "Slowdown of the ideal step when only this type of operation is as it was. Waiting is time before the last member"
    " of a communication arrived.",
    _PAGE,
)
_RANKS: Final = Figure("ranks", "Ranks", "The worst first; a rank that waits for others is not the cause.", _PAGE)
_ROWS_MAX: Final = 40
_PLACES_MAX: Final = 128
_STEPS_MAX: Final = 400


def render_operations_page(report: Operations) -> bytes:
    """Write the page: no script, no network.

    Args:
        report: The document of `longpole report` on operation tables.

    Returns:
        UTF-8 HTML with a line end.
    """
    culprit = report.culprit
    says = "no verdict" if isinstance(culprit, Unknown) else culprit.says
    parts = [
        _header(report),
        '<nav><a href="#step">a step</a><a href="#places">who is slow</a><a href="#steps">step by step</a>'
        '<a href="#types">by operation</a><a href="#ranks">ranks</a><a href="#record">the record</a></nav>',
        _step(report),
        _places(report),
        _steps(report),
        _types(report),
        _ranks(report),
        render_record(report),
    ]
    return write_page(f"Longpole: {says}", parts, made_from(report.longpole, [one.path for one in report.sources]))


def _header(report: Operations) -> str:
    layout, steps, culprit = report.layout, report.steps, report.culprit
    tensor = f" × {layout.tensor_parallel} tensor-parallel" if layout.tensor_parallel > 1 else ""
    facts = [
        format_count(len(layout.ranks), "rank"),
        f"{layout.data_parallel} data-parallel × {format_count(layout.stages, 'stage')}{tensor}",
        *([format_count(layout.micro_batches, "micro-batch", "micro-batches")] if layout.micro_batches else []),
        format_count(steps.count, "step"),
    ]
    who = f"<h1>Longpole</h1><p class=facts>{' · '.join(text(fact) for fact in facts)}</p>"
    if isinstance(culprit, Unknown):
        return f"<header>{who}<p class=pole>No verdict: {text(culprit.unknown)}</p></header>"
    badge = "no straggler" if culprit.kind == "none" else "the long pole"
    pole = f"<p class=pole><span class=badge>{badge}</span> <strong id=pole>{text(culprit.says)}</strong></p>"
    lost_ns = steps.replayed_ns - steps.ideal_ns
    cost = ""
    if culprit.kind != "none" and lost_ns > 0 and steps.replayed_ns:
        part = f"{100 * lost_ns / steps.replayed_ns:.0f} % of a step"
        cost = f"<p class=cost><span class=big>{time(lost_ns)}</span> ({part}) goes if nobody straggles · by replay</p>"
    return f"<header>{who}{pole}{cost}</header>"


def _step(report: Operations) -> str:
    steps = report.steps
    rows = [
        ["measured", time(steps.measured_ns), "from the first start to the last end"],
        ["replayed", time(steps.replayed_ns), f"off by {text(say_error(steps.error))}"],
        ["if nobody straggled", time(steps.ideal_ns), f"slowdown {report.slowdown:.3f}"],
    ]
    whole = table([f"mean of {format_count(steps.count, 'step')}", "takes", ""], rows, shape="narrow")
    named = (
        ("the worst rank alone", report.explained_by_worker),
        ("the worst few ranks", report.explained_by_workers),
        ("the last stage alone", report.explained_by_last_stage),
    )
    parts = [[name, _removed(one), _of(one)] for name, one in named]
    parts.append(["what stays at every rank's own mean pace", share(report.persistent_share), ""])
    explained = table(["of the slowdown goes, if only these kept pace", "share", ""], parts, shape="narrow")
    return section(_STEP, f"<div class=beside>{whole}{explained}</div>", _left_out(report))


def _removed(one: Share | Unknown) -> str:
    return share(one if isinstance(one, Unknown) else one.removed)


def _of(one: Share | Unknown) -> str:
    if isinstance(one, Unknown) or not one.ranks:
        return ""
    return text(f"{'rank' if len(one.ranks) == 1 else 'ranks'} {', '.join(map(str, one.ranks[:8]))}")


def _left_out(report: Operations) -> str:
    left = report.steps.left_out
    if not left:
        return ""
    some = "; ".join(f"step {one.step}: {one.why}" for one in left[:4])
    return f"<p class=note>{len(left)} steps are left out: {text(some)}{'; …' if len(left) > 4 else ''}</p>"


def _places(report: Operations) -> str:
    """Return a cell for each stage of each data-parallel rank; of several tensor-parallel workers the slowest."""
    worst: dict[tuple[int, int], RankEntry] = {}
    for one in report.by_rank:
        held = worst.get((one.dp_rank, one.stage))
        if held is None or _slowdown(one) > _slowdown(held):
            worst[one.dp_rank, one.stage] = one
    if not worst:
        return ""
    stages = sorted({stage for _, stage in worst})[:_PLACES_MAX]
    slowest: dict[int, float] = {}
    for (dp, _), one in worst.items():
        slowest[dp] = max(slowest.get(dp, 0.0), _slowdown(one))
    rows = sorted(sorted(slowest, key=lambda dp: -slowest[dp])[:_PLACES_MAX])
    cells = [[_cell(worst.get((dp, stage)), dp, stage) for stage in stages] for dp in rows]
    picture = heat_map([f"dp {dp}" for dp in rows], [f"stage {stage}" for stage in stages], cells, "Slowdown by worker")
    values = [_slowdown(one) for one in worst.values()]
    note = f"{min(values):.3f} to {max(values):.3f}, the slower the darker"
    if len(rows) < len(slowest):
        note += f"; the {len(rows)} slowest of {len(slowest)} data-parallel ranks"
    by_stage = [
        [f"stage {one.stage}", f"{one.slowdown:.3f}", share(one.explains), time(one.compute_ns)]
        for one in report.by_stage[:_ROWS_MAX]
    ]
    stage_table = table(["stage", "slowdown", "explains", "computes in a step"], by_stage, shape="narrow")
    return section(_PLACES, picture, f"<p class=note>{note}.</p>", stage_table)


def _slowdown(one: RankEntry) -> float:
    return one.slowdown_bound if isinstance(one.slowdown, Unknown) else one.slowdown


def _cell(one: RankEntry | None, dp: int, stage: int) -> Cell:
    where = f"data-parallel rank {dp}, stage {stage}"
    if one is None:
        return Cell(None, f"{where}: not in the tables")
    at_most = "at most " if isinstance(one.slowdown, Unknown) else ""
    pace = f"slowdown {at_most}{_slowdown(one):.3f}, computes {format_ns(one.compute_ns)}"
    return Cell(_slowdown(one), f"{where}, rank {one.rank}: {pace}, waits {format_ns(one.waiting_ns)}")


def _steps(report: Operations) -> str:
    each = report.steps.each[:_STEPS_MAX]
    if len(each) < 2:
        return ""
    cells = []
    for one in each:
        worst = f", worst rank {one.worst_rank}" if one.worst_rank is not None else ""
        says = f"step {one.step}: {format_ns(one.measured_ns)}, slowdown {one.slowdown:.3f}{worst}"
        cells.append(Cell(one.slowdown, says))
    picture = heat_map(["slowdown"], [f"step {one.step}" for one in each], [cells], "Slowdown by step")
    values = [one.slowdown for one in each]
    some = f"; the first {len(each)} steps" if len(each) < len(report.steps.each) else ""
    return section(_STEPS, picture, f"<p class=note>{min(values):.3f} to {max(values):.3f}{some}.</p>")


def _types(report: Operations) -> str:
    rows = [
        [
            f"<code>{text(one.name, 80)}</code>",
            f"{one.slowdown:.3f}",
            f"{one.count:,}",
            time(one.mean_ns),
            "–" if one.kind == "compute" else time(one.waiting_ns),
        ]
        for one in report.by_optype[:_ROWS_MAX]
    ]
    head = ["operation", "slowdown", "count", "mean", "of it waiting"]
    return section(_TYPES, table(head, rows, shape="narrow")) if rows else ""


def _ranks(report: Operations) -> str:
    rows = [
        [
            f"rank {one.rank}",
            f"stage {one.stage}, dp {one.dp_rank}" + (f", tp {one.tp_rank}" if one.tp_rank else ""),
            f"{'≤ ' if isinstance(one.slowdown, Unknown) else ''}{_slowdown(one):.3f}",
            time(one.compute_ns),
            time(one.waiting_ns),
            f"{one.steps_worst:,}",
        ]
        for one in report.by_rank[:_ROWS_MAX]
    ]
    more = len(report.by_rank) - len(rows)
    note = f"<p class=note>{more:,} more ranks are in --json.</p>" if more > 0 else ""
    head = ["rank", "place", "slowdown", "computes", "waits", "worst in steps"]
    return section(_RANKS, table(head, rows, shape="narrow"), note) if rows else ""
