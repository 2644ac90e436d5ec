"""When units were complete, and what they launched (DESIGN 3.2)."""

from __future__ import annotations

from tests.build import Script, measure, units


def _completions(script: Script) -> list[float]:
    return [unit.completion_ns / 1000 for unit in units(measure(script))]


def test_a_unit_is_complete_when_what_it_launched_has_ended() -> None:
    """host     ├──── 0 ────┤├──── 1 ────┤

    device            ├── of 0 ──┤├── of 1 ──┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    script.kernel(50, 150, script.launch(10, 12))
    script.kernel(150, 260, script.launch(110, 112))

    assert _completions(script) == [150, 260]


def test_a_unit_whose_device_was_done_is_complete_at_its_own_end() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 130, 200)
    script.kernel(50, 80, script.launch(10, 12))

    assert _completions(script) == [130, 200]


def test_a_unit_is_never_complete_before_the_one_in_front() -> None:
    """The first one launched something that outlasts all that the second one launched."""
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    script.kernel(50, 300, script.launch(10, 12))
    script.kernel(110, 120, script.launch(105, 107), stream=8)

    assert _completions(script) == [300, 300]


def test_the_time_of_the_launch_decides_whose_a_span_is() -> None:
    """It runs in unit 1 and was launched by unit 0."""
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    script.kernel(110, 150, script.launch(90, 92))

    first, second = units(measure(script))

    assert (first.device_by_launch_ns, second.device_by_launch_ns) == (40_000, 0)
    assert (first.device_by_time_ns, second.device_by_time_ns) == (0, 40_000)


def test_a_span_without_a_launch_belongs_to_the_unit_that_it_starts_in() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    script.kernel(90, 150)

    assert _completions(script) == [150, 200]


def test_what_was_launched_before_the_first_unit_belongs_to_none() -> None:
    script = Script()
    script.step(0, 100, 200)
    script.kernel(150, 300, script.launch(50, 52))

    assert _completions(script) == [200]
    assert units(measure(script))[0].device_by_launch_ns == 0


def test_what_was_launched_behind_the_last_unit_belongs_to_none() -> None:
    script = Script()
    script.step(0, 100, 200)
    script.kernel(250, 300, script.launch(200, 202))

    assert _completions(script) == [200]


def test_spans_that_run_at_once_count_once_by_launch() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(20, 60, script.launch(10, 12))
    script.kernel(40, 80, script.launch(13, 15), stream=8)

    assert units(measure(script))[0].device_by_launch_ns == 60_000


def test_each_device_completes_on_its_own() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(20, 160, script.launch(10, 12), device=0)
    script.kernel(20, 180, script.launch(13, 15), device=1)

    measured = measure(script)

    assert [units(measured, row)[0].completion_ns for row in (0, 1)] == [160_000, 180_000]
