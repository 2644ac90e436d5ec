"""The named figures that conditions of the catalogue are about: what each says, of which sort, and its value in a run.

A figure that a run does not tell is `Unknown`: a condition on it is then neither true nor false.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from longpole.advice import work_figures as work
from longpole.analyses.sums import MOVED, empty_ledger, mean_ledger
from longpole.digest.steady import real_units
from longpole.records.ledger import Unknown
from longpole.records.memory import peak_of
from longpole.vocabulary.causes import CAUSES
from longpole.vocabulary.objects import COLLECTIVE_KINDS, IDLE_REASONS, OBJECTS, STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.advice.scene import Scene
    from longpole.digest.rank_digest import RankDigest
    from longpole.digest.steady import Steady
    from longpole.records.collectives import CollectiveEntry, OverlapEntry, PipelineEntry
    from longpole.records.findings import CauseFinding
    from longpole.records.ledger import Ledger

Value: TypeAlias = "float | int | bool | str | list[str] | Unknown"
Figures: TypeAlias = "Mapping[str, Value]"

NUMBER, FLAG, TEXT, LIST = "number", "flag", "text", "list"


class Spec(NamedTuple):
    """What a figure is: one of the four sorts above, and a sentence for a person."""

    sort: str
    says: str


def _specs() -> dict[str, Spec]:
    specs = {f"{name}.exposed_share": Spec(NUMBER, f"share of the unit charged to {name}") for name in OBJECTS}
    for name in MOVED:
        specs[f"{name}.service_share"] = Spec(NUMBER, f"how long {name} operations take, as a share of the unit")
        specs[f"{name}.hidden_share"] = Spec(NUMBER, "the part of that which runs under something of a higher rung")
    for reason in IDLE_REASONS:
        specs[f"idle.{reason}"] = Spec(NUMBER, f"share of the unit in which the device idles for {reason}")
    for stage in STAGES:
        specs[f"stage.{stage}_share"] = Spec(NUMBER, f"share of the unit in the stage {stage}")
    for kind in filter(None, COLLECTIVE_KINDS):
        specs[f"collective.{kind}.exposed_share"] = Spec(NUMBER, f"share of the unit in exposed {kind}")
    for cause in CAUSES:
        specs[f"cause.{cause}"] = Spec(NUMBER, f"cost of the finding {cause}, as a share of the period; 0 for none")
    return specs | _SINGLE


_SINGLE: Final = {
    "run.kind": Spec(TEXT, "training, inference, posttraining or unknown"),
    "run.on_device": Spec(FLAG, "devices were recorded; else threads take their place"),
    "run.ranks": Spec(NUMBER, "ranks with a trace"),
    "run.world_size": Spec(NUMBER, "ranks of the job"),
    "run.hosts": Spec(NUMBER, "machines"),
    "run.all_ranks": Spec(FLAG, "every rank of the job has a trace"),
    "run.rows_with_stacks": Spec(FLAG, "Python frames were recorded"),
    "unit.count": Spec(NUMBER, "steady units with a period"),
    "unit.period_ns": Spec(NUMBER, "median period of the steady units, ns"),
    "unit.items": Spec(NUMBER, "items (tokens, samples, requests) that a unit processes"),
    "input.waiting_share": Spec(NUMBER, "share of the unit spent waiting for a batch, copies left out"),
    "device.busy_share": Spec(NUMBER, "share of the unit in which anything runs on the device"),
    "device.idle_share": Spec(NUMBER, "share of the unit in which nothing runs on the device"),
    "collective.waiting_share": Spec(NUMBER, "share of the unit in which collectives wait for a later rank"),
    "collective.moving_share": Spec(NUMBER, "share of the unit in exposed collectives that is not waiting"),
    "collective.reducing_share": Spec(NUMBER, "share of the unit in exposed all_reduce and reduce_scatter"),
    "collective.gathering_share": Spec(NUMBER, "share of the unit in exposed all_gather and broadcast"),
    "collective.count": Spec(NUMBER, "collectives and transfers of a rank in a unit"),
    "collective.kinds": Spec(LIST, "kinds of collectives that occur"),
    "collective.costliest": Spec(TEXT, "the kind with the most exposed time"),
    "collective.bound": Spec(TEXT, "what bounds the costliest: skew, latency, bandwidth, mixed or unknown"),
    "collective.mean_bytes": Spec(NUMBER, "mean size of the costliest kind, bytes"),
    "collective.largest_bytes": Spec(NUMBER, "largest size of the costliest kind, bytes"),
    "collective.small_count": Spec(NUMBER, "operations of 1 MiB or less of one kind and group in a unit, the most"),
    "collective.has_model": Spec(FLAG, "the time of another size can be told: from a fit, a record or a shipped fit"),
    "collective.group_size": Spec(NUMBER, "members of the costliest kind's group"),
    "collective.slow_link_factor": Spec(NUMBER, "rate of the median pair of ranks over the slowest pair's"),
    "overlap.slowdown": Spec(NUMBER, "how many times longer computation takes beside collectives"),
    "pipeline.stages": Spec(NUMBER, "stages of the pipeline; 0 for none"),
    "pipeline.bubble_share": Spec(NUMBER, "share of the units in which stages do not compute"),
    "pipeline.imbalance": Spec(NUMBER, "the slowest stage's compute time over the mean, less 1"),
    "work.imbalance": Spec(NUMBER, "the busiest rank's compute time over the mean, less 1; 0 for one rank"),
    "kernel.count": Spec(NUMBER, "compute kernels that a unit launches on a rank"),
    "kernel.mean_ns": Spec(NUMBER, "mean time of a compute kernel, ns"),
    "kernel.matmul_share": Spec(NUMBER, "share of compute time in matrix products and convolutions"),
    "kernel.pointwise_share": Spec(NUMBER, "share of compute time in pointwise and reducing kernels"),
    "kernel.full_precision_share": Spec(NUMBER, "share of the matrix products' time in kernels of 32 bits"),
    "kernel.transpose_share": Spec(NUMBER, "share of compute time in kernels that only change a layout"),
    "kernel.attention_share": Spec(NUMBER, "share of compute time in attention kernels"),
    "batch.size_spread": Spec(NUMBER, "how much the inputs' elements differ over ranks and units: 1 - least / most"),
    "loader.seen": Spec(FLAG, "activities that fetch input were recorded"),
    "loader.has_workers": Spec(FLAG, "the loader has worker processes"),
    "loader.restarts": Spec(FLAG, "frames that start or reset a loader were recorded"),
    "output.checkpoint_share": Spec(NUMBER, "share of the units in which the device idles under saving a checkpoint"),
    "output.logging_share": Spec(NUMBER, "share of the units in which the device idles under logging"),
    "copy.pageable_share": Spec(NUMBER, "share of the copies to the device, by time, that come from pageable memory"),
    "copy.input_bytes": Spec(NUMBER, "bytes that copies bring to the device in a unit"),
    "copy.state_bytes": Spec(NUMBER, "bytes of state that copies move in a unit"),
    "reducer.copy_share": Spec(NUMBER, "share of the unit under copies between gradients and buckets, on the host"),
    "artifact.once_share": Spec(NUMBER, "share of the record spent loading artifacts before or outside steady units"),
    "artifact.share": Spec(NUMBER, "the same, and the share of the steady units besides"),
    "compile.once_share": Spec(NUMBER, "share of the record spent compiling and capturing outside steady units"),
    "compile.share": Spec(NUMBER, "the same, and the share of the steady units besides"),
    "memory.peak_share": Spec(NUMBER, "peak memory of the device as a share of what it has"),
}

FIGURES: Final = _specs()
"""Every figure that a condition may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """What the figures of a run are computed from.

    Attributes:
        digests: The ranks, by rank.
        steady: Their units; waiting parts of collectives are filled in where they are known.
        collectives: By kind, group and element type, the costliest first.
        pipeline: The pipeline, None where there is none.
        slow_link_factor: How many times slower the slowest pair of ranks is than the median one; None for no pairs.
        overlap: How kinds of work slow each other.
        findings: The causes found, None where nobody looked.
        host_names: Names of what was recorded, None where the graphs are not at hand.
        compiling: Names of what compiles, captures or searches, those with most time first.
        known: Figures that something other than the trace tells, such as a run record: peak memory, items per unit.
    """

    digests: Sequence[RankDigest]
    steady: Steady
    collectives: Sequence[CollectiveEntry] = ()
    pipeline: PipelineEntry | None = None
    slow_link_factor: float | None = None
    overlap: Sequence[OverlapEntry] = ()
    findings: Sequence[CauseFinding] | None = None
    host_names: frozenset[str] | None = field(default=None, repr=False)
    compiling: Sequence[str] = ()
    known: Figures = field(default_factory=dict)


def run_view(scene: Scene, findings: Sequence[CauseFinding] | None) -> RunView:
    """Return what the figures of a run are computed from.

    Args:
        scene: The run as rules see it.
        findings: The causes found, None where nobody looked.
    """
    graph = scene.graph
    rates = sorted(row.gb_per_s for row in scene.tables.links if isinstance(row.gb_per_s, float) and row.gb_per_s > 0)
    return RunView(
        digests=scene.digests,
        steady=scene.steady,
        collectives=scene.tables.collectives,
        pipeline=next(iter(scene.tables.pipeline), None),
        slow_link_factor=rates[len(rates) // 2] / rates[0] if len(rates) > 1 else None,
        overlap=scene.tables.overlap,
        findings=findings,
        host_names=frozenset(name for rank in graph.ranks for name in rank.names) if graph is not None else None,
        compiling=_names_of_calls(scene, "compile"),
    )


def _names_of_calls(scene: Scene, call: str) -> list[str]:
    """Return the names that the vocabulary gives one class of calls, those with most time first."""
    time_ns: dict[str, int] = {}
    for view in scene.views:
        host = view.graph.host
        for row in view.rows(view.call == call, track=-1).tolist():
            name = view.graph.names[int(host.name[row])]
            time_ns[name] = time_ns.get(name, 0) + int(host.end_ns[row] - host.start_ns[row])
    return sorted(time_ns, key=lambda name: (-time_ns[name], name))


def compute_figures(view: RunView) -> dict[str, Value]:
    """Return every figure of `FIGURES` for one run.

    Args:
        view: The run.
    """
    ledgers = steady_ledgers(view)
    mean = mean_ledger(ledgers) if ledgers else empty_ledger()
    figures = _of_ledger(mean, view) | _of_run(view) | _of_causes(view)
    units = max(sum(len(row) for row in _steady_units(view)), 1)
    figures |= work.collective_figures(view.collectives, view.steady, mean.wall_ns * units)
    exposed = mean.objects["collective"].exposed_ns / max(mean.wall_ns, 1)
    figures |= work.waiting_figures(view.collectives, exposed, mean.wall_ns * units)
    figures |= work.pipeline_figures(view.pipeline, view.overlap)
    figures |= work.kernel_figures(view.digests, _steady_units(view))
    figures |= work.batch_figures(view.digests, _steady_units(view))
    figures |= work.copy_figures(view.digests)
    figures |= work.output_figures(view.digests)
    once = work.once_figures(view.digests, view.steady)
    figures |= once
    figures["artifact.share"] = once["artifact.once_share"] + mean.objects["artifact"].exposed_ns / max(mean.wall_ns, 1)
    figures["compile.share"] = once["compile.once_share"] + mean.idle_ns["host.compile"] / max(mean.wall_ns, 1)
    figures |= work.host_figures(view.digests, view.host_names, mean.wall_ns * units)
    figures["collective.slow_link_factor"] = (
        view.slow_link_factor
        if view.slow_link_factor is not None
        else Unknown("no two pairs of ranks exchange bytes directly", ["sends and receives of all ranks"])
    )
    figures["memory.peak_share"] = _peak_share(view.digests)
    return figures | dict(view.known)


def _peak_share(digests: Sequence[RankDigest]) -> float | Unknown:
    """Return the most that is allocated on any device as a share of what that device has."""
    shares = [
        peak_of(memory).peak_allocated_bytes / memory.capacity_bytes
        for digest in digests
        for memory in digest.memory
        if not memory.from_start and memory.units and memory.capacity_bytes > 0
    ]
    if not shares:
        return Unknown("the trace does not say how much memory is in use", ["peak device memory"])
    return max(shares)


def steady_ledgers(view: RunView) -> list[Ledger]:
    """Return the ledgers of all steady units of all rows; of all units where none is steady."""
    steady = [unit.ledger for row in _steady_units(view) for unit in row]
    return steady or [unit.ledger for digest in view.digests for row in digest.rows for unit in real_units(row.units)]


def _steady_units(view: RunView) -> list[list[work.UnitDigest]]:
    out = {(name, rank) for name, why, rank in view.steady.left_out if why != "not_separable"}
    return [
        [unit for unit in real_units(row.units) if (unit.name, None) not in out and (unit.name, digest.rank) not in out]
        for digest in view.digests
        for row in digest.rows
    ]


def _of_ledger(mean: Ledger, view: RunView) -> dict[str, Value]:
    wall_ns = max(mean.wall_ns, 1)
    figures: dict[str, Value] = {
        f"{name}.exposed_share": time.exposed_ns / wall_ns for name, time in mean.objects.items()
    }
    withheld = {name: why for digest in view.digests for name, why in digest.services_unknown.items()}
    for name in MOVED:
        time = mean.objects[name]
        for key, value in (("service", time.service_ns), ("hidden", time.hidden_ns)):
            known = isinstance(value, int) and name not in withheld
            why = withheld.get(name) or Unknown(f"the {key} of {name} is not known")
            figures[f"{name}.{key}_share"] = value / wall_ns if known else why  # type: ignore[operator]
    figures |= {f"idle.{reason}": time_ns / wall_ns for reason, time_ns in mean.idle_ns.items()}
    on_device = any(row.device != "cpu" for digest in view.digests for row in digest.rows)
    figures["input.waiting_share"] = figures["idle.input"] if on_device else figures["input.exposed_share"]
    figures["device.busy_share"] = mean.device.busy_ns / wall_ns
    figures["device.idle_share"] = mean.device.idle_ns / wall_ns
    units = [unit for row in _steady_units(view) for unit in row]
    all_ns = max(sum(unit.ledger.wall_ns for unit in units), 1)
    for stage in STAGES:
        stage_ns = sum(unit.stages[stage].wall_ns for unit in units if stage in unit.stages)
        figures[f"stage.{stage}_share"] = stage_ns / all_ns
    return figures


def _of_run(view: RunView) -> dict[str, Value]:
    digests = view.digests
    worlds = [digest.world_size for digest in digests if digest.world_size]
    ranks = len({digest.rank for digest in digests})
    hosts = {digest.host for digest in digests if digest.host}
    periods = sorted(view.steady.periods.values())
    kinds = [digest.kind for digest in digests]
    all_ranks: Value = True
    if worlds and max(worlds) > ranks:
        missing = f"{ranks} of {max(worlds)} ranks have a trace"
        all_ranks = Unknown(missing, ["traces of all ranks"])
    elif not worlds:
        all_ranks = Unknown("no file says how many ranks the job has", ["number of ranks"])
    return {
        "run.kind": next((kind for kind in ("posttraining", "training", "inference") if kind in kinds), "unknown"),
        "run.on_device": any(row.device != "cpu" for digest in digests for row in digest.rows),
        "run.ranks": ranks,
        "run.world_size": max(worlds) if worlds else Unknown("no file says how many ranks the job has"),
        "run.hosts": len(hosts) or Unknown("no file names its machine", ["names of the machines"]),
        "run.all_ranks": all_ranks,
        "unit.count": len(periods),
        "unit.period_ns": periods[(len(periods) - 1) // 2]
        if periods
        else Unknown("no unit has a period", ["two steady units after one another"]),
        "unit.items": Unknown("how many items a unit processes is not declared", ["items per unit"]),
        "work.imbalance": work.imbalance(_steady_units(view)),
    }


def _of_causes(view: RunView) -> dict[str, Value]:
    if view.findings is None:
        why = Unknown("no search for causes was made")
        return {f"cause.{cause}": why for cause in CAUSES}
    figures: dict[str, Value] = {f"cause.{cause}": 0.0 for cause in CAUSES}
    for finding in view.findings:
        key = f"cause.{finding.cause}"
        if key in figures:
            figures[key] += finding.cost_share  # type: ignore[operator]  # made a number above
    return figures
