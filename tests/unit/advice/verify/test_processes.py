"""Benchmark records of several processes: each process is a run of the comparison."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from longpole.advice.verify.processes import replicates_of, without_failed
from longpole.errors import UsageError
from longpole.pipeline.verify import VerifyOptions, verify_runs
from longpole.records.run_record import RecordCorrectness, RecordDesign, RecordMetric, RecordProcess
from longpole.records.run_record_file import encode_record
from longpole.report.text.verify import render_verify
from tests.verify_runs import HEALTHY, Job

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.run_record import RunRecord

FASTER = {**HEALTHY, "input": 20.0}


def bench(
    name: str, seeds: list[int], *, parts: Any = HEALTHY, partner: str = "", shuffled: bool = False, pace: float = 0.0
) -> RunRecord:
    """Draw a record of one process a seed; processes of equal seeds were equally slow, as those of a pair are."""
    units, processes = [], []
    for number, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        slow = float(np.exp(rng.normal(0, pace)))
        run = Job(parts={part: ms * slow for part, ms in parts.items()}, between=0.0).run(rng)
        units += [msgspec.structs.replace(unit, process=number) for unit in run.units]
        place = len(seeds) - number if shuffled else number
        processes.append(RecordProcess(number, place=place, pair=seed, peak_bytes=1000 + number))
    first = Job(parts=parts).runs(1, 1)[0]
    kind: Any = "interleaved" if partner else "sequential"
    return msgspec.structs.replace(
        first,
        run_id=name,
        label=name,
        units=units,
        processes=processes,
        design=RecordDesign(kind=kind, partner=partner),
        limits={"peak_bytes": 5000},
    )


def fail(record: RunRecord, number: int, **given: Any) -> RunRecord:
    processes = [
        msgspec.structs.replace(process, **given) if process.process == number else process
        for process in record.processes
    ]
    return msgspec.structs.replace(record, processes=processes)


def test_every_process_is_a_run() -> None:
    found = replicates_of([bench("a", [1, 2, 3])], [bench("b", [4, 5])])

    assert [len(found.before), len(found.after), found.paired] == [3, 2, False]
    assert [run.label for run in found.before] == ["a #0", "a #1", "a #2"]
    assert all(len(run.units) == 12 for run in found.before)
    assert [run.limits["peak_bytes"] for run in found.after] == [1000, 1001]
    assert found.notes == []


def test_a_record_without_processes_is_one_run() -> None:
    runs = Job().runs(2, 1)

    found = replicates_of(runs, runs[:1])

    assert found.before == runs
    assert not found.paired


def test_interleaved_partners_are_paired_by_their_numbers_and_not_by_their_order() -> None:
    found = replicates_of([bench("a", [7, 8, 9], partner="b")], [bench("b", [9, 7, 8], partner="a", shuffled=True)])

    assert found.paired
    assert [run.run_id for run in found.before] == ["a/0", "a/1", "a/2"]
    assert [run.run_id for run in found.after] == ["b/1", "b/2", "b/0"]


@pytest.mark.parametrize("partner", ["", "c"])
def test_interleaved_with_another_record_is_no_pair(partner: str) -> None:
    assert not replicates_of([bench("a", [1, 2], partner="b")], [bench("b", [1, 2], partner=partner)]).paired


def test_a_process_that_failed_is_left_out_and_counted_and_so_is_its_partner() -> None:
    before = fail(bench("a", [1, 2, 3, 4], partner="b"), 1, exit_code=-9, failure="killed by signal 9")

    found = replicates_of([before], [bench("b", [1, 2, 3, 4], partner="a")])

    assert [run.run_id for run in found.before] == ["a/0", "a/2", "a/3"]
    assert [run.run_id for run in found.after] == ["b/0", "b/2", "b/3"]
    assert found.notes == [
        "a: 1 of 4 processes left out; process 1 failed (killed by signal 9)",
        "1 process left out: the other of the pair is missing",
    ]
    assert len(without_failed(before).units) == 36


def test_a_process_without_a_unit_is_left_out() -> None:
    record = bench("a", [1, 2])
    record.units = [unit for unit in record.units if unit.process == 0]

    found = replicates_of([record], [record])

    assert len(found.before) == 1
    assert "a: 1 of 2 processes left out; process 1 has no unit that counts" in found.notes


def test_where_all_failed_the_record_stands_as_a_whole() -> None:
    record = fail(bench("a", [1]), 0, exit_code=1)

    assert replicates_of([record], [bench("b", [2, 3])]).before == [record]


def test_a_record_that_did_not_come_to_its_end_is_marked() -> None:
    record = msgspec.structs.replace(bench("a", [1, 2]), failure="the disk is full")

    assert replicates_of([record], [bench("b", [1, 2])]).notes == ["a: it did not come to its end: the disk is full"]


def test_quality_is_not_repeated_with_every_process() -> None:
    metric = RecordMetric("loss", [1.0, 1.1])
    record = msgspec.structs.replace(bench("a", [1, 2, 3]), correctness=RecordCorrectness(metrics=[metric]))

    found = replicates_of([record], [record])

    assert [run.correctness.metrics for run in found.before] == [[metric], [], []]


def write(folder: Path, *records: RunRecord) -> list[str]:
    paths = [folder / f"{record.run_id}.json" for record in records]
    for path, record in zip(paths, records, strict=True):
        path.write_bytes(encode_record(record))
    return [str(path) for path in paths]


def test_pairs_see_through_what_both_of_a_pair_share(tmp_path: Path) -> None:
    """The machine's pace varies by 20 % from pair to pair; the change of 14 % is told from five pairs all the same."""
    seeds = [11, 12, 13, 14, 15]
    a, b = write(
        tmp_path,
        bench("a", seeds, pace=0.2, partner="b"),
        bench("b", seeds, parts=FASTER, pace=0.2, partner="a", shuffled=True),
    )

    verify = verify_runs([a], [b], VerifyOptions(part="input"))

    assert verify.verdict == "accepted"
    assert not isinstance(verify.effect, msgspec.UnsetType)
    effect = json.loads(msgspec.json.encode(verify.effect))
    assert effect["runs"] == {"before": 5, "after": 5}
    assert "pair" in effect["method"]
    assert effect["single_run"] is False
    assert effect["estimate"] == pytest.approx(103 / 120 - 1, abs=0.01)


def test_the_same_without_pairs_is_not_told(tmp_path: Path) -> None:
    """What pairs are for: the same processes, each side on its own, leave it open."""
    seeds = [11, 12, 13, 14, 15]
    a, b = write(tmp_path, bench("a", seeds, pace=0.2), bench("b", seeds, parts=FASTER, pace=0.2))

    assert verify_runs([a], [b], VerifyOptions(part="input")).verdict == "inconclusive"


def test_the_page_counts_processes_and_says_what_was_left_out(tmp_path: Path) -> None:
    a, b = write(tmp_path, fail(bench("a", [1, 2, 3, 4]), 2, exit_code=1), bench("b", [5, 6, 7], parts=FASTER))

    verify = verify_runs([a], [b], VerifyOptions(part="input"))
    page = render_verify(verify, width=80, color=False)

    assert (verify.before[0].processes, verify.before[0].units) == (4, 36)
    assert "before  a · 1 run of 4 processes, 36 steps" in page
    assert "a: 1 of 4 processes left out; process 2 failed (exit code 1)" in page


def test_paired_records_of_processes_are_refused(tmp_path: Path) -> None:
    paths = write(tmp_path, bench("a", [1, 2]), bench("b", [3, 4]))

    with pytest.raises(UsageError, match="--paired: expected runs of one process each"):
        verify_runs(paths, paths, VerifyOptions(paired=True))
