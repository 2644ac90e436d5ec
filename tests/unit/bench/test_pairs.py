"""Pairs of fresh processes, and one process after the other: order, warm-up, stopping, and what a failure leaves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from longpole.bench.make_record import Benchmark
from longpole.bench.pairs import PairPlan, PairRun, run_pairs
from longpole.bench.process_run import Command
from longpole.bench.repeat import RepeatPlan, repeat
from longpole.records.run_record import RecordSource
from longpole.records.run_record_file import decode_record, encode_record
from longpole.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.run_record import RunRecord

NOTHING = Benchmark(command=Command(argv=["true"]), label="nothing")


def failing_from(folder: Path, number: int) -> Benchmark:
    """A command that fails from its n-th run on; it counts them in a file."""
    note = folder / "runs"
    code = f"n = open({str(note)!r}, 'a+'); n.write('x'); n.seek(0); raise SystemExit(len(n.read()) >= {number})"
    return Benchmark(command=Command(argv=[sys.executable, "-S", "-c", code]), label="failing")


def places(record: RunRecord) -> list[tuple[int, int | None]]:
    return [(entry.place, entry.pair) for entry in record.processes]


def test_both_sides_share_pairs_and_every_process_has_its_place() -> None:
    a, b = run_pairs(NOTHING, NOTHING, PairPlan(pairs=4, order_seed=3), Settings())

    assert [pair for _, pair in places(a)] == [pair for _, pair in places(b)] == [None, 0, 1, 2, 3]
    assert sorted(place for place, _ in [*places(a), *places(b)]) == list(range(10))
    assert [unit.left_out for unit in a.units] == ["warm-up", "", "", "", ""]
    assert a.design is not None
    assert b.design is not None
    assert (a.design.kind, a.design.order_seed, a.design.partner) == ("interleaved", 3, b.run_id)
    assert (a.design.semantic_id, a.design.benchmark) == (b.design.semantic_id, b.design.benchmark)
    assert decode_record(encode_record(a), "a.json").design == a.design


def test_the_order_is_random_and_the_seed_repeats_it() -> None:
    def firsts(seed: int) -> list[bool]:
        a, b = run_pairs(NOTHING, NOTHING, PairPlan(pairs=4, order_seed=seed, warmup_processes=0), Settings())
        return [one < other for (one, _), (other, _) in zip(places(a), places(b), strict=True)]

    orders = [firsts(seed) for seed in (1, 1, 2)]

    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert len(set(orders[0])) == 2


def test_the_caller_ends_it_when_it_has_seen_enough() -> None:
    seen: list[int] = []

    def enough(done: int, run: PairRun) -> bool:
        assert len(run.records()[0].processes) == done
        seen.append(done)
        return done < 2

    a, _ = run_pairs(NOTHING, NOTHING, PairPlan(pairs=9, warmup_processes=0), Settings(), enough)

    assert seen == [1, 2]
    assert len(a.processes) == 2


def test_no_pair_is_begun_after_the_budget() -> None:
    a, b = run_pairs(NOTHING, NOTHING, PairPlan(pairs=9, budget_s=0), Settings())

    assert places(a)[0][1] is None
    assert len(a.processes) == len(b.processes) == 1


def test_a_process_that_fails_ends_it_and_what_there_was_is_kept(tmp_path: Path) -> None:
    a, b = run_pairs(failing_from(tmp_path, 3), NOTHING, PairPlan(pairs=9, warmup_processes=0), Settings())

    assert a.failure == "process 2: exit code 1"
    assert b.failure == ""
    assert [unit.left_out for unit in a.units] == ["", "", "failed"]
    assert len(b.processes) == 3


def test_other_inputs_items_or_names_are_another_benchmark() -> None:
    command = Command(argv=["true"])
    source = RecordSource("x", 1, "ab")
    benchmarks = [
        Benchmark(command=command),
        Benchmark(command=command, items=3),
        Benchmark(command=command, inputs=[source]),
        Benchmark(command=command, name="noop"),
        Benchmark(command=Command(argv=["true", "--fast"])),
    ]

    assert len({benchmark.semantic_id() for benchmark in benchmarks}) == 5
    assert (
        Benchmark(command=Command(argv=["a"]), name="n").semantic_id()
        == Benchmark(command=Command(argv=["b"]), name="n", label="other").semantic_id()
    )


def test_what_a_record_says_of_the_command_holds_no_credential() -> None:
    command = Command(
        argv=["true", "--api-key", "k3yS-opaque-value", "HF_TOKEN=t0keN-opaque-value"],
        env={"WANDB_API_KEY": "1", "MODE": "x"},
    )
    measured = repeat(Benchmark(command=command), RepeatPlan(processes=1, warmup_processes=0), Settings())

    record = measured.record()

    assert record.configuration["command"] == ["true", "--api-key", "[redacted]", "HF_TOKEN=[redacted]"]
    assert record.configuration["env"] == {"MODE": "x", "WANDB_API_KEY": "[redacted]"}
    assert b"-opaque-value" not in encode_record(record)


@pytest.mark.parametrize(
    ("plan", "processes", "stopped"),
    [
        (RepeatPlan(processes=3, warmup_processes=1), 4, "processes"),
        (RepeatPlan(processes=2, most=4, target_share=1e9, warmup_processes=0), 2, "target"),
        (RepeatPlan(processes=2, most=4, target_share=1e-9, warmup_processes=0), 4, "processes"),
        (RepeatPlan(processes=9, budget_s=0), 1, "budget"),
    ],
)
def test_processes_are_added_until_the_typical_time_is_known(plan: RepeatPlan, processes: int, stopped: str) -> None:
    heard: list[int] = []

    measured = repeat(NOTHING, plan, Settings(), lambda so_far: heard.append(len(so_far.results)))

    assert heard == list(range(1, processes + 1))
    assert measured.stopped == measured.record().extra["stopped"] == stopped


def test_a_failure_ends_the_repeats(tmp_path: Path) -> None:
    measured = repeat(failing_from(tmp_path, 2), RepeatPlan(processes=9, warmup_processes=0), Settings())

    assert (measured.stopped, len(measured.results)) == ("failed", 2)
    assert measured.record().failure == "process 1: exit code 1"


def test_an_interruption_keeps_what_there_is() -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    measured = repeat(NOTHING, RepeatPlan(), Settings(), interrupt)

    assert (measured.stopped, measured.record().failure) == ("interrupted", "interrupted by the user")
    assert len(measured.results) == 1
