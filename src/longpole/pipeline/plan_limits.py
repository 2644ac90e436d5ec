"""What holds a planned step up, and what to try: rules over the parts of a step, the largest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.plan import PlanLimit

if TYPE_CHECKING:
    from longpole.costs.step import StepTime
    from longpole.pipeline.plan_config import Planned
    from longpole.report.plan import PlanHardware, PlanMemory, PlanStep

_SHOWN: Final = 3
_WORTH_SAYING: Final = 0.03  # of a step: a part below is not what limits it
_SPENT: Final = {
    "matmul": (
        "matrix products",
        "fp8 where the model bears it, or more devices: products are what it costs",
    ),
    "attention": ("attention's core", "context parallelism shares it; a sliding window or shorter sequences cut it"),
    "memory": (
        "element-wise kernels, which wait for memory",
        "fused kernels: a compiled model, a fused norm and loss",
    ),
    "launch": ("launching kernels", "CUDA graphs, or a larger micro-batch: fewer kernels for as many tokens"),
}


def find_limits(
    planned: Planned, hardware: PlanHardware, memory: PlanMemory, step: PlanStep, spent: StepTime
) -> list[PlanLimit]:
    """Return what limits a plan: memory where it does not fit, then the largest parts of a step.

    Args:
        planned: The plan.
        hardware: Which messages cross which link.
        memory: What a device needs.
        step: What a step takes.
        spent: The same as the model has it, with what computing is spent on.
    """
    found = [_of_memory(memory)] if memory.verdict == "does not fit" else []
    parts = {part.name: part.exposed_ns / step.period_ns for part in step.parts}
    computing = parts.pop("compute", 0.0) + parts.pop("recompute", 0.0)
    whole_s = sum(spent.spent_s.values())
    shares = {name: computing * seconds / whole_s for name, seconds in spent.spent_s.items()} if whole_s > 0 else {}
    limits = [_of_computing(name, share, planned.work.dtype) for name, share in shares.items()]
    limits += [_of_part(name, share, planned, hardware) for name, share in parts.items()]
    limits += [_of_recompute(spent)] if spent.recompute_s > 0 else []
    limits.sort(key=lambda limit: -limit.share)
    worth = [limit for limit in limits if limit.share >= _WORTH_SAYING]
    return [*found, *worth[:_SHOWN]]


def _of_memory(memory: PlanMemory) -> PlanLimit:
    parts = memory.stages[memory.worst_stage].parts_bytes
    largest = max(parts, key=lambda name: parts[name])
    by_part = {
        "activations": 'recompute = "fit", a smaller micro-batch, more tensor or context parallelism',
        "optimizer": "ZeRO-1: every replica keeps its share of the states only",
        "gradients": "ZeRO-2, or 16-bit gradients (gradient_bytes = 2)",
        "weights": "more tensor or pipeline parallelism, or ZeRO-3",
        "logits": "fused_loss = true, a smaller micro-batch, or more tensor parallelism",
    }
    over = memory.peak_bytes / memory.limit_bytes
    return PlanLimit(
        name="memory",
        share=over,
        says=f"memory: {over:.2f} times what there is; most of it {largest} (stage {memory.worst_stage})",
        next_step=by_part.get(largest, "more devices") + "; --free-memory prices each, --search finds layouts that fit",
    )


def _of_computing(name: str, share: float, dtype: str) -> PlanLimit:
    says, next_step = _SPENT.get(name, (name, ""))
    if name == "matmul" and dtype == "fp8":
        next_step = "more devices, or faster ones: products are what it costs"
    return PlanLimit(name=name, share=share, says=f"{says}: {share:.0%} of the step", next_step=next_step)


def _of_recompute(spent: StepTime) -> PlanLimit:
    share = spent.recompute_s / spent.total_s
    return PlanLimit(
        name="recompute",
        share=share,
        says=f"computing activations again: {share:.0%} of the step, products and attention of it counted above",
        next_step='recompute = "fit": only as many layers as memory needs',
    )


def _of_part(name: str, share: float, planned: Planned, hardware: PlanHardware) -> PlanLimit:
    if name == "bubble":
        return _of_bubble(share, planned)
    if name == "optimizer":
        next_step = "ZeRO-1: every replica updates its share only" if not planned.layout.zero else ""
        return PlanLimit(name=name, share=share, says=f"the optimizer: {share:.0%} of the step", next_step=next_step)
    if name == "contention":
        says = f"messages slow the computing that hides them: {share:.0%} of the step"
        return PlanLimit(name=name, share=share, says=says, next_step="fewer bytes, or fewer channels for them")
    return _of_messages(name, share, planned, hardware)


def _of_bubble(share: float, planned: Planned) -> PlanLimit:
    layout = planned.layout
    micro_batches = planned.work.micro_batches(layout)
    says = (
        f"the pipeline's bubble: {share:.0%} of the step, {layout.pp} stages with {micro_batches} micro-batches"
        f" ({layout.schedule})"
    )
    next_step = "more micro-batches: a smaller one, fewer replicas, or a larger global batch"
    next_step += "; interleaved stages (vp = 2)" if layout.vp == 1 else ""
    return PlanLimit(name="bubble", share=share, says=says, next_step=next_step)


def _of_messages(name: str, share: float, planned: Planned, hardware: PlanHardware) -> PlanLimit:
    link = next((link for link in hardware.links if name in link.dimensions), None)
    where = f" over {link.name} ({link.gb_per_s:g} GB/s one way)" if link is not None else ""
    crosses = link is not None and link is not hardware.links[0]
    zero = planned.layout.zero
    next_steps = {
        "tp": "keep tensor parallelism within a node"
        if crosses
        else "a lower tp where memory allows, or messages beside products ([software] hides_tp)",
        "dp": "reduce in 16 bits (gradient_bytes = 2), or more micro-batches a step: it is paid once a step",
        "fsdp": "ZeRO-1 where memory allows: ZeRO-3 gathers every layer again for each micro-batch",
        "pp": "fewer stages, or a stage that goes on while it sends ([software] hides_pp)",
        "ep": "fp8 dispatch, fewer nodes a token, or two micro-batches in turns ([software] hides_ep)",
        "cp": "a lower cp: its messages hide only while a share of the sequence computes long enough",
    }
    says = f"{name} messages{where}: {share:.0%} of the step is waiting for them"
    key = "fsdp" if name == "dp" and zero == 3 else name
    return PlanLimit(name=name, share=share, says=says, next_step=next_steps.get(key, ""))
