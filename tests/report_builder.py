"""Reports made by hand, a few words each, for the tests of what shows them.

A ledger is given by what ran (`busy`) and by why nothing ran (`idle`), both in ns; everything else follows, so that
the laws hold by construction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.analyses.sums import MOVED, add_ledgers, empty_ledger, mean_ledger
from longpole.digest.rank_digest import DeviceSpan
from longpole.records.critical_path import CriticalPath, NearCritical
from longpole.records.ledger import DeviceTime, Ledger, ObjectTime, StageTime, Unknown
from longpole.records.replay import Replay, UnitErrors
from longpole.records.tables import ActivityRow, CopyRow, GapRow, KernelRow, ModuleRow, OperatorRow, ShapeRow, Where
from longpole.report.document import (
    NO_MEMORY,
    SCHEMA,
    ClockEntry,
    Headline,
    Items,
    LeftOut,
    PeriodStatistics,
    RankEntry,
    Report,
    RunMemory,
    RunSummary,
    SelectionEntry,
    SourceEntry,
    Top,
    UnitEntry,
    UnitSummary,
    UnknownEntry,
)
from longpole.stats import mean_ns, median_ns
from longpole.timeline.integrity import Example, Finding
from longpole.units import NS_PER_MS, NS_PER_US
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS, charged_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.timeline.integrity import Severity

WORKERS_UNSEEN = Unknown("the loader's worker processes are not in the trace", ["spans of the loader workers"])
NO_ITEMS = Unknown("how many items a unit processes is not declared", ["items per unit"])
NOT_ASKED = Unknown("the graph of the run was not asked for")
FIRST = Unknown("the first unit has none")


def ms(value: float) -> int:
    return round(value * NS_PER_MS)


def make_ledger(
    busy: Mapping[str, int],
    idle: Mapping[str, int],
    *,
    hidden: Mapping[str, int | Unknown] | None = None,
    waiting: int | Unknown | None = None,
) -> Ledger:
    """A ledger whose objects ran for `busy`, and whose device idled for `idle`; `hidden` may withhold a service."""
    reasons = {name: idle.get(name, 0) for name in IDLE_REASONS}
    exposed = {name: busy.get(name, 0) for name in OBJECTS}
    for reason, time_ns in reasons.items():
        exposed[charged_to(reason)] += time_ns
    objects = {}
    for name in OBJECTS:
        time = ObjectTime(exposed[name])
        if name in MOVED:
            covered = (hidden or {}).get(name, 0)
            time.hidden_ns = covered
            time.service_ns = covered if isinstance(covered, Unknown) else exposed[name] + covered
        objects[name] = time
    if waiting is not None:
        objects["collective"].waiting_ns = waiting
    busy_ns, idle_ns = sum(busy.values()), sum(reasons.values())
    device = DeviceTime(busy_ns, idle_ns, busy.get("compute", 0), busy.get("collective", 0))
    ledger = Ledger(busy_ns + idle_ns, objects, device, reasons)
    ledger.check()
    return ledger


def make_unit(name: str, ledger: Ledger, start_ns: int, *, kind: str = "step", steady: bool = True) -> UnitEntry:
    wall_ns = ledger.wall_ns
    return UnitEntry(
        name=name,
        kind=kind,
        steady=steady,
        start_ns=start_ns,
        wall_ns=wall_ns,
        between_ns=0,
        completion_ns=start_ns + wall_ns,
        period_ns=wall_ns if start_ns else FIRST,
        lag_ns=0,
        items=NO_ITEMS,
        device_by_time_ns=ledger.device.busy_ns,
        device_by_launch_ns=ledger.device.busy_ns,
        exposed_ns={name: time.exposed_ns for name, time in ledger.objects.items()},
        stages={"forward": StageTime(wall_ns // 2, 0), "other": StageTime(wall_ns - wall_ns // 2, 0)},
    )


def make_gap(name: str, reason: str, dur_ns: int, *, unit: str = "ProfilerStep#3", stack: Sequence[str] = ()) -> GapRow:
    return GapRow(
        name=name,
        reason=reason,
        dur_ns=dur_ns,
        unit=unit,
        idle_ns={reason: dur_ns},
        thread="thread 7 (python)",
        stack=list(stack),
        other_threads=["pin memory: queue.get"],
        closed_by="gemm",
        where=Where(1000, 17),
    )


def make_top(*gaps: GapRow, names: Sequence[str] = ("gemm",)) -> Top:
    """Tables with one row for each name."""
    return Top(
        [KernelRow(name, "compute", 2, 20, 10, 18, 0.5, Where(5, 3, "stream 7")) for name in names],
        [OperatorRow(f"aten::{name}", 2, 40, 40, 20, 1.0, [ShapeRow("[8, 16]", 2, 20)], Where(1, 2)) for name in names],
        list(gaps),
        [
            CopyRow("Memcpy HtoD", "htod", "input", 2, 4096, 100, 40.96),
            CopyRow("Memset", "memset", "compute", 1, 0, 3, None),
        ],
    )


def make_row(
    rank: int,
    ledgers: Sequence[Ledger],
    *,
    device: str = "cuda:0",
    device_name: str = "A100-SXM4-80GB",
    top: Top | None = None,
    unit_kind: str = "step",
) -> RankEntry:
    """A row with one unit for each ledger, one behind the other."""
    units: list[UnitEntry] = []
    end_ns = 0
    for place, ledger in enumerate(ledgers):
        name = "trace" if unit_kind == "trace" else f"ProfilerStep#{place + 3}"
        units.append(make_unit(name, ledger, end_ns, kind=unit_kind))
        end_ns += ledger.wall_ns
    on_cpu = Unknown("the trace holds no device spans", ["device activities"])
    total = add_ledgers(ledgers)
    busy_ns, idle_ns = total.device.busy_ns, total.device.idle_ns
    span = DeviceSpan(on_cpu, on_cpu, on_cpu) if device == "cpu" else DeviceSpan(total.wall_ns, busy_ns, idle_ns)
    return RankEntry(
        rank=rank,
        host="node-1",
        device=device,
        device_name="" if device == "cpu" else device_name,
        source=rank,
        recorded_ns=end_ns,
        head_ns=0,
        tail_ns=0,
        device_span=span,
        ledger=total,
        gaps_by_activity=[ActivityRow("enumerate(DataLoader)", 40, 2)],
        units=units,
        stages={"forward": StageTime(10, 5)},
        modules=[ModuleRow("forward", "nn.Module: Linear_0", 8, 5)],
        top=top or make_top(),
    )


def make_headline(rows: Sequence[RankEntry], unit_kind: str = "step") -> Headline:
    """The largest exposed object other than compute, as a sentence."""
    row = rows[0]
    objects = {name: time.exposed_ns for name, time in row.ledger.objects.items() if name != "compute"}
    worst = max(objects, key=lambda name: objects[name])
    cost_ns = objects[worst] // max(len(row.units), 1)
    return Headline(
        f"rank {row.rank}: {worst}, {cost_ns} ns per {unit_kind}", "unknown", cost_ns, "ledger", row.rank, worst
    )


def make_report(
    rows: Sequence[RankEntry],
    *,
    headline: Headline | Unknown | None = None,
    world_size: int | Unknown | None = None,
    unit_kind: str = "step",
    left_out: Sequence[LeftOut] = (),
    environment: Mapping[str, Any] | None = None,
    integrity: Sequence[Finding] = (),
    unknown: Sequence[UnknownEntry] = (),
    selection: SelectionEntry | None = None,
    path: str = "traces/rank{rank}.json",
    critical_path: CriticalPath | None = None,
    replay: Replay | None = None,
    memory: RunMemory | Unknown | None = None,
) -> Report:
    """A report of some rows; the ledger is the mean of all their units."""
    periods = [unit.period_ns for row in rows[:1] for unit in row.units if isinstance(unit.period_ns, int)]
    none = Unknown("no unit has a period")
    ranks = sorted({row.rank for row in rows})
    return Report(
        schema=SCHEMA,
        longpole="0.1.0",
        run=RunSummary(
            kind="training",
            ranks_present=ranks,
            world_size=len(ranks) if world_size is None else world_size,
            ranks_assumed=False,
            sources=[SourceEntry(path.format(rank=rank), "kineto", "1", 5_000_000, 120_000, 0, 0) for rank in ranks],
            environment=dict(environment or {}),
            selection=selection or SelectionEntry(),
        ),
        headline=headline if headline is not None else make_headline(rows, unit_kind),
        unit=UnitSummary(
            kind=unit_kind,
            count=len(rows[0].units) if rows else 0,
            left_out=list(left_out),
            items=Items(NO_ITEMS, NO_ITEMS),
            period_ns=PeriodStatistics(
                median=median_ns(periods) if periods else none,
                p95=Unknown("n < 20"),
                mean=mean_ns(periods) if periods else none,
                n=len(periods),
            ),
        ),
        ledger=_mean(rows),
        ranks=list(rows),
        integrity=list(integrity),
        unknown=list(unknown),
        clock=[ClockEntry(rank, 0, NOT_ASKED, "base_time") for rank in ranks],
        collectives=[],
        overlap=[],
        critical_path=critical_path or NOT_ASKED,
        replay=replay or NOT_ASKED,
        findings=[],
        long_pole=None,
        candidates=[],
        memory=memory or NO_MEMORY,
    )


def make_finding(
    code: str,
    severity: Severity,
    message: str,
    *,
    rank: int | None = 0,
    count: int = 1,
    voids: Sequence[str] = (),
) -> Finding:
    return Finding(code, severity, rank, count, Example("traces/rank0.json", 17, 20331), message, list(voids))


def _mean(rows: Sequence[RankEntry]) -> Ledger:
    """The mean over all units of all rows: the ledgers of no time bring the rows' sums to the number of units."""
    n = sum(len(row.units) for row in rows)
    mean = mean_ledger([*(row.ledger for row in rows), *(empty_ledger() for _ in range(n - len(rows)))])
    waits = [row.ledger.objects["collective"].waiting_ns for row in rows]
    if waits:
        known = [wait for wait in waits if isinstance(wait, int)]
        mean.objects["collective"].waiting_ns = sum(known) // n if len(known) == len(waits) else waits[0]
    return mean


def typical_path() -> CriticalPath:
    """A path on which rank 5's loader is, then its computation, then a collective that ends on rank 0."""
    by_object = {"input": ms(710), "compute": ms(1500), "collective": ms(240), "host": ms(30), "unknown": ms(4)}
    return CriticalPath(
        says="ProfilerStep#7: on rank 5 71.0 ms input (dataloader.py(701): __next__), 150 ms computation, then on rank"
        " 0 24.0 ms collective, and 3.40 ms in shorter pieces",
        by_object_ns=by_object,
        by_rank_ns={"5": ms(2240), "0": ms(244)},
        by_rank_object_ns={},
        ranks_visited=[0, 5],
        by_grade_share={"recorded": 0.66, "ordered": 0.31, "inferred": 0.03, "guess": 0.0, "unexplained": 0.002},
        waits_share={"confirmed": 0.02, "untested": 0.01},
        units=[f"ProfilerStep#{number}" for number in range(1, 11)],
        unit="ProfilerStep#7",
        period_ns=ms(248.4),
        anchor_rank=0,
        pieces=[],
        near_critical=[NearCritical("input", 0), NearCritical("output", ms(9.3))],
    )


def typical_replay() -> Replay:
    """A replay that is close, with a tenth of its path kept as recorded."""
    return Replay(-0.004, UnitErrors(0.004, 0.012), 0.1, 0.08, 0.002, 0.0, 0, "usable", 10)


def typical() -> Report:
    """Eight ranks, eleven steps; the loader of rank 5 holds all of them up."""
    rows = []
    for rank in range(8):
        late_ns = ms(57) if rank == 5 else 0
        ledger = make_ledger(
            {"compute": ms(143.2) + rank * 1000, "collective": ms(68.9) - late_ns, "state": ms(2.2)},
            {
                "input": ms(14) + late_ns,
                "host.sync": ms(4.9),
                "host.dispatch": ms(9.9),
                "host.gc": 40 * NS_PER_US,
                "output": ms(4.6),
                "device.unexplained": ms(0.4),
            },
            hidden={"collective": ms(31.4), "input": WORKERS_UNSEEN, "output": ms(2.2)},
            waiting=ms(61.3),
        )
        stack = ["ProfilerStep#7", "/srv/job/train.py(41): main", "/srv/job/torch/dataloader.py(701): __next__"]
        gaps = [
            make_gap("enumerate(DataLoader)#__next__", "input", ms(58.1) - rank, unit="ProfilerStep#7", stack=stack),
            make_gap("cudaStreamSynchronize", "host.sync", ms(4.4), unit="ProfilerStep#9", stack=["aten::item"]),
        ]
        rows.append(make_row(rank, [ledger] * 11, top=make_top(*gaps)))
    unknown = [
        UnknownEntry("/long_pole", "naming causes is not part of this version", []),
        UnknownEntry("/headline", "never shown here: the verdict stands above", []),
        *(
            UnknownEntry(f"{at}/objects/input/{field}", WORKERS_UNSEEN.unknown, WORKERS_UNSEEN.missing)
            for at in ("/ledger", *(f"/ranks/{place}/ledger" for place in range(8)))
            for field in ("service_ns", "hidden_ns")
        ),
        UnknownEntry("/unit/period_ns/p95", "n < 20", []),
    ]
    integrity = [
        make_finding(
            "kernel.duration.impossible",
            "warn",
            "12 kernels are longer than they can have been; their time is not counted",
            rank=3,
            count=12,
            voids=["/ranks/3/ledger/device/busy_ns"],
        ),
        *(make_finding("kernel.unlinked", "note", "2 of 900 spans", rank=rank, count=2) for rank in range(8)),
    ]
    return make_report(
        rows,
        headline=Headline("rank 5: waiting for input, 71.0 ms per step (28%)", "unknown", ms(71), "ledger", 5, "input"),
        left_out=[LeftOut("ProfilerStep#3", "communicator_setup")],
        environment={"torch_version": "2.9.0", "cuda_runtime_version": 12080, "nccl_version": "2.27.3"},
        integrity=integrity,
        unknown=unknown,
        critical_path=typical_path(),
        replay=typical_replay(),
        memory=RunMemory(5, "cuda:0", 61_200_000_000, 74_900_000_000, 85_018_279_936, 0.72),
    )


def cpu_only() -> Report:
    """One process without a device: the main thread takes the device's place."""
    ledger = make_ledger({"compute": ms(3.2)}, {"input": ms(4.1), "host.python": ms(0.9), "host.dispatch": 20_000})
    gap = make_gap("ProfilerStep#5", "host.python", ms(0.4), unit="ProfilerStep#5", stack=["ProfilerStep#5"])
    row = make_row(0, [ledger] * 5, device="cpu", top=make_top(gap))
    headline = Headline("cpu: waiting for input, 4.10 ms per step (50%)", "unknown", ms(4.1), "ledger", 0, "input")
    missing = "device activities (ProfilerActivity.CUDA or the like)"
    unknown = [
        UnknownEntry(f"/ranks/0/device_span/{field}", "the trace holds no device spans", [missing])
        for field in ("span_ns", "busy_ns", "idle_ns")
    ]
    message = "no device spans were recorded; the thread that carries the units takes the device's place"
    return make_report(
        [row],
        headline=headline,
        world_size=Unknown("no file says how many ranks the job has"),
        environment={"torch_version": "2.13.0+cpu"},
        integrity=[make_finding("device.none", "note", message)],
        unknown=unknown,
    )


def no_verdict() -> Report:
    """A graph launch without its kernels: the device's idle time may be none, and no wait can be named."""
    ledger = make_ledger({"compute": 90 * NS_PER_US}, {"device.unexplained": 610 * NS_PER_US})
    message = "kernels were recorded for 1 of 9 graph launches; the others look like idle time"
    voids = ["/ranks/0/ledger/device/idle_ns"]
    return make_report(
        [make_row(0, [ledger], unit_kind="trace")],
        unit_kind="trace",
        headline=Unknown(message, ["a record in which every graph launch has its kernels"]),
        integrity=[make_finding("graph.nodes_missing", "void", message, count=8, voids=voids)],
        unknown=[UnknownEntry(voids[0], f"graph.nodes_missing: {message}", [])],
    )


SAMPLES: dict[str, Callable[[], Report]] = {"typical": typical, "cpu-only": cpu_only, "no-verdict": no_verdict}
