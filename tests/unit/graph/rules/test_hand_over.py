"""A thread that is silent while another one works waits for it.

main        ├─ forward ─┤ ······ silent ······ ├─ optimizer
backward                  ├── evaluate … ──┤
"""

from __future__ import annotations

import pytest

from longpole.graph.kinds import EdgeKind
from tests.build import LOADER, Script
from tests.run_graphs import edge_lines, graph_of

K = EdgeKind


def _job(begin: float = 110, end: float = 290, *, resume: float = 300, note: str = "") -> Script:
    script = Script()
    script.step(0, 0, 500)
    script.op("aten::linear", 0, 100)
    script.op("aten::mul", resume, resume + 50)
    script.backward("autograd::engine::evaluate_function: MulBackward0", begin, end)
    if note:
        script.span(note, 101, resume - 1)
    return script


def _handed(script: Script) -> list[tuple[float, float, float]]:
    return [(src, dst, length) for src, dst, _, length in edge_lines(graph_of(script), K.HAND_OVER)]


def test_the_last_record_of_the_other_thread_hands_over() -> None:
    script = _job()

    assert (290, 300, 10) in _handed(script)
    assert (100, 300, "SILENT", 0) in edge_lines(graph_of(script), K.SILENT)


def test_it_works_in_both_directions() -> None:
    """Backward's thread has a record early on, is silent while forward works, and goes on after it."""
    script = _job()
    script.backward("autograd::engine::evaluate_function: AddBackward0", 0, 5)

    assert (100, 110, 10) in _handed(script)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (_job(110, 195), "less than half of the silence is covered"),
        (_job(110, 290, note=LOADER), "the loader explains the silence"),
        (_job(110, 400), "the other thread goes on"),
        (_job(101, 139, resume=140), "too short a silence"),
    ],
)
def test_other_silences_are_kept_as_they_are(script: Script, why: str) -> None:
    del why

    assert not [line for line in _handed(script) if line[1] in (140, 300)]


def test_without_a_record_of_the_other_thread_there_is_no_hand_over() -> None:
    script = Script()
    script.step(0, 0, 500)
    script.op("aten::linear", 0, 100)
    script.op("aten::mul", 300, 350)
    script.span("my_range", 110, 290, thread="other")

    assert _handed(script) == []


def test_a_units_boundary_ends_a_silence() -> None:
    """Main is silent from 100 to 700; the unit ends at 400. Only the part in which the other worked is a wait."""
    script = Script()
    script.step(0, 0, 400)
    script.step(1, 400, 900)
    script.op("aten::linear", 0, 100)
    script.op("aten::mul", 700, 750)
    script.backward("autograd::engine::evaluate_function: MulBackward0", 110, 390)

    assert (390, 400, 10) in _handed(script)
    assert not [line for line in _handed(script) if line[1] == 700]
