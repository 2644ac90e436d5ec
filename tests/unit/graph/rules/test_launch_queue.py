"""Launches that waited for room, drawn small: the queue holds four.

thread    ├1┤├2┤├3┤├4┤├───── 5 ─────┤├───── 6 ─────┤
stream 7    ├────── 1 ──────┤├────── 2 ──────┤├────── 3 ──────┤
"""

from __future__ import annotations

from longpole.graph.kinds import EdgeKind
from longpole.graph.rules import launch_queue
from longpole.settings import Settings
from tests.build import Script
from tests.grounds import lay, lines

SMALL = Settings(queue_min_depth=2)
KERNEL_US = 100.0


def _saturated(n: int = 12, depth: int = 4, call: str = "cudaLaunchKernel") -> Script:
    """Draw n kernels of 100 µs behind a queue of `depth`; the last launch is of the given call."""
    script = Script()
    script.step(0, 0, 5000)
    free = 20.0
    ends: list[float] = []
    at = 10.0
    for k in range(n):
        blocked = k >= depth
        returns = ends[k - depth] + 5 if blocked else at + 2
        name = call if k == n - 1 else "cudaLaunchKernel"
        launch = script.launch(at, returns, name=name)
        start = max(free, at + 5)
        script.kernel(start, start + KERNEL_US, launch, name=f"k{k}")
        ends.append(start + KERNEL_US)
        free = start + KERNEL_US + 1
        at = returns + 1
    for k in range(60):  # later on the host is not ahead: these set the median launch
        start = 3000 + 20 * k
        script.kernel(start + 5, start + 10, script.launch(start, start + 2), name="short")
    return script


def test_launches_wait_for_the_end_that_made_room() -> None:
    ground = lay(_saturated().timeline(), SMALL)

    edges = launch_queue.find(ground)

    assert set(edges.kind.tolist()) == {EdgeKind.LAUNCH_QUEUE}
    assert [waited for waited, _ in lines(ground, edges)] == [f"k{k}" for k in range(8)]
    assert len(launch_queue.waits(ground)) == 8


def test_the_edge_ends_at_the_return_of_the_call() -> None:
    ground = lay(_saturated().timeline(), SMALL)

    edges = launch_queue.find(ground)

    points = ground.placed()
    assert points.call_end[launch_queue.waits(ground)].tolist() == edges.dst.tolist()
    assert ((points.time_ns[edges.dst] - points.time_ns[edges.src]) == 5000).all()


def test_a_queue_that_is_never_deep_holds_nobody_up() -> None:
    ground = lay(_saturated().timeline())

    assert len(launch_queue.find(ground)) == 0


def test_a_slow_launch_with_few_outstanding_does_not_wait_for_room() -> None:
    script = _saturated()
    script.kernel(2090, 2095, script.launch(2000, 2080), name="slow for another reason")
    ground = lay(script.timeline(), SMALL)

    waits = launch_queue.waits(ground)

    assert ground.timeline.host.start_ns[waits].max() < 2_000_000
    assert len(waits) == 8


def test_a_memset_takes_a_place_in_the_queue_too() -> None:
    ground = lay(_saturated(call="cudaMemsetAsync").timeline(), SMALL)

    names = [waiter.split()[0] for _, waiter in lines(ground, launch_queue.find(ground))]

    assert names.count("cudaMemsetAsync") == 1


def test_a_copy_that_lasts_until_its_own_end_does_not_wait_for_room() -> None:
    """As many are outstanding at its return as elsewhere, but it returns with the end of its own copy."""
    script = _saturated()
    script.copy("dtoh", 410, 425, script.launch(300, 426, name="cudaMemcpyAsync", thread="other"), stream=9)
    ground = lay(script.timeline(), SMALL)

    names = {waiter.split()[0] for _, waiter in lines(ground, launch_queue.find(ground))}

    assert names == {"cudaLaunchKernel"}


def test_a_copy_that_returns_before_its_end_waits_for_room() -> None:
    script = _saturated()
    script.copy("dtoh", 900, 915, script.launch(300, 426, name="cudaMemcpyAsync", thread="other"), stream=9)
    ground = lay(script.timeline(), SMALL)

    assert ("k3", "cudaMemcpyAsync 300") in lines(ground, launch_queue.find(ground))


def test_a_launch_with_fewer_outstanding_than_the_others_does_not_wait_for_room() -> None:
    """Two are outstanding at its return and one has just ended, but the queue is full with four."""
    script = _saturated()
    for k in range(3):
        script.kernel(2010 + 60 * k, 2069 + 60 * k, script.launch(2000 + 2 * k, 2001 + 2 * k), name="few")
    script.kernel(2300, 2310, script.launch(2006, 2072), name="slow for another reason")
    ground = lay(script.timeline(), SMALL)

    assert "cudaLaunchKernel 2006" not in {waiter for _, waiter in lines(ground, launch_queue.find(ground))}


def test_an_end_before_the_call_began_held_nobody_up() -> None:
    """The queue is full, but during the whole of one slow launch nothing ends."""
    script = Script()
    script.step(0, 0, 5000)
    first = [script.launch(10 + 3 * k, 12 + 3 * k) for k in range(4)]
    script.kernel(20, 60, first[0], name="k0")
    for k in range(1, 4):
        script.kernel(61 + 400 * k, 460 + 400 * k, first[k], name=f"k{k}")
    script.kernel(1700, 1710, script.launch(70, 170), name="nothing ends")
    for k in range(60):
        start = 3000 + 20 * k
        script.kernel(start + 5, start + 10, script.launch(start, start + 2), name="short")
    ground = lay(script.timeline(), SMALL)

    assert len(launch_queue.find(ground)) == 0


def test_a_healthy_trace_has_none() -> None:
    script = Script()
    script.step(0, 0, 1000)
    for k in range(20):
        script.kernel(20 + 20 * k, 35 + 20 * k, script.launch(10 + 20 * k, 12 + 20 * k))
    ground = lay(script.timeline())

    assert len(launch_queue.find(ground)) == 0
    assert len(launch_queue.waits(ground)) == 0


def test_a_trace_without_device_spans_has_none() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.launch(10, 90)

    assert len(launch_queue.find(lay(script.timeline()))) == 0
