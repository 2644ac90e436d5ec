"""Writes programs: what an operator, a collective or a read-out consists of, in the names of the job's dialect."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.jobs.names import KINDS, NCCL, Chain
from tests.jobs.plan import US, Spot
from tests.jobs.program import COMPUTE, Collective, Host, Task

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from tests.jobs.plan import Cause, Plan

COMM = 20
ITEM_BYTES = {
    "all_reduce": 4,
    "all_gather": 2,
    "reduce_scatter": 2,
    "broadcast": 4,
    "all_to_all": 2,
    "send": 2,
    "recv": 2,
}
DTYPE = {4: "Float", 2: "BFloat16"}


class Writer:
    """Writes the threads of one job."""

    def __init__(self, plan: Plan, causes: Sequence[Cause]) -> None:
        self.plan = plan
        self.causes = [cause for cause in causes if cause.stays or not cause.removed]
        self.dialect = plan.dialect
        self.runtime = plan.dialect.runtime
        self.collectives: dict[Hashable, Collective] = {}
        self.sequence: dict[tuple[int, str], int] = {}
        self.groups: dict[str, tuple[int, ...]] = {"0": tuple(range(plan.ranks))}
        self.counts: dict[tuple[int, str, bool], int] = {}
        self.inside = False

    # --------------------------------------------------------------------------------------------- causes

    def hook(self, place: str, host: Host, step: int, layer: int = -1) -> None:
        self.inside = True
        spot = Spot(place, self, host, host.rank, step, layer)
        for cause in self.causes:
            cause.at(spot)
        self.inside = False

    def kernel_ns(self, share: float, phase: str, host: Host, step: int, layer: int, index: int = 0) -> int:
        """Return how long a kernel takes that makes up this share of a step's compute."""
        ns = self.plan.jitter(share * self.plan.compute_ns, 0.01, "kernel", host.rank, step, layer, phase, index)
        factor = 1.0
        for cause in self.causes:
            factor *= cause.scale(Spot(phase, self, host, host.rank, step, layer))
        return max(1000, round(ns * factor))

    # ---------------------------------------------------------------------------------------------- pieces

    def host_ns(self, host: Host, ns: float) -> int:
        """Return a stretch of host work, which varies by a fifth, and not with what causes insert elsewhere."""
        key = (host.rank, host.thread, self.inside)
        count = self.counts[key] = self.counts.get(key, 0) + 1
        return self.plan.jitter(ns, 0.2, "host", *key, count)

    def launch(self, host: Host, task: Task | list[Task], *, call: str = "launch", blocking: bool = False) -> None:
        host.launch(self.runtime[call], self.host_ns(host, 3500), task, blocking=blocking)

    def operator(
        self, host: Host, names: Sequence[str], tasks: Sequence[Task], args: dict[str, Any] | None = None
    ) -> None:
        """Write nested operators, all with these arguments, the innermost of which launches the tasks."""
        before = self.host_ns(host, self.plan.op_ns / 2)
        for name in names:
            host.open(name, "cpu_op", args)
            host.work(before / len(names))
        for task in tasks:
            self.launch(host, task)
        for _ in names:
            host.work(before / len(names) / 2)
            host.close()
        host.work(before / 3)

    def kernel(self, name: str, ns: int, stream: int = COMPUTE, blocks: int = 0) -> Task:
        """Return a kernel; its grid tells apart what has one name and other sizes."""
        grid = [self.plan.tokens // 64 + 8 * blocks, 1, 1]
        return Task(name, stream, ns, args={"grid": grid, "block": [256, 1, 1]})

    def dims(self, tokens: int | None = None, wide: int = 1) -> dict[str, Any]:
        """Return the shapes of an operator's inputs: activations of so many tokens, and a weight so wide."""
        size = self.plan.tokens if tokens is None else tokens
        hidden = self.plan.hidden
        dims = [[size, hidden], [hidden, wide * hidden], [wide * hidden]]
        return {"Input Dims": dims, "Input type": ["c10::BFloat16"] * 3}

    @contextmanager
    def activity(self, host: Host, chain: Chain) -> Iterator[None]:
        """Write spans around what follows."""
        for cat, name in chain:
            host.open(name, cat)
            host.work(1500)
        yield
        for _ in chain:
            host.work(500)
            host.close()

    @contextmanager
    def frame(self, host: Host, *names: str) -> Iterator[None]:
        """Write Python frames, if the job was recorded with stacks."""
        names = names if self.dialect.stacks else ()
        for name in names:
            host.open(name, "python_function")
            host.work(400)
        yield
        for _ in names:
            host.work(200)
            host.close()

    @contextmanager
    def annotation(self, host: Host, name: str) -> Iterator[None]:
        """Write a user's annotation, if this job's user writes any."""
        if self.dialect.annotated:
            host.open(name, "user_annotation")
        yield
        if self.dialect.annotated:
            host.close()

    # ----------------------------------------------------------------------------------------------- waits

    def record(self, host: Host, event: Hashable, stream: int = COMPUTE) -> None:
        host.record(self.runtime["record"], event, stream)
        host.work(500)

    def wait(self, host: Host, event: Hashable, stream: int = COMPUTE) -> None:
        host.wait(self.runtime["wait"], stream, event)
        host.work(500)

    def device_sync(self, host: Host) -> None:
        with self.frame(host, "torch/cuda/__init__.py(792): synchronize"):
            host.sync(self.runtime["device_sync"])

    def read_out(self, host: Host, *, blocking: bool = True) -> None:
        """Read a scalar back, as `Tensor.item` does; not blocking, the copy stays and nobody waits."""
        host.open("aten::item")
        host.work(2000)
        host.open("aten::_local_scalar_dense")
        host.work(4000)
        copy = Task(self.dialect.copy_name("dtoh", pinned=False), COMPUTE, 1800, "gpu_memcpy", {"bytes": 4})
        self.launch(host, copy, call="copy")
        host.work(1000)
        if blocking:
            host.sync(self.runtime["stream_sync"], stream=COMPUTE)
        host.work(1500)
        host.close()
        host.work(1000)
        host.close()

    # ----------------------------------------------------------------------------------------- collectives

    def transfer_bytes(self, kind: str, ns: int, members: int, gb_per_s: float | None = None) -> int:
        """Return how many bytes a collective of this length moves at the job's bandwidth."""
        factor = {"all_reduce": 2 * (members - 1) / members}.get(kind, (members - 1) / members)
        if kind in ("send", "recv", "broadcast"):
            factor = 1.0
        rate = gb_per_s if gb_per_s is not None else self.plan.bus_gb_per_s
        return max(512, int((ns - 15 * US) * rate / max(factor, 0.1)) // 512 * 512)

    def collective(
        self,
        host: Host,
        kind: str,
        key: Hashable,
        ns: int,
        *,
        after: Hashable = None,
        stream: int = COMM,
        group: str = "0",
        size: int | None = None,
        members: tuple[int, ...] | None = None,
        peer: int = -1,
        host_ns: float = 12 * US,
    ) -> None:
        """Write one rank's part of a collective.

        Args:
            host: The thread that issues it.
            kind: Of `names.KINDS`.
            key: Names the instance; the same on all members.
            ns: How long it moves bytes.
            after: The event that its stream waits for first.
            stream: Where it runs; an event (key, "done") is recorded behind it.
            group: The process group.
            size: Bytes; what the job's bandwidth moves in the time where not given.
            members: Who takes part; the whole group where not given.
            peer: Of a send or receive, the peer's rank.
            host_ns: How long the host takes before it gets to the communicator.
        """
        name, operator, annotation, place = KINDS[kind]
        ranks = members if members is not None else self.groups[group]
        one = self.collectives.get(key)
        if one is None:
            one = self.collectives[key] = Collective(key, ranks, ns, {})
        channel = group if peer < 0 else f"{group} {ranks}"
        order = self.sequence[host.rank, channel] = self.sequence.get((host.rank, channel), 0) + 1
        size = self.transfer_bytes(kind, ns, len(ranks)) if size is None else size
        args = self._comm_args(kind, name, group, size, order)
        if peer >= 0:
            source, target = (host.rank, peer) if kind == "send" else (peer, host.rank)
            arrow = f"{source}->{target}" if kind == "send" else f"{target}<-{source}"
            annotation = f"{annotation} {arrow}"
            if self.dialect.torch_minor >= 6:
                args |= {"Rank": self.groups[group].index(peer), "Src Rank": source, "Dst Rank": target}
        host.open(operator)
        host.work(self.host_ns(host, host_ns))
        for cause in self.causes:
            cause.inside(host, key)
        host.open("record_param_comms", "cpu_op", args)
        host.work(4000)
        host.open(annotation, "user_annotation")
        if after is not None:
            self.wait(host, after, stream)
        task = Task(NCCL[self.dialect.nccl][place], stream, ns, args=dict(args), collective=one, annotation=annotation)
        self.launch(host, task, call="launch_nccl")
        self.record(host, (key, "done"), stream)
        for _ in range(3):
            host.close()
            host.work(2000)

    def _comm_args(self, kind: str, name: str, group: str, size: int, order: int) -> dict[str, Any]:
        ranks = self.groups[group]
        item = ITEM_BYTES[kind]
        count = max(1, size // item)
        args: dict[str, Any] = {
            "Collective name": name,
            "In msg nelems": count // len(ranks) if kind == "all_gather" else count,
            "Out msg nelems": count // len(ranks) if kind == "reduce_scatter" else count,
            "Group size": len(ranks),
            "dtype": DTYPE[item],
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": group,
            "Process Group Description": "default_pg" if group == "0" else f"mesh_{group}",
            "Process Group Ranks": str(list(ranks)),
        }
        if self.dialect.torch_minor >= 12:
            args["Seq"] = order
        return args
