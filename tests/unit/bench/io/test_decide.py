"""The faster path is accepted only where it promises the same, is correct, and is faster by more than noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.bench.io.case import Checked
from longpole.bench.io.decide import decide, paired_change
from longpole.bench.io.figures import make_path
from longpole.records.bench_io import BenchIo, IoDecision, IoExposure, IoStorage, IoWorkload
from tests.io_benches import ROWS, sampled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.records.bench_io import IoPath

SIZE = 64 << 20


def times(median: float, spread: float = 0.02, n: int = 20, seed: int = 0) -> list[int]:
    return [round(value) for value in median * np.random.default_rng(seed).lognormal(0, spread, n)]


def record_of(paths: Mapping[str, Sequence[int]], exposed: Sequence[IoExposure] = (), bad: str = "") -> BenchIo:
    made: list[IoPath] = []
    for place, (name, values) in enumerate(paths.items()):
        checked = Checked(differs="writes files of mode 0600") if name == bad else Checked()
        del place
        made.append(make_path(ROWS[name], [sampled(name, SIZE, values, checked=checked)], 1e9, cold_method=""))
    return BenchIo(
        schema="longpole.bench-io/1",
        profile="default",
        semantic_id="id",
        label="x",
        written_by="test",
        started_at="2026-01-01T00:00:00+00:00",
        status="measured",
        workload=IoWorkload(SIZE, [SIZE], "float32", 16, 0, 20, 42, "random", "", 1, 0),
        storage=IoStorage("."),
        paths=made,
        exposed=list(exposed),
    )


def only(decisions: list[IoDecision], what: str) -> IoDecision:
    found = [decision for decision in decisions if decision.object == what]
    assert len(found) == 1
    return found[0]


def test_a_format_that_is_clearly_faster_is_accepted_with_its_interval() -> None:
    record = record_of({"torch.load.warm": times(56e6), "safetensors.load.warm": times(9e6, seed=1)})

    decision = only(decide(record), "artifact")

    assert (decision.verdict, decision.path, decision.against) == ("accept", "safetensors.load.warm", "torch.load.warm")
    assert decision.change is not None
    assert decision.change[1] < 9 / 56 - 1 < decision.change[2]


def test_plain_reads_are_a_bound_and_never_a_choice() -> None:
    record = record_of({"torch.load.warm": times(56e6), "raw.read.warm": times(20e6, seed=1)})

    decision = only(decide(record), "artifact")

    assert (decision.verdict, decision.path, decision.dominant) == ("tune", "torch.load.warm", "below_ceiling")


def test_at_the_rate_of_plain_reads_only_fewer_bytes_help() -> None:
    record = record_of({"torch.load.cold": times(60e6), "raw.read.cold": times(55e6, seed=1)})

    decision = only(decide(record), "artifact")

    assert (decision.verdict, decision.dominant) == ("tune", "bytes")
    assert "fewer bytes" in decision.next


def test_noise_is_inconclusive_and_not_accepted() -> None:
    record = record_of({"torch.load.warm": times(50e6, 0.4), "safetensors.load.warm": times(49e6, 0.4, seed=3)})

    assert only(decide(record), "artifact").verdict in ("inconclusive", "tune")


def test_a_faster_save_that_differs_is_left_out_and_named() -> None:
    paths = {"torch.save.fsync": times(80e6), "safetensors.save.fsync": times(40e6, seed=1)}

    decision = only(decide(record_of(paths, bad="safetensors.save.fsync")), "output")

    assert decision.verdict == "tune"
    assert "safetensors.save.fsync is left out: it writes files of mode 0600" in decision.says


def test_saves_of_different_durability_are_never_compared() -> None:
    record = record_of({"torch.save.fsync": times(80e6), "safetensors.save.cache": times(10e6, seed=1)})

    decision = only(decide(record), "output")

    assert (decision.verdict, decision.path) == ("tune", "torch.save.fsync")


def test_without_a_device_nothing_is_decided_for_state() -> None:
    decision = only(decide(record_of({"memory.copy": times(10e6)})), "state")

    assert decision.verdict == "not_measured"
    assert "no device" in decision.says
    assert "6.7 GB/s" in decision.says


def exposure(share: tuple[float, float, float]) -> IoExposure:
    return IoExposure(
        "thread", "", SIZE, 10, 5, [1] * 5, [9] * 5, [0] * 5, [10] * 5, [100] * 5, [50] * 5,
        estimate_ns=10, interval_ns=(8, 12), exposed_share=share,
    )  # fmt: skip


def test_an_exposed_share_is_held_against_the_budget_by_its_whole_interval() -> None:
    verdicts = [
        only(decide(record_of({}, [exposure(share)])), "output").verdict
        for share in ((0.01, 0.005, 0.015), (0.03, 0.025, 0.04), (0.02, 0.01, 0.03))
    ]

    assert verdicts == ["accept", "tune", "inconclusive"]


def test_a_save_that_slows_the_step_more_than_it_blocks_says_so() -> None:
    assert only(decide(record_of({}, [exposure((0.05, 0.04, 0.06))])), "output").dominant == "slowdown"


def test_rounds_are_pairs_and_only_shared_ones_count() -> None:
    """Drift that hits both alike leaves the change exact: each round is twice as slow as the one before."""
    drift = [1000 * 2**number for number in range(8)]
    record = record_of({"torch.load.warm": drift, "safetensors.load.warm": [value // 2 for value in drift]})
    one, other = (path.cases[0] for path in record.paths)

    assert paired_change(one, other) == (-0.5, -0.5, -0.5)

    other.rounds = [number + 5 for number in other.rounds]
    assert paired_change(one, other) is None
