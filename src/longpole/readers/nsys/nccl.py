"""What NCCL attaches to its annotations: communicator, size, peer.

Payloads are stored where the export was asked for them (`--include-blobs true`, or as text by `--include-json true`);
their fields are described in the export itself (formats.md D.1). A blob begins with four 64-bit numbers: domain,
schema, size and place of the data.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.timeline.tables import CollectiveArgs

if TYPE_CHECKING:
    from longpole.readers.nsys.capture import Capture, Range

_HEAD: Final = struct.Struct("<4Q")
# NVTX's payload types: int, uint64_t, size_t
_FORMS: Final = {5: struct.Struct("<i"), 18: struct.Struct("<Q"), 22: struct.Struct("<Q")}

_COMMUNICATOR: Final = "NCCL communicator ID"
_BYTES: Final = "Message size [bytes]"
_RANKS: Final = "No. of ranks"
_RANK: Final = "Rank"
_PEER: Final = "Peer rank"
# Sizes are of what one rank gives: of these operations it is one rank's share of what it puts in.
_PER_RANK: Final = frozenset({"ncclReduceScatter", "ncclAlltoAll", "ncclAllToAll", "ncclScatter"})


def payload_of(range_: Range, capture: Capture) -> dict[str, int]:
    """Return the fields of an annotation's payload, none where it has none that can be read."""
    if isinstance(range_.payload, bytes):
        return _of_blob(range_.payload, capture.payload_fields)
    if isinstance(range_.payload, str):
        return _of_json(range_.payload)
    return {}


def _of_blob(blob: bytes, schemas: dict[tuple[int, int], dict[str, tuple[int, int]]]) -> dict[str, int]:
    if len(blob) < _HEAD.size:
        return {}
    domain, schema, _, place = _HEAD.unpack_from(blob)
    start = place if _HEAD.size <= place < len(blob) else _HEAD.size
    found = {}
    for name, (offset, kind) in schemas.get((domain, schema), {}).items():
        form = _FORMS.get(kind)
        if form is not None and offset >= 0 and start + offset + form.size <= len(blob):
            found[name] = int(form.unpack_from(blob, start + offset)[0])
    return found


def _of_json(text: str) -> dict[str, int]:
    try:
        left: list[Any] = [msgspec.json.decode(text)]
    except (msgspec.DecodeError, RecursionError):
        return {}
    found: dict[str, int] = {}
    while left:
        part = left.pop()
        if isinstance(part, list):
            left += part
        elif isinstance(part, dict):
            left += [value for value in part.values() if isinstance(value, dict | list)]
            found |= {str(name): number for name, value in part.items() if (number := _number(value)) is not None}
    return found


def _number(value: Any) -> int | None:
    """Read a number, written as text with commas too."""
    if isinstance(value, str) and len(value) < 32 and value.replace(",", "").isdigit():
        value = int(value.replace(",", ""))
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class Communicators:
    """The communicators that a process created, as far as their creation was recorded."""

    def __init__(self) -> None:
        self._members: dict[int, tuple[int, int]] = {}

    def hear(self, payload: dict[str, int]) -> None:
        """Hear of a payload; the creation of a communicator says how many ranks it has and which one this is."""
        if _COMMUNICATOR in payload and _RANKS in payload and _RANK in payload:
            size, rank = payload[_RANKS], payload[_RANK]
            if 0 <= rank < size:
                self._members[payload[_COMMUNICATOR]] = size, rank

    def largest(self) -> tuple[int, int] | None:
        """Return (size, rank) of the largest one: the job's, if it has one over all ranks."""
        return max(self._members.values(), default=None)

    def args(self, name: str, row: int, payload: dict[str, int]) -> CollectiveArgs | None:
        """Return what a call says of its operation, None for a call that moves nothing.

        Args:
            name: Of the call: `ncclAllReduce`.
            row: Its row of the host table.
            payload: Its fields.
        """
        size_bytes = payload.get(_BYTES)
        communicator = payload.get(_COMMUNICATOR)
        if size_bytes is None or not 0 <= size_bytes < 1 << 62:
            return None
        size, _ = self._members.get(communicator, (None, None)) if communicator is not None else (None, None)
        if name in _PER_RANK:
            size_bytes = size_bytes * size if size else None
        # A peer is counted within its communicator, and only of the job's own is that the rank of the job.
        largest = self.largest()
        peer = payload.get(_PEER) if size is not None and largest is not None and size == largest[0] else None
        return CollectiveArgs(
            row=row,
            on_device=False,
            name=name,
            in_elements=None,
            out_elements=None,
            group_size=size,
            dtype="",
            group_name=f"{communicator:#x}" if communicator is not None else "",
            group_ranks="",
            sequence=None,
            source_rank=peer if name == "ncclRecv" else None,
            target_rank=peer if name == "ncclSend" else None,
            in_bytes=size_bytes,
        )


def job_of(ranges: list[Range], capture: Capture) -> tuple[int, int] | None:
    """Return (ranks, this one's rank) of the largest communicator that a process was recorded creating."""
    heard = Communicators()
    for one in ranges:
        if one.payload is not None:
            heard.hear(payload_of(one, capture))
    return heard.largest()
