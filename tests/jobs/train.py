"""The program of a data-parallel training job: loader, forward, backward on autograd's thread, buckets, optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.jobs.plan import US
from tests.jobs.program import COMPUTE, Host, Task

if TYPE_CHECKING:
    from tests.jobs.writer import Writer

FORWARD = (("norm", 0.05), ("gemm", 0.40), ("attention", 0.20), ("gemm", 0.35))
BACKWARD = (
    ("gemm", 0.22),
    ("gemm", 0.20),
    ("attention_backward", 0.18),
    ("gemm", 0.20),
    ("gemm", 0.16),
    ("norm", 0.04),
)
FORWARD_SHARE, BACKWARD_SHARE, OPTIMIZER_SHARE = 0.32, 0.63, 0.05
FORWARD_OPS = {
    "norm": ("aten::layer_norm", "aten::native_layer_norm"),
    "gemm": ("aten::linear", "aten::addmm"),
    "attention": ("aten::scaled_dot_product_attention", "aten::_flash_attention_forward"),
}
BACKWARD_OPS = {
    "norm": ("NativeLayerNormBackward0", "aten::native_layer_norm_backward"),
    "gemm": ("AddmmBackward0", "aten::mm"),
    "attention_backward": ("FlashAttentionBackward0", "aten::_flash_attention_backward"),
}


def write_train(writer: Writer) -> list[Host]:
    """Write all threads of all ranks."""
    plan = writer.plan
    hosts = []
    for rank in range(plan.ranks):
        main, backward = Host(rank, "main"), Host(rank, "autograd")
        extra: dict[str, Host] = {}
        writer.inside = False
        frames = ("train.py(412): <module>", "train.py(371): main") if writer.dialect.stacks else ()
        for name in frames:
            main.open(name, "python_function")
        writer.hook("setup", main, -1)
        for step in range(plan.steps):
            _step(writer, main, backward, step)
        main.put("no more")
        for _ in frames:
            main.close()
        for cause in writer.causes:
            extra |= cause.threads(writer, rank)
        hosts += [main, backward, *extra.values()]
    return hosts


def _step(writer: Writer, main: Host, backward: Host, step: int) -> None:
    plan = writer.plan
    main.open(f"ProfilerStep#{plan.first_step + step}", "user_annotation", {"step": step})
    main.work(writer.host_ns(main, 15 * US))
    writer.hook("begin", main, step)
    load(writer, main, step)
    writer.hook("prep", main, step)
    move_batch(writer, main, step)
    with writer.annotation(main, f"Optimizer.zero_grad#{writer.dialect.optimizer}.zero_grad"):
        main.work(writer.host_ns(main, 10 * US))
    forward(writer, main, step)
    writer.hook("post_forward", main, step)
    with (
        writer.annotation(main, "backward"),
        writer.frame(
            main,
            "torch/_tensor.py(570): backward",
            "torch/autograd/__init__.py(242): backward",
            "<built-in method run_backward of torch._C._EngineBase object at 0x7f3c2a1b0ea0>",
        ),
    ):
        main.put(("backward", step))
        main.get(("backward done", step))
    backward_pass(writer, backward, step)
    writer.hook("post_backward", main, step)
    optimizer(writer, main, step)
    writer.hook("end", main, step)
    finish(writer, main, step)
    main.close()
    main.work(writer.host_ns(main, 4 * US))


def load(writer: Writer, main: Host, step: int) -> None:
    """Take a batch from the loader."""
    with writer.activity(main, writer.dialect.loader):
        main.work(writer.host_ns(main, 30 * US))
        writer.hook("loader", main, step)


def move_batch(writer: Writer, main: Host, step: int) -> None:
    """Copy the batch to the device from pinned memory, unless a cause copies it in its own way."""
    if not writer.plan.knob("copies_itself"):
        size = int(writer.plan.compute_ns * 0.002 * 22)
        copy = Task(writer.dialect.copy_name("htod"), COMPUTE, max(2000, size // 22), "gpu_memcpy", {"bytes": size})
        with writer.frame(main, "train.py(140): to_device"):
            for name in ("aten::to", "aten::_to_copy", "aten::copy_"):
                main.open(name)
                main.work(writer.host_ns(main, 3 * US))
            writer.launch(main, copy, call="copy")
            for _ in range(3):
                main.work(1500)
                main.close()
    writer.hook("h2d", main, step)


def forward(writer: Writer, main: Host, step: int) -> None:
    """Write the forward pass and the loss."""
    plan = writer.plan
    with writer.annotation(main, "forward"), writer.frame(main, "torch/nn/modules/module.py(1739): _wrapped_call_impl"):
        writer.hook("pre_forward", main, step)
        for layer in range(plan.layers):
            with writer.frame(main, f"nn.Module: TransformerBlock_{layer}"):
                writer.hook("forward", main, step, layer)
                forward_layer(writer, main, step, layer)
    with writer.frame(main, "train.py(160): compute_loss"):
        ns = writer.kernel_ns(0.004, "loss", main, step, plan.layers)
        writer.operator(
            main, ["aten::cross_entropy_loss", "aten::log_softmax"], [writer.kernel(writer.dialect.elementwise[0], ns)]
        )


def forward_layer(writer: Writer, main: Host, step: int, layer: int) -> None:
    plan = writer.plan
    tokens = plan.knob("tokens", {}).get((main.rank, step))
    for index, (kind, share) in enumerate(FORWARD):
        ns = writer.kernel_ns(FORWARD_SHARE * share / plan.layers, "forward", main, step, layer, index)
        kernel = writer.kernel(kernel_name(writer, kind, index), ns, blocks=index)
        writer.operator(main, FORWARD_OPS[kind], [kernel], writer.dims(tokens, 1 + index))


def kernel_name(writer: Writer, kind: str, index: int) -> str:
    dialect = writer.dialect
    if kind == "gemm":
        return dialect.gemms[index % 2]
    return {"norm": dialect.norm, "attention": dialect.attention, "attention_backward": dialect.attention_backward}[
        kind
    ]


def backward_pass(writer: Writer, host: Host, step: int) -> None:
    """Write what autograd's thread does: the layers from the last to the first, and a bucket whenever one is full."""
    plan = writer.plan
    host.get(("backward", step))
    host.work(writer.host_ns(host, 20 * US))
    for layer in reversed(range(plan.layers)):
        writer.hook("backward", host, step, layer)
        backward_layer(writer, host, step, layer)
        buckets(writer, host, step, layer)
        writer.hook("backward_end", host, step, layer)
    if plan.ranks > 1 and not plan.knob("no_buckets"):
        for bucket in range(plan.buckets):
            writer.wait(host, (("bucket", step, bucket), "done"))
    host.put(("backward done", step))


def backward_layer(writer: Writer, host: Host, step: int, layer: int) -> None:
    plan = writer.plan
    tokens = plan.knob("tokens", {}).get((host.rank, step))
    for index, (kind, share) in enumerate(BACKWARD):
        ns = writer.kernel_ns(BACKWARD_SHARE * share / plan.layers, "backward", host, step, layer, index)
        name, inner = BACKWARD_OPS[kind]
        names = [f"autograd::engine::evaluate_function: {name}", name, inner]
        kernel = writer.kernel(kernel_name(writer, kind, index + 1), ns, blocks=5 + index)
        writer.operator(host, names, [kernel], writer.dims(tokens, 5 + index))


def buckets(writer: Writer, host: Host, step: int, layer: int) -> None:
    """Issue the all-reduce of each bucket that this layer has filled."""
    plan = writer.plan
    if plan.ranks == 1 or plan.knob("no_buckets"):
        return
    for bucket in range(plan.buckets):
        if layer == bucket_layer(plan.layers, plan.buckets, bucket):
            event = ("gradients", step, bucket)
            writer.record(host, event)
            ns = bucket_ns(writer, step, bucket)
            writer.collective(host, "all_reduce", ("bucket", step, bucket), ns, after=event)


def bucket_layer(layers: int, count: int, bucket: int) -> int:
    """Return the layer whose backward fills a bucket: the last bucket needs the first layer."""
    return round((layers - 1) * (1 - (bucket + 1) / count))


def bucket_ns(writer: Writer, step: int, bucket: int) -> int:
    plan = writer.plan
    if bucket == plan.buckets - 1:
        share = plan.knob("last_bucket", plan.last_bucket)
    else:
        share = plan.knob("bucket", 0.25 * BACKWARD_SHARE / plan.buckets)
    return plan.jitter(share * plan.compute_ns, 0.01, "bucket", step, bucket)


def optimizer(writer: Writer, main: Host, step: int) -> None:
    """Write the optimizer's step."""
    name = writer.dialect.optimizer
    with writer.frame(main, "torch/optim/optimizer.py(485): wrapper"):
        main.open(f"Optimizer.step#{name}.step", "user_annotation")
        main.work(writer.host_ns(main, 20 * US))
        writer.hook("pre_optimizer", main, step)
        for index, op in enumerate(("aten::_foreach_mul_", "aten::_foreach_lerp_", "aten::_fused_adamw_")):
            ns = writer.kernel_ns(OPTIMIZER_SHARE / 3, "optimizer", main, step, 0, index)
            writer.operator(main, [op], [writer.kernel(writer.dialect.optimizer_kernel, ns)])
        main.close()


def finish(writer: Writer, main: Host, step: int) -> None:
    """Keep the host from running further ahead than one step."""
    plan = writer.plan
    if plan.knob("pace", plan.pace) == "step":
        writer.device_sync(main)
        return
    writer.record(main, ("end", step))
    if step:
        main.sync(writer.runtime["event_sync"], event=("end", step - 1))
