"""Join decoded chunks into the columns of one file, with common numbers for names, threads and texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.readers.kineto.chunk import Numbering
from longpole.readers.spelling import normal_id, show_controls
from longpole.records.credentials import redact_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from longpole.readers.kineto.chunk import Chunk
    from longpole.readers.kineto.recovery import Damage


@dataclass(slots=True)
class RawTrace:
    """All that one file says, before any of it is interpreted.

    Attributes:
        header: Top-level fields of the file other than the events.
        damages: Repairs and losses of the decoding, in file order.
        n_events: Elements of the event list.
        n_documents: JSON documents in the file.
        names, tracks, categories, texts: What the codes of the columns stand for.
        span, device, sync, flow, memory: Columns, as in Chunk, over the whole file.
        sparse: Rare values of spans: field name -> (row, code into texts).
        begin_end, metadata, collectives, skipped: As in Chunk.
    """

    header: dict[str, Any] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)
    n_events: int = 0
    n_documents: int = 1
    names: list[str] = field(default_factory=list)
    tracks: list[tuple[Any, Any]] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    span: dict[str, NDArray[Any]] = field(default_factory=dict)
    device: dict[str, NDArray[Any]] = field(default_factory=dict)
    sync: dict[str, NDArray[Any]] = field(default_factory=dict)
    flow: dict[str, NDArray[Any]] = field(default_factory=dict)
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    sparse: dict[str, tuple[NDArray[np.int64], NDArray[np.int32]]] = field(default_factory=dict)
    begin_end: list[tuple[bool, int, int, int, int, int]] = field(default_factory=list)
    metadata: list[tuple[int, str, Any, Any, str]] = field(default_factory=list)
    collectives: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    skipped: dict[str, list[int]] = field(default_factory=dict)


class Joiner:
    """Collect chunks in file order; `finish` returns the whole."""

    def __init__(self) -> None:
        self.raw = RawTrace()
        self._name = Numbering()
        self._track = Numbering()
        self._category = Numbering()
        self._text = Numbering()
        self._span: dict[str, _Column] = {}
        self._device: dict[str, _Column] = {}
        self._sync: dict[str, _Column] = {}
        self._flow: dict[str, _Column] = {}
        self._memory: dict[str, _Column] = {}
        self._sparse: dict[str, list[tuple[NDArray[np.int64], NDArray[np.int32]]]] = {}
        self._n_spans = 0

    def add(self, chunk: Chunk) -> None:
        """Append a chunk."""
        name = _codes(self._name, map(show_controls, chunk.names))
        track = _codes(self._track, [(normal_id(pid), normal_id(tid)) for pid, tid in chunk.tracks])
        category = _codes(self._category, chunk.categories)
        text = _codes(self._text, chunk.texts)
        common = {"name": name, "track": track, "category": category}
        raw, first_event = self.raw, self.raw.n_events
        chunk.span["event"] += np.uint32(first_event)
        _append(self._span, {key: common[key][col] if key in common else col for key, col in chunk.span.items()})
        _append(self._flow, {key: common[key][col] if key in common else col for key, col in chunk.flow.items()})
        if chunk.memory:
            own = {"track": track[chunk.memory["track"]], "event": chunk.memory["event"] + np.uint32(first_event)}
            _append(self._memory, chunk.memory | own)
        for columns, part in ((self._device, chunk.device), (self._sync, chunk.sync)):
            _append(columns, {**part, "row": part["row"] + self._n_spans})
        for key, (row, code) in chunk.sparse.items():
            self._sparse.setdefault(key, []).append((row + self._n_spans, text[code]))
        raw.begin_end += [
            (is_end, event + first_event, time_ns, int(track[t]), int(name[n]), int(category[c]))
            for is_end, event, time_ns, t, n, c in chunk.begin_end
        ]
        raw.metadata += [(event + first_event, *rest) for event, *rest in chunk.metadata]
        raw.collectives += [(row + self._n_spans, args) for row, args in chunk.collectives]
        for reason, events in chunk.skipped.items():
            raw.skipped.setdefault(reason, []).extend(event + first_event for event in events)
        raw.n_events += chunk.n_events
        self._n_spans += len(chunk.span["start_ns"])

    def finish(self) -> RawTrace:
        """Concatenate what was collected; the joiner is empty afterwards."""
        raw = self.raw
        raw.names, raw.tracks = redact_all(list(self._name)), list(self._track)
        raw.categories, raw.texts = list(self._category), redact_all(list(self._text))
        raw.span, raw.flow, raw.memory = _join(self._span), _join(self._flow), _join(self._memory)
        raw.device, raw.sync = _join(self._device), _join(self._sync)
        for key, parts in self._sparse.items():
            raw.sparse[key] = (np.concatenate([row for row, _ in parts]), np.concatenate([code for _, code in parts]))
        return raw


def _codes(numbering: Numbering, keys: Iterable[Any]) -> NDArray[np.int32]:
    return np.array([numbering[key] for key in keys], np.int32)


class _Column:
    """A column under construction, in large blocks: chunks' own arrays are small and would fragment the heap."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._blocks: list[NDArray[Any]] = []
        self._dtype = dtype
        self._used = _BLOCK_ROWS

    def extend(self, values: NDArray[Any]) -> None:
        """Append values."""
        done = 0
        while done < len(values):
            if self._used == _BLOCK_ROWS:
                self._blocks.append(np.empty(_BLOCK_ROWS, self._dtype))
                self._used = 0
            n = min(len(values) - done, _BLOCK_ROWS - self._used)
            self._blocks[-1][self._used : self._used + n] = values[done : done + n]
            self._used += n
            done += n

    def finish(self) -> NDArray[Any]:
        """Return all values as one array; the column is empty afterwards."""
        if not self._blocks:
            return np.empty(0, self._dtype)
        self._blocks[-1] = self._blocks[-1][: self._used]
        whole = self._blocks[0].copy() if len(self._blocks) == 1 else np.concatenate(self._blocks)
        self._blocks.clear()
        self._used = _BLOCK_ROWS
        return whole


_BLOCK_ROWS: Final = 1 << 16


def _append(columns: dict[str, _Column], chunk: dict[str, NDArray[Any]]) -> None:
    for key, values in chunk.items():
        if key not in columns:
            columns[key] = _Column(values.dtype)
        columns[key].extend(values)


def _join(columns: dict[str, _Column]) -> dict[str, NDArray[Any]]:
    """Join column by column, letting go of each one's blocks at once."""
    return {key: columns.pop(key).finish() for key in list(columns)}
