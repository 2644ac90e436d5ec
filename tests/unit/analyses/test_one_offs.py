"""Units that paid for something once, and units that only look so (DESIGN 3.2, steady units)."""

from __future__ import annotations

from longpole.settings import Settings
from longpole.timeline.columns import Kind
from tests.build import Script, idle_us, measure, units


def _steps(count: int = 4, length: float = 10_000) -> Script:
    """Steps of 10 ms with a kernel of 9 ms each."""
    script = Script()
    for number in range(count):
        start = number * length
        script.step(number, start, start + length)
        script.kernel(start + 50, start + 50 + 0.9 * length, script.launch(start + 10, start + 20))
    return script


def _marked(script: Script, settings: Settings | None = None) -> dict[int, str]:
    found = units(measure(script, settings))
    return {unit.ordinal: unit.one_off for unit in found if unit.one_off}


# --- communicators ------------------------------------------------------------------------------------------------


def test_a_named_set_up_of_a_communicator_marks_its_unit() -> None:
    script = _steps()
    script.span("init_process_group", 100, 3_000)

    assert _marked(script) == {0: "communicator_setup"}


def _all_reduces(script: Script, first_us: float, later_us: float) -> Script:
    for number in range(4):
        start = number * 10_000 + 200
        script.op("c10d::allreduce_", start, start + (first_us if number == 0 else later_us))
    return script


def test_a_first_collective_of_many_times_the_later_ones_creates_its_communicator() -> None:
    """Case B079: nothing is named so, but the first call lasts 5 ms and later ones 40 µs."""
    script = _all_reduces(_steps(), 5_000, 40)

    found = units(measure(script))

    assert _marked(script) == {0: "communicator_setup"}
    assert found[0].one_off_ns == 5_000_000


def test_the_time_of_a_set_up_is_charged_to_the_collective() -> None:
    """The device idles under it, and not for want of an operator."""
    script = _all_reduces(_steps(), 9_700, 40)
    script.device[0].end_ns = 100_000

    assert idle_us(script)["collective"] == 9_700


def test_a_first_collective_that_waited_for_the_device_created_nothing() -> None:
    """It is long because its thread waited inside it.

    c10d::allreduce_   ├────────── 5 ms ──────────┤
    runtime             ├ cudaStreamSynchronize ┤
    """
    script = _all_reduces(_steps(), 5_000, 40)
    script.sync(210, 5_190)

    assert _marked(script) == {}


def test_a_first_collective_that_is_only_a_little_slower_created_nothing() -> None:
    assert _marked(_all_reduces(_steps(), 900, 100)) == {}


def test_a_collective_that_occurs_once_is_measured_by_all_others() -> None:
    """A group that is used once per record: its own later calls are missing."""
    script = _all_reduces(_steps(), 40, 40)
    script.op("c10d::broadcast_", 20_300, 25_300)

    assert _marked(script) == {2: "communicator_setup"}


def test_on_a_cpu_backend_a_slow_first_collective_waits_for_its_slowest_rank() -> None:
    script = _all_reduces(_steps(), 5_000, 40)
    script.device.clear()

    assert _marked(script) == {}


# --- searches -----------------------------------------------------------------------------------------------------


def test_the_first_calls_with_new_shapes_that_are_far_slower_search() -> None:
    """Case B087: shapes A A B B A; the first of each takes 8 ms, otherwise 100 µs."""
    script = _steps(5)
    for number, shape in enumerate("AABBA"):
        is_first = number in (0, 2)
        start = number * 10_000 + 200
        script.op("aten::cudnn_convolution", start, start + (8_000 if is_first else 100), shapes=shape)

    assert _marked(script) == {0: "per_shape_search", 2: "per_shape_search"}


def test_a_shape_that_is_slow_every_time_is_no_search() -> None:
    """The large shape B takes 5 ms whenever it comes."""
    script = _steps(6)
    for number, shape in enumerate("AABABA"):
        start = number * 10_000 + 200
        script.op("aten::linear", start, start + (5_000 if shape == "B" else 100), shapes=shape)

    assert _marked(script) == {}


def test_a_shape_that_comes_once_and_takes_as_long_as_the_others_is_no_search() -> None:
    script = _steps()
    for number, shape in enumerate("ABCD"):
        start = number * 10_000 + 200
        script.op("aten::linear", start, start + 5_000, shapes=shape)

    assert _marked(script) == {}


# --- compilation and cold starts ----------------------------------------------------------------------------------


def test_compilation_marks_its_unit() -> None:
    script = _steps()
    script.frame("torch/_dynamo/convert_frame.py(1500): __call__", 20_100, 24_000)

    assert _marked(script) == {2: "compilation"}


def test_capturing_a_graph_marks_its_unit() -> None:
    script = _steps()
    script.call("cudaGraphInstantiateWithFlags", 100, 900)

    assert _marked(script) == {0: "compilation"}


def test_what_happens_while_a_graph_is_captured_is_the_captures() -> None:
    """The calls that begin and end it are short; the model's Python between them takes 4 ms, and launches nothing."""
    script = _steps()
    script.span("cudaStreamBeginCapture", 10_100, 10_110, kind=Kind.RUNTIME)
    script.span("cudaStreamEndCapture", 14_000, 14_100, kind=Kind.RUNTIME)
    script.span("cudaStreamBeginCapture", 30_100, 30_110, kind=Kind.RUNTIME)  # the record ends before it does

    found = units(measure(script))

    assert _marked(script) == {1: "compilation"}
    assert found[1].one_off_ns == 4_000_000


def test_loading_weights_marks_its_unit() -> None:
    script = _steps()
    script.span("load_checkpoint", 100, 900)

    assert _marked(script) == {0: "cold_start"}


# --- what is too small, or not once -------------------------------------------------------------------------------


def test_a_one_off_of_less_than_a_hundredth_marks_nothing() -> None:
    """1 % of a unit of 10 ms is 100 µs."""
    script = _steps()
    script.call("cuModuleLoadData", 100, 200)

    assert _marked(script) == {}

    script.host[-1].end_ns += 1

    assert _marked(script) == {0: "compilation"}


def test_the_share_that_marks_is_a_setting() -> None:
    script = _steps()
    script.call("cuModuleLoadData", 100, 900)

    assert _marked(script, Settings(one_off_min_share=0.1)) == {}


def test_a_one_off_over_a_boundary_counts_in_each_unit_by_its_part_there() -> None:
    script = _steps()
    script.frame("torch/_dynamo/convert_frame.py(1500): __call__", 9_000, 10_050)

    assert _marked(script) == {0: "compilation"}


def test_nested_parts_of_one_compilation_count_once() -> None:
    script = _steps()
    script.frame("torch/_dynamo/convert_frame.py(1500): __call__", 100, 3_100)
    script.frame("torch/_inductor/compile_fx.py(700): compile_fx_inner", 200, 3_000)

    assert units(measure(script))[0].one_off_ns == 3_000_000


def test_a_record_of_one_unit_has_nothing_to_compare_with() -> None:
    script = _steps(1)
    script.span("init_process_group", 100, 3_000)

    assert _marked(script) == {}


def test_a_healthy_record_stays_unmarked() -> None:
    """Loaders, collections, allocations, saves and slow collectives are no one-offs."""
    script = _all_reduces(_steps(), 60, 40)
    script.frame("<built-in function collect>", 1_000, 3_000)
    script.call("cudaMalloc", 4_000, 6_000)
    script.span("save_checkpoint", 10_500, 19_000)
    script.sync(20_500, 29_000)

    assert _marked(script) == {}
