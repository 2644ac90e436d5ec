"""What a picture of one rank's units needs: its lanes, and on each the spans that an eye can tell apart.

    thread main   ├──── linear ────┤├── add ──┤         depth 0
                    ├ mm ┤                              depth 1
    stream 7             ├─ gemm ─┤   ├ all_reduce ┤
    link                              ├ all_reduce ┤    what crosses the device's links, from all its streams
    idle             ├input┤       ├──┤                 why nothing ran

Spans shorter than a picture can show are drawn together with their neighbours, as one that says how many it stands for:
how fine a picture is, is settled here and not in a browser.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.name_book import OBJECT_CODE
from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COPY
from longpole.digest.call_stacks import StackBook
from longpole.digest.digest import lay_out, row_pieces
from longpole.timeline.columns import Kind
from longpole.timeline.nesting import apart_lanes, nest
from longpole.vocabulary.objects import IDLE_REASONS, charged_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from longpole.analyses.rungs import DeviceRow
    from longpole.digest.digest import Laid, Selection
    from longpole.settings import Settings
    from longpole.timeline.tables import Track
    from longpole.timeline.timeline import Timeline
    from longpole.vocabulary.matcher import Vocabulary

    Ints: TypeAlias = NDArray[np.int64]
    Gauge: TypeAlias = Callable[[Laid, DeviceRow], "Use"]

THREAD: Final = "thread"
STREAM: Final = "stream"
LINK: Final = "link"
IDLE: Final = "idle"
DEPTH_MAX: Final = 5
"""Levels of calls that a thread shows; deeper ones are narrower than what they lie in, and rarely read."""
_LEVELS_MAX: Final = 6  # of spans that run at once on one row of a device; what is beyond lies on the last
THREADS_MAX: Final = 8
"""Threads of a rank that are drawn: the one that carries the units, then those with most time."""
_CHARGED: Final = np.array([OBJECT_CODE[charged_to(reason)] for reason in IDLE_REASONS], np.int8)


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of the picture.

    Attributes:
        kind: `thread`, `stream`, `link` or `idle`.
        label: What is written beside it.
        device: Of a stream, a link or an idle row; empty for a thread.
        track: The name that the critical path uses for it.
    """

    kind: str
    label: str
    device: str
    track: str


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of a picture, ascending by lane, depth and start; columns of one length.

    Attributes:
        lane: `[N]` int32: number of the lane.
        depth: `[N]` int8: level of calls on a thread, 0 elsewhere.
        start_ns, end_ns: `[N]` int64: in the time of whoever holds them.
        object: `[N]` int8: code into OBJECTS.
        name: `[N]` int32: code of a name.
        count: `[N]` int32: how many spans it stands for; the name is that of the longest.
        size_bytes: `[N]` int64: what a copy moves, -1 for none.
        share: `[N]` float32: how much of what bounds it a device span used, NaN where that is not known.
        use: `[N]` int32: code of the name that says what `share` is a share of, or why it is not known; -1 for spans
            that use nothing.
        stack: `[N]` int32: number of the call stack around it, -1 for none.
    """

    lane: NDArray[np.int32]
    depth: NDArray[np.int8]
    start_ns: Ints
    end_ns: Ints
    object: NDArray[np.int8]
    name: NDArray[np.int32]
    count: NDArray[np.int32]
    size_bytes: Ints
    share: NDArray[np.float32]
    use: NDArray[np.int32]
    stack: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Spans:
        """Return some of the spans."""
        return Spans(*(getattr(self, name)[rows] for name in self.__slots__))

    @classmethod
    def joined(cls, parts: Sequence[Spans]) -> Spans:
        """Return all spans of several parts, ordered."""
        columns = [np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__]
        whole = cls(*columns)
        return whole.take(np.lexsort((whole.start_ns, whole.depth, whole.lane)))


@dataclass(frozen=True, slots=True)
class Use:
    """How much of what bounds it each span of a device used.

    Attributes:
        share: `[N]` float32: NaN where it is not known.
        says: `[N]` int32: into `texts`: what it is a share of, or why it is not known; -1 for nothing to say.
        texts: What there is to say.
    """

    share: NDArray[np.float32]
    says: NDArray[np.int32]
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class RankDrawing:
    """The picture of one rank, in its own time.

    Attributes:
        rank: The rank.
        lanes: Its rows, threads first.
        spans: What is on them.
        names: What the name codes stand for.
        threads_left_out: Threads that are not drawn.
        stacks: `[S, F]` int32: name codes of each call stack's frames, the innermost first, -1 behind the last.
    """

    rank: int
    lanes: list[Lane]
    spans: Spans
    names: tuple[str, ...]
    threads_left_out: int
    stacks: NDArray[np.int32]


def draw_rank(timeline: Timeline, vocabulary: Vocabulary, settings: Settings, selection: Selection) -> RankDrawing:
    """Lay out everything of a rank that a picture may show.

    Raises:
        UsageError: The selection's pattern or range matches nothing.
    """
    return draw_laid(*lay_out(timeline, vocabulary, settings, selection))


def draw_laid(
    rank: Laid,
    device_rows: Sequence[DeviceRow],
    depth_max: int = DEPTH_MAX,
    threads_max: int = THREADS_MAX,
    *,
    gauge: Gauge | None = None,
) -> RankDrawing:
    """Lay out everything of a rank that a picture may show, once it is known what is what.

    Args:
        rank: The rank.
        device_rows: Its devices.
        depth_max: Levels of calls that a thread shows, at most 127.
        threads_max: Threads that are drawn.
        gauge: Says how much of what bounds them the spans of a device used. With it come call stacks, the rows of
            links, which show spans of streams again, and levels of spans that run at once on one stream.
    """
    lanes: list[Lane] = []
    parts: list[Spans] = []
    tracks, left_out = _tracks(rank, threads_max)
    names = [*rank.timeline.names, *IDLE_REASONS]
    book = StackBook(rank.timeline, rank.threads) if gauge is not None else None
    for track in tracks:
        parts.append(_thread(rank, track, len(lanes), depth_max, book, has_device=bool(device_rows)))
        label = _thread_name(rank.timeline.tracks[track])
        lanes.append(Lane(THREAD, f"main {label}" if track == rank.timeline.main_track else label, "", label))
    for row in device_rows:
        device = f"{rank.timeline.device_type}:{row.device}"
        known = gauge(rank, row) if gauge is not None else None
        whole = _device_spans(row, known, len(names), book)
        names += known.texts if known is not None else ()
        for stream in np.unique(row.spans.stream).tolist():
            parts.append(_on_lane(whole, row.spans.stream == stream, len(lanes), levels=gauge is not None))
            on_path = f"device {row.device} stream {stream}" if len(device_rows) > 1 else f"stream {stream}"
            lanes.append(Lane(STREAM, f"{device} stream {stream}", device, on_path))
        for label, crossing in _crossing(rank, row).items() if gauge is not None else ():
            parts.append(_on_lane(whole, crossing, len(lanes), levels=True))
            lanes.append(Lane(LINK, f"{device} {label}", device, ""))
        parts.append(_idle(rank, row, len(lanes), len(rank.timeline.names)))
        lanes.append(Lane(IDLE, f"{device} idle", device, ""))
    spans = Spans.joined(parts) if parts else _empty()
    frames, names = _framed(book, names, len(rank.timeline.names))
    return RankDrawing(rank.timeline.identity.rank, lanes, spans, tuple(names), left_out, frames)


def _framed(book: StackBook | None, names: list[str], first_extra: int) -> tuple[NDArray[np.int32], list[str]]:
    """Return the frames of the stacks that were found, and the names with those that only stacks have."""
    if book is None:
        return np.empty((0, 0), np.int32), names
    frames, extra = book.stacks()
    moved = np.where(frames >= first_extra, frames + (len(names) - first_extra), frames).astype(np.int32)
    return moved, [*names, *extra]


def coarsen(spans: Spans, finest_ns: int) -> Spans:
    """Draw neighbours together that are shorter than the finest length and no further apart.

    Args:
        spans: Ordered by lane, depth and start.
        finest_ns: Nothing shorter is drawn alone.

    Returns:
        As many spans or fewer, which cover what the others covered, and the short gaps between those drawn together.
    """
    if len(spans) == 0 or finest_ns <= 1:
        return spans
    short = spans.end_ns - spans.start_ns < finest_ns
    same_row = (spans.lane[1:] == spans.lane[:-1]) & (spans.depth[1:] == spans.depth[:-1])
    close = spans.start_ns[1:] - spans.end_ns[:-1] < finest_ns
    goes_on = np.concatenate([[False], same_row & close & short[1:] & short[:-1]])
    # A long row of short spans stays several, each about as long as can be seen.
    slot = spans.start_ns // (8 * finest_ns)
    goes_on[1:] &= slot[1:] == slot[:-1]
    first = np.flatnonzero(~goes_on)
    lengths = spans.end_ns - spans.start_ns
    longest = np.maximum.reduceat(lengths, first)
    group = np.cumsum(~goes_on) - 1
    is_longest = np.flatnonzero(lengths == longest[group])
    chosen = is_longest[np.unique(group[is_longest], return_index=True)[1]]
    return Spans(
        lane=spans.lane[first],
        depth=spans.depth[first],
        start_ns=spans.start_ns[first],
        end_ns=np.maximum.reduceat(spans.end_ns, first),
        object=spans.object[chosen],
        name=spans.name[chosen],
        count=np.add.reduceat(spans.count, first).astype(np.int32),
        size_bytes=np.where(np.diff(np.append(first, len(spans))) == 1, spans.size_bytes[chosen], -1),
        share=spans.share[chosen],
        use=spans.use[chosen],
        stack=spans.stack[chosen],
    )


def _thread_name(track: Track) -> str:
    """Return what the graph calls a thread, so that the critical path finds its row."""
    return track.name or f"thread {track.tid}"


def _tracks(rank: Laid, threads_max: int) -> tuple[list[int], int]:
    """Return the threads to draw, and how many are left out."""
    host = rank.timeline.host
    if len(host) == 0:
        return [], 0
    total = np.bincount(host.track, weights=host.end_ns - host.start_ns, minlength=len(rank.timeline.tracks))
    order = sorted(np.flatnonzero(total > 0).tolist(), key=lambda track: -total[track])
    main = rank.timeline.main_track
    ordered = [main, *(track for track in order if track != main)] if main >= 0 else order
    return ordered[:threads_max], max(len(ordered) - threads_max, 0)


def _thread(rank: Laid, track: int, lane: int, depth_max: int, book: StackBook | None, *, has_device: bool) -> Spans:
    """Return a thread's operators, calls and activities; frames of Python are many, and told by what they call."""
    host, cover = rank.timeline.host, rank.threads.cover(track)
    rows = np.arange(*rank.threads.rows_of(track).indices(len(host)))
    kept = np.flatnonzero((host.kind[rows] != Kind.PYTHON) | (rank.book.object[host.name[rows]] >= 0))
    rows = rows[kept]
    start_ns, end_ns = host.start_ns[rows], host.end_ns[rows]
    depth = nest(start_ns, end_ns).depth
    charged = cover.row_object[kept].astype(np.int8)
    plain = OBJECT_CODE["host"] if has_device else OBJECT_CODE["compute"]
    is_operator = host.kind[rows] == Kind.OPERATOR
    charged = np.where(charged >= 0, charged, np.where(is_operator, plain, OBJECT_CODE["host"])).astype(np.int8)
    if not has_device:  # then the spans of a communication library are the collectives themselves
        is_call = (host.kind[rows] == Kind.PYTHON) | (host.kind[rows] == Kind.RUNTIME)
        charged[rank.book.is_backend[host.name[rows]] & ~is_call] = OBJECT_CODE["collective"]
    shown = depth < depth_max
    found = _spans(
        lane, rows[shown], (start_ns[shown], end_ns[shown]), charged[shown], host.name[rows[shown]], depth[shown]
    )
    return found if book is None else replace(found, stack=book.of_rows(track, rows[shown]))


def _device_spans(row: DeviceRow, known: Use | None, first_text: int, book: StackBook | None) -> Spans:
    """Return all spans of a device, on no lane yet."""
    table = row.spans
    n = len(table)
    found = _spans(0, np.arange(n), (table.start_ns, table.end_ns), row.object, table.name, np.zeros(n, np.int64))
    found = replace(found, size_bytes=table.size_bytes)
    if known is not None:
        says = np.where(known.says >= 0, known.says + first_text, -1).astype(np.int32)
        found = replace(found, share=known.share, use=says)
    return found if book is None else replace(found, stack=book.of_launches(table.launch))


def _on_lane(whole: Spans, mine: NDArray[np.bool_], lane: int, *, levels: bool) -> Spans:
    """Return some spans of a device as a lane, where asked on as many levels as run at once."""
    found = whole.take(mine)
    found = replace(found, lane=np.full(len(found), lane, np.int32))
    if not levels:
        return found
    depth = np.minimum(apart_lanes(found.start_ns, found.end_ns), _LEVELS_MAX - 1)
    return replace(found, depth=depth.astype(np.int8))


def _crossing(rank: Laid, row: DeviceRow) -> dict[str, NDArray[np.bool_]]:
    """Return which spans cross a link between devices, and which the bus to the host; those that there are."""
    copies = np.flatnonzero(row.rung == RUNG_COPY)
    directions = {code: rank.book.copy(code).direction for code in np.unique(row.spans.name[copies]).tolist()}
    to_host = np.zeros(len(row.spans), np.bool_)
    to_peer = row.rung == RUNG_COLLECTIVE
    for code, direction in directions.items():
        of_name = copies[row.spans.name[copies] == code]
        to_host[of_name] = direction in ("htod", "dtoh")
        to_peer[of_name] = direction == "ptop"
    found = {"links": to_peer, "host bus": to_host}
    return {label: crossing for label, crossing in found.items() if crossing.any()}


def _idle(rank: Laid, row: DeviceRow, lane: int, first_reason: int) -> Spans:
    """Return why nothing ran, as the ledger has it."""
    pieces = row_pieces(rank, row)
    idle = np.flatnonzero(pieces.reason >= 0)
    order = idle[np.argsort(pieces.start_ns[idle], kind="stable")]
    reason = pieces.reason[order].astype(np.int64)
    return _spans(
        lane,
        order,
        (pieces.start_ns[order], pieces.end_ns[order]),
        _CHARGED[reason],
        (first_reason + reason).astype(np.int32),
        np.zeros(len(order), np.int64),
    )


def _spans(
    lane: int,
    rows: Ints,
    times: tuple[Ints, Ints],
    charged: NDArray[np.int8],
    name: NDArray[np.int32],
    depth: Ints,
) -> Spans:
    n = len(rows)
    return Spans(
        lane=np.full(n, lane, np.int32),
        depth=depth.astype(np.int8),
        start_ns=times[0],
        end_ns=times[1],
        object=charged.astype(np.int8),
        name=name.astype(np.int32),
        count=np.ones(n, np.int32),
        size_bytes=np.full(n, -1, np.int64),
        share=np.full(n, np.nan, np.float32),
        use=np.full(n, -1, np.int32),
        stack=np.full(n, -1, np.int32),
    )


def _empty() -> Spans:
    none = np.empty(0, np.int64)
    return _spans(0, none, (none, none), none.astype(np.int8), none.astype(np.int32), none)
