"""Place one training step in time: host threads, three device streams, all ranks meeting in their all-reduces.

    main thread   |load|--forward--|··· backward ···|optimizer|sync|metrics|
    autograd                       |--backward------|
    stream 7      ·····|kernels, queued or starved by the host|··|optimizer|·
    stream 20     ·····················|bucket|··|bucket|·|last|·············
    stream 22     ·|H2D|·········································|D2H|······

Device work never outlives its step: the last thing the host does is to wait for it. So figures of steps add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from benchmarks.synthetic import operators as ops

COMPUTE_STREAM, COLLECTIVE_STREAM, COPY_STREAM = 7, 20, 22
MAIN, AUTOGRAD = 0, 1
BUCKET_ELEMENTS = 6_637_568
BATCH_BYTES = 262_144
LOSS_BYTES = 4
Span = tuple[int, int]


@dataclass(frozen=True)
class Job:
    """What is generated: how large a step is, on how many ranks, and on which time grid."""

    seed: int = 0
    n_layers: int = 6
    n_ranks: int = 1
    grid_ns: int = 1  # every time is a multiple of it: 1000 where the format keeps whole microseconds


@dataclass(slots=True)
class HostSpan:
    """An operator or annotation of a host thread; times in ns from the step's start."""

    name: str
    category: str
    thread: int
    start_ns: int
    end_ns: int
    dims: str = "[]"
    types: str = "[]"
    sequence: int | None = None
    answers_forward: bool = False
    elements: int = 0  # of a collective


@dataclass(slots=True)
class DeviceSpan:
    """A kernel, collective, copy or memset on a stream; times in ns from the step's start."""

    kind: str
    name: str
    stream: int
    start_ns: int
    end_ns: int
    kernel: ops.Kernel | None = None
    size_bytes: int = 0


@dataclass(slots=True)
class Call:
    """A runtime call, the operator it was made in (a row of the step's host spans), and what it launched."""

    name: str
    thread: int
    start_ns: int
    end_ns: int
    op: int
    launched: DeviceSpan | None = None


@dataclass
class Step:
    """One placed step of one rank; `wall_ns` is a whole number of microseconds, the same on all ranks."""

    host: list[HostSpan] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    n_sequences: int = 0
    wall_ns: int = 0

    def device_spans(self) -> list[DeviceSpan]:
        """List what ran on the device, in the order of the launches."""
        return [call.launched for call in self.calls if call.launched is not None]


@dataclass(frozen=True)
class Figures:
    """What a step's device did, in ns: unions of its spans, and the parts not under what ranks higher."""

    first_ns: int
    last_ns: int
    busy_ns: int
    compute_ns: int
    collective_ns: int
    collective_exposed_ns: int
    copy_ns: int
    copy_exposed_ns: int


def union_ns(spans: list[Span]) -> int:
    """Measure the union of half-open spans.

    Args:
        spans: (start, end) in ns, in any order.

    Returns:
        Its length in ns.
    """
    total_ns, reached_ns = 0, -1
    for start_ns, end_ns in sorted(spans):
        total_ns += max(0, end_ns - max(start_ns, reached_ns))
        reached_ns = max(reached_ns, end_ns)
    return total_ns


def figures_of(step: Step) -> Figures:
    """Measure what the device of a placed step did."""
    of_kind: dict[str, list[Span]] = {"kernel": [], "collective": [], "memcpy": [], "memset": []}
    for span in step.device_spans():
        of_kind[span.kind].append((span.start_ns, span.end_ns))
    compute, collective = of_kind["kernel"], of_kind["collective"]
    copies = of_kind["memcpy"] + of_kind["memset"]
    work_ns = union_ns(compute + collective)
    busy_ns = union_ns(compute + collective + copies)
    return Figures(
        first_ns=min(start for start, _ in compute + collective + copies),
        last_ns=max(end for _, end in compute + collective + copies),
        busy_ns=busy_ns,
        compute_ns=union_ns(compute),
        collective_ns=union_ns(collective),
        collective_exposed_ns=work_ns - union_ns(compute),
        copy_ns=union_ns(copies),
        copy_exposed_ns=busy_ns - work_ns,
    )


class StepWriter:
    """Lays one rank's step down, operator by operator.

    The random draws depend on seed, variant and rank only, so that laying the same step down twice, the first time to
    learn when each all-reduce is ready, gives the same times.
    """

    def __init__(self, job: Job, variant: int, rank: int, meetings: list[Span]) -> None:
        """Start at time 0.

        Args:
            job: what is generated.
            variant: which of the distinct steps.
            rank: whose step.
            meetings: start and end of each all-reduce; too few of them stand for "not known yet".
        """
        self.step = Step()
        self.ready_ns: list[int] = []
        self._job = job
        self._random = Random(f"{job.seed}/{variant}/{rank}")
        self._meetings = meetings
        self._now_ns = 0
        self._thread = MAIN
        self._free_ns = {COMPUTE_STREAM: 0, COLLECTIVE_STREAM: 0, COPY_STREAM: 0}
        self._open_sequences: list[int] = []
        self._innermost = 0

    def write(self) -> int:
        """Lay the whole step down.

        Returns:
            When the host is done with it, in ns.
        """
        whole = self._open("ProfilerStep#", "user_annotation")
        self._load()
        self._forward()
        self._backward()
        self._optimize()
        self._wait_for_loss()
        publish = self._open("## metrics:publish ##", "user_annotation")
        self._pass(20_000, 90_000)
        self._close(publish)
        self._close(whole)
        return self._now_ns

    def _draw(self, shortest_ns: int, longest_ns: int) -> int:
        grid_ns = self._job.grid_ns
        return grid_ns * self._random.randrange(shortest_ns // grid_ns, longest_ns // grid_ns + 1)

    def _pass(self, shortest_ns: int, longest_ns: int) -> None:
        self._now_ns += self._draw(shortest_ns, longest_ns)

    def _open(self, name: str, category: str = "cpu_op", *, dims: str = "[]", types: str = "[]") -> int:
        self.step.host.append(HostSpan(name, category, self._thread, self._now_ns, self._now_ns, dims, types))
        self._innermost = len(self.step.host) - 1
        self._pass(300, 1_900)
        return self._innermost

    def _close(self, row: int) -> None:
        self._pass(200, 900)
        self.step.host[row].end_ns = self._now_ns

    def _call(self, name: str, launched: DeviceSpan | None = None) -> Call:
        start_ns = self._now_ns
        if launched is None:
            self._pass(200, 1_600)
        else:
            self._pass(4_000, 8_500)
        call = Call(name, self._thread, start_ns, self._now_ns, self._innermost, launched)
        self.step.calls.append(call)
        return call

    def _enqueue(self, stream: int) -> int:
        """Say when something launched now would start on a stream."""
        back_to_back_ns = self._free_ns[stream] + self._draw(800, 1_600)
        return max(self._now_ns + self._draw(4_000, 9_000), back_to_back_ns)

    def _launch(self, call: str, span: DeviceSpan) -> Call:
        self._free_ns[span.stream] = span.end_ns
        return self._call(call, span)

    def _launch_kernel(self, kernel: ops.Kernel) -> None:
        start_ns = self._enqueue(COMPUTE_STREAM)
        end_ns = start_ns + self._draw(kernel.shortest_ns, kernel.longest_ns)
        self._launch("cudaLaunchKernel", DeviceSpan("kernel", kernel.name, COMPUTE_STREAM, start_ns, end_ns, kernel))

    def _launch_memset(self, size_bytes: int) -> None:
        start_ns = self._enqueue(COMPUTE_STREAM)
        end_ns = start_ns + self._draw(1_000, 2_400)
        span = DeviceSpan("memset", "Memset (Device)", COMPUTE_STREAM, start_ns, end_ns, size_bytes=size_bytes)
        self._launch("cudaMemsetAsync", span)

    def _launch_copy(self, name: str, stream: int, size_bytes: int, longest_ns: int) -> None:
        start_ns = self._enqueue(stream)
        end_ns = start_ns + self._draw(longest_ns // 2, longest_ns)
        self._launch("cudaMemcpyAsync", DeviceSpan("memcpy", name, stream, start_ns, end_ns, size_bytes=size_bytes))

    def _run(self, op: ops.Op) -> None:
        row = self._open(op.name, dims=op.dims, types=op.types)
        if op.differentiable:
            self._number(self.step.host[row])
        for child in op.children:
            self._run(child)
        self._innermost = row
        for name in op.calls:
            self._call(name)
        if op.zeroes_bytes:
            self._launch_memset(op.zeroes_bytes)
        if op.kernel is not None:
            self._launch_kernel(op.kernel)
        self._close(row)

    def _number(self, span: HostSpan) -> None:
        """Give a forward operator its sequence number, a backward node the one of the operator that it answers."""
        if self._thread == MAIN:
            span.sequence = self.step.n_sequences
            self._open_sequences.append(self.step.n_sequences)
            self.step.n_sequences += 1
        elif self._open_sequences:
            span.sequence = self._open_sequences.pop()
            span.answers_forward = True

    def _load(self) -> None:
        fetch = self._open("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "user_annotation")
        self._pass(400_000, 2_000_000)
        self._close(fetch)
        to = self._open("aten::to", dims="[[32, 512], [], [], [], [], []]", types='["long int"]')
        copy = self._open("aten::copy_", dims="[[32, 512], [32, 512], []]", types='["long int", "long int", "Scalar"]')
        self._launch_copy("Memcpy HtoD (Pinned -> Device)", COPY_STREAM, BATCH_BYTES, 26_000)
        self._call("cudaEventRecord")
        self._call("cudaStreamWaitEvent")
        self._close(copy)
        self._close(to)
        self._free_ns[COMPUTE_STREAM] = self._free_ns[COPY_STREAM]
        zero = self._open("Optimizer.zero_grad#AdamW.zero_grad", "user_annotation")
        for _ in range(self._job.n_layers):
            self._run(ops.ZERO_GRAD)
        self._close(zero)

    def _forward(self) -> None:
        whole = self._open("DistributedDataParallel.forward", "user_annotation")
        self._run(ops.EMBEDDING)
        for _ in range(self._job.n_layers):
            for op in ops.FORWARD_BLOCK:
                self._run(op)
        self._run(ops.LOSS)
        self._close(whole)

    def _backward(self) -> None:
        self._pass(8_000, 20_000)
        self._thread = AUTOGRAD
        for op in ops.LOSS_BACK:
            self._run(op)
        for _ in range(self._job.n_layers):
            for op in ops.BACKWARD_BLOCK:
                self._run(op)
            self._all_reduce()
        self._thread = MAIN
        self._pass(8_000, 20_000)

    def _all_reduce(self) -> None:
        outer = self._open(
            "c10d::allreduce_", dims="[[], [], [], [], []]", types='["TensorList", "", "", "", "Scalar"]'
        )
        record = self._open("record_param_comms")
        self.step.host[record].elements = BUCKET_ELEMENTS
        shown = self._open("nccl:all_reduce", "user_annotation")
        self._call("cudaEventRecord")
        self._call("cudaStreamWaitEvent")
        ready_ns = max(self._now_ns + self._draw(4_000, 9_000), self._free_ns[COMPUTE_STREAM])
        self.ready_ns.append(ready_ns)
        place = len(self.ready_ns) - 1
        start_ns, end_ns = self._meetings[place] if place < len(self._meetings) else (ready_ns, ready_ns)
        span = DeviceSpan("collective", "allreduce", COLLECTIVE_STREAM, start_ns, end_ns, size_bytes=BUCKET_ELEMENTS)
        self._innermost = record
        self._launch("cudaLaunchKernelExC", span)
        for row in (shown, record, outer):
            self._close(row)

    def _optimize(self) -> None:
        self._call("cudaStreamWaitEvent")
        self._free_ns[COMPUTE_STREAM] = max(self._free_ns[COMPUTE_STREAM], self._free_ns[COLLECTIVE_STREAM])
        whole = self._open("Optimizer.step#AdamW.step", "user_annotation")
        for _ in range(self._job.n_layers * ops.PARAMETERS_PER_BLOCK):
            for op in ops.OPTIMIZER_PARAMETER:
                self._run(op)
        self._close(whole)

    def _wait_for_loss(self) -> None:
        item = self._open("aten::item", dims="[[]]")
        inner = self._open("aten::_local_scalar_dense", dims="[[]]")
        self._free_ns[COPY_STREAM] = self._free_ns[COMPUTE_STREAM]
        self._launch_copy("Memcpy DtoH (Device -> Pageable)", COPY_STREAM, LOSS_BYTES, 2_400)
        wait = self._call("cudaStreamSynchronize")
        self._now_ns = max(self._now_ns, max(self._free_ns.values()) + self._draw(3_000, 6_000))
        wait.end_ns = self._now_ns
        self._close(inner)
        self._close(item)


def meet(job: Job, variant: int) -> list[list[Span]]:
    """Decide when each all-reduce of a step runs on each rank.

    It starts on a rank once that rank's gradients are there and the previous one is over; the bytes move once the last
    rank has come; all end together but for a few microseconds:

        rank 0   |waiting······|moving|
        rank 1             |···|moving|
        rank 2                 |moving|

    Args:
        job: what is generated.
        variant: which of the distinct steps.

    Returns:
        For each rank the spans of its all-reduces, in ns from the step's start.
    """
    ready = []
    for rank in range(job.n_ranks):
        writer = StepWriter(job, variant, rank, [])
        writer.write()
        ready.append(writer.ready_ns)
    random = Random(f"{job.seed}/{variant}/network")
    spans: list[list[Span]] = [[] for _ in ready]
    for place in range(len(ready[0])):
        starts_ns = [max(ready[rank][place], spans[rank][-1][1] if place else 0) for rank in range(job.n_ranks)]
        moved_ns = max(starts_ns) + job.grid_ns * (random.randrange(350_000, 900_000) // job.grid_ns)
        for rank, start_ns in enumerate(starts_ns):
            late_ns = job.grid_ns * (random.randrange(0, 2_500) // job.grid_ns)
            spans[rank].append((start_ns, moved_ns + late_ns))
    return spans


def place_steps(job: Job, variant: int) -> list[Step]:
    """Place one variant of the step on all ranks, so that all steps last equally long.

    Args:
        job: what is generated.
        variant: which of the distinct steps.

    Returns:
        One step a rank.
    """
    steps, finished_ns = [], []
    for rank, meetings in enumerate(meet(job, variant)):
        writer = StepWriter(job, variant, rank, meetings)
        finished_ns.append(writer.write())
        steps.append(writer.step)
    wall_ns = -(-max(finished_ns) // 1_000) * 1_000 + 1_000
    for step in steps:
        step.wall_ns = wall_ns
    return steps
