"""What the text of an annotation says: which operator it is, of what shapes, and to which forward call it belongs.

PyTorch writes its operators as ranges (`emit_nvtx`, or Nsight's `--pytorch=autograd-nvtx`):

    aten::addmm, seq = 12, op_id = 40, sizes = [[64], [32, 128], [128, 64]], input_op_ids = [(39,0)]

A range with an operator's number and a name in one of the library's forms is an operator, and a range that NCCL writes
around a function of its own (`ncclAllReduce`) is a call; everything else is an annotation, whoever wrote it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from longpole.timeline.columns import Kind

# `torch/csrc/autograd/profiler_legacy.cpp`, `getNvtxStr`: the parts that follow the name, each of them optional.
_MARKS: Final = (", seq = ", ", op_id = ", ", sizes = ")
_PARTS: Final = re.compile(
    r"(?:, seq = (-?\d{1,18}))?(?:, op_id = \d{1,18})?(?:, sizes = (\[[\[\]\d, ]{0,60000}\]))?(?=, input_op_ids|$)"
)
_OPERATOR: Final = re.compile(r"(?:[a-z_]\w{0,63}::)|(?:\w{1,200}Backward\d{0,4}$)|(?:record_param_comms$)")
_LIBRARY_CALL: Final = re.compile(r"p?nccl[A-Z]\w{0,63}")
EVALUATE: Final = "autograd::engine::evaluate_function"


class Said(NamedTuple):
    """What an annotation's text says.

    Attributes:
        name: Without what follows it.
        kind: OPERATOR, RUNTIME or ANNOTATION.
        sequence: The number that a forward operator shares with the backward function it made, None for none.
        sizes: Shapes of its inputs as a JSON list of lists, empty for none.
    """

    name: str
    kind: Kind
    sequence: int | None = None
    sizes: str = ""


def read_text(text: str) -> Said:
    """Read the text of an annotation.

    >>> read_text("aten::mm, seq = 3, op_id = 4, sizes = [[2, 3], [3, 5]]")[2:]
    (3, '[[2, 3], [3, 5]]')
    >>> read_text("ProfilerStep#3").kind.name, read_text("aten::mm, op_id = 4").kind.name
    ('ANNOTATION', 'OPERATOR')
    """
    start = min((at for mark in _MARKS if (at := text.find(mark)) >= 0), default=-1)
    found = _PARTS.match(text, start) if start >= 0 else None
    if found is None:
        return Said(text, Kind.RUNTIME if _LIBRARY_CALL.fullmatch(text) else Kind.ANNOTATION)
    counted = int(found[1]) if found[1] else -1
    return Said(text[:start], _kind_of(text[:start]), counted if counted >= 0 else None, found[2] or "")


@lru_cache(maxsize=1 << 12)
def _kind_of(name: str) -> Kind:
    return Kind.OPERATOR if _OPERATOR.match(name) else Kind.ANNOTATION
