"""Say what a file is that holds no event list, so that the refusal helps."""

from __future__ import annotations

import re
from typing import Final

_SCHEMA: Final = re.compile(rb'"schema"\s*:\s*"([^"]{1,64})"')


def describe_foreign(head: bytes) -> str:
    """Describe a file by its first bytes: one clause that follows the file's name.

    Args:
        head: Decoded text from the start of the file.
    """
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not text:
        return "the file is empty, a profiler trace was expected"
    for starts, what in _BINARY:
        if text.startswith(starts):
            return f"this is {what}, a profiler trace in JSON was expected"
    window = text[: 1 << 20]
    if b'"nodes"' in window and (found := _SCHEMA.search(window)):
        schema = found[1].decode("ascii", "replace")
        return f"this is an execution trace (schema {schema}), the profiler trace of the same run was expected"
    for keys, what in _JSON:
        if all(key in window for key in keys):
            return f"this is {what}, a profiler trace with traceEvents was expected"
    if text.startswith(b"{"):
        return "a JSON object without traceEvents, a profiler trace was expected"
    return "not JSON, a profiler trace was expected"


_PICKLE: Final = (
    "a pickle (perhaps a flight recorder dump, which longpole hang reads, or a memory snapshot, which longpole memory"
    " reads)"
)
_BINARY: Final = (
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x80\x02", _PICKLE),
    (b"\x80\x03", _PICKLE),
    (b"\x80\x04", _PICKLE),
    (b"\x80\x05", _PICKLE),
    (b"version https://git-lfs.github.com/spec/", "a pointer of Git LFS, not the file itself (git lfs pull brings it)"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"\x7fELF", "a program"),
    (b"<", "a page in HTML or XML"),
)

_JSON: Final = (
    ((b'"pg_config"', b'"entries"'), "a flight recorder dump (longpole hang reads it)"),
    ((b'"segments"', b'"total_size"', b'"blocks"'), "a memory snapshot (longpole memory reads it)"),
    ((b'"rocprofiler-sdk-tool"',), "a rocprofv3 dump"),
    ((b'"resourceSpans"',), "an OpenTelemetry export"),
    ((b'"traces"', b'"strings"'), "a Perfetto or speedscope file"),
)
