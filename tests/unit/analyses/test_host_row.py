"""A record without device spans: the thread that carries the units takes the device's place (DESIGN 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.records.ledger import Unknown
from tests.build import LOADER, Script, exposed_us, idle_us, measure, units

if TYPE_CHECKING:
    from longpole.records.ledger import ObjectTime


def _objects(script: Script) -> dict[str, ObjectTime]:
    return units(measure(script))[0].ledger.objects


def test_operators_compute_and_a_backends_span_on_any_thread_communicates() -> None:
    """Main    ├ loader ┤├── linear ──┤┌ python ┐├ linear ┤

    gloo                       ├──── all_reduce ────┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.span(LOADER, 0, 20)
    script.op("aten::linear", 20, 50)
    script.op("aten::linear", 70, 90)
    script.span("gloo:all_reduce", 40, 80, thread="gloo")

    assert exposed_us(script) == {"input": 20, "compute": 50, "collective": 20, "host": 10}
    assert idle_us(script) == {"input": 20, "host.python": 10}


def test_a_backends_time_under_operators_is_hidden() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("aten::linear", 20, 50)
    script.span("gloo:all_reduce", 40, 80, thread="gloo")

    collective = _objects(script)["collective"]

    assert (collective.service_ns, collective.hidden_ns, collective.exposed_ns) == (40_000, 10_000, 30_000)


def test_the_call_that_issues_a_collective_is_no_operator() -> None:
    """Main    ├── c10d::allreduce_ ──┤

    gloo           ├ all_reduce ┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.op("c10d::allreduce_", 20, 60)
    script.op("record_param_comms", 25, 55)
    script.span("gloo:all_reduce", 30, 50, thread="gloo")

    assert exposed_us(script) == {"host": 80, "collective": 20}
    assert idle_us(script) == {"host.python": 60, "host.dispatch": 20}


def test_an_operator_inside_the_call_of_a_collective_computes() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("c10d::allreduce_", 20, 60)
    script.op("aten::copy_", 30, 40)

    assert exposed_us(script)["compute"] == 10


def test_a_wait_is_no_operator() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("_c10d_functional::wait_tensor", 20, 60)

    assert "compute" not in exposed_us(script)


def test_operators_on_other_threads_are_hidden_service() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("aten::linear", 20, 50)
    script.op("aten::mul", 40, 90, thread="other")
    script.span("save_checkpoint", 60, 100)

    compute = _objects(script)["compute"]

    # Of the other thread's 40 µs alone, none is charged to compute; 30 of them lie under the save.
    assert (compute.service_ns, compute.exposed_ns) == (70_000, 30_000)
    assert exposed_us(script)["output"] == 40


def test_an_operator_inside_the_loader_computes_and_hides_the_loader() -> None:
    """Collating a batch is done by operators: the first rung that applies takes the instant."""
    script = Script()
    script.step(0, 0, 100)
    script.span(LOADER, 0, 40)
    script.op("aten::stack", 10, 30)

    loader = _objects(script)["input"]

    assert exposed_us(script) == {"input": 20, "compute": 20, "host": 60}
    assert (loader.service_ns, loader.hidden_ns) == (40_000, 20_000)


def test_a_python_frame_inside_an_operator_is_the_operators() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("my_ext::fused", 10, 50)
    script.frame("ext.py(3): kernel", 20, 40)

    assert exposed_us(script)["compute"] == 40


def test_python_around_operators_is_the_hosts() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.frame("train.py(7): train", 0, 100)
    script.op("aten::linear", 10, 50)

    assert exposed_us(script) == {"compute": 40, "host": 60}


def test_stages_are_those_of_the_main_thread() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("aten::linear", 0, 30)
    script.op("autograd::engine::evaluate_function: MulBackward0", 30, 60)
    script.span("Optimizer.step#SGD.step", 60, 80)
    script.op("aten::add_", 65, 75)

    stages = units(measure(script))[0].stages

    assert {name: (time.wall_ns, time.busy_ns) for name, time in stages.items()} == {
        "forward": (30_000, 30_000),
        "backward": (30_000, 30_000),
        "optimizer": (20_000, 10_000),
        "other": (20_000, 0),
    }


def test_the_span_of_a_device_is_not_known() -> None:
    script = Script()
    script.step(0, 0, 100)

    row = measure(script).rows[0]

    assert row.device == "cpu"
    assert isinstance(row.device_span.busy_ns, Unknown)
    assert {finding.code for finding in measure(script).findings} == {"device.none"}


def test_the_thread_with_the_units_takes_the_place_whatever_it_is_called() -> None:
    script = Script()
    script.op("aten::linear", 0, 100)
    script.step(0, 0, 100, thread="trainer")
    script.op("aten::linear", 10, 30, thread="trainer")

    assert exposed_us(script) == {"compute": 20, "host": 80}


def test_completion_of_a_unit_is_its_own_end() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 120, 200)

    assert [unit.completion_ns for unit in units(measure(script))] == [120_000, 200_000]
