"""How long the operations of each object took, and how much of that something hid (DESIGN 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.build import LOADER, WORKER_LOADER, Script, measure, units

if TYPE_CHECKING:
    from longpole.records.ledger import ObjectTime


def _served(script: Script) -> dict[str, tuple[object, object, int]]:
    objects = units(measure(script))[0].ledger.objects
    return {name: (time.service_ns, time.hidden_ns, time.exposed_ns) for name, time in objects.items()}


def _elsewhere(time: ObjectTime) -> int:
    assert isinstance(time.service_ns, int)
    assert isinstance(time.hidden_ns, int)
    return time.service_ns - time.hidden_ns - time.exposed_ns


def test_service_unites_device_spans_copies_and_host_activities() -> None:
    """Loader  ├──────────┤

    copy              ├──────────┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.span(LOADER, 0, 30)
    script.copy("htod", 20, 50, script.call("cudaMemcpyAsync", 10, 12))

    # The launching call ended the loader's share of the gap at 10; the rest of the loader is elsewhere.
    assert _served(script)["input"] == (50_000, 0, 10_000 + 30_000)


def test_what_lies_under_something_else_that_runs_is_hidden() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.copy("htod", 20, 60, script.call("cudaMemcpyAsync", 0, 5))
    script.kernel(30, 90, script.launch(6, 8), stream=8)

    assert _served(script)["input"] == (40_000, 30_000, 10_000)


def test_an_activity_on_another_thread_is_hidden_under_kernels_and_elsewhere_in_gaps() -> None:
    """Kernel   ├─────────┤          ├── …

    writer          ├──────────────┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.kernel(20, 60, script.launch(0, 5))
    script.span("save_checkpoint", 40, 90, thread="writer")

    output = units(measure(script))[0].ledger.objects["output"]

    assert (output.service_ns, output.hidden_ns, output.exposed_ns) == (50_000, 20_000, 0)
    assert _elsewhere(output) == 30_000


def test_only_moved_objects_have_a_service() -> None:
    script = Script()
    script.step(0, 0, 100)
    objects = units(measure(script))[0].ledger.objects

    assert not isinstance(objects["host"].service_ns, int)
    assert not isinstance(objects["unknown"].service_ns, int)


def test_creating_a_communicator_is_service_of_the_collective() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(70, 90, script.launch(60, 65))
    script.span("init_process_group", 10, 50)

    assert _served(script)["collective"] == (40_000, 0, 40_000)


def test_copies_within_the_device_are_service_of_compute() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.copy("dtod", 20, 40, script.call("cudaMemcpyAsync", 0, 5))
    script.collective(30, 50, script.launch(6, 8))

    assert _served(script)["compute"] == (20_000, 10_000, 10_000)


def test_service_is_counted_per_unit() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    script.kernel(10, 20, script.launch(0, 5))
    script.span(LOADER, 80, 130)

    first, second = units(measure(script))

    assert first.ledger.objects["input"].service_ns == 20_000
    assert second.ledger.objects["input"].service_ns == 30_000


@pytest.mark.parametrize(("loader", "is_known"), [(LOADER, True), (WORKER_LOADER, False)])
def test_worker_processes_that_no_trace_saw_make_the_service_of_input_unknown(loader: str, is_known: bool) -> None:
    script = Script()
    script.step(0, 0, 100)
    script.span(loader, 0, 30)

    assert ("input" not in measure(script).services_unknown) is is_known


def test_without_a_loader_the_service_of_input_is_known() -> None:
    script = Script()
    script.step(0, 0, 100)

    assert measure(script).services_unknown == {}


def test_a_loader_that_does_not_say_whether_it_has_workers_may_have_some() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.frame("train.py(40): get_batch", 0, 30)

    assert "input" in measure(script).services_unknown


def test_waiting_inside_collectives_is_known_where_the_exporter_recorded_it() -> None:
    """Ascend writes a collective's parts as rows of their own: waits, copies, reductions."""
    script = Script()
    script.step(0, 0, 100)
    script.collective(20, 60, script.launch(0, 5), name="hcom_allReduce__123_0_1")
    script.task("Notify_Wait", 20, 45)
    script.task("Memcpy", 45, 60)

    assert units(measure(script))[0].ledger.objects["collective"].waiting_ns == 25_000
