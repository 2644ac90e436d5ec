"""The program of a fully sharded job: parameters are gathered before each layer, gradients scattered behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.jobs.plan import US
from tests.jobs.program import Host
from tests.jobs.train import backward_layer, finish, forward_layer, load, move_batch, optimizer
from tests.jobs.writer import COMM

if TYPE_CHECKING:
    from tests.jobs.writer import Writer

GATHER_SHARE = 0.004
SCATTER_SHARE = 0.004
FAMILIES = {
    1: (
        "FullyShardedDataParallel._pre_forward",
        "FullyShardedDataParallel._pre_backward_hook",
        "FullyShardedDataParallel._post_backward_hook",
        "FullyShardedDataParallel.rate_limiter",
    ),
    2: (
        "FSDP::pre_forward (layers.{layer})",
        "FSDP::pre_backward (layers.{layer})",
        "FSDP::post_backward_reduce (layers.{layer})",
        "FSDP::all_gather (layers.{layer})",
    ),
}


def write_fsdp(writer: Writer) -> list[Host]:
    """Write the threads of all ranks."""
    plan = writer.plan
    hosts = []
    for rank in range(plan.ranks):
        main, backward = Host(rank, "main"), Host(rank, "autograd")
        writer.hook("setup", main, -1)
        for step in range(plan.steps):
            _step(writer, main, backward, step)
        hosts += [main, backward]
        for cause in writer.causes:
            hosts += cause.threads(writer, rank).values()
    return hosts


def _step(writer: Writer, main: Host, backward: Host, step: int) -> None:
    plan = writer.plan
    main.open(f"ProfilerStep#{plan.first_step + step}", "user_annotation", {"step": step})
    main.work(writer.host_ns(main, 15 * US))
    writer.hook("begin", main, step)
    load(writer, main, step)
    writer.hook("prep", main, step)
    move_batch(writer, main, step)
    for layer in range(plan.layers):
        writer.hook("forward", main, step, layer)
        _forward(writer, main, step, layer)
    writer.hook("post_forward", main, step)
    with writer.frame(main, "torch/autograd/graph.py(841): _engine_run_backward"):
        main.put(("backward", step))
        main.get(("backward done", step))
    backward.get(("backward", step))
    backward.work(writer.host_ns(backward, 20 * US))
    for layer in reversed(range(plan.layers)):
        writer.hook("backward", backward, step, layer)
        _backward(writer, backward, step, layer)
    backward.put(("backward done", step))
    writer.hook("post_backward", main, step)
    optimizer(writer, main, step)
    writer.hook("end", main, step)
    finish(writer, main, step)
    main.close()
    main.work(writer.host_ns(main, 4 * US))


def label(writer: Writer, place: int, layer: int) -> str:
    return FAMILIES[writer.plan.knob("family", 2)][place].format(layer=layer)


def gather(writer: Writer, host: Host, phase: str, step: int, layer: int) -> None:
    """Gather a layer's parameters: as early as the stream allows, or only after the layer before has run."""
    plan = writer.plan
    late = plan.knob("late", "")
    share = plan.knob("gather", GATHER_SHARE) if phase in late else GATHER_SHARE
    after = None
    if phase in late and plan.knob("gathers_wait"):
        before = layer - 1 if phase == "forward" else layer + 1
        after = (phase, step, before) if 0 <= before < plan.layers else None
    ns = plan.jitter(share * plan.compute_ns, 0.01, "gather", step, layer, phase)
    writer.collective(host, "all_gather", ("gather", phase, step, layer), ns, after=after)


def _forward(writer: Writer, host: Host, step: int, layer: int) -> None:
    plan = writer.plan
    ahead = not plan.knob("gathers_wait") or "forward" not in plan.knob("late", "")
    host.open(label(writer, 0, layer), "user_annotation")
    writer.hook("unshard", host, step, layer)
    if not ahead or layer == 0:
        gather(writer, host, "forward", step, layer)
    if ahead and layer + 1 < plan.layers:
        gather(writer, host, "forward", step, layer + 1)
    host.close()
    writer.wait(host, (("gather", "forward", step, layer), "done"))
    forward_layer(writer, host, step, layer)
    writer.record(host, ("forward", step, layer))


def _backward(writer: Writer, host: Host, step: int, layer: int) -> None:
    plan = writer.plan
    last = plan.layers - 1
    ahead = not plan.knob("gathers_wait") or "backward" not in plan.knob("late", "")
    host.open(label(writer, 1, layer), "user_annotation")
    if layer < last and (not ahead or layer == last - 1):  # the last layer is still there from the forward pass
        gather(writer, host, "backward", step, layer)
    if ahead and 0 < layer < last:
        gather(writer, host, "backward", step, layer - 1)
    host.close()
    if layer < last:
        writer.wait(host, (("gather", "backward", step, layer), "done"))
    backward_layer(writer, host, step, layer)
    writer.record(host, ("backward", step, layer))
    host.open(label(writer, 2, layer), "user_annotation")
    share = plan.knob("scatter", SCATTER_SHARE) if layer else SCATTER_SHARE
    ns = plan.jitter(share * plan.compute_ns, 0.01, "scatter", step, layer)
    stream = plan.knob("scatter_stream", COMM + 1)
    key = ("scatter", step, layer)
    writer.collective(host, "reduce_scatter", key, ns, after=("backward", step, layer), stream=stream)
    host.close()
    if layer == 0:
        writer.wait(host, (key, "done"))
