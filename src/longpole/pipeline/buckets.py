"""`longpole buckets`: when gradients were ready, what other bucket caps would leave exposed, and which is best."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole.analyses.comm_groups import element_bytes
from longpole.analyses.gradients import UnitSpan, gradient_passes
from longpole.digest.across import bring_together
from longpole.digest.jobs import choose_run
from longpole.digest.steady import find_steady, real_units
from longpole.errors import InputError, UsageError
from longpole.pipeline.bucket_answer import Question, answer_buckets
from longpole.pipeline.collective_record import with_models
from longpole.pipeline.discover import find_traces
from longpole.pipeline.reading import ReportOptions, choose_ranks, read_digests, selection_of
from longpole.pipeline.span_files import without_spans_beside_traces
from longpole.pipeline.work import WorkContext, read_timelines
from longpole.settings import read_settings
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from longpole.whatif.bucket_sweep import assign_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.analyses.gradients import GradientPass
    from longpole.digest.jobs import Run
    from longpole.digest.rank_digest import RankDigest
    from longpole.digest.steady import Steady
    from longpole.report.buckets import Buckets
    from longpole.settings import Settings
    from longpole.timeline.timeline import Timeline

_TYPE_IN_NAME: Final = re.compile(
    r"AllReduce.*_(f32|float|bf16|bfloat16|f16|half|f64|double)(?![0-9a-z])", re.IGNORECASE
)
_BYTES_IN_NAME: Final = {"f32": 4, "float": 4, "bf16": 2, "bfloat16": 2, "f16": 2, "half": 2, "f64": 8, "double": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOptions:
    """What is asked.

    Attributes:
        report: How the run is read.
        rank: Whose gradients; the lowest rank that reduces any where None.
        cost: Latency in seconds and bytes per second of an all-reduce, over every model.
        element_bytes: Of a gradient, where the trace does not say.
    """

    report: ReportOptions = field(default_factory=ReportOptions)
    rank: int | None = None
    cost: tuple[float, float] | None = None
    element_bytes: int | None = None


def sweep_buckets(
    paths: Sequence[str], options: BucketOptions, progress: Callable[[str, int, int], None] | None = None
) -> Buckets:
    """Say what other caps of DistributedDataParallel's buckets would leave exposed.

    Args:
        paths: Files, folders and patterns; together they are one run.
        options: What is asked.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Raises:
        UsageError: A path or an option is wrong.
        InputError: No file could be used, or no rank reduces gradients from hooks.
    """
    settings = read_settings(options.report.settings)
    digests, _ = read_digests(paths, options.report, settings, progress)
    run = choose_run(choose_ranks(digests, options.report), options.report.job, settings)
    run, _ = with_models(run, options.report)
    across = bring_together(run.digests, settings, run.recorded)
    steady = find_steady(run.digests, settings, across.clocks if across is not None else None)
    digest = _chosen(run, options.rank)
    timeline = _timeline(paths, digest, options.report, settings)
    passes = gradient_passes(timeline, _units(digest, steady), digest.instances)
    if not passes:
        raise _none_found(digest)
    bytes_each = options.element_bytes or _element_bytes(timeline, digest, passes[0])
    return answer_buckets(
        Question(
            digest=digest,
            timeline=timeline,
            passes=passes,
            sized=assign_sizes(passes, bytes_each),
            run=run,
            across=across,
            steady=steady,
            stated=options.cost,
            selection=selection_of(options.report),
            settings=settings,
        )
    )


def _chosen(run: Run, rank: int | None) -> RankDigest:
    """Return the rank asked for, or the lowest one that holds an all-reduce."""
    if rank is not None:
        for digest in run.digests:
            if digest.rank == rank:
                return digest
        have = ", ".join(str(digest.rank) for digest in run.digests[:12])
        msg = f"--of {rank}: expected a rank of the run; there are {have}"
        raise UsageError(msg)
    code = COLLECTIVE_KINDS.index("all_reduce")
    holding = [digest for digest in run.digests if (digest.instances.column("kind") == code).any()]
    return (holding or run.digests)[0]


def _timeline(paths: Sequence[str], digest: RankDigest, options: ReportOptions, settings: Settings) -> Timeline:
    """Read the file of one rank."""
    files, _ = without_spans_beside_traces(find_traces(paths, settings))
    context = WorkContext(None, settings, options.step, None, None)
    found = [timeline for file in files if file.shown == digest.path for timeline in read_timelines(file, context)]
    return next((one for one in found if one.identity.rank == digest.rank), found[0])


def _units(digest: RankDigest, steady: Steady) -> list[UnitSpan]:
    """Return the steady units, all of them where none has a period."""
    units = real_units(digest.rows[0].units)
    kept = [unit for unit in units if unit.name in steady.periods] or units
    return [UnitSpan(unit.name, unit.start_ns, unit.start_ns + unit.ledger.wall_ns) for unit in kept]


def _none_found(digest: RankDigest) -> InputError:
    kinds = digest.instances.column("kind").tolist()
    counts = {name: kinds.count(code) for code, name in enumerate(COLLECTIVE_KINDS) if name and code in kinds}
    held = ", ".join(f"{count} {name}" for name, count in counts.items()) or "no collective"
    found = f"expected all-reduces from hooks of torch's gradients (DistributedDataParallel); found {held}"
    hint = "FSDP gathers and scatters without buckets; a trace without CPU operators shows no gradients"
    return InputError.at(digest.path, None, found, hint)


def _element_bytes(timeline: Timeline, digest: RankDigest, one: GradientPass) -> int | None:
    """Return the bytes of an element as it is reduced: by what the collective says, else by its kernel's name."""
    instances = digest.instances
    place = one.buckets[0].instance
    dtype = int(instances.column("dtype")[place])
    if dtype >= 0 and element_bytes(instances.dtypes[dtype]) > 0:
        return element_bytes(instances.dtypes[dtype])
    if not instances.column("on_device")[place]:
        return None
    name = timeline.names[int(timeline.device.name[instances.column("row")[place]])]
    match = _TYPE_IN_NAME.search(name)
    return _BYTES_IN_NAME[match[1].lower()] if match else None
