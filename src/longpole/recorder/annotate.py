"""The same names in profiler traces: a `record_function` range, and an NVTX range where CUDA is in use."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType


class _NvtxRange:
    """A range of NVTX, which Nsight Systems shows."""

    __slots__ = ("_name", "_nvtx")

    def __init__(self, nvtx: Any, name: str) -> None:
        self._nvtx = nvtx
        self._name = name

    def __enter__(self) -> _NvtxRange:
        self._nvtx.range_push(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._nvtx.range_pop()


def open_ranges(name: str) -> tuple[AbstractContextManager[Any], ...]:
    """Return the ranges to open for a name, outermost first; none while PyTorch is not loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ()
    try:
        ranges: list[AbstractContextManager[Any]] = [torch.autograd.profiler.record_function(name)]
        if torch.cuda.is_initialized():
            ranges.append(_NvtxRange(torch.cuda.nvtx, name))
    except AttributeError:
        return ()  # another thread is importing it
    return tuple(ranges)
