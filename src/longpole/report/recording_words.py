"""What to record, in the words of the profiler that was used: reasons name options of PyTorch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.report.document import UnknownEntry

_BLOBS: Final = "exported with --include-blobs true"
_OF_NSYS: Final = {
    "distributedInfo": "a trace of the PyTorch profiler, which says it; exports do not",
    "collective metadata (torch 2.4 or later)": f"what NCCL attaches to its annotations (NVTX, {_BLOBS})",
    "collective metadata": f"what NCCL attaches to its annotations (NVTX, {_BLOBS})",
    "device activities (ProfilerActivity.CUDA or the like)": "device activities (nsys profile --trace=cuda,nvtx)",
    "record_shapes=True": "shapes (torch.autograd.profiler.emit_nvtx(record_shapes=True) around the steps)",
    "profile_memory=True": "a trace of the PyTorch profiler with profile_memory=True",
    "baseTimeNanoseconds": "when the session began (an export of a newer nsys)",
}


def in_words_of(formats: set[str], entries: Iterable[UnknownEntry]) -> list[UnknownEntry]:
    """Say what is missing in the words of the profiler that recorded all files.

    Args:
        formats: Of the files.
        entries: What is not known.
    """
    if formats != {"nsys"}:
        return list(entries)
    return [
        msgspec.structs.replace(entry, missing=[_OF_NSYS.get(what, what) for what in entry.missing])
        for entry in entries
    ]
