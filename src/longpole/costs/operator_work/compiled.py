"""Kernels that a compiler fused: their arguments are tensors in memory, each moved once; their arithmetic is unknown.

Inductor's launchers are operators whose names begin with `triton_`, with `poi` (pointwise), `red` or `per` (reductions)
in them; all arguments are buffers that are read or written. A template for products (`tem`) is a matrix product in
disguise, whose shapes it does not record as such: it is not counted. Nor is a kernel that takes parts of a buffer, as
its name says by the operators that it is fused from: how large the parts are is not recorded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.work import Work, bytes_of

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call

_COMPILED: Final = re.compile(r"^triton_(poi|red|per)_")


_TAKES_PARTS: Final = re.compile(
    r"_(slice|split|select|index|embedding|gather|scatter|unbind|narrow|chunk|take|as_strided|unfold)(_|$)"
)


def is_compiled(name: str) -> bool:
    """Return whether a name is that of a fused kernel's launcher."""
    return _COMPILED.match(name) is not None


def fused_work(call: Call) -> Work | None:
    """Return the bytes of all buffers that a fused kernel is handed."""
    buffers = call.tensors()
    if not buffers or _TAKES_PARTS.search(call.name):
        return None
    return Work(
        family="compiled",
        processor="vector",
        dtype=buffers[0].dtype,
        flops=None,
        moved_bytes=bytes_of(*buffers),
    )
