"""Collectives are joined or cut at the price of a cost model: here 50 µs each, and 1 µs for every 10,000 bytes."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.records.instances import COLUMNS, Instances
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from longpole.whatif.apply import apply
from longpole.whatif.change import parse_change
from longpole.whatif.draft import Draft
from tests.build import Script
from tests.run_graphs import Run, replayed

ALPHA_US, BYTES_PER_US = 50.0, 10_000


def _price_us(size_bytes: int) -> float:
    return ALPHA_US + size_bytes / BYTES_PER_US


def _team(calls: int, size_bytes: int, steps: int = 4) -> Run:
    """Draw two ranks that compute 200 µs, then reduce `calls` times in a row; nothing else runs meanwhile."""
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    each = _price_us(size_bytes)
    step_us = 300 + calls * (each + 1)
    for script in scripts:
        for step in range(steps):
            at = step_us * step
            script.step(step, at, at + step_us)
            script.kernel(at + 10, at + 210, script.launch(at, at + 3))
            begins = at + 211
            for call in range(calls):
                launch = script.launch(at + 5 + 4 * call, at + 8 + 4 * call)
                script.collective(begins, begins + each, launch, stream=7)
                begins += each + 1
            script.sync(at + 5 + 4 * calls, begins + 7, name="cudaDeviceSynchronize")
    return replayed(*scripts)


def _with_bytes(instances: Instances, size_bytes: int) -> Instances:
    sizes = np.full(len(instances), size_bytes, COLUMNS["bytes"]).tobytes()
    return Instances({**instances.columns, "bytes": sizes}, instances.groups, instances.dtypes)


def _changed(run: Run, change: str, size_bytes: int, *, model: bool = True) -> Draft:
    def cost(operation: int, size: int) -> int | None:
        del operation
        return round(_price_us(size) * 1000) if model else None

    instances = {rank: _with_bytes(own, size_bytes) for rank, own in run.instances.items()}
    draft = Draft.of(run.graph, instances, cost, run.settings)
    apply(draft, parse_change(change))
    return draft


def _period_us(run: Run, draft: Draft) -> float:
    return float(np.median(run.replayed.window.periods_ns(run.graph, draft.finish().replay()))) / 1000


@pytest.mark.parametrize(("limit", "joined"), [("10MB", 8), ("800kB", 8), ("400kB", 4), ("250kB", 2)])
def test_every_call_that_is_saved_saves_its_own_latency_and_gap(limit: str, joined: int) -> None:
    run = _team(8, 100_000)
    after = 8 // joined * (_price_us(joined * 100_000) + 1)

    draft = _changed(run, f"--fuse all_reduce={limit}", 100_000)

    assert not draft.refusals
    assert run.replayed_us - _period_us(run, draft) == pytest.approx(8 * (_price_us(100_000) + 1) - after, abs=8)


def test_buffers_that_reach_the_size_already_stay() -> None:
    draft = _changed(_team(4, 100_000), "--fuse all_reduce=150kB", 100_000)

    assert "smaller than that" in draft.refusals[0]


def test_buffers_are_joined_within_their_own_step() -> None:
    run = _team(1, 100_000)

    assert _changed(run, "--fuse all_reduce=1GB", 100_000).rows == 0


def test_parts_cost_their_latency_each() -> None:
    run = _team(1, 1_000_000)

    draft = _changed(run, "--split all_reduce=250kB", 1_000_000)

    assert _period_us(run, draft) - run.replayed_us == pytest.approx(3 * ALPHA_US, abs=1)


def test_what_is_small_enough_is_not_cut() -> None:
    assert "larger than that" in _changed(_team(1, 1000), "--split all_reduce=1MB", 1000).refusals[0]


@pytest.mark.parametrize("change", ["--fuse all_reduce=1GB", "--split all_reduce=10kB"])
def test_without_a_price_nothing_is_joined_or_cut(change: str) -> None:
    draft = _changed(_team(4, 100_000), change, 100_000, model=False)

    assert "no cost model for all_reduce" in draft.refusals[0]


def test_other_kinds_are_left_alone() -> None:
    assert "all_gather" in COLLECTIVE_KINDS
    assert _changed(_team(4, 100_000), "--fuse all_gather=1GB", 100_000).rows == 0
