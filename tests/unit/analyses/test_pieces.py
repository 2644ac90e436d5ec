"""Pieces must tile the record of their row; everything else is summed from them."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.analyses.rungs import empty_pieces
from longpole.errors import InvariantError
from tests.build import Script, cut


def _whole() -> Script:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(20, 60, script.launch(5, 8))
    return script


def test_pieces_of_a_record_tile_it() -> None:
    cut(_whole()).pieces.check_tiling(0, 100_000)


@pytest.mark.parametrize(("low_ns", "high_ns"), [(0, 99_999), (1, 100_000), (0, 100_001)])
def test_pieces_that_do_not_fill_the_record_are_our_own_fault(low_ns: int, high_ns: int) -> None:
    with pytest.raises(InvariantError, match="do not tile"):
        cut(_whole()).pieces.check_tiling(low_ns, high_ns)


def test_a_hole_between_pieces_is_our_own_fault() -> None:
    pieces = cut(_whole()).pieces

    with pytest.raises(InvariantError, match="do not tile"):
        pieces.take(np.arange(len(pieces)) != 1).check_tiling(0, 100_000)


def test_no_pieces_tile_no_time() -> None:
    empty_pieces().check_tiling(7, 7)

    with pytest.raises(InvariantError, match="do not tile"):
        empty_pieces().check_tiling(7, 8)


def test_the_time_under_some_pieces_is_a_set() -> None:
    found = cut(_whole())

    busy = found.pieces.covering(found.pieces.reason < 0)

    assert (busy.start_ns.tolist(), busy.end_ns.tolist()) == ([20_000], [60_000])
