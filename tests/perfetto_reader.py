"""An oracle for exports: reads a Perfetto trace as the viewer's own importer does, with its own message classes.

Packets are sorted by time, those of one time as they stand in the file. A begin opens a slice inside of the open one
of its track, an end closes the innermost open one, and an arrow goes from the slice that began earlier.
Source: track_event_event_importer.h, slice_tracker.cc and flow_tracker.cc of the trace processor.
"""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


@dataclass
class Track:
    uuid: int
    name: str
    parent: int
    order: int
    about: str
    is_counter: bool


@dataclass
class Slice:
    track: Track
    start_ns: int
    name: str
    category: str
    notes: dict[str, int | str]
    depth: int
    end_ns: int = -1

    @property
    def dur_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass
class Viewed:
    tracks: dict[int, Track] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    counts: list[tuple[Track, int, int]] = field(default_factory=list)
    arrows: list[tuple[Slice, Slice]] = field(default_factory=list)

    def on(self, *path: str) -> list[Slice]:
        """Return the slices of the track that lies under tracks of these names."""
        return [one for one in self.slices if self.path_of(one.track) == path]

    def counted(self, *path: str) -> list[int]:
        return [value for track, _, value in self.counts if self.path_of(track) == path]

    def path_of(self, track: Track) -> tuple[str, ...]:
        above = self.tracks.get(track.parent)
        return (*(self.path_of(above) if above is not None else ()), track.name)

    def names(self) -> list[tuple[str, ...]]:
        return [self.path_of(track) for track in self.tracks.values()]


def read_trace(data: bytes) -> Viewed:
    """Read a trace, and check what a viewer would complain of or silently drop."""
    trace = messages.Trace()
    trace.ParseFromString(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    state = _State()
    for packet in trace.packet:
        state.take_in(packet)
    for packet in sorted(state.events, key=lambda one: one.timestamp):
        state.play(packet)
    assert not any(state.open.values()), "slices are left open"
    assert not state.flows, "arrows that arrive nowhere"
    uuids = Counter(track.uuid for track in state.viewed.tracks.values())
    assert all(count == 1 for count in uuids.values())
    return state.viewed


@dataclass
class _State:
    viewed: Viewed = field(default_factory=Viewed)
    names: dict[int, str] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    note_names: dict[int, str] = field(default_factory=dict)
    note_texts: dict[int, str] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
    open: dict[int, list[Slice]] = field(default_factory=dict)
    flows: dict[int, Slice] = field(default_factory=dict)
    started: bool = False

    def take_in(self, packet: Any) -> None:
        assert packet.trusted_packet_sequence_id == 1
        if packet.sequence_flags & 1:
            assert not self.started, "names are forgotten here"
            self.started = True
        for entry in packet.interned_data.event_names:
            assert entry.iid not in self.names
            self.names[entry.iid] = entry.name
        for entry in packet.interned_data.debug_annotation_names:
            assert entry.iid not in self.note_names
            self.note_names[entry.iid] = entry.name
        for entry in packet.interned_data.debug_annotation_string_values:
            assert entry.iid not in self.note_texts
            self.note_texts[entry.iid] = entry.str.decode()
        for entry in packet.interned_data.event_categories:
            self.categories[entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            self._declare(packet.track_descriptor)
        if packet.HasField("track_event"):
            assert packet.sequence_flags & 2
            assert packet.timestamp < 1 << 63
            assert packet.track_event.track_uuid in self.viewed.tracks, "the track is declared later"
            assert all(iid in self.categories for iid in packet.track_event.category_iids)
            if packet.track_event.name_iid:
                assert packet.track_event.name_iid in self.names, "the name comes later"
            self.events.append(packet)

    def _declare(self, found: Any) -> None:
        assert found.uuid not in self.viewed.tracks
        assert found.sibling_merge_behavior == found.SIBLING_MERGE_BEHAVIOR_NONE
        assert not found.parent_uuid or found.parent_uuid in self.viewed.tracks
        self.viewed.tracks[found.uuid] = Track(
            found.uuid,
            found.name,
            found.parent_uuid,
            found.sibling_order_rank,
            found.description,
            found.HasField("counter"),
        )

    def play(self, packet: Any) -> None:
        event = packet.track_event
        track = self.viewed.tracks[event.track_uuid]
        assert track.is_counter == (event.type == event.TYPE_COUNTER)
        if event.type == event.TYPE_COUNTER:
            self.viewed.counts.append((track, packet.timestamp, event.counter_value))
            return
        still_open = self.open.setdefault(track.uuid, [])
        if event.type == event.TYPE_SLICE_END:
            assert still_open, "an end without a begin"
            ended = still_open.pop()
            ended.end_ns = packet.timestamp
            return
        found = Slice(
            track,
            packet.timestamp,
            self.names[event.name_iid],
            self.categories[event.category_iids[0]] if event.category_iids else "",
            dict(self._notes(event)),
            len(still_open),
        )
        assert event.type == event.TYPE_SLICE_BEGIN
        still_open.append(found)
        self.viewed.slices.append(found)
        self._arrows(event, found)

    def _arrows(self, event: Any, found: Slice) -> None:
        for flow in event.flow_ids:
            assert flow not in self.flows
            self.flows[flow] = found
        for flow in event.terminating_flow_ids:
            other = self.flows.pop(flow)
            pair = (found, other) if other.start_ns > found.start_ns else (other, found)
            self.viewed.arrows.append(pair)

    def _notes(self, event: Any) -> Iterator[tuple[str, int | str]]:
        for note in event.debug_annotations:
            name = self.note_names[note.name_iid] if note.name_iid else note.name
            yield name, self.note_texts[note.string_value_iid] if note.string_value_iid else note.int_value
