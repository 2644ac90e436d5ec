"""From a file to a snapshot of the allocator: pickle or JSON, packed or not; what is odd costs only itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.errors import InputError, NotATraceError
from longpole.readers.container import open_stream
from longpole.readers.plain_pickle import looks_like_pickle, read_plain_pickle
from longpole.records.allocator_snapshot import (
    DEFAULT_POOL,
    NOT_WRITTEN,
    AllocatorSnapshot,
    Block,
    BlockState,
    Entry,
    Frame,
    Phase,
    Pool,
    Segment,
    Stack,
)

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.settings import Settings

_STATES: Final[dict[str, BlockState]] = {
    "active_allocated": "allocated",
    "active_awaiting_free": "awaiting_free",
    "active_pending_free": "awaiting_free",  # before torch 2.1
    "inactive": "free",
}
_ROWS_MAX: Final = 20_000_000  # a pickle may name one list a million times
_FRAMES_MAX: Final = 200
_SHOWN_MAX: Final = 512


def read_snapshot(path: Path, settings: Settings) -> AllocatorSnapshot:
    """Read a memory snapshot.

    Args:
        path: A pickle as `torch.cuda.memory._dump_snapshot` writes it, or `_snapshot()` as JSON; gzip, zstd or plain.
        settings: Bounds of archives.

    Raises:
        InputError: It cannot be read, is cut, or holds more than plain data.
        NotATraceError: It is something else.
    """
    with open_stream(path, settings) as stream:
        content = b"".join(stream.blocks())
        if stream.damage is not None:
            raise InputError.at(path, stream.damage.stored_byte, stream.damage.message, "Copy the file again")
    fields = read_plain_pickle(content, path) if looks_like_pickle(content[:2]) else _of_json(content, path)
    return decode_snapshot(fields, path)


def decode_snapshot(fields: object, path: Path) -> AllocatorSnapshot:
    """Take what `torch.cuda.memory._snapshot()` returns apart.

    Args:
        fields: The snapshot as plain data.
        path: For messages.

    Raises:
        InputError: It is larger than any snapshot.
        NotATraceError: It is something else.
    """
    if isinstance(fields, list) and fields and _is_segment(fields[0]):
        fields = {"segments": fields}  # what memory_snapshot() returned before torch 2.0
    if not isinstance(fields, dict) or not isinstance(fields.get("segments"), list):
        found = "this is no memory snapshot: it holds no list of segments"
        raise NotATraceError.at(path, None, found, _EXPECTED)
    return _Decoder(path).snapshot(fields)


_EXPECTED: Final = "Give what torch.cuda.memory._dump_snapshot wrote, or torch.cuda.memory._snapshot() as JSON"


def _is_segment(value: object) -> bool:
    return isinstance(value, dict) and "blocks" in value and "total_size" in value


def _of_json(content: bytes, path: Path) -> object:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if content.lstrip()[:1] in (b"{", b"["):
            raise InputError.at(path, None, f"this JSON cannot be read: {error}", "Write it again") from None
        raise NotATraceError.at(
            path, None, "this is no memory snapshot: neither a pickle nor JSON", _EXPECTED
        ) from None


class _Decoder:
    """Builds the snapshot; equal stacks are one object, for a snapshot repeats them thousands of times."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.skipped: Counter[str] = Counter()
        self._frames: dict[tuple[str, str, int], Frame] = {}
        self._by_id: dict[int, Frame] = {}  # the file's own objects live as long as this
        self._stacks: dict[int, Stack] = {}

    def snapshot(self, fields: dict[Any, Any]) -> AllocatorSnapshot:
        segments = tuple(segment for value in fields["segments"] if (segment := self._segment(value)) is not None)
        traces = fields.get("device_traces")
        history = {
            device: tuple(entry for value in trace if (entry := self._entry(value)) is not None)
            for device, trace in enumerate(traces if isinstance(traces, list) else ())
            if isinstance(trace, list) and trace
        }
        annotations = fields.get("external_annotations")
        phases = [self._phase(value) for value in annotations] if isinstance(annotations, list) else []
        settings = fields.get("allocator_settings")
        return AllocatorSnapshot(
            segments=segments,
            history=history,
            phases=tuple(sorted((phase for phase in phases if phase is not None), key=lambda phase: phase.time_us)),
            settings={str(key)[:64]: value for key, value in settings.items()} if isinstance(settings, dict) else {},
            device_total_bytes=_amount(fields.get("device_total")),
            skipped=dict(self.skipped),
        )

    def _count(self) -> None:
        self.rows += 1
        if self.rows > _ROWS_MAX:
            found = f"more than {_ROWS_MAX:,} blocks and entries of history"
            raise InputError.at(self.path, None, found, "Record fewer: max_entries of _record_memory_history")

    def _segment(self, value: object) -> Segment | None:
        self._count()
        if not isinstance(value, dict) or not isinstance(value.get("blocks"), list):
            self.skipped["segment"] += 1
            return None
        blocks = self._blocks(value["blocks"], _amount(value.get("address")))
        total_bytes = _amount(value.get("total_size"))
        held_bytes = sum(block.size_bytes for block in blocks)
        if total_bytes != held_bytes:
            self.skipped["segment_sum"] += 1
        return Segment(
            device=max(_amount(value.get("device")), 0),
            stream=max(_amount(value.get("stream")), 0),
            pool=_pool(value.get("segment_pool_id")),
            is_large=value.get("segment_type") != "small",
            is_expandable=value.get("is_expandable") is True,
            total_bytes=held_bytes if total_bytes == NOT_WRITTEN else total_bytes,
            blocks=blocks,
        )

    def _blocks(self, values: list[Any], address: int) -> tuple[Block, ...]:
        blocks = []
        for value in values:
            self._count()
            state = _STATES.get(str(value.get("state"))) if isinstance(value, dict) else None
            size_bytes = _amount(value.get("size")) if isinstance(value, dict) else NOT_WRITTEN
            if state is None or size_bytes == NOT_WRITTEN:
                self.skipped["block"] += 1
                continue
            own = _amount(value.get("address"))
            place = own if own != NOT_WRITTEN else address
            blocks.append(Block(place, size_bytes, _requested(value, state), state, self._stack_of(value)))
            address = place + size_bytes if place != NOT_WRITTEN else NOT_WRITTEN
        return tuple(blocks)

    def _stack_of(self, block: dict[Any, Any]) -> Stack:
        history = block.get("history")  # before torch 2.1
        if isinstance(history, list) and history and isinstance(history[0], dict):
            return self._stack(history[0].get("frames"))
        return self._stack(block.get("frames"))

    def _stack(self, frames: object) -> Stack:
        if not isinstance(frames, list) or not frames:
            return ()
        found = self._stacks.get(id(frames))
        if found is None:
            found = self._stacks[id(frames)] = tuple(
                self._frame(frame) for frame in frames[:_FRAMES_MAX] if isinstance(frame, dict)
            )
        return found

    def _frame(self, frame: dict[Any, Any]) -> Frame:
        found = self._by_id.get(id(frame))
        if found is None:
            found = self._by_id[id(frame)] = self._new_frame(frame)
        return found

    def _new_frame(self, frame: dict[Any, Any]) -> Frame:
        name, file = str(frame.get("name", ""))[:_SHOWN_MAX], str(frame.get("filename", ""))[-_SHOWN_MAX:]
        key = (name, file, max(_amount(frame.get("line")), 0))
        return self._frames.setdefault(key, Frame(*key))

    def _entry(self, value: object) -> Entry | None:
        self._count()
        size_bytes = _amount(value.get("size")) if isinstance(value, dict) else NOT_WRITTEN
        if not isinstance(value, dict) or not isinstance(value.get("action"), str) or size_bytes == NOT_WRITTEN:
            self.skipped["entry"] += 1
            return None
        return Entry(
            action=value["action"][:64],
            address=_amount(value.get("addr")),
            size_bytes=size_bytes,
            stream=_amount(value.get("stream")),
            device_free_bytes=_amount(value.get("device_free")),
            time_us=_amount(value.get("time_us")),
            stack=self._stack(value.get("frames")),
        )

    def _phase(self, value: object) -> Phase | None:
        self._count()
        if not isinstance(value, dict) or value.get("stage") not in ("START", "END"):
            return None
        name = str(value.get("name", ""))[:_SHOWN_MAX]
        return Phase(
            value["stage"] == "START", name, max(_amount(value.get("device")), 0), _amount(value.get("time_us"))
        )


def _requested(block: dict[Any, Any], state: BlockState) -> int:
    if state == "free":
        return 0
    history = block.get("history")
    if "requested_size" not in block and isinstance(history, list) and history and isinstance(history[0], dict):
        return _amount(history[0].get("real_size"))
    return _amount(block.get("requested_size"))


def _pool(value: object) -> Pool:
    if isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(part, int) for part in value):
        return int(value[0]), int(value[1])
    return DEFAULT_POOL


def _amount(value: object) -> int:
    """Return a whole number that is no less than 0, NOT_WRITTEN for anything else."""
    if isinstance(value, str) and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        return value
    return NOT_WRITTEN
