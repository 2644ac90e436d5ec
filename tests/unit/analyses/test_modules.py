"""How a model's time divides over its modules, one level deep (DESIGN 3.3, stage)."""

from __future__ import annotations

from tests.build import Script, measure


def _modules(script: Script) -> list[tuple[str, str, float, float]]:
    rows = measure(script).rows[0].modules
    return [(row.stage, row.module, row.wall_ns / 1000, row.busy_ns / 1000) for row in rows]


def _model() -> Script:
    """nn.Module: Net_0         ├───────────────────────────┤     0 to 60

    nn.Module: Encoder_0     ├────────────┤                    5 to 30
    nn.Module: Linear_3         ├───┤                         10 to 20
    nn.Module: Head_0                       ├─────┤           40 to 50
    """
    script = Script()
    script.step(0, 0, 200)
    for name, start, end in (("Net_0", 0, 60), ("Encoder_0", 5, 30), ("Linear_3", 10, 20), ("Head_0", 40, 50)):
        script.frame(f"nn.Module: {name}", start, end)
    return script


def test_a_kernel_counts_for_the_module_below_the_outermost_one_that_launched_it() -> None:
    script = _model()
    script.kernel(60, 100, script.launch(12, 14))
    script.kernel(100, 120, script.launch(42, 44))
    script.kernel(120, 200, script.launch(55, 57))

    busy = {(module, busy_us) for _, module, _, busy_us in _modules(script) if busy_us}

    assert busy == {("Encoder_0", 40), ("Head_0", 20), ("Net_0", 80)}


def test_an_idle_instant_counts_for_the_module_that_was_open() -> None:
    script = _model()
    script.kernel(60, 200, script.launch(59, 60))

    idle = {module: wall_us - busy_us for _, module, wall_us, busy_us in _modules(script)}

    # Of Net_0's own time, 5 + 10 + 9 are idle, and then 1 is spent in the launching call.
    assert idle == {"Encoder_0": 25, "Head_0": 10, "Net_0": 25}


def test_modules_count_by_stage() -> None:
    script = _model()
    script.frame("torch/autograd/graph.py(816): _engine_run_backward", 70, 100)
    script.frame("nn.Module: Net_0", 75, 95)
    script.kernel(100, 120, script.launch(12, 14))
    script.kernel(120, 200, script.launch(80, 82))

    assert {(stage, module) for stage, module, _, busy_us in _modules(script) if busy_us} == {
        ("forward", "Encoder_0"),
        ("backward", "Net_0"),
    }


def test_a_kernel_without_a_launch_counts_for_no_module() -> None:
    script = _model()
    script.kernel(0, 200)

    assert _modules(script) == []


def test_a_record_without_modules_has_no_rows() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.op("aten::linear", 0, 60)

    assert _modules(script) == []
