"""The least recomputation that fits: it fits, one layer less does not, and what cannot fit is said."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.architecture import Architecture, Experts
from longpole.costs.layout import Layout, Recompute, Work
from longpole.costs.memory import device_memory
from longpole.costs.recompute import fit_recompute

MODEL = Architecture(
    name="8b", layers=32, hidden=4096, heads=32, key_value_heads=8, head_dim=128, feed_forward=14336, vocabulary=128256
)
WORK = Work(sequence=16384, micro_batch=2, global_batch=64)
PIPELINE = Layout(tp=2, pp=4, dp=2, sp=True, zero=1)


def test_nothing_is_computed_again_where_all_of_it_fits() -> None:
    needed = device_memory(MODEL, PIPELINE, WORK).needed_bytes

    assert fit_recompute(MODEL, PIPELINE, WORK, needed) == ("none",) * 32


def test_early_stages_compute_more_again_than_late_ones() -> None:
    """They hold more micro-batches: a policy that is the same everywhere would compute again what fits anyway."""
    policies = fit_recompute(MODEL, PIPELINE, WORK, 50e9)

    assert policies is not None
    counts = [policies[8 * stage : 8 * stage + 8].count("full") for stage in range(4)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[3] == 0


@given(capacity_gb=st.floats(8, 150), flash=st.booleans())
def test_what_is_found_fits_and_a_layer_less_does_not(capacity_gb: float, flash: bool) -> None:
    capacity, work = capacity_gb * 1e9, replace(WORK, sequence=4096, flash=flash)
    policies = fit_recompute(MODEL, Layout(), work, capacity)
    if policies is None:
        everything = device_memory(MODEL, Layout(), replace(work, recompute="full"))
        assert not everything.fits(capacity)
        return
    assert device_memory(MODEL, Layout(), replace(work, recompute_layers=policies)).fits(capacity)
    raised = [layer for layer, policy in enumerate(policies) if policy != "none"]
    if raised:
        last = max(raised, key=lambda layer: (policies[layer] == "full", layer))
        down: Recompute = "selective" if not flash and policies[last] == "full" else "none"
        lowered = (*policies[:last], down, *policies[last + 1 :])
        assert not device_memory(MODEL, Layout(), replace(work, recompute_layers=lowered)).fits(capacity)


def test_scores_go_first_where_they_are_written_to_memory() -> None:
    """They are most of what is kept, and cost the least to compute again."""
    work = replace(WORK, sequence=4096, micro_batch=1, flash=False)
    layout = Layout(tp=8, dp=2, sp=True, zero=1)
    less = 0.9 * device_memory(MODEL, layout, work).needed_bytes

    policies = fit_recompute(MODEL, layout, work, less)

    assert policies is not None
    assert set(Counter(policies)) == {"none", "selective"}


def test_what_cannot_fit_is_said() -> None:
    assert fit_recompute(MODEL, PIPELINE, WORK, 5e9) is None


@pytest.mark.parametrize("schedule", ["1f1b", "zbv", "dualpipe"])
def test_mixtures_and_stages_of_several_chunks_are_fitted_too(schedule: str) -> None:
    model = replace(MODEL, experts=Experts(count=8, per_token=2, width=4096, first_dense=4))
    layout = Layout(pp=4, dp=8, ep=8, zero=1, schedule=schedule, vp=2 if schedule == "zbv" else 1)
    work = replace(WORK, sequence=8192)
    none, full = (device_memory(model, layout, replace(work, recompute=policy)) for policy in ("none", "full"))
    capacity = (none.needed_bytes + full.needed_bytes) / 2

    policies = fit_recompute(model, layout, work, capacity)

    assert policies is not None
    assert device_memory(model, layout, replace(work, recompute_layers=policies)).fits(capacity)
    assert set(policies) == {"none", "full"}
