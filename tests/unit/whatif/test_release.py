"""Calls that waited for the device no longer hold the host up; what they kept in order stays in order.

host      ├ a ┤├── synchronize: waits for a ──┤├ b ┤├ c ┤
stream 7    ═══════════ a ═══════════╗          ═ b ═
stream 9                                          ═ c ═
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.graph.kinds import EdgeKind
from longpole.whatif.release import release
from longpole.whatif.selection import BLOCKING
from tests.build import Script
from tests.run_graphs import Run, replayed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.whatif.draft import Draft

STEPS = 4


def _job(*, blocking_copy: bool = False, early: bool = False) -> Run:
    """Draw steps of 500 µs: a from 10 to 210 and, behind the wait for it, b on its stream and c on another one.

    Kernels start 10 µs after their launches, calls return 8 after what they wait for: replayed, nothing moves.
    """
    script = Script(base_ns=0)
    for number in range(STEPS):
        at = 500.0 * number
        if blocking_copy:
            script.copy("htod", at + 10, at + 210, script.call("cudaMemcpyAsync", at, at + 218))
        else:
            script.kernel(at + 10, at + 210, script.launch(at, at + 4), name="a")
            if early:
                script.kernel(at + 18, at + 190, script.launch(at + 8, at + 10), name="early", stream=9)
            script.sync(at + 12, at + 218)
        script.kernel(at + 240, at + 290, script.launch(at + 230, at + 234), name="b")
        script.kernel(at + 256, at + 306, script.launch(at + 246, at + 250), name="c", stream=9)
        script.sync(at + 270, at + 314, name="cudaDeviceSynchronize")
        script.step(number, at, at + 500)
    return replayed(script)


def _first_waits(draft: Draft) -> NDArray[np.intp]:
    """Return the first wait of each step: the one behind a."""
    waits = draft.edges_of(0, *BLOCKING)
    ends = draft.graph.time_ns[draft.graph.edges.src[waits]]
    return waits[np.isin(ends % 500_000, [210_000])]


def _times(run: Run, *, released: bool = True) -> dict[str, float]:
    """Return when kernels of the first step begin in the replay, in µs."""
    draft = run.draft()
    if released:
        waits = _first_waits(draft)
        assert len(waits) == STEPS
        release(draft, 0, waits)
    time_ns = draft.finish().replay()
    rank = run.graph.ranks[0]
    first = time_ns[run.graph.base[0]]
    return {
        rank.names[rank.spans.name[row]]: (time_ns[rank.spans.point[row]] - first) / 1000
        for row in range(len(rank.spans.point))[::-1]
    }


def test_on_the_record_everything_waits() -> None:
    times = _times(_job(), released=False)

    assert (times["b"], times["c"]) == pytest.approx((240, 256), abs=1)


def test_the_next_span_on_each_stream_waits_in_the_host_s_place() -> None:
    """The host is through by 60 µs; b and c still begin when a has ended, and not before."""
    times = _times(_job())

    assert (times["b"], times["c"]) == pytest.approx((211, 210), abs=1)


def test_what_began_before_the_end_is_not_made_to_wait() -> None:
    times = _times(_job(early=True))

    assert times["early"] == pytest.approx(18, abs=1)
    assert times["c"] == pytest.approx(210, abs=1)


def test_a_call_that_waits_for_its_own_copy_only_keeps_its_stream_s_order() -> None:
    """b lies behind the copy on stream 7; c on stream 9 never needed it, and is launched at once."""
    times = _times(_job(blocking_copy=True))

    assert times["b"] == pytest.approx(211, abs=1)
    assert times["c"] < 100


def test_nothing_to_release_changes_nothing() -> None:
    run = _job()
    draft = run.draft()

    release(draft, 0, np.empty(0, np.intp))

    assert draft.added == []
    assert not draft.dropped.any()


def test_the_order_that_is_kept_is_recorded() -> None:
    draft = _job().draft()
    release(draft, 0, _first_waits(draft))

    assert {EdgeKind(int(kind)) for edges in draft.added for kind in edges.kind} == {EdgeKind.EVENT_RECORDED}
    assert sum(len(edges) for edges in draft.added) == 2 * STEPS
