"""FLOPs and bytes of a recorded call, whatever its family: the one place that knows all families."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work import (
    attention,
    compiled,
    convolutions,
    elementwise,
    embeddings,
    moves,
    normalisations,
    optimizers,
    products,
    reductions,
    serving,
    sparse_data,
)

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter, PartneredCounter, Work

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
    embeddings,
    sparse_data,
)
COUNTERS: Final[dict[str, Counter]] = {name: count for one in _FAMILIES for name, count in one.COUNTERS.items()}
PARTNERED: Final[dict[str, PartneredCounter]] = {
    name: count for one in (moves, attention, convolutions, embeddings) for name, count in one.PARTNERED.items()
}
"""What counts a call with the help of another one, which was recorded with shapes that it lacks."""
NODES_OF: Final[dict[str, tuple[str, ...]]] = {**moves.NODES_OF, **convolutions.NODES_OF}
"""Operator -> names of its node in autograd's graph, whose gradient has the shape of its result."""
GRADIENT_OF: Final = embeddings.GRADIENT_OF
"""Operator of a gradient -> the look-up that it belongs to; each is counted with the other."""
AROUND: Final = convolutions.AROUND
"""Operator -> the one around it that it is counted with."""
OPAQUE: Final = serving.OPAQUE
"""Operators of which no shape that is recorded tells what they do."""
INSIDE: Final = attention.INSIDE
"""Operator -> the one inside it that it is counted with."""


def is_countable(name: str) -> bool:
    """Return whether work can be counted of an operator of this name, given its shapes."""
    return name in COUNTERS or name in PARTNERED or compiled.is_compiled(name)


def count_work(call: Call, partner: Call | None = None) -> Work | None:
    """Return what a call has to do, None where its operator is not known or its shapes do not fit it.

    What the call tells itself goes before what its partner helps to tell, unless it is a bound or lacks a figure.

    Args:
        call: The call.
        partner: The one that its operator is counted with, where it was found.

    >>> from longpole.costs.operator_work.call import parse_call
    >>> count_work(parse_call("aten::mm", "[[2, 3], [3, 4]]", '["float", "float"]'))
    Work(family='matmul', processor='tensor', dtype='fp32', flops=48, moved_bytes=104, at_least=False)
    """
    counter = COUNTERS.get(call.name)
    work = counter(call) if counter is not None else None
    if compiled.is_compiled(call.name):
        return compiled.fused_work(call)
    if partner is None or call.name not in PARTNERED or (work is not None and _is_whole(work)):
        return work
    return PARTNERED[call.name](call, partner) or work


def _is_whole(work: Work) -> bool:
    return None not in (work.flops, work.moved_bytes) and not work.at_least
