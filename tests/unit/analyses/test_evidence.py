"""What is missing from a record, or impossible in it, and which figures that takes with it (DESIGN 3.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.build import OPTIMIZER, Script, measure, units

if TYPE_CHECKING:
    from longpole.timeline.integrity import Finding


def _findings(script: Script) -> dict[str, Finding]:
    return {finding.code: finding for finding in measure(script).findings}


def _steps(count: int = 4) -> Script:
    """Steps of 100 µs with ten kernels each."""
    script = Script()
    for number in range(count):
        script.step(number, 100 * number, 100 * number + 100)
        for place in range(10):
            start = 100 * number + 10 * place
            script.kernel(start + 5, start + 9, script.launch(start + 1, start + 2))
    return script


def _lose(script: Script, *numbers: int) -> Script:
    """Take kernels out of the record; their launches keep their correlation ids."""
    for number in sorted(numbers, reverse=True):
        call = script.device.pop(number).call
        assert call is not None
        call.correlation = 10_000 + number
    return script


def test_a_sound_record_has_no_findings() -> None:
    assert _findings(_steps()) == {}


def test_launches_whose_kernels_are_missing_are_counted() -> None:
    finding = _findings(_lose(_steps(), 12))["launch.without_kernel"]

    assert (finding.count, finding.severity, finding.voids) == (1, "note", [])


def test_many_missing_kernels_void_the_idle_time() -> None:
    finding = _findings(_lose(_steps(), 0, 1, 2))["launch.without_kernel"]

    assert (finding.count, finding.severity) == (3, "warn")
    assert "@/ledger/device/idle_ns" in finding.voids
    assert "all at the head" in finding.message


def test_the_idle_time_of_a_unit_that_misses_kernels_is_unexplained() -> None:
    """It may not have been idle: its nanoseconds move to unknown, and none is lost."""
    found = units(measure(_lose(_steps(), 10, 11, 12)))

    assert [unit.incomplete for unit in found] == [False, True, False, False]
    assert found[1].ledger.idle_ns["device.unexplained"] == found[1].ledger.device.idle_ns
    assert found[1].ledger.objects["unknown"].exposed_ns == found[1].ledger.device.idle_ns
    assert found[2].ledger.idle_ns["device.unexplained"] == 0


def test_a_launch_during_capture_launches_nothing() -> None:
    script = _steps()
    script.call("cudaStreamBeginCapture", 401, 402)
    script.launch(403, 404).correlation = 10_000
    script.call("cudaStreamEndCapture", 405, 406)

    assert _findings(script) == {}

    script.launch(407, 408).correlation = 10_001

    assert _findings(script)["launch.without_kernel"].count == 1


def test_a_drivers_call_inside_the_runtimes_misses_no_kernel() -> None:
    """Whichever of the two the exporter linked."""
    script = _steps()
    outer = script.launch(400, 410)
    script.launch(402, 408, name="cuLaunchKernel").correlation = 10_000
    script.kernel(412, 415, outer)
    script.launch(420, 430).correlation = 10_001
    script.kernel(432, 435, script.launch(422, 428, name="cuLaunchKernel"))

    assert _findings(script) == {}


def test_without_any_link_no_launch_misses_a_kernel() -> None:
    """Exporters that write no correlation cannot be held to it."""
    script = _steps()
    for span in script.device:
        span.linked = False
        assert span.call is not None
        span.call.correlation = 77

    assert set(_findings(script)) == {"kernel.unlinked"}


# --- graphs -------------------------------------------------------------------------------------------------------


def _graphs(recorded: int, lost: int) -> Script:
    script = Script()
    for number in range(recorded + lost):
        start = 20 * number
        call = script.launch(start, start + 2, name="cudaGraphLaunch")
        if number < recorded:
            script.kernel(start + 5, start + 15, call)
    return script


def test_replayed_graphs_without_their_kernels_look_like_idle_time() -> None:
    """Case B085. No bottleneck can be named, and all idle time is unexplained."""
    measured = measure(_graphs(recorded=5, lost=5))

    finding = next(finding for finding in measured.findings if finding.code == "graph.nodes_missing")
    ledger = units(measured)[0].ledger
    assert (finding.count, finding.severity) == (5, "void")
    assert "@/ledger/device/idle_ns" in finding.voids
    assert measured.withheld == finding.message
    assert ledger.idle_ns["device.unexplained"] == ledger.device.idle_ns


def test_a_graph_launch_here_and_there_without_kernels_only_warns() -> None:
    measured = measure(_graphs(recorded=19, lost=1))

    finding = next(finding for finding in measured.findings if finding.code == "graph.nodes_missing")
    assert finding.severity == "warn"
    assert measured.withheld == ""


def test_a_drivers_graph_launch_inside_the_runtimes_is_no_second_one() -> None:
    script = _graphs(recorded=5, lost=0)
    for number in range(5):
        script.call("cuGraphLaunch", 20 * number, 20 * number + 1)

    assert _findings(script) == {}


# --- times --------------------------------------------------------------------------------------------------------


def test_spans_without_a_launch_are_counted() -> None:
    script = _steps()
    script.kernel(401, 404)

    finding = _findings(script)["kernel.unlinked"]

    assert (finding.count, finding.severity) == (1, "note")


def test_spans_before_the_hosts_record_are_named() -> None:
    script = _steps()
    script.kernel(-50, -40)

    assert "1 of them start before the record of the host" in _findings(script)["kernel.unlinked"].message


def test_spans_that_start_before_their_launch_show_that_the_clocks_differ() -> None:
    """Case B027."""
    script = _steps()
    script.kernel(401, 404, script.launch(403, 405))

    finding = _findings(script)["kernel.before_launch"]

    assert (finding.count, finding.severity) == (1, "note")
    assert "2.00 µs" in finding.message


def test_a_span_that_ends_a_unit_after_the_second_one_that_follows_voids_path_and_replay() -> None:
    script = _steps()
    script.kernel(101, 401, script.launch(10.5, 10.9), stream=9)

    finding = _findings(script)["unit.overrun"]

    assert (finding.count, finding.severity) == (1, "void")
    assert finding.voids == ["/critical_path", "/replay"]


def test_a_span_that_ends_a_little_after_the_second_unit_that_follows_is_only_told() -> None:
    script = _steps()
    script.kernel(101, 301, script.launch(10.5, 10.9), stream=9)

    finding = _findings(script)["unit.overrun"]

    assert (finding.count, finding.severity, finding.voids) == (1, "warn", [])


def test_a_queue_of_two_units_is_no_overrun() -> None:
    script = _steps()
    script.kernel(101, 300, script.launch(10.5, 10.9), stream=9)

    assert "unit.overrun" not in _findings(script)


def test_a_unit_without_any_device_span_is_empty() -> None:
    script = _steps()
    script.step(4, 400, 500)
    script.span(OPTIMIZER, 410, 450)

    finding = _findings(script)["unit.empty"]

    assert finding.count == 1
    assert "ProfilerStep#4" in finding.message


def test_a_profiler_that_takes_time_is_named() -> None:
    script = _steps()
    script.overhead("CUPTI Buffer Flush", 50, 90)

    finding = _findings(script)["profiler.overhead"]

    assert (finding.count, finding.severity) == (1, "note")
    assert "10.0%" in finding.message
    assert "40.0 µs" in finding.message


def test_a_little_overhead_is_not_worth_a_word() -> None:
    script = _steps()
    script.overhead("CUPTI Buffer Flush", 50, 53)

    assert _findings(script) == {}


def test_the_profilers_own_lifetime_is_no_overhead() -> None:
    script = _steps()
    script.overhead("PyTorch Profiler (0)", 0, 400)

    assert _findings(script) == {}


def test_an_example_names_file_and_event() -> None:
    script = _steps()
    script.kernel(401, 404)

    example = _findings(script)["kernel.unlinked"].example

    assert (example.file, example.event) == ("rank0.json", len(script.host) + len(script.device) - 1)
