"""Dumps of flight recorders, as the classes that the rule takes and as PyTorch writes them."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from longpole.records.flight import FlightDump, FlightEntry, GroupKey

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

EPOCH_NS = 1_700_000_000_000_000_000


def group(members: Sequence[int], name: str = "0", description: str = "default_pg") -> GroupKey:
    """Return a group."""
    return GroupKey(name, description, tuple(members))


def entry(
    key: GroupKey, sequence: int, operation: str = "all_reduce", *, done: bool = True, **more: Any
) -> FlightEntry:
    """Return an operation on NCCL, issued `sequence` milliseconds into the job."""
    fields: dict[str, Any] = {
        "group": key,
        "sequence": sequence,
        "operation": operation,
        "is_p2p": "peers" in more,
        "peers": None,
        "input_sizes": ((1024,),),
        "output_sizes": ((1024,),),
        "input_types": ("Float",),
        "output_types": ("Float",),
        "state": "completed" if done else "scheduled",
        "is_retired": done,
        "created_ns": EPOCH_NS + sequence * 1_000_000,
        "timeout_ms": 600_000,
        "number": sequence,
        "backend": "nccl",
    }
    return FlightEntry(**(fields | more))


def dump(rank: int, entries: Sequence[FlightEntry], groups: Sequence[GroupKey] = ()) -> FlightDump:
    """Return what one rank left behind."""
    listed = tuple(dict.fromkeys([*groups, *(one.group for one in entries)]))
    return FlightDump(f"trace_rank_{rank}", rank, True, "2.10", "2.27.3", listed, tuple(entries))


def written(one: FlightDump) -> dict[str, Any]:
    """Return a dump as PyTorch 2.10 writes it."""
    return {
        "version": one.version,
        "comm_lib_version": one.library,
        "pg_config": {
            key.name: {"name": key.name, "desc": key.description, "ranks": str(list(key.members))} for key in one.groups
        },
        "pg_status": {},
        "entries": [_written_entry(number, found) for number, found in enumerate(one.entries)],
    }


def _written_entry(number: int, one: FlightEntry) -> dict[str, Any]:
    pair = f" {one.peers[0]}->{one.peers[1]}" if one.peers is not None else ""
    return {
        "record_id": number,
        "pg_id": 0,
        "process_group": (one.group.name, one.group.description),
        "collective_seq_id": 0 if one.is_p2p else one.sequence,
        "p2p_seq_id": one.sequence if one.is_p2p else 0,
        "op_id": one.sequence,
        "profiling_name": f"{one.backend}:{one.operation}{pair}",
        "time_created_ns": one.created_ns,
        "input_sizes": [list(shape) for shape in one.input_sizes],
        "input_dtypes": list(one.input_types),
        "output_sizes": [list(shape) for shape in one.output_sizes],
        "output_dtypes": list(one.output_types),
        "state": one.state,
        "retired": one.is_retired,
        "timeout_ms": one.timeout_ms,
        "is_p2p": one.is_p2p,
        "frames": [{"name": f.function, "filename": f.file, "line": f.line} for f in one.frames],
    }


def write_dumps(folder: Path, dumps: Sequence[FlightDump]) -> Path:
    """Write dumps as pickles, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in dumps:
        (folder / one.path).write_bytes(pickle.dumps(written(one), protocol=2))
    return folder
