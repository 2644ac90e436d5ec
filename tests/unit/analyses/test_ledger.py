"""The ledger of a unit, on the worked example of docs/concepts/ledger.md and on single laws (DESIGN 3.3)."""

from __future__ import annotations

from longpole.settings import Settings
from tests.build import LOADER, Script, idle_us, measure, units


def _worked_example() -> Script:
    """One unit of 100 µs, one device; a character is 2 µs.

                     0         20        40        60        80        100 µs
    kernels          .....##########.....##########..........#####.....
    collective       .........................##########...............
    copy, input      ...#####..........................................
    copy, output     .................................####.............
    loader           ##................................................
    launch calls     ..#...............#...............................
    operators        ................###...............................
    blocking call    ..........................................####....
    save             ................................................##
    log writer       ......................................#####.......
    """
    script = Script()
    script.step(0, 0, 100)
    script.span(LOADER, 0, 4)
    first = script.launch(4, 6)
    script.op("aten::linear", 32, 38)
    second = script.launch(36, 38)
    script.sync(84, 92)
    script.span("save_checkpoint", 96, 100)
    script.span("log_metrics", 76, 86, thread="writer")
    script.kernel(10, 30, first)
    script.kernel(40, 60, second)
    script.kernel(80, 90, second)
    script.collective(50, 70, second)
    script.copy("htod", 6, 16, first, stream=20)
    script.copy("dtoh", 66, 74, second, stream=21)
    return script


def test_the_worked_example_has_the_ledger_that_the_page_shows() -> None:
    """Exposed, hidden, elsewhere and service of every object."""
    unit = units(measure(_worked_example(), Settings(kernel_gap_default_ns=2_000)))[0]

    seen = {
        name: (time.exposed_ns, time.hidden_ns, time.service_ns)
        for name, time in unit.ledger.objects.items()
        if name in ("compute", "collective", "input", "output")
    }
    assert seen == {
        "compute": (50_000, 0, 50_000),
        "collective": (10_000, 10_000, 20_000),
        "input": (8_000, 6_000, 14_000),
        "output": (8_000, 10_000, 22_000),
    }
    assert unit.ledger.objects["host"].exposed_ns == 20_000
    assert unit.ledger.objects["unknown"].exposed_ns == 4_000


def test_the_worked_example_has_the_idle_reasons_that_the_page_shows() -> None:
    assert idle_us(_worked_example(), Settings(kernel_gap_default_ns=2_000)) == {
        "input": 4,
        "launch_call": 2 + 2,
        "host.python": 2,
        "host.dispatch": 4,
        "launch_latency": 2,
        "kernel_gap": 2,
        "device.unexplained": 4,
        "host.sync": 2 + 4,
        "output": 4,
    }


def test_the_worked_example_has_the_device_times_that_the_page_shows() -> None:
    device = units(measure(_worked_example()))[0].ledger.device

    assert (device.busy_ns, device.idle_ns) == (68_000, 32_000)
    assert (device.compute_ns, device.collective_ns, device.copy_ns) == (50_000, 20_000, 18_000)
    assert (device.collective_exposed_ns, device.copy_exposed_ns) == (10_000, 8_000)


def test_a_span_that_runs_over_the_boundary_counts_in_both_units() -> None:
    """Units   │── 0 ──│── 1 ──│

    kernel       ├───────┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    script.kernel(50, 180, script.launch(10, 12))

    assert [unit.ledger.device.busy_ns for unit in units(measure(script))] == [50_000, 80_000]


def test_what_lies_outside_the_units_is_head_and_tail() -> None:
    script = Script()
    script.step(0, 100, 200)
    script.kernel(50, 150, script.launch(20, 30))
    script.kernel(210, 260, script.launch(180, 185))

    rows = measure(script).rows[0].units

    assert [(unit.kind, unit.ledger.wall_ns, unit.ledger.device.busy_ns) for unit in rows] == [
        ("head", 80_000, 50_000),
        ("step", 100_000, 50_000),
        ("tail", 60_000, 50_000),
    ]


def test_a_record_that_is_its_units_has_neither_head_nor_tail() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(20, 80, script.launch(5, 8))

    assert [unit.kind for unit in measure(script).rows[0].units] == ["step"]


def test_a_gap_over_a_boundary_is_split_there() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    script.kernel(10, 50, script.launch(2, 4))
    script.kernel(150, 180, script.launch(140, 142))

    first, second = units(measure(script))

    assert first.ledger.idle_ns["host.python"] == 2_000 + 50_000
    assert second.ledger.idle_ns["host.python"] == 40_000 + 20_000
