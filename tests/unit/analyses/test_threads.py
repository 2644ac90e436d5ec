"""Which stage an instant of a thread belongs to, and what stands around its spans (DESIGN 3.3, stage)."""

from __future__ import annotations

from tests.build import LOADER, OPTIMIZER, Script, cut, measure, units


def _stages(script: Script) -> dict[str, int]:
    """Return the stages of a record whose device is never busy: a kernel of 1 µs at its very end."""
    found = units(measure(script))[0].stages
    return {name: time.wall_ns // 1000 for name, time in found.items()}


def _idle_record() -> Script:
    """A step of 100 µs and a kernel at its end, launched by the main thread outside everything."""
    script = Script()
    script.step(0, 0, 100)
    script.kernel(99, 100, script.launch(98, 99))
    return script


def test_an_operator_or_module_on_the_thread_is_forward() -> None:
    script = _idle_record()
    script.op("aten::linear", 10, 20)
    script.frame("nn.Module: Linear_3", 30, 50)

    assert _stages(script) == {"forward": 30, "other": 70}


def test_a_loader_is_input_and_so_is_what_it_calls() -> None:
    script = _idle_record()
    script.span(LOADER, 10, 40)
    script.op("aten::stack", 20, 30)

    assert _stages(script) == {"input": 30, "other": 70}


def test_what_an_optimizer_calls_is_optimizer() -> None:
    script = _idle_record()
    script.span(OPTIMIZER, 10, 40)
    script.op("aten::add_", 20, 30)

    assert _stages(script) == {"optimizer": 30, "other": 70}


def test_what_the_autograd_engine_runs_is_backward() -> None:
    script = _idle_record()
    script.op("autograd::engine::evaluate_function: MulBackward0", 10, 40)
    script.op("aten::mul", 20, 30)

    assert _stages(script) == {"backward": 30, "other": 70}


def test_a_forward_pass_inside_the_backward_pass_is_backward() -> None:
    """Recomputation of activations."""
    script = _idle_record()
    script.op("autograd::engine::evaluate_function: CheckpointFunctionBackward", 10, 40)
    script.frame("nn.Module: Linear_3", 20, 30)

    assert _stages(script) == {"backward": 30, "other": 70}


def test_a_communicator_or_a_save_has_no_stage_of_its_own() -> None:
    script = _idle_record()
    script.span("save_checkpoint", 10, 40)

    assert _stages(script) == {"other": 100}


def test_a_thread_of_autograd_is_backward_whatever_its_operators_are_called() -> None:
    """The forward thread is named by some of them only.

    autograd  ├ mm (names its forward thread) ┤├ add ┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.backward("aten::mm", 10, 20)
    script.op("aten::add", 20, 40, thread="autograd")
    script.kernel(50, 60, script.launch(12, 14, thread="autograd"))
    script.kernel(70, 80, script.launch(30, 34, thread="autograd"))

    assert units(measure(script))[0].stages["backward"].busy_ns == 20_000


def test_an_optimizer_that_steps_on_autograds_thread_is_still_the_optimizer() -> None:
    """An optimizer fused into the backward pass."""
    script = Script()
    script.step(0, 0, 100)
    script.backward("aten::mm", 10, 20)
    script.span(OPTIMIZER, 20, 40, thread="autograd")
    script.kernel(50, 60, script.launch(30, 34, thread="autograd"))

    assert units(measure(script))[0].stages["optimizer"].busy_ns == 10_000


def test_an_operator_on_the_main_thread_that_names_a_forward_thread_is_backward() -> None:
    """On the CPU the backward pass runs on the thread that called it; other operators there are not backward."""
    script = _idle_record()
    script.op("aten::linear", 10, 20)
    script.backward("aten::mm", 30, 40, thread="main")

    assert _stages(script) == {"forward": 10, "backward": 10, "other": 80}


def test_what_an_optimizers_closure_computes_is_forward_and_backward() -> None:
    """Lightning's automatic optimisation, on the CPU.

    main  ├──────────────────── Optimizer.step ─────────────────────┤
            ├ zero_grad ┤ ├ linear ┤ ├ mm (backward) ┤ ├── add_ ──┤
    """
    script = _idle_record()
    script.span(OPTIMIZER, 10, 90)
    script.span("Optimizer.zero_grad#AdamW.zero_grad", 12, 20)
    script.op("aten::zero_", 13, 19)
    script.op("aten::linear", 20, 40)
    script.backward("aten::mm", 40, 60, thread="main")
    script.op("aten::add_", 60, 85)

    assert _stages(script) == {"forward": 20, "backward": 20, "optimizer": 40, "other": 20}


def test_a_closure_ends_with_the_last_gradient_that_autograds_thread_computed() -> None:
    """main      ├──────────── Optimizer.step ─────────────┤
                   ├ linear ┤             ├── add_ ──┤
    autograd                  ├── mm ──┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.span(OPTIMIZER, 10, 90)
    script.op("aten::linear", 20, 30)
    script.backward("aten::mm", 30, 60)
    script.op("aten::add_", 60, 85)
    for at in (22, 32, 62):
        script.kernel(at + 10, at + 15, script.launch(at, at + 1, thread="autograd" if at == 32 else "main"))

    stages = units(measure(script))[0].stages
    assert {name: stages[name].busy_ns for name in ("forward", "backward", "optimizer")} == dict.fromkeys(
        ("forward", "backward", "optimizer"), 5_000
    )


def test_gradients_beside_an_optimizer_of_another_thread_make_no_closure() -> None:
    """An optimizer fused into the backward pass of one device, while another device's gradients are computed."""
    script = Script()
    script.step(0, 0, 100)
    script.backward("aten::mm", 5, 10)
    script.span(OPTIMIZER, 20, 60, thread="autograd")
    script.op("aten::add_", 30, 40, thread="autograd")
    script.backward("aten::mm", 35, 45, thread="autograd of device 1")
    script.kernel(70, 80, script.launch(32, 34, thread="autograd"))

    assert units(measure(script))[0].stages["optimizer"].busy_ns == 10_000


def test_spans_know_the_operator_and_the_activity_around_them() -> None:
    script = Script()
    script.span("save_checkpoint", 0, 50)
    outer = script.op("aten::to", 5, 45)
    script.op("aten::copy_", 10, 40)
    script.call("cudaMemcpyAsync", 15, 20)
    script.kernel(60, 70)
    found = cut(script)
    cover = found.threads.cover(0)

    names = [found.timeline.names[code] for code in found.timeline.host.name]
    operators = [names[row] if row >= 0 else "" for row in cover.row_operator.tolist()]
    assert names == ["save_checkpoint", "aten::to", "aten::copy_", "cudaMemcpyAsync"]
    assert operators == ["", outer.name, "aten::copy_", "aten::copy_"]
    assert len(set(cover.row_object.tolist())) == 1


def test_a_thread_without_rows_has_a_cover_without_spans() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(20, 30)
    found = cut(script)

    cover = found.threads.cover(-1)

    assert cover.innermost.tolist() == [-1]
