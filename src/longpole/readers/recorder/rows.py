"""Rows of tables under construction, and the names that they bear with what the program says of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from longpole.records.credentials import redact
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.tables import DeviceTable, HostTable, Track

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.vocabulary.declared import Declared

_SHOWN_MAX: Final = 512


def shown(name: str) -> str:
    """Return a name without control characters and credentials, of bounded length."""
    if not name.isprintable():
        name = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name)
    return redact(name)[:_SHOWN_MAX]


class HostRow(NamedTuple):
    """A span of a thread."""

    start_ns: int
    end_ns: int
    name: int
    track: int
    kind: Kind
    line: int


class DeviceRow(NamedTuple):
    """A span of a device's stream."""

    start_ns: int
    end_ns: int
    name: int
    device: int
    stream: int
    kind: Kind
    size_bytes: int
    line: int


@dataclass(slots=True)
class Rows:
    """What is lowered so far.

    Attributes:
        names: Name of each code; a name of which two things are said has two codes.
        said: Code -> what is said.
        tracks: The threads.
        host, device: Rows.
    """

    names: list[str] = field(default_factory=list)
    said: dict[int, Declared] = field(default_factory=dict)
    tracks: list[Track] = field(default_factory=list)
    host: list[HostRow] = field(default_factory=list)
    device: list[DeviceRow] = field(default_factory=list)
    _codes: dict[tuple[str, Declared], int] = field(default_factory=dict)
    _track_codes: dict[tuple[int, int | str], int] = field(default_factory=dict)

    def name(self, name: str, said: Declared) -> int:
        """Return the code of a name of which this is said."""
        key = (name, said)
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = len(self.names)
            self.names.append(shown(name))
            self.said[code] = said
        return code

    def track(self, pid: int, thread: int | str, name: str) -> int:
        """Return the code of a thread of a process."""
        key = (pid, thread)
        code = self._track_codes.get(key)
        if code is None:
            code = self._track_codes[key] = len(self.tracks)
            self.tracks.append(Track(pid, thread, shown(name)))
        return code

    def drop(self, host: NDArray[np.bool_], device: NDArray[np.bool_]) -> None:
        """Leave out the masked rows."""
        self.host = [row for row, out in zip(self.host, host.tolist(), strict=True) if not out]
        self.device = [row for row, out in zip(self.device, device.tolist(), strict=True) if not out]

    def host_table(self) -> tuple[HostTable, NDArray[np.int64]]:
        """Return the host's table, and the place in it of each row."""
        columns = _columns(self.host, len(HostRow._fields))
        start_ns, end_ns, name, track, kind, line = columns
        # Spans stand in the order in which they ended: of two with the same times the later line is the outer one.
        order = np.lexsort((-line, -end_ns, start_ns, track))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        none = np.full(len(order), NONE_ID, np.int64)
        return (
            HostTable(
                start_ns=start_ns[order],
                end_ns=end_ns[order],
                name=name[order].astype(np.int32),
                track=track[order].astype(np.int32),
                kind=kind[order].astype(np.uint8),
                correlation=none,
                external_id=none.copy(),
                event=line[order].astype(np.uint32),
            ),
            place,
        )

    def device_table(self) -> DeviceTable:
        """Return the devices' table."""
        start_ns, end_ns, name, device, stream, kind, size_bytes, line = _columns(self.device, len(DeviceRow._fields))
        order = np.lexsort((line, start_ns, device))
        none = np.full(len(order), NONE_ID, np.int64)
        return DeviceTable(
            start_ns=start_ns[order],
            end_ns=end_ns[order],
            name=name[order].astype(np.int32),
            device=device[order].astype(np.int32),
            stream=stream[order],
            kind=kind[order].astype(np.uint8),
            correlation=none,
            external_id=none.copy(),
            size_bytes=size_bytes[order],
            launch=none.copy(),
            event=line[order].astype(np.uint32),
        )


def _columns(rows: Sequence[tuple[int, ...]], n: int) -> NDArray[np.int64]:
    return np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, n).T)
