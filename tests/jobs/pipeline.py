"""The program of a pipeline: every rank holds a stage; activations go down by send and receive, gradients back up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.jobs.plan import US
from tests.jobs.program import Host
from tests.jobs.train import backward_layer, finish, forward_layer, optimizer

if TYPE_CHECKING:
    from tests.jobs.plan import Plan
    from tests.jobs.writer import Writer

TRANSFER_SHARE = 0.001
UP, DOWN = 21, 20


def fit_pipeline(plan: Plan) -> Plan:
    """Return a plan of a pipeline's size: few layers a stage, and a step's compute spread over its micro-batches."""
    if plan.template != "pipeline":
        return plan
    dialect = replace(plan.dialect, torch_minor=max(4, plan.dialect.torch_minor))
    return replace(plan, steps=5, layers=2, compute_ns=plan.compute_ns // 3, dialect=dialect)


def write_pipeline(writer: Writer) -> list[Host]:
    """Write the threads of all stages; all forward passes of a step come before its backward passes (GPipe)."""
    plan = writer.plan
    hosts = []
    for rank in range(plan.ranks):
        main, backward = Host(rank, "main"), Host(rank, "autograd")
        for step in range(plan.steps):
            main.open(f"ProfilerStep#{plan.first_step + step}", "user_annotation", {"step": step})
            main.work(writer.host_ns(main, 15 * US))
            writer.hook("begin", main, step)
            for micro in range(plan.knob("micros", 4)):
                _forward(writer, main, step, micro)
            with writer.frame(main, "torch/autograd/graph.py(841): _engine_run_backward"):
                main.put(("backward", step))
                main.get(("backward done", step))
            backward.get(("backward", step))
            for micro in range(plan.knob("micros", 4)):
                _backward(writer, backward, step, micro)
            backward.put(("backward done", step))
            _gradient_norm(writer, main, step)
            optimizer(writer, main, step)
            writer.hook("end", main, step)
            finish(writer, main, step)
            main.close()
            main.work(writer.host_ns(main, 4 * US))
        hosts += [main, backward]
    return hosts


def _gradient_norm(writer: Writer, host: Host, step: int) -> None:
    """Add up the norm of all stages' gradients, as Megatron-LM does before it clips them."""
    key = ("norm", step)
    writer.record(host, key)
    ns = writer.plan.jitter(24 * US, 0.05, *key)
    writer.collective(host, "all_reduce", key, ns, after=key, stream=22, size=4)
    writer.wait(host, (key, "done"))


def _transfer(writer: Writer, host: Host, phase: str, step: int, micro: int, way: tuple[int, int]) -> None:
    """Write this rank's end of a transfer between two neighbours, which share a communicator."""
    plan = writer.plan
    source, target = way
    pair = (min(source, target), max(source, target))
    slow = plan.knob("slow_pair")
    extra = plan.knob("slow_pair_ns", 0.0) if slow == pair else 0.0
    base = TRANSFER_SHARE * plan.compute_ns
    ns = plan.jitter(base + extra, 0.01, "transfer", phase, step, micro, pair)
    key = (phase, step, micro, pair)
    sends = host.rank == source
    after = ("made", phase, step, micro) if sends else None
    stream = DOWN if host.rank == pair[1] else UP
    size = writer.transfer_bytes("send", round(base), 2)
    kind, peer = ("send", target) if sends else ("recv", source)
    writer.collective(host, kind, key, ns, after=after, stream=stream, members=pair, size=size, peer=peer)
    if not sends:
        writer.wait(host, (key, "done"))


def _forward(writer: Writer, host: Host, step: int, micro: int) -> None:
    plan, rank = writer.plan, host.rank
    if rank > 0:
        _transfer(writer, host, "forward", step, micro, (rank - 1, rank))
    for layer in range(plan.layers):
        forward_layer(writer, host, step, layer + 100 * micro)
    writer.record(host, ("made", "forward", step, micro))
    if rank + 1 < plan.ranks:
        _transfer(writer, host, "forward", step, micro, (rank, rank + 1))


def _backward(writer: Writer, host: Host, step: int, micro: int) -> None:
    plan, rank = writer.plan, host.rank
    if rank + 1 < plan.ranks:
        _transfer(writer, host, "backward", step, micro, (rank + 1, rank))
    for layer in reversed(range(plan.layers)):
        backward_layer(writer, host, step, layer + 100 * micro)
    writer.record(host, ("made", "backward", step, micro))
    if rank > 0:
        _transfer(writer, host, "backward", step, micro, (rank, rank - 1))
