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


# ------------------------------------------------------------------------------------- threads that are driven


def _driven(*, pause: tuple[float, float] = (100, 300), other: str = "") -> Script:
    """Draw two steps in which main's forward drives a thread that runs backward and launches.

    main        ├ linear ┤ ·· frozen ·· ┊· waits ·├ optimizer ┤
    other                ├─ holds the lock ─┤                       (where it is drawn)
    backward    ············ silent ············ ├ evaluate ┤
    """
    script = Script()
    for step in range(2):
        at = 600.0 * step
        script.step(step, at, at + 600)
        script.op("aten::linear", at, at + pause[0])
        script.backward("autograd::engine::evaluate_function: MulBackward0", at + pause[1] + 5, at + pause[1] + 95)
        launch = script.launch(at + pause[1] + 20, at + pause[1] + 24, thread="autograd")
        script.kernel(at + pause[1] + 30, at + pause[1] + 80, launch)
        script.op("aten::_fused_adamw_", at + pause[1] + 100, at + pause[1] + 150)
        if other:
            script.op(other, at + pause[0] + 1, at + pause[1] - 1, thread="pin_memory")
    return script


def test_a_thread_that_runs_backward_waits_for_the_main_one_whatever_that_did() -> None:
    """Nothing is recorded between 100 and 305, on any thread: backward was asked at 305, and main asked it."""
    handed = _handed(_driven())

    assert (305, 305, 0) in handed
    assert (905, 905, 0) in handed


def test_the_main_thread_s_own_time_lasts_until_the_driven_thread_resumes() -> None:
    """It waits from 305 to 400 for what ends at 395; all before, what froze it included, is its own."""
    graph = graph_of(_driven())

    assert (395, 400, 5) in _handed(_driven())
    assert (305, 400, "SILENT", 0) in edge_lines(graph, K.SILENT)
    assert (0, 305, "SECTION", 305) in edge_lines(graph, K.SECTION)


@pytest.mark.parametrize("other", ["aten::pin_memory", "aten::copy_"])
def test_a_third_thread_that_freezes_the_main_one_hides_no_wait_for_backward(other: str) -> None:
    """It is busy for 198 of the 300 µs in which main records nothing; backward is what main resumes behind."""
    script = _driven(other=other)

    assert (395, 400, 5) in _handed(script)
    assert (305, 305, 0) in _handed(script)
    assert not [line for line in _handed(script) if line[0] == 299]


def test_a_thread_without_backward_is_not_driven() -> None:
    """It launches all the same: nothing says who told it to."""
    script = _driven()
    for row in script.host:
        row.of_autograd = False
        row.name = row.name.replace("autograd::engine::evaluate_function: MulBackward0", "aten::mul")

    assert not [line for line in _handed(script) if line[1] in (305, 905)]
