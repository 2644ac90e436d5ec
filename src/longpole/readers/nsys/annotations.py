"""What the text of an annotation says: which operator it is, of what shapes, and to which forward call it belongs.

PyTorch writes its operators as ranges (`emit_nvtx`, or Nsight's `--pytorch=autograd-nvtx`):

    aten::addmm, seq = 12, op_id = 40, sizes = [[64], [32, 128], [128, 64]], input_op_ids = [(39,0)]

A range with an operator's number and a name in one of the library's forms is an operator, and a range that NCCL writes
around a function of its own (`ncclAllReduce`) is a call; everything else is an annotation, whoever wrote it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from longpole.timeline.columns import Kind

# `torch/csrc/autograd/profiler_legacy.cpp`, `getNvtxStr`: the parts that follow the name, each of them optional.
_SEQUENCE: Final = re.compile(r", seq = (-?\d{1,18})(?=,|$)")
_NUMBER: Final = re.compile(r", op_id = \d{1,18}(?=,|$)")
_SIZES: Final = re.compile(r", sizes = (\[[\[\]\d, ]{0,60000}\])")
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
    sequence, number, sizes = (pattern.search(text) for pattern in (_SEQUENCE, _NUMBER, _SIZES))
    marks = [found for found in (sequence, number, sizes) if found is not None]
    if not marks:
        return Said(text, Kind.RUNTIME if _LIBRARY_CALL.fullmatch(text) else Kind.ANNOTATION)
    name = text[: min(found.start() for found in marks)]
    kind = Kind.OPERATOR if _OPERATOR.match(name) else Kind.ANNOTATION
    counted = int(sequence[1]) if sequence is not None else -1
    return Said(name, kind, counted if counted >= 0 else None, sizes[1] if sizes is not None else "")
