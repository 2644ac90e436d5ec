"""Small jobs for the rows of the catalogue: what a step does is written down as data, and drawn on every rank.

main      ├ loader ┤├ copy ┤├l├l├ … ├──── sync ────┤├ between: gc, save, log … ┤
stream 7            ├ copy ┤ ├── kernels ──┤
stream 20                                  ├ collectives ┤
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from longpole.advice.catalogue import load_catalogue
from longpole.advice.figures import run_view
from longpole.advice.propose import propose
from longpole.digest.across import bring_together
from longpole.digest.digest import Selection, digest_with_graph
from longpole.digest.jobs import Run
from longpole.digest.steady import find_steady
from longpole.graph.store import write_graph
from longpole.pipeline.replays import RunReplay, join_run, scene_of
from longpole.records.findings import CauseFinding
from longpole.records.instances import COLUMNS, Group, Instances
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from longpole.vocabulary.causes import CAUSES
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from longpole.whatif.replay import replay
from tests.build import VOCABULARY, Script

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.advice.figures import Value
    from longpole.advice.propose import Proposal
    from longpole.digest.rank_digest import RankDigest

KERNELS = {
    "all_reduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "all_gather": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "all_to_all": "ncclDevKernel_AllToAll_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
}
GEMM = "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128"
WORKER_LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
OWN_LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MB = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Collective:
    """One operation of a step: its transfer, and how much later the last rank arrives."""

    kind: str
    dur: float
    bytes: int = 64 * MB


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job: what each step holds, in µs.

    Attributes:
        before: (name, time) of activities of the host in front of the first launch.
        kernels: (name, time) of device work.
        slow: Rank -> how many times longer its kernels take.
        every: µs of the host between two launches.
        collectives: What runs behind the kernels.
        copies: (way, time, blocking) of copies in front of the kernels.
        after: (name, time) of activities of the host behind the wait for the device.
        rare: Only in this step is `after` there; None for in every one.
        head: (name, time) in front of the first step.
        shapes: Input shapes of the rank's operator, by rank; empty for none recorded.
        backward: The kernels belong to the backward pass.
    """

    ranks: int = 1
    steps: int = 6
    before: tuple[tuple[str, float], ...] = ()
    kernels: tuple[tuple[str, float], ...] = ((GEMM, 4000.0),)
    slow: Mapping[int, float] = field(default_factory=dict)
    every: float = 4.0
    collectives: tuple[Collective, ...] = ()
    copies: tuple[tuple[str, float, bool], ...] = ()
    after: tuple[tuple[str, float], ...] = ()
    rare: int | None = None
    head: tuple[tuple[str, float], ...] = ()
    shapes: Mapping[int, str] = field(default_factory=dict)
    backward: bool = False
    kind: str = "training"
    hosts: tuple[str, ...] = ()


def _draw(job: Job) -> list[Script]:
    scripts = [
        Script(
            rank=r,
            base_ns=0,
            world_size=job.ranks,
            path=f"rank{r}.json",
            hostname=(job.hosts or ("a",))[r % max(len(job.hosts), 1)],
        )
        for r in range(job.ranks)
    ]
    at = 0.0
    for name, time in job.head:
        for script in scripts:
            script.span(name, at, at + time)
        at += time
    for step in range(job.steps):
        parts = [_Part(script, job, at, step) for script in scripts]
        done = max(part.computed for part in parts)
        for place, collective in enumerate(job.collectives):
            for part in parts:
                part.communicate(done if place else part.computed, done + collective.dur, KERNELS[collective.kind])
            done += collective.dur + 1
        ends = [part.finish(done) for part in parts]
        for part in parts:
            part.script.step(step, at, max(ends))
        at = max(ends)
    return scripts


class _Part:
    """One step of one rank."""

    def __init__(self, script: Script, job: Job, at: float, step: int) -> None:
        self.script, self.job, self.step = script, job, step
        t = at + 2
        for name, time in job.before:
            script.span(name, t, t + time)
            t += time + 1
        if script.rank in job.shapes:
            script.op("aten::embedding", t, t + 2, shapes=job.shapes[script.rank])
            t += 3
        ends = t
        for way, time, blocking in job.copies:
            call = script.call("cudaMemcpyAsync", t, t + (time + 8 if blocking else 4))
            begins = max(t + 3, ends + 1)
            row = script.copy(way.removesuffix(" pageable"), begins, begins + time, call)
            if way.endswith(" pageable"):
                row.name = row.name.replace("Pinned", "Pageable")
            t, ends = call.end_ns / 1000 + 1, begins + time
        thread = "autograd" if job.backward else "main"
        for name, time in job.kernels:
            if job.backward:
                script.backward("autograd::engine::evaluate_function: MmBackward0", t, t + 4)
            launch = script.launch(t + 0.5, t + 3.5, thread=thread)
            begins = max(t + 8, ends + 1)
            ends = begins + time * job.slow.get(script.rank, 1.0)
            script.kernel(begins, ends, launch, name=name)
            t += job.every + 4
        self.t, self.computed = t, ends + 1

    def communicate(self, begins: float, ends: float, name: str) -> None:
        launch = self.script.launch(self.t, self.t + 3)
        self.script.collective(begins, ends, launch, stream=7, name=name)
        self.t += 5

    def finish(self, done: float) -> float:
        returns = max(done, self.t) + 5
        self.script.sync(self.t, returns, name="cudaDeviceSynchronize")
        t = returns + 1
        if self.job.rare is None or self.step == self.job.rare:
            for name, time in self.job.after:
                self.script.span(name, t, t + time)
                t += time + 1
        return t + 5


def late_gathers() -> list[Script]:
    """Draw two ranks that gather parameters only behind the computation in front of their use."""
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    for script in scripts:
        for step in range(5):
            at = 1500.0 * step
            script.step(step, at, at + 1500)
            script.kernel(at + 10, at + 310, script.launch(at, at + 3), name="k1")
            script.call("cudaStreamWaitEvent", at + 20, at + 21)
            gather = script.launch(at + 25, at + 28)
            script.collective(at + 313, at + 733, gather, stream=20, name=KERNELS["all_gather"])
            script.call("cudaStreamWaitEvent", at + 35, at + 36)
            script.kernel(at + 736, at + 1036, script.launch(at + 40, at + 43), name="k2")
            script.sync(at + 55, at + 1044, name="cudaDeviceSynchronize")
    return scripts


def run_of(job: Job, settings: Settings | None = None, scripts: list[Script] | None = None) -> RunReplay:
    """Digest, join and replay a job, with the sizes of its collectives; drawn from `scripts` where given."""
    settings = settings or Settings()
    digests = []
    with tempfile.TemporaryDirectory() as folder:
        for script in scripts or _draw(job):
            measured, graph = digest_with_graph(script.timeline(), VOCABULARY, settings, Selection())
            write_graph(Path(folder) / f"{script.rank}.graph", graph)
            digests.append(_completed(measured, job, f"{script.rank}.graph"))
        across = bring_together(digests, settings)
        steady = find_steady(digests, settings, across.clocks if across is not None else None)
        joined = join_run(digests, steady, across, Path(folder))
    assert not isinstance(joined, Unknown), joined
    replayed = replay(joined, list(steady.periods), settings)
    return RunReplay(Run(digests, []), [], steady, across, joined, replayed, settings)


def _completed(measured: RankDigest, job: Job, graph: str) -> RankDigest:
    """Say what scripts cannot: the sizes of collectives, their group, and what sort of job it is."""
    own = measured.instances
    sizes = {c.kind: c.bytes for c in job.collectives}
    in_order = [c.bytes for c in job.collectives]
    kinds = [COLLECTIVE_KINDS[code] for code in own.kind.tolist()]
    each = [in_order[place % len(in_order)] if len(in_order) else sizes[kind] for place, kind in enumerate(kinds)]
    columns = own.columns | {
        "bytes": np.array(each, COLUMNS["bytes"]).tobytes(),
        "group": np.zeros(len(own), COLUMNS["group"]).tobytes(),
    }
    groups = [Group("0", "default_pg", list(range(job.ranks)), job.ranks)]
    instances = Instances(columns, groups, own.dtypes) if len(own) else own
    return msgspec.structs.replace(measured, graph=graph, instances=instances, kind=job.kind)


def finding(cause: str, cost_ns: int = 1_000_000, *, what_if: tuple[str, ...] = (), once: bool = False) -> CauseFinding:
    """Return a finding as the engine might give it."""
    return CauseFinding(
        id="f1",
        cause=cause,
        object=CAUSES[cause],
        stage="",
        ranks=[0],
        units=[],
        cost_ns_per_unit=0 if once else cost_ns,
        cost_statistic="one_off" if once else "median",
        cost_share=0.0 if once else 0.1,
        basis="ledger",
        ceiling_ns=cost_ns,
        once=once,
        cost_once_ns=cost_ns if once else 0,
        evidence_grade="recorded",
        rests_on=1.0,
        says="",
        evidence=[],
        what_if=list(what_if),
    )


def proposed(
    job: Job | RunReplay, findings: list[CauseFinding] | None = None, known: Mapping[str, Value] | None = None
) -> Proposal:
    """Propose changes for a job, with the findings given and figures known from elsewhere."""
    run = job if isinstance(job, RunReplay) else run_of(job)
    scene = scene_of(run)
    view = replace(run_view(scene, findings or []), known=known or {})
    return propose(load_catalogue(), view, scene.ground or Unknown("there is no replay"))
