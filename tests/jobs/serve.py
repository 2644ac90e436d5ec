"""The program of an inference loop: one forward pass a step, on one thread; tokens are read back at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.jobs.plan import US
from tests.jobs.program import COMPUTE, Host, Task
from tests.jobs.train import FORWARD_OPS, kernel_name

if TYPE_CHECKING:
    from tests.jobs.writer import Writer

LAYER = (("norm", 0.06), ("gemm", 0.34), ("attention", 0.24), ("gemm", 0.36))


def write_serve(writer: Writer) -> list[Host]:
    """Write the threads of all ranks."""
    plan = writer.plan
    hosts = []
    for rank in range(plan.ranks):
        main = Host(rank, "main")
        writer.hook("setup", main, -1)
        for step in range(plan.steps):
            _step(writer, main, step)
        hosts.append(main)
        for cause in writer.causes:
            hosts += cause.threads(writer, rank).values()
    return hosts


def _step(writer: Writer, main: Host, step: int) -> None:
    plan = writer.plan
    main.open(f"ProfilerStep#{plan.first_step + step}", "user_annotation", {"step": step})
    main.work(writer.host_ns(main, 10 * US))
    writer.hook("begin", main, step)
    with writer.frame(main, "serving/model_runner.py(1204): execute_model"):
        copy = Task(writer.dialect.copy_name("htod"), COMPUTE, 2200, "gpu_memcpy", {"bytes": 8192})
        main.open("aten::copy_")
        writer.launch(main, copy, call="copy")
        main.work(2000)
        main.close()
        writer.hook("pre_forward", main, step)
        if plan.knob("graph"):
            _graph(writer, main, step)
        else:
            for layer in range(plan.layers):
                writer.hook("forward", main, step, layer)
                _layer(writer, main, step, layer)
    writer.hook("post_forward", main, step)
    with writer.frame(main, "serving/sampler.py(88): forward"):
        ns = writer.kernel_ns(plan.knob("sampler", 0.004), "sample", main, step, plan.layers)
        writer.operator(main, ["aten::argmax"], [writer.kernel(writer.dialect.elementwise[0], ns)])
    writer.hook("end", main, step)
    if not plan.knob("runs_ahead"):
        writer.read_out(main)
    main.close()
    main.work(writer.host_ns(main, 4 * US))


def layer_tasks(writer: Writer, main: Host, step: int, layer: int) -> list[tuple[str, Task]]:
    """Return a layer's kernels, each with the kind of operator that launches it."""
    plan = writer.plan
    tasks = []
    for part in range(plan.knob("parts", 1)):
        for index, (kind, share) in enumerate(LAYER):
            share_here = share / plan.layers / plan.knob("parts", 1)
            ns = writer.kernel_ns(share_here, "serve", main, step, layer, index + 10 * part)
            tasks.append((kind, writer.kernel(kernel_name(writer, kind, index), ns)))
    return tasks


def _layer(writer: Writer, main: Host, step: int, layer: int) -> None:
    with writer.frame(main, f"nn.Module: DecoderLayer_{layer}"):
        for kind, task in layer_tasks(writer, main, step, layer):
            writer.operator(main, FORWARD_OPS[kind][1:], [task], writer.dims(16))
        reduces = writer.plan.knob("reduces", 0)
        for index in range(reduces):
            key = ("tensor parallel", step, layer, index)
            writer.record(main, ("partial", step, layer, index))
            share = writer.plan.knob("reduce_share", 0.0) / reduces / writer.plan.layers
            ns = writer.plan.jitter(share * writer.plan.compute_ns, 0.01, "reduce", step, layer, index)
            size = writer.plan.knob("reduce_bytes")
            writer.collective(main, "all_reduce", key, ns, after=("partial", step, layer, index), size=size)
            writer.wait(main, (key, "done"))


def _graph(writer: Writer, main: Host, step: int) -> None:
    plan = writer.plan
    tasks = [task for layer in range(plan.layers) for _, task in layer_tasks(writer, main, step, layer)]
    recorded = plan.knob("graphs_recorded")
    for task in tasks:
        task.recorded = recorded is None or step in recorded
    with writer.frame(main, "torch/cuda/graphs.py(137): replay"):
        writer.launch(main, tasks, call="graph")
