"""What a program was doing, by the stack of its main thread (formats.md F.5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from longpole.records.flight import Frame, StackDump, ThreadStack

# The innermost frame that fits decides; of one frame the first row that fits.
_RULES: Final = (
    ("transfer", re.compile(r"\b(?:send|recv|isend|irecv|batch_isend_irecv) .*distributed_c10d\.py")),
    (
        "collective",
        re.compile(r"\b(?:all_\w+|reduce\w*|broadcast\w*|barrier|gather\w*|scatter\w*|wait) .*distributed_c10d\.py"),
    ),
    ("checkpoint", re.compile(r"torch/distributed/checkpoint/|torch/serialization\.py|safetensors|\bfsync\b")),
    ("data_loader", re.compile(r"torch/utils/data/|\b_next_data\b|\b_try_get_data\b|\b_worker_loop\b|data_?load")),
    ("compilation", re.compile(r"torch/_dynamo/|torch/_inductor/|/triton/|torch/_functorch/")),
    (
        "device",
        re.compile(r"\bsynchronize .*torch/cuda/|torch/cuda/streams\.py|\b(?:item|nonzero|tolist)\b .*torch/_tensor"),
    ),
    ("garbage_collection", re.compile(r"\bcollect\b .*gc\b")),
    ("remote", re.compile(r"\b(?:botocore|urllib3?|requests|fsspec|s3fs|gcsfs|paramiko)/|\bsocket\.py|\bssl\.py")),
)
_SHOWN: Final = 6

PHRASES: Final = {
    "transfer": "its main thread is in a send or receive",
    "collective": "its main thread waits in a collective",
    "checkpoint": "its main thread saves or loads a checkpoint",
    "data_loader": "its main thread waits for data",
    "compilation": "its main thread compiles",
    "device": "its main thread waits for its device",
    "garbage_collection": "its main thread collects garbage",
    "remote": "its main thread waits for something remote",
    "gil": "another thread holds the interpreter's lock",
    "other": "what its main thread does is in its stack",
}


def doing(dump: StackDump) -> tuple[str, list[str]]:
    """Return a class of what the main thread did, and its innermost frames as text; empty where there is none."""
    main = next((thread for thread in dump.threads if thread.is_main), None)
    if main is None:
        return "", []
    shown = [_text(frame) for frame in main.frames[:_SHOWN]]
    for frame in main.frames:
        text = f"{frame.function} {frame.file}"
        for name, pattern in _RULES:
            if pattern.search(text):
                return name, shown
    return ("gil" if _is_locked_out(dump, main) else "other"), shown


def _is_locked_out(dump: StackDump, main: ThreadStack) -> bool:
    return main.holds_gil is False and any(thread.holds_gil for thread in dump.threads if thread is not main)


def _text(frame: Frame) -> str:
    return f"{frame.function} ({frame.file}:{frame.line})"
