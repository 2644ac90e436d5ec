"""Who recorded: rank, world, host and versions, from the header, else from the file's name."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from longpole.readers.rank_in_name import rank_in_name
from longpole.records.credentials import redact
from longpole.timeline.timeline import Identity

if TYPE_CHECKING:
    from longpole.readers.kineto.raw import RawTrace

_SAYS_RANK: Final = re.compile(r"(?:^|[^a-z])(?:rank|TP-)", re.IGNORECASE)
_PREFIX: Final = re.compile(r"^\s*(\[[A-Za-z_\- ]{0,16}0*(\d{1,6})\]|rank[ _]?0*(\d{1,6})[:/ ])", re.IGNORECASE)

# Header fields that describe software and hardware. Everything else (users, jobs, environments) stays behind.
_ENVIRONMENT: Final = (
    "torch_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "cupti_version",
    "hip_runtime_version",
    "hip_driver_version",
    "roctracer_version",
    "rocprofiler_version",
    "record_shapes",
    "with_stack",
    "with_flops",
    "with_modules",
    "profile_memory",
    "displayTimeUnit",
)


def find_identity(header: dict[str, Any], path: str, prefix_rank: int | None) -> Identity:
    """Tell the rank of a record.

    Args:
        header: Top-level fields of the file.
        path: The file; its name is asked where the header is silent.
        prefix_rank: The rank that the process ids of a merged file name.
    """
    info = header.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    rank = prefix_rank if prefix_rank is not None else _whole(info.get("rank"))
    world_size = _whole(info.get("world_size"))
    named = rank_in_name(PurePath(path).name)
    if rank is None:
        rank = named
    elif (rank, world_size, prefix_rank) == (0, 1, None) and named and _SAYS_RANK.search(PurePath(path).name):
        # A profiler that was made before the process group takes every rank for the only one.
        rank, world_size = named, None
    groups = info.get("pg_config")
    return Identity(
        rank=rank if rank is not None else 0,
        rank_assumed=rank is None,
        world_size=world_size if world_size else None,
        host=redact(str(header.get("host_name", "")))[:64],
        groups=tuple(group for group in groups if isinstance(group, dict)) if isinstance(groups, list) else (),
    )


def rank_prefixes(raw: RawTrace) -> dict[str, int]:
    """Return the prefixes by which a merged file tells its ranks apart: prefix -> rank, empty for an ordinary file."""
    found: dict[str, int] = {}
    for pid, _ in raw.tracks:
        match = _PREFIX.match(pid) if isinstance(pid, str) else None
        if match:
            found[pid[: match.end()]] = int(match[2] or match[3])
    return dict(sorted(found.items(), key=lambda item: item[1]))


def environment_of(header: dict[str, Any]) -> dict[str, Any]:
    """Pick the header fields that describe software and profiler options; nothing that could be secret."""
    chosen: dict[str, Any] = {}
    for key in _ENVIRONMENT:
        if _is_plain(header.get(key)):
            chosen[key] = header[key]
    info = header.get("distributedInfo")
    if isinstance(info, dict):
        for key in ("backend", "nccl_version"):
            if isinstance(info.get(key), str) and _is_plain(info[key]):
                chosen[key] = info[key]
    return chosen


_PLAIN: Final = re.compile(r"[\w.+:,~ -]{1,64}")
_LONG_RUN: Final = re.compile(r"[0-9A-Za-z/]{16,}")  # a hash or a token; no version has that


def _is_plain(value: Any) -> bool:
    """Tell whether a value is a number, or a text that can be a version or the name of a backend and no secret."""
    if isinstance(value, int | float):
        return abs(value) < _NUMBER_MAX
    if not isinstance(value, str) or not _PLAIN.fullmatch(value):
        return False
    return not _LONG_RUN.search(value) and redact(value) == value


_NUMBER_MAX: Final = 1 << 53


def version_of(header: dict[str, Any]) -> str:
    """Return the exporter's schema version as written, empty where it is none."""
    value = header.get("schemaVersion", "")
    return str(value)[:32] if _is_plain(value) else ""


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9:
        return value
    return None
