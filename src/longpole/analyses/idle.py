"""Why the device ran nothing: every gap cut into pieces with one reason each (DESIGN 3.4).

host     ├─ sync ─┤┌ python ┐├─ aten::mul ─┤
                                ├ launch L ┤
device   ─ … ─┤                                  ├─ K ─
gap           │        host part │ device part   │
                                 │call │ latency │
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.analyses.launches import launching_calls
from longpole.analyses.name_book import CALL_CODE, OBJECT_CODE, STAGE_CODE
from longpole.analyses.pieces import RUNG_IDLE, Pieces, join_pieces
from longpole.analyses.rungs import empty_pieces
from longpole.analyses.threads import NO_RECORD, REASON_CODE
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.intervals import expand
from longpole.vocabulary.objects import IDLE_REASONS, charged_to

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.analyses.rungs import DeviceRow
    from longpole.analyses.threads import ThreadCover, Threads
    from longpole.settings import Settings
    from longpole.timeline.intervals import Intervals
    from longpole.timeline.timeline import Timeline

    Ints: TypeAlias = NDArray[np.int64]

_CHARGED: Final = np.array([OBJECT_CODE[charged_to(reason)] for reason in IDLE_REASONS], np.int8)
_NEVER_NS: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Gaps:
    """Maximal intervals in which nothing of a device runs.

    Attributes:
        start_ns, end_ns: `[G]` int64 ns.
        closer: `[G]` int64: device row of the span K that ends the gap, -1 for none.
        launch: `[G]` int64: host row of its launching call L, -1 for none.
        thread: `[G]` int64: track whose doings explain the host part.
    """

    start_ns: Ints
    end_ns: Ints
    closer: Ints
    launch: Ints
    thread: Ints


def find_gaps(threads: Threads, row: DeviceRow, idle: Intervals) -> Gaps:
    """Find what ends each gap and which call launched that."""
    timeline = threads.timeline
    launch = launching_calls(timeline, threads.book, row)
    closer = _closers(timeline, row, launch, idle.end_ns)
    found = closer >= 0
    call = np.where(found, launch[np.maximum(closer, 0)], NONE_ID) if len(launch) else np.full(len(closer), NONE_ID)
    thread = (
        np.where(call >= 0, timeline.host.track[np.maximum(call, 0)], timeline.main_track)
        if len(timeline.host)
        else np.full(len(call), -1)
    )
    return Gaps(
        idle.start_ns,
        idle.end_ns,
        np.where(found, row.rows[np.maximum(closer, 0)], -1) if len(row.rows) else closer,
        call.astype(np.int64),
        thread.astype(np.int64),
    )


def _closers(timeline: Timeline, row: DeviceRow, launch: Ints, end_ns: Ints) -> Ints:
    """Return, for each gap, the place of the span that starts where it ends; of several the first launched."""
    start_ns = row.spans.start_ns
    if len(start_ns) == 0:
        return np.full(len(end_ns), -1, np.int64)
    launched_ns = np.full(len(launch), _NEVER_NS, np.int64)
    launched_ns[launch >= 0] = timeline.host.start_ns[launch[launch >= 0]]
    # Empty spans cannot end a gap: nothing of them runs.
    runs = row.spans.end_ns > start_ns
    places = np.flatnonzero(runs)
    order = places[np.lexsort((launched_ns[places], start_ns[places]))]
    if len(order) == 0:
        return np.full(len(end_ns), -1, np.int64)
    place = np.minimum(np.searchsorted(start_ns[order], end_ns, side="left"), len(order) - 1)
    return np.where(start_ns[order[place]] == end_ns, order[place], -1)


def idle_pieces(threads: Threads, row: DeviceRow, gaps: Gaps, settings: Settings) -> Pieces:
    """Cut every gap of a device into pieces with one reason each."""
    timeline = threads.timeline
    host = timeline.host
    launched = gaps.launch >= 0
    at = np.maximum(gaps.launch, 0)
    call_start_ns = np.where(launched, host.start_ns[at], gaps.end_ns) if len(host) else gaps.end_ns
    call_end_ns = np.where(launched, host.end_ns[at], gaps.end_ns) if len(host) else gaps.end_ns
    # A program that times its own device work has no launching calls: what it did meanwhile is all there is to say.
    unlinked = (gaps.closer >= 0) & ~launched & (timeline.told is None)
    host_end_ns = np.where(unlinked, gaps.start_ns, np.clip(call_start_ns, gaps.start_ns, gaps.end_ns))
    parts = [
        _flat(gaps, gaps.start_ns, gaps.end_ns, unlinked, "unlinked"),
        *_device_parts(
            gaps,
            host_end_ns,
            call_end_ns,
            launched,
            (_gap_limit_ns(gaps, call_end_ns, launched, settings), settings.launch_latency_max_ns),
        ),
    ]
    for track in np.unique(gaps.thread).tolist():
        mine = np.flatnonzero((gaps.thread == track) & (host_end_ns > gaps.start_ns))
        parts.append(host_pieces(threads, track, gaps, mine, host_end_ns[mine]))
    pieces = join_pieces(parts)
    pieces = _cut_after_blocking(threads, row, gaps, pieces, settings)
    return _with_device_stages(timeline, threads, pieces, gaps)


def host_pieces(threads: Threads, track: int, gaps: Gaps, mine: NDArray[np.intp], end_ns: Ints) -> Pieces:
    """Cut the host part of some gaps by what a thread did; where it has no record, by what its parent did."""
    if len(mine) == 0:
        return empty_pieces()
    if track < 0:
        return _flat(gaps, gaps.start_ns, _spread(gaps, mine, end_ns), _mask(gaps, mine), "host.python")
    pieces = _covered(threads.cover(track), gaps.start_ns[mine], end_ns, mine)
    silent = pieces.reason == NO_RECORD
    parent = threads.timeline.main_track
    if parent == track or parent < 0 or not silent.any():
        return _named(pieces)
    quiet = pieces.take(silent)
    stand_in = _covered(threads.cover(parent), quiet.start_ns, quiet.end_ns, quiet.gap)
    return join_pieces([_named(pieces.take(~silent)), _named(stand_in)])


def _covered(cover: ThreadCover, start_ns: Ints, end_ns: Ints, gap: NDArray[np.integer]) -> Pieces:
    """Cut spans by a thread's segments."""
    first = np.searchsorted(cover.start_ns, start_ns, side="right") - 1
    last = np.searchsorted(cover.start_ns, end_ns, side="left")
    span, piece = expand(first, last)
    following_ns = np.append(cover.start_ns[1:], _NEVER_NS)
    reason = cover.reason[piece]
    return Pieces(
        start_ns=np.maximum(start_ns[span], cover.start_ns[piece]),
        end_ns=np.minimum(end_ns[span], following_ns[piece]),
        rung=np.full(len(span), RUNG_IDLE, np.int8),
        object=np.zeros(len(span), np.int8),
        reason=reason,
        stage=cover.stage[piece],
        row=cover.decider[piece],
        gap=gap[span].astype(np.int64),
    )


def _named(pieces: Pieces) -> Pieces:
    """Give pieces without a record the reason `host.python`, and all the object that their reason is charged to."""
    reason = np.where(pieces.reason == NO_RECORD, REASON_CODE["host.python"], pieces.reason).astype(np.int8)
    return _replaced(pieces, reason)


def _replaced(pieces: Pieces, reason: NDArray[np.int8]) -> Pieces:
    return Pieces(
        pieces.start_ns, pieces.end_ns, pieces.rung, _CHARGED[reason], reason, pieces.stage, pieces.row, pieces.gap
    )


def _device_parts(
    gaps: Gaps, from_ns: Ints, call_end_ns: Ints, launched: NDArray[np.bool_], limits_ns: tuple[int, int]
) -> list[Pieces]:
    """Cut the device part: the launching call, then latency; for work queued before, the usual gap.

    Latency and gap have a limit; what is longer has a reason that the record does not show.
    """
    gap_limit_ns, latency_limit_ns = limits_ns
    call_ns = np.clip(call_end_ns, from_ns, gaps.end_ns)
    queued = launched & (call_end_ns <= gaps.start_ns)
    usual_ns = np.minimum(np.where(queued, from_ns + gap_limit_ns, call_ns + latency_limit_ns), gaps.end_ns)
    return [
        _flat(gaps, from_ns, call_ns, launched, "launch_call"),
        _flat(gaps, call_ns, usual_ns, launched & ~queued, "launch_latency"),
        _flat(gaps, from_ns, usual_ns, queued, "kernel_gap"),
        _flat(gaps, usual_ns, gaps.end_ns, launched, "device.unexplained"),
    ]


def _gap_limit_ns(gaps: Gaps, call_end_ns: Ints, launched: NDArray[np.bool_], settings: Settings) -> int:
    """Return the longest gap that counts as back-to-back: the device's own 99th percentile (nearest rank), bounded."""
    queued = launched & (call_end_ns <= gaps.start_ns)
    lengths_ns = np.sort((gaps.end_ns - gaps.start_ns)[queued])
    if len(lengths_ns) < max(settings.p95_min_count, 1):
        return settings.kernel_gap_default_ns
    own_ns = int(lengths_ns[-(-99 * len(lengths_ns) // 100) - 1])
    return min(own_ns, settings.kernel_gap_max_ns)


def _flat(gaps: Gaps, start_ns: Ints, end_ns: Ints, mask: NDArray[np.bool_], reason: str) -> Pieces:
    """Make one piece of each masked gap, for one reason."""
    gap = np.flatnonzero(mask & (end_ns > start_ns))
    code = np.full(len(gap), REASON_CODE[reason], np.int8)
    return Pieces(
        start_ns=start_ns[gap],
        end_ns=end_ns[gap],
        rung=np.full(len(gap), RUNG_IDLE, np.int8),
        object=_CHARGED[code],
        reason=code,
        stage=np.full(len(gap), STAGE_CODE["other"], np.int8),
        row=gaps.launch[gap],
        gap=gap.astype(np.int64),
    )


def _mask(gaps: Gaps, mine: NDArray[np.intp]) -> NDArray[np.bool_]:
    mask = np.zeros(len(gaps.start_ns), np.bool_)
    mask[mine] = True
    return mask


def _spread(gaps: Gaps, mine: NDArray[np.intp], value_ns: Ints) -> Ints:
    spread = gaps.start_ns.copy()
    spread[mine] = value_ns
    return spread


def _cut_after_blocking(threads: Threads, row: DeviceRow, gaps: Gaps, pieces: Pieces, settings: Settings) -> Pieces:
    """Charge the lead that the host rebuilds after a blocking call to that call (DESIGN 3.4, lost lead).

    host     ├──── cudaStreamSynchronize ────┤┌ python ┐├ aten::add ┤├ launch ┤
    device   ─────────────────────────────┤                                     ├─ K
    reasons                               │sync│ sync   │ sync       │ call …   │
    """
    if len(pieces) == 0:
        return pieces
    waits = _blocking_rows(threads.timeline, threads.book, row, settings)
    own_ns = np.full(len(gaps.start_ns), _NEVER_NS, np.int64)
    parent_ns = own_ns.copy()
    for track in np.unique(gaps.thread).tolist():
        mine = np.flatnonzero(gaps.thread == track)
        own_ns[mine] = _returned(threads, waits, track, gaps.start_ns[mine], settings)
        parent_ns[mine] = _returned(threads, waits, threads.timeline.main_track, gaps.start_ns[mine], settings)
    returns_ns = np.concatenate([own_ns, parent_ns])
    if (returns_ns == _NEVER_NS).all():
        return pieces
    cut = pieces.cut_at(returns_ns[returns_ns < _NEVER_NS])
    lead = np.isin(cut.reason, (REASON_CODE["host.python"], REASON_CODE["host.dispatch"]))
    after_ns = np.where(_by_parent(threads, gaps, cut), parent_ns[cut.gap], own_ns[cut.gap])
    lead &= cut.start_ns >= after_ns
    return _replaced(cut, np.where(lead, REASON_CODE["host.sync"], cut.reason).astype(np.int8))


def _returned(threads: Threads, waits: Ints, track: int, dry_ns: Ints, settings: Settings) -> Ints:
    """Return when a thread's blocking call returned in which, or shortly after which, the device ran dry."""
    host, rows = threads.timeline.host, threads.rows_of(track)
    calls = waits[(waits >= rows.start) & (waits < rows.stop)]
    if len(calls) == 0:
        return np.full(len(dry_ns), _NEVER_NS, np.int64)
    reach_ns = np.maximum.accumulate(host.end_ns[calls])  # of calls inside one another the outer one returns last
    place = np.searchsorted(host.start_ns[calls], dry_ns, side="right") - 1
    returned_ns = reach_ns[np.maximum(place, 0)]
    ran_dry = (place >= 0) & (dry_ns <= returned_ns + settings.lost_lead_after_ns)
    return np.where(ran_dry, returned_ns, _NEVER_NS)


def _by_parent(threads: Threads, gaps: Gaps, pieces: Pieces) -> NDArray[np.bool_]:
    """Tell which pieces lie where the launching thread has no record, so that its parent's doings explain them."""
    silent = np.zeros(len(pieces), np.bool_)
    thread = gaps.thread[pieces.gap]
    for track in np.unique(thread[thread >= 0]).tolist():
        mine = np.flatnonzero(thread == track)
        cover = threads.cover(track)
        piece = np.searchsorted(cover.start_ns, pieces.start_ns[mine], side="right") - 1
        silent[mine] = cover.reason[piece] == NO_RECORD
    return silent


def _blocking_rows(timeline: Timeline, book: NameBook, row: DeviceRow, settings: Settings) -> Ints:
    """Return the host rows of calls that wait for the device: synchronising ones, and copies that return late."""
    host = timeline.host
    waits = np.flatnonzero((host.kind == Kind.RUNTIME) & (book.call[host.name] == CALL_CODE["sync"]))
    copies = np.flatnonzero((row.spans.kind == Kind.COPY) & (row.spans.launch != NONE_ID))
    launch = row.spans.launch[copies]
    late = host.end_ns[launch] >= row.spans.end_ns[copies]
    late &= host.end_ns[launch] - host.start_ns[launch] > settings.blocking_copy_min_ns
    return np.unique(np.concatenate([waits.astype(np.int64), launch[late]]))


def _with_device_stages(timeline: Timeline, threads: Threads, pieces: Pieces, gaps: Gaps) -> Pieces:
    """Give the device parts the stage of the call that launched what ended the gap."""
    stage = pieces.stage.copy()
    device_part = np.isin(pieces.reason, [REASON_CODE[r] for r in _DEVICE_REASONS])
    device_part &= gaps.launch[np.maximum(pieces.gap, 0)] >= 0
    rows = gaps.launch[pieces.gap[device_part]]
    where = np.flatnonzero(device_part)
    track = timeline.host.track[rows]
    for code in np.unique(track).tolist():
        mine = track == code
        cover = threads.cover(code)
        stage[where[mine]] = cover.row_stage[rows[mine] - cover.first_row]
    return Pieces(
        pieces.start_ns, pieces.end_ns, pieces.rung, pieces.object, pieces.reason, stage, pieces.row, pieces.gap
    )


_DEVICE_REASONS: Final = ("launch_call", "launch_latency", "kernel_gap", "device.unexplained")
