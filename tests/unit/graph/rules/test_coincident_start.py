"""Guesses from times alone, drawn small.

stream 13   ├───── A ─────┤
stream 7        launch K    ├─ K ─┤
"""

from __future__ import annotations

import numpy as np
import pytest

from longpole.graph.kinds import EdgeKind
from longpole.graph.rules import coincident_start
from tests.build import Script
from tests.grounds import lay, lines


def _guesses(script: Script, *taken: str) -> list[tuple[str, str]]:
    ground = lay(script.timeline())
    names = np.array(ground.timeline.names)[ground.timeline.device.name]
    edges = coincident_start.find(ground, np.isin(names, taken))
    assert set(edges.kind.tolist()) <= {EdgeKind.COINCIDENT}
    return lines(ground, edges)


def _draw(start_of_k: float, *, launched: float = 20, stream: int = 7) -> Script:
    script = Script()
    script.step(0, 0, 300)
    script.kernel(20, 100, script.launch(10, 12), name="A", stream=13)
    script.kernel(start_of_k, start_of_k + 20, script.launch(launched, launched + 2), name="K", stream=stream)
    return script


@pytest.mark.parametrize("start_of_k", [94, 100, 110])
def test_a_late_span_starts_as_another_ends(start_of_k: float) -> None:
    assert _guesses(_draw(start_of_k)) == [("A", "K")]


@pytest.mark.parametrize("start_of_k", [93.9, 110.1, 200])
def test_outside_the_window_nothing_is_guessed(start_of_k: float) -> None:
    assert _guesses(_draw(start_of_k)) == []


def test_a_span_that_its_launch_explains_is_left_alone() -> None:
    assert _guesses(_draw(103, launched=95)) == []


def test_a_span_that_its_stream_explains_is_left_alone() -> None:
    script = _draw(103)
    script.kernel(15, 98, script.launch(5, 7), name="own", stream=7)

    assert _guesses(script) == []


def test_the_own_stream_is_no_other_stream() -> None:
    assert _guesses(_draw(121, stream=13)) == []


def test_a_span_that_has_a_wait_is_left_alone() -> None:
    assert _guesses(_draw(103), "K") == []


def test_the_nearest_end_is_taken() -> None:
    script = _draw(103)
    script.kernel(30, 102, script.launch(13, 14), name="nearer", stream=14)

    assert _guesses(script) == [("nearer", "K")]


def test_what_was_launched_before_goes_before_what_is_nearer() -> None:
    script = _draw(103)
    script.kernel(30, 102, script.launch(23, 24), name="nearer, launched later", stream=14)

    assert _guesses(script) == [("A", "K")]


def test_two_spans_never_wait_for_each_other() -> None:
    """Both are late, and each starts within 6 µs before the other's end."""
    script = Script()
    script.step(0, 0, 300)
    script.kernel(100, 103, script.launch(10, 12), name="P", stream=13)
    script.kernel(101, 104, script.launch(13, 15), name="Q", stream=14)

    assert _guesses(script) == [("P", "Q")]


def test_streams_of_another_device_are_not_looked_at() -> None:
    script = Script()
    script.step(0, 0, 300)
    script.kernel(20, 100, script.launch(10, 12), name="A", stream=13, device=1)
    script.kernel(103, 120, script.launch(20, 22), name="K", stream=7)

    assert _guesses(script) == []
