"""Which calls waited for the device, and for which span.

host     ├──────── cudaStreamSynchronize ────────┤
device      ├─ a ─┤├──────── b ────────┤
"""

from __future__ import annotations

import pytest

from longpole.graph.kinds import EdgeKind
from tests.build import Script
from tests.run_graphs import edge_lines, graph_of

K = EdgeKind
RETURNS = (K.RETURN, K.RETURN_RECORDED, K.ALLOCATION)


def _returns(script: Script) -> list[tuple[float, float, str]]:
    return [(src, dst, kind) for src, dst, kind, _ in edge_lines(graph_of(script), *RETURNS)]


def _job(*, until: float = 95.0, call: str = "cudaStreamSynchronize") -> Script:
    script = Script()
    script.step(0, 0, 200)
    script.kernel(10, 30, script.launch(1, 2), name="a")
    script.kernel(31, 90, script.launch(3, 4), name="b", stream=8)
    script.sync(10, until, name=call)
    return script


@pytest.mark.parametrize(
    "call", ["cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize"]
)
def test_it_waits_for_the_last_end_of_what_was_launched_before(call: str) -> None:
    assert _returns(_job(call=call)) == [(90, 95, "RETURN")]


def test_it_waits_for_nothing_that_goes_on_after_its_return() -> None:
    """The clock's tolerance is 10 µs: b ends 40 after the return."""
    assert _returns(_job(until=50)) == [(30, 50, "RETURN")]


def test_a_return_a_little_before_the_end_is_a_matter_of_clocks() -> None:
    script = _job(until=85)

    assert _returns(script) == [(90, 85, "RETURN")]


def test_what_was_over_before_the_call_was_not_waited_for() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.kernel(10, 30, script.launch(1, 2))
    script.sync(40, 44)

    graph = graph_of(script)

    assert edge_lines(graph, *RETURNS) == []
    assert len(graph.blocked) == 0


def test_what_another_thread_launches_meanwhile_is_not_waited_for() -> None:
    script = Script()
    script.step(0, 0, 300)
    script.kernel(10, 60, script.launch(1, 2), name="a")
    script.sync(10, 125)
    script.kernel(70, 120, script.launch(65, 68, thread="other"), name="late", stream=8)

    assert _returns(script) == [(60, 125, "RETURN")]


def test_a_span_without_a_launch_is_waited_for_with_the_one_before_it() -> None:
    """As in case B044: the record of its launch is missing, and the call returns right after its end."""
    script = Script()
    script.step(0, 0, 300)
    script.kernel(10, 60, script.launch(1, 2), name="a")
    script.sync(5, 125)
    script.kernel(60, 120, name="unlinked")

    assert _returns(script) == [(120, 125, "RETURN")]


def test_a_copy_whose_call_outlasts_it_blocks_on_it() -> None:
    script = Script()
    script.step(0, 0, 300)
    call = script.call("cudaMemcpyAsync", 10, 110)
    script.copy("dtoh", 20, 105, call)

    assert _returns(script) == [(105, 110, "RETURN_RECORDED")]


@pytest.mark.parametrize(("end", "copy"), [(29, (15, 24)), (110, (20, 190))])
def test_short_calls_and_calls_that_return_before_their_copy_do_not_block(
    end: float, copy: tuple[float, float]
) -> None:
    script = Script()
    script.step(0, 0, 300)
    call = script.call("cudaMemcpyAsync", 10, end)
    script.copy("htod", *copy, call)

    assert _returns(script) == []


def test_an_allocation_waits_and_then_works_by_itself() -> None:
    """cudaFree from 10 to 200: the kernel ends at 150; the last 50 µs are its own."""
    script = Script()
    script.step(0, 0, 400)
    script.kernel(10, 150, script.launch(1, 2))
    script.call("cudaFree", 10, 200)

    assert edge_lines(graph_of(script), *RETURNS) == [(150, 200, "ALLOCATION", 50)]
    assert (10, 200, "FLOOR", 50) in edge_lines(graph_of(script), K.FLOOR)


def test_a_short_allocation_waits_for_nothing() -> None:
    script = Script()
    script.step(0, 0, 400)
    script.kernel(10, 50, script.launch(1, 2))
    script.call("cudaMalloc", 10, 100)

    assert _returns(script) == []


def test_of_nested_calls_the_outer_one_waits() -> None:
    script = _job(until=96, call="cudaDeviceSynchronize")
    script.sync(12, 95, name="cuCtxSynchronize")

    assert _returns(script) == [(90, 96, "RETURN")]


# --------------------------------------------------------------------------- calls that would have waited


def _found_idle(call: str = "cudaDeviceSynchronize", *, begins: float = 60) -> Script:
    """Draw a kernel that has ended by 30 µs, and a call that takes 4 µs."""
    script = Script()
    script.step(0, 0, 200)
    script.kernel(10, 30, script.launch(1, 2))
    script.sync(begins, begins + 4, name=call)
    return script


@pytest.mark.parametrize("call", ["cudaStreamSynchronize", "cudaDeviceSynchronize", "hipDeviceSynchronize"])
def test_a_call_that_found_the_device_idle_is_still_behind_it(call: str) -> None:
    """Once the host is faster it does wait; on the record it was not blocked."""
    graph = graph_of(_found_idle(call))

    assert [(src, dst) for src, dst, _, _ in edge_lines(graph, *RETURNS)] == [(30, 64)]
    assert len(graph.blocked) == 0


def test_a_wait_for_an_event_that_is_over_says_nothing_of_what_ran_last() -> None:
    assert _returns(_found_idle("cudaEventSynchronize")) == []


def test_an_end_just_before_the_call_is_too_close_to_tell() -> None:
    """Within 20 µs a constant of clocks or launches could make the call wait in the unchanged replay."""
    assert _returns(_found_idle(begins=49)) == []
    assert len(_returns(_found_idle(begins=51))) == 1


def test_what_is_launched_later_is_not_what_it_would_have_waited_for() -> None:
    script = _found_idle()
    script.kernel(80, 100, script.launch(70, 72), name="later")

    assert [(src, dst) for src, dst, _ in _returns(script)] == [(30, 64)]
