"""Pieces of a device row tile its record, and still do so however they are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.build import cut
from tests.strategies import SMALL_SETTINGS, device_scripts

if TYPE_CHECKING:
    from tests.build import Script


@given(device_scripts(), st.lists(st.integers(-5, 90), max_size=12))
def test_pieces_cut_at_any_times_tile_the_record(script: Script, times: list[int]) -> None:
    """None reaches across a cut, and each piece keeps what the instant was charged to."""
    device = min(span.device for span in script.device)
    whole = cut(script, SMALL_SETTINGS, device=device)
    recorded = whole.timeline.recorded()
    low, high = int(recorded.start_ns[0]), int(recorded.end_ns[0])

    pieces = whole.pieces.cut_at(np.array(times, np.int64))

    pieces.check_tiling(low, high)
    starts, ends = pieces.start_ns.tolist(), pieces.end_ns.tolist()
    assert not any(start < time < end for start, end in zip(starts, ends, strict=True) for time in times)
    for start, end, reason, charged in zip(starts, ends, pieces.reason.tolist(), pieces.object.tolist(), strict=True):
        place = int(np.searchsorted(whole.pieces.start_ns, start, side="right")) - 1
        assert end <= whole.pieces.end_ns[place]
        assert (reason, charged) == (whole.pieces.reason[place], whole.pieces.object[place])


@given(device_scripts())
def test_gaps_are_what_lies_between_the_busy_pieces(script: Script) -> None:
    """Idle pieces of one gap are contiguous and fill it."""
    found = cut(script, SMALL_SETTINGS, device=min(span.device for span in script.device))

    for number, (start, end) in enumerate(zip(found.gaps.start_ns, found.gaps.end_ns, strict=True)):
        mine = found.pieces.take(found.pieces.gap == number)
        assert mine.start_ns[0] == start
        assert mine.end_ns[-1] == end
        assert (mine.start_ns[1:] == mine.end_ns[:-1]).all()
