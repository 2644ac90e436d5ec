"""FLOPs and bytes of a recorded call, whatever its family: the one place that knows all families."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work import (
    attention,
    compiled,
    convolutions,
    elementwise,
    moves,
    normalisations,
    optimizers,
    products,
    reductions,
    serving,
)

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter, Work

_FAMILIES: Final = (
    elementwise,
    reductions,
    moves,
    normalisations,
    products,
    attention,
    convolutions,
    optimizers,
    serving,
)
COUNTERS: Final[dict[str, Counter]] = {name: count for one in _FAMILIES for name, count in one.COUNTERS.items()}


def is_countable(name: str) -> bool:
    """Return whether work can be counted of an operator of this name, given its shapes."""
    return name in COUNTERS or compiled.is_compiled(name)


def count_work(call: Call) -> Work | None:
    """Return what a call has to do, None where its operator is not known or its shapes do not fit it.

    >>> from longpole.costs.operator_work.call import parse_call
    >>> count_work(parse_call("aten::mm", "[[2, 3], [3, 4]]", '["float", "float"]'))
    Work(family='matmul', processor='tensor', dtype='fp32', flops=48, moved_bytes=104)
    """
    counter = COUNTERS.get(call.name)
    if counter is not None:
        return counter(call)
    return compiled.fused_work(call) if compiled.is_compiled(call.name) else None
