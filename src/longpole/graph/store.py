"""A rank's graph on disk: one file of NumPy arrays, nothing pickled.

Written to a temporary name and renamed, so that two processes that race both leave a whole file.
"""

from __future__ import annotations

import os
import struct
import tempfile
import zipfile
import zlib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from longpole.errors import InputError
from longpole.graph.constants import Constant
from longpole.graph.edges import Edges
from longpole.graph.rank_graph import Cover, DeviceSpans, HostSpans, RankGraph
from longpole.records.critical_path import GRAPH_VERSION
from longpole.vocabulary.declared import Declared

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PARTS: Final[dict[str, Any]] = {"edges": Edges, "spans": DeviceSpans, "cover": Cover, "host": HostSpans}


class _Meta(msgspec.Struct):
    version: int
    rank: int
    units: list[str]
    names: list[str]
    lane_names: list[str]
    streams: list[int]
    n_tracks: int
    main_track: int
    orphans: int
    late_spans: int
    constants: list[tuple[int, int, str, int, int, int, bool]]
    shift_ns: dict[int, int]
    conflict_ns: dict[int, int]
    said: dict[int, Declared]
    is_told: bool


def write_graph(path: Path, graph: RankGraph) -> None:
    """Write a graph.

    Raises:
        OSError: The file cannot be written.
    """
    meta = _Meta(
        GRAPH_VERSION,
        graph.rank,
        list(graph.units),
        list(graph.names),
        list(graph.lane_names),
        list(graph.streams),
        graph.n_tracks,
        graph.main_track,
        graph.orphans,
        graph.late_spans,
        [(kind, lane, c.kind, c.lane, c.length_ns, c.samples, c.fitted) for (kind, lane), c in graph.constants.items()],
        graph.shift_ns,
        graph.conflict_ns,
        graph.said,
        graph.is_told,
    )
    arrays: dict[str, NDArray[Any]] = {"meta": np.frombuffer(msgspec.msgpack.encode(meta), np.uint8)}
    for field in fields(RankGraph):
        value = getattr(graph, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
    for part, kind in _PARTS.items():
        arrays |= {f"{part}.{f.name}": getattr(getattr(graph, part), f.name) for f in fields(kind)}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    Path(name).replace(path)


def read_graph(path: Path) -> RankGraph:
    """Read a graph.

    Raises:
        InputError: The file is missing, damaged or of another version.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        meta = msgspec.msgpack.decode(arrays.pop("meta").tobytes(), type=_Meta)
        if meta.version != GRAPH_VERSION:
            raise InputError.at(str(path), None, "a graph of another version", "Read the trace again")
        return _graph(meta, arrays)
    except _DAMAGED as error:
        raise InputError.at(str(path), None, f"no graph can be read: {error}", "Read the trace again") from None


_DAMAGED: Final = (
    OSError,
    ValueError,
    LookupError,
    TypeError,  # a column is missing or unknown
    EOFError,
    MemoryError,  # a header claims more than there is
    NotImplementedError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    msgspec.DecodeError,
)


def _graph(meta: _Meta, arrays: dict[str, Any]) -> RankGraph:
    parts = {
        part: kind(**{f.name: arrays.pop(f"{part}.{f.name}") for f in fields(kind)}) for part, kind in _PARTS.items()
    }
    return RankGraph(
        rank=meta.rank,
        units=tuple(meta.units),
        names=tuple(meta.names),
        lane_names=tuple(meta.lane_names),
        streams=tuple(meta.streams),
        n_tracks=meta.n_tracks,
        main_track=meta.main_track,
        orphans=meta.orphans,
        late_spans=meta.late_spans,
        constants={
            (kind, lane): Constant(text, own_lane, length_ns, samples, fitted)
            for kind, lane, text, own_lane, length_ns, samples, fitted in meta.constants
        },
        shift_ns=meta.shift_ns,
        conflict_ns=meta.conflict_ns,
        said=meta.said,
        is_told=meta.is_told,
        **parts,
        **arrays,
    )
