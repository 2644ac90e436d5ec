"""Jobs written down call by call, and what they cost: ranks, streams and collectives as a person would draw them.

In contrast to `tests/jobs`, whose programs carry the names of frameworks, these hold what a small made-up trace holds:
launches, kernels of one name, collectives with their metadata, and a span or two that is named.
Times are microseconds.
"""

from __future__ import annotations

import json
import random
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    Program: TypeAlias = Callable[["Host"], Generator[None, None, None]]
    Waits: TypeAlias = Generator[None, None, None]

GEMM: Final = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x5_nn_align8>(Params)"
UPDATE: Final = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
KINDS: Final = {
    "all_reduce": ("allreduce", "AllReduce_Sum_bf16_RING_LL"),
    "reduce_scatter": ("_reduce_scatter_base", "ReduceScatter_Sum_bf16_RING_LL"),
    "broadcast": ("broadcast", "Broadcast_RING_LL"),
    "send": ("send", "SendRecv"),
    "recv": ("recv", "SendRecv"),
}
COMPUTE, COMMUNICATE = 7, 20
_EVENT_US, _STREAM_US, _LATENCY_US = 1.5, 1.0, 6.0


@dataclass(eq=False, slots=True)
class Task:
    """Something on a stream; `meeting` is what it waits for the other members of."""

    name: str
    category: str
    length: float
    stream: int
    launched: float
    number: int
    needs: Sequence[Task]
    meeting: tuple[str, int] | None = None
    args: dict[str, Any] = field(default_factory=dict)
    start: float | None = None
    end: float | None = None


@dataclass(slots=True)
class Host:
    """One rank: its only thread, and its streams."""

    rank: int
    job: Job
    at: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    tails: dict[int, Task] = field(default_factory=dict)
    steps: list[tuple[float, float]] = field(default_factory=list)
    sequence: dict[str, int] = field(default_factory=dict)

    def row(self, name: str, start: float, end: float, category: str, args: dict[str, Any] | None = None) -> None:
        place = {"pid": 4200 + self.rank, "tid": 4200 + self.rank}
        self.rows.append(
            {"ph": "X", "cat": category, "name": name, "ts": start, "dur": end - start, **place, "args": args or {}}
        )

    def call(self, name: str, length: float, category: str = "cuda_runtime", **args: Any) -> None:
        self.row(name, self.at, self.at + length, category, args)
        self.at += length

    @contextmanager
    def span(self, name: str, category: str = "user_annotation", **args: Any) -> Iterator[None]:
        begun = self.at
        yield
        self.row(name, begun, self.at, category, args)

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        begun = self.at
        with self.span(f"ProfilerStep#{number}"):
            yield
        self.steps.append((begun, self.at))

    def launch(self, name: str, length: float, stream: int = COMPUTE, needs: Sequence[Task] = (), **more: Any) -> Task:
        number = 100 + len(self.tasks)
        needs = [*needs, *([self.tails[stream]] if stream in self.tails else [])]
        task = Task(name, "kernel", length, stream, self.at, number, needs, **more)
        self.tasks.append(task)
        self.tails[stream] = task
        self.call("cudaLaunchKernel" if task.category == "kernel" else "cudaMemcpyAsync", 3.0, correlation=number)
        return task

    def compute(self, length: float, *key: object, n: int = 6, needs: Sequence[Task] = ()) -> Task:
        """Launch kernels of one name and many lengths, the same for the same key."""
        rng = random.Random(repr(key))
        cuts = [0.0, *sorted(rng.random() for _ in range(n - 1)), 1.0]
        for place, (low, high) in enumerate(pairwise(cuts)):
            self.launch(GEMM, max((high - low) * length, 20.0), needs=() if place else needs)
            self.at += 1.0
        return self.tails[COMPUTE]

    def copy(self, name: str, length: float, size_bytes: int) -> Task:
        task = self.launch(name, length, args={"bytes": size_bytes})
        task.category = "gpu_memcpy"
        self.rows[-1]["name"] = "cudaMemcpyAsync"
        return task

    def collective(
        self, kind: str, size: int, length: float, needs: Sequence[Task], *, group: str = "0", stream: int = COMMUNICATE
    ) -> Task:
        """Launch a member of a collective of bfloat16 behind a wait for what it needs."""
        ranks = self.job.groups.get(group, tuple(range(len(self.job.hosts))))
        own = self.sequence.get(group, 0)
        self.sequence[group] = own + 1
        name, kernel = KINDS[kind]
        args = {"Collective name": name, "In msg nelems": size // 2, "Out msg nelems": size // 2, "dtype": "BFloat16"}
        args |= {"Group size": len(ranks), "Process Group Name": group, "Process Group Ranks": str(list(ranks))}
        self.wait_for_event()
        peer = next((place for place, rank in enumerate(ranks) if rank != self.rank), 0)
        arrow = {"send": f"{1 - peer}->{peer}", "recv": f"{1 - peer}<-{peer}"}.get(kind)
        with (
            self.span("record_param_comms", "cpu_op", Seq=own, **args),
            self.span(f"nccl:{kind} {arrow}") if arrow else nullcontext(),
        ):
            self.at += 2.0
            name = f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)"
            task = self.launch(name, length, stream, needs, meeting=(group, own), args={**args, "Seq": own})
        self.job.meetings.setdefault((group, own), []).append((self, task))
        return task

    def wait_for_event(self) -> None:
        self.call("cudaEventRecord", _EVENT_US)
        self.call("cudaStreamWaitEvent", _EVENT_US)

    def synchronize(self, name: str = "cudaDeviceSynchronize") -> Waits:
        begun, waited = self.at, list(self.tails.values())
        while any(self.job.end_of(task) is None for task in waited):
            yield
        self.at = max([begun + 2.0, *(task.end + 5.0 for task in waited if task.end is not None)])
        self.row(name, begun, self.at, "cuda_runtime")


@dataclass(slots=True)
class Job:
    """A job that ran."""

    hosts: list[Host] = field(default_factory=list)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    meetings: dict[tuple[str, int], list[tuple[Host, Task]]] = field(default_factory=dict)

    def start_of(self, task: Task) -> float | None:
        if task.start is None:
            ends = [self.end_of(need) for need in task.needs]
            if all(end is not None for end in ends):
                behind = [end + _STREAM_US for end in ends if end is not None]
                task.start = max([task.launched + _LATENCY_US, *behind])
        return task.start

    def end_of(self, task: Task) -> float | None:
        """Return when a task ends; None where that hangs on what no rank has launched yet."""
        if task.end is not None:
            return task.end
        members = [task]
        if task.meeting is not None:
            members = [member for _, member in self.meetings.get(task.meeting, [])]
            if len(members) < len(self.groups.get(task.meeting[0], self.hosts)):
                return None
        starts = [self.start_of(member) for member in members]
        if all(start is not None for start in starts):
            task.end = max(start for start in starts if start is not None) + max(member.length for member in members)
        return task.end

    def periods(self) -> list[float]:
        """Return the periods of its steps, without the first one's (DESIGN 3.2)."""
        done = [0.0] * len(self.hosts[0].steps)
        for host in self.hosts:
            starts = [begun for begun, _ in host.steps]
            done = [max(at, end) for at, end in zip(done, [*starts[1:], host.steps[-1][1]], strict=True)]
            for task in host.tasks:
                place = sum(begun <= task.launched for begun in starts) - 1
                done[place] = max(done[place], self.end_of(task) or 0.0)
        return [max(after, before) - before for before, after in pairwise(done)]

    def write(self, folder: Path) -> None:
        """Write one Kineto trace a rank."""
        for host in self.hosts:
            rows = [row | {"ts": round(row["ts"] + 1e6, 3), "dur": round(row["dur"], 3)} for row in host.rows]
            for task in host.tasks:
                start, end = self.start_of(task), self.end_of(task)
                assert start is not None
                assert end is not None
                place = {"device": host.rank, "stream": task.stream, "correlation": task.number}
                span = {"ph": "X", "cat": task.category, "name": task.name, "pid": host.rank, "tid": task.stream}
                times = {"ts": round(start + 1e6, 3), "dur": round(end - start, 3)}
                rows.append(span | times | {"args": task.args | place})
            about = {"backend": "nccl", "rank": host.rank, "world_size": len(self.hosts)}
            document = {
                "schemaVersion": 1,
                "distributedInfo": about,
                "baseTimeNanoseconds": 1718 * 10**15,
                "traceEvents": rows,
            }
            (folder / f"rank{host.rank}.json").write_text(json.dumps(document), encoding="utf-8")


def run(program: Program, n_ranks: int = 1, **groups: tuple[int, ...]) -> Job:
    """Run the same program on some ranks until all are done."""
    job = Job(groups=groups)
    job.hosts = [Host(rank, job) for rank in range(n_ranks)]
    left = [program(host) for host in job.hosts]
    while left:
        left = [one for one in left if next(one, left) is not left]
    return job
