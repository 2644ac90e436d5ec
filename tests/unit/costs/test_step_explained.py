"""What is explained is what was computed."""

from __future__ import annotations

import pytest

from longpole.costs.cluster import cluster_of
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.layout import Layout, Work
from longpole.costs.presets import preset
from longpole.costs.step import step_time
from longpole.costs.step_explained import explain_step
from longpole.hardware.devices import find_device

H100 = CollectiveCosts(cluster_of(find_device("H100-SXM5-80GB"), 50e9, 8))
WORK = Work(sequence=4096, micro_batch=1, global_batch=64)
LAYOUTS = [Layout(), Layout(tp=4, pp=4, dp=2, sp=True, zero=1), Layout(dp=8, zero=3)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=Layout.label)
@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b"])
def test_the_figures_are_those_of_the_step(name: str, layout: Layout) -> None:
    model = preset(name)
    step = step_time(model, H100, layout, WORK)

    found = {one.name: one.value.value for one in explain_step(model, H100, layout, WORK)}

    assert found["step"] == pytest.approx(step.total_s)
    assert found["tokens per second"] == pytest.approx(step.tokens_per_s)
    assert found["compute"] == pytest.approx(step.compute_s)
    assert found["bubble"] == pytest.approx(step.bubble_s, abs=1e-9)
    assert found["optimizer"] == pytest.approx(step.optimizer_s)


def test_the_forward_passes_of_a_layers_operators_are_its_forward_pass() -> None:
    """One layer, a third of forward and backward of products; the sum of the figures is the step's own."""
    model = preset("llama-3-8b")
    figures = {one.name: one.value.value for one in explain_step(model, H100, Layout(), WORK)}
    forward = {name: value for name, value in figures.items() if name.startswith("forward of ")}

    around = ("embedding", "final norm", "logits", "loss")
    layer_s = sum(value for name, value in forward.items() if not name.endswith(around))
    outside_s = sum(value for name, value in forward.items() if name.endswith(around))

    compute_s = step_time(model, H100, Layout(), WORK).compute_s / 64
    assert 2.8 * (32 * layer_s + outside_s) < compute_s < 3.2 * (32 * layer_s + outside_s)


def test_every_figure_says_what_it_was_computed_from() -> None:
    for one in explain_step(preset("mixtral-8x7b"), H100, Layout(tp=2), WORK):
        assert "=" in one.formula, one.name
        assert one.source, one.name
        assert one.unit, one.name
