"""What a thread does one after the other, and what is not kept of it.

thread   ●─ section ─●─ call ─●─ section ─● ····· silent ····· ●
"""

from __future__ import annotations

from longpole.graph.kinds import EdgeKind
from tests.build import Script
from tests.run_graphs import edge_lines, graph_of

K = EdgeKind
ALONG = (K.SECTION, K.FLOOR, K.SILENT, K.MEMBER)


def test_sections_and_calls_alternate_and_are_kept() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(12, 20, script.launch(5, 8))
    script.kernel(25, 30, script.launch(15, 18))

    assert edge_lines(graph_of(script), *ALONG) == [
        (0, 5, "SECTION", 5),
        (5, 8, "SECTION", 3),
        (8, 15, "SECTION", 7),
        (15, 18, "SECTION", 3),
        (18, 100, "SECTION", 82),
    ]


def test_of_a_call_that_waited_only_its_own_floor_counts() -> None:
    """The wait for the kernel takes 300 µs; the call itself 8, the default."""
    script = Script()
    script.step(0, 0, 400)
    script.kernel(12, 340, script.launch(5, 8))
    script.sync(40, 345)

    assert (40, 345, "FLOOR", 8) in edge_lines(graph_of(script), *ALONG)


def test_the_floor_is_the_median_of_namesakes_that_did_not_wait() -> None:
    script = Script()
    script.step(0, 0, 1000)
    for at in range(5):
        script.sync(20 * at, 20 * at + 3)
    script.kernel(212, 540, script.launch(205, 208))
    script.sync(240, 545)

    assert (240, 545, "FLOOR", 3) in edge_lines(graph_of(script), K.FLOOR)


def test_of_other_names_nothing_is_learnt() -> None:
    script = Script()
    script.step(0, 0, 1000)
    for at in range(5):
        script.sync(20 * at, 20 * at + 3, name="cudaDeviceSynchronize")
    script.kernel(212, 540, script.launch(205, 208))
    script.sync(240, 545, name="cudaEventSynchronize")

    assert (240, 545, "FLOOR", 8) in edge_lines(graph_of(script), K.FLOOR)


def test_a_floor_is_never_longer_than_the_call() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(12, 43, script.launch(5, 8))
    script.sync(40, 45)

    assert (40, 45, "FLOOR", 5) in edge_lines(graph_of(script), K.FLOOR)


def test_calls_inside_a_call_that_waited_take_nothing_either() -> None:
    script = Script()
    script.step(0, 0, 400)
    script.kernel(12, 340, script.launch(5, 8))
    script.sync(40, 346, name="cudaDeviceSynchronize")
    script.sync(45, 345, name="cuCtxSynchronize")

    assert edge_lines(graph_of(script), K.FLOOR) == [
        (40, 45, "FLOOR", 8),
        (45, 345, "FLOOR", 0),
        (345, 346, "FLOOR", 0),
    ]


def test_threads_are_not_joined() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(12, 20, script.launch(5, 8))
    script.kernel(32, 40, script.launch(25, 28, thread="other"))

    other = [line for line in edge_lines(graph_of(script), *ALONG) if line[0] in (25, 28)]

    assert other == [(25, 28, "SECTION", 3)]
