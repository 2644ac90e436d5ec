"""From traces of all ranks to a verdict: a wait that moves is told by its own record.

rank 0  | load |  compute |......waits......| moves |        before: both ranks load for 37 ms
rank 1  | load |  compute |                 | moves |        after: rank 0 loads for 9 ms, and waits for rank 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.digest.jobs import Run
from longpole.pipeline.run_records import ItemsOfUnit, make_record
from longpole.records.critical_path import PathAnswer
from longpole.records.verdict import Effect, Part
from longpole.report.build import build_report
from longpole.report.document import SelectionEntry
from longpole.settings import Settings
from tests.build import LOADER, Script, measure
from tests.verify_runs import ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.run_record import RunRecord

COMPUTE = 60_000
MOVES = 5_000
LAUNCH = 10


def record(
    loads_us: Sequence[float], *, seed: int, name: str, compute_us: float = COMPUTE, items: int = 64
) -> RunRecord:
    """The record of a run of eight steps whose ranks load for different times; they end each step together."""
    rng = np.random.default_rng(seed)
    scripts = [
        Script(rank=rank, world_size=len(loads_us), base_ns=0, path=f"{name}-{seed}-rank{rank}.json")
        for rank in range(len(loads_us))
    ]
    start = 0.0
    for number in range(8):
        pace = float(np.exp(rng.normal(0, 0.005)))
        ready = [start + load * pace + LAUNCH + compute_us * pace for load in loads_us]
        end = max(ready) + MOVES * pace
        for script, load in zip(scripts, loads_us, strict=True):
            script.step(number, start, end)
            begin = start + load * pace
            script.span(LOADER, start, begin)
            launch = script.launch(begin, begin + LAUNCH)
            own_end = begin + LAUNCH + compute_us * pace
            script.kernel(begin + LAUNCH, own_end, launch)
            join = script.launch(begin + LAUNCH, begin + LAUNCH + 1)
            script.collective(own_end, end, join)
            script.sync(begin + LAUNCH + 2, end)
        start = end
    run = Run([measure(script) for script in scripts], [])
    report = build_report(run, [], SelectionEntry(), "0.1.0", Settings(), PathAnswer(0))
    return make_record(run, report, Settings(), label=name, items=ItemsOfUnit(count=items))


def runs(loads_us: Sequence[float], count: int, name: str, **more: float) -> list[RunRecord]:
    return [record(loads_us, seed=seed, name=name, **more) for seed in range(count)]  # type: ignore[arg-type]


BOTH_SLOW = (37_000, 37_000)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_loader_that_is_fast_on_one_rank_only_moves_the_wait_to_the_all_reduce(count: int) -> None:
    found = ask(runs(BOTH_SLOW, count, "before"), runs((9_000, 37_000), count, "after"), part="input")
    assert (found.verdict, found.reason) == ("rejected", "moved")
    assert found.moved.to == "collective:all_reduce"
    assert found.says.startswith("the input stage fell from 37")
    assert (
        "but the step is not shorter: the wait moved to the all-reduce, where ranks wait for the last one" in found.says
    )


def test_a_loader_that_is_fast_on_both_ranks_is_accepted() -> None:
    found = ask(runs(BOTH_SLOW, 3, "before"), runs((9_000, 9_000), 3, "after"), part="input")
    assert found.verdict == "accepted"
    assert isinstance(found.effect, Effect)
    assert found.effect.estimate == pytest.approx(-28_000 / 102_010, abs=0.01)
    assert isinstance(found.part, Part)
    assert found.part.before_ns == pytest.approx(37_000_000, rel=0.01)
    assert found.part.after_ns == pytest.approx(9_000_000, rel=0.01)


def test_one_run_a_side_accepts_a_large_effect_and_is_marked() -> None:
    found = ask(runs(BOTH_SLOW, 1, "before"), runs((9_000, 9_000), 1, "after"), part="input")
    assert found.verdict == "accepted"
    assert isinstance(found.effect, Effect)
    assert found.effect.single_run


def test_a_doubled_batch_of_traces_is_judged_by_its_items() -> None:
    """The kernel takes 1.6 times as long for twice the items."""
    after = runs(BOTH_SLOW, 3, "after", compute_us=1.6 * COMPUTE, items=128)
    found = ask(runs(BOTH_SLOW, 3, "before"), after)
    assert found.verdict == "accepted"
    withheld = runs(BOTH_SLOW, 3, "after", compute_us=1.6 * COMPUTE, items=64)
    for one in withheld:
        one.items_per_unit = found.comparison.before.runs[0].units[0].items  # not recorded
    assert ask(runs(BOTH_SLOW, 3, "before"), withheld).reason == "items_unknown"
