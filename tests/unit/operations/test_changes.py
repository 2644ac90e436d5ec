"""What-ifs on a small job, and how changes are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.errors import InputError, UsageError
from longpole.graph.operations.build import build_operation_graph
from longpole.pipeline.operations import whatif_operations
from longpole.readers.operations.check import read_operations
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from longpole.units import NS_PER_MS
from longpole.whatif.operation_changes import changed_work_ns, parse_operation_change
from tests.operation_tables import Job, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.graph.operations.build import OperationGraph


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A job of 199 ms a step: rank 1 computes twice as long, without it a step takes 129 ms."""
    return str(write_table(tmp_path / "job.parquet", Job(slow={(1, 0): 2.0}).rows()))


@pytest.fixture
def graph(path: str) -> OperationGraph:
    from pathlib import Path

    return build_operation_graph(read_operations([Path(path)], ["job"], Settings()).table, Settings())


def takes_ms(graph: OperationGraph, *changes: str) -> float:
    parsed = [parse_operation_change(*change.split(" ", 1)) for change in changes]
    work_ns, _ = changed_work_ns(graph, parsed)
    return float(graph.replay_steps_ns(work_ns)[0]) / NS_PER_MS


@pytest.mark.parametrize(
    ("changes", "expected_ms"),
    [
        (["--set rank:1&compute=0.5x"], 129),  # its optimizer is halved too, but the others' are not
        (["--set rank:1&name:ward-compute=0.5x"], 129),
        (["--set dp:1&stage:0&name:ward-compute=0.5x"], 129),
        (["--set name:optimizer=+10ms"], 209),
        (["--set name:optimizer=-1ms"], 198),
        (["--set name:optimizer=-10s"], 196),
        (["--remove name:reduce-scatter"], 197),
        (["--set name:reduce-scatter=0"], 197),
        (["--set compute=mean"], 159),
        (["--equalise work"], 159),
        (["--equalise all"], 159),
        (["--set name:ward-compute=median"], 129),
        (["--set rank:1&name:ward-compute=0.5x", "--remove name:optimizer"], 126),
    ],
)
def test_a_change_takes_what_it_takes_by_hand(graph: OperationGraph, changes: list[str], expected_ms: float) -> None:
    assert takes_ms(graph, *changes) == expected_ms


def test_equal_speed_is_the_median_of_the_ranks_of_a_stage(graph: OperationGraph) -> None:
    """Two ranks on stage 0, 10 and 20 ms: both work at 15 (30 backward), stage 1 stays at 10 and 20.

    Ends on stage 0: F0 15, F1 31, B0 77, F2 92, B1 123, B2 154, optimizer 159;
    on stage 1: F0 26, B0 46, F1 57, B1 77, F2 103, B2 123.
    """
    assert takes_ms(graph, "--equalise speed") == 159


def test_a_change_is_about_the_work_and_not_about_waiting(graph: OperationGraph) -> None:
    """Of sends and receives four lie on the path, a millisecond each: those behind F0 and B0, before B1 and B2."""
    assert takes_ms(graph, "--remove name:send|recv") == 199 - 4


def test_a_change_of_one_step_changes_that_step(tmp_path: Path) -> None:
    file = write_table(tmp_path / "job.parquet", Job(steps=(4, 5)).rows())
    graph = build_operation_graph(read_operations([file], ["job"], Settings()).table, Settings())

    work_ns, counts = changed_work_ns(graph, [parse_operation_change("--set", "step:5&name:optimizer=0")])

    assert graph.replay_steps_ns(work_ns).tolist() == [129 * NS_PER_MS, 126 * NS_PER_MS]
    assert counts == [4]


def test_the_document_says_what_was_saved(path: str) -> None:
    changes = [parse_operation_change("--set", "rank:1&name:ward-compute=0.5x")]

    document = whatif_operations([path], changes)

    assert document.schema == "longpole.operations.whatif/1"
    assert document.measured_period_ns == document.replayed_period_ns == 199 * NS_PER_MS
    assert document.predicted_period_ns == 129 * NS_PER_MS
    assert document.saving_ns == 70 * NS_PER_MS
    assert (document.changes[0].operations, document.changes[0].says) == (
        6,
        "rank:1&name:ward-compute: 0.5 times as long",
    )
    assert document.refused == ""


def test_a_replay_that_is_off_predicts_nothing(tmp_path: Path) -> None:
    """A gap of 50 ms before the optimizer, in which nothing was timed."""
    rows = [row | {"start_ts": row["start_ts"] + 0.05 * (row["optype"] == "optimizer")} for row in Job().rows()]
    file = write_table(tmp_path / "job.parquet", rows)

    document = whatif_operations([str(file)], [parse_operation_change("--remove", "name:optimizer")])

    assert document.refused == "the unchanged replay is off by −27.9 %, more than 5 %"
    assert isinstance(document.predicted_period_ns, Unknown)
    assert {entry.at for entry in document.unknown} == {"/predicted_period_ns", "/saving_ns", "/what_if_error"}


def test_a_change_about_nothing_is_an_error(path: str) -> None:
    with pytest.raises(UsageError, match="there is no such operation; there are backward-compute, backward-recv"):
        whatif_operations([path], [parse_operation_change("--set", "name:all-gather=0")])


def test_paths_without_a_table_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no operation table"):
        whatif_operations([str(tmp_path)], [parse_operation_change("--equalise", "work")])


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--set", "name:x", "expected SELECTOR=VALUE"),
        ("--set", "stage:last=0", "expected name:REGEX, stage:N"),
        ("--set", "input=0", "expected name:REGEX"),
        ("--set", "name:(=0", "expected a regular expression"),
        ("--set", f"name:{'a' * 501}=0", "at most 500 characters"),
        ("--set", "name:x=half", "expected 0.5x"),
        ("--set", "name:x=2000x", "expected a factor from 0 to 1000"),
        ("--set", "name:x=+2", "expected a time with its unit"),
        ("--equalise", "luck", "expected work, speed or all"),
        ("--fuse", "all_reduce=25MB", "expected --set, --remove or --equalise"),
    ],
)
def test_what_is_no_change_is_told_what_one_is(option: str, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_operation_change(option, value)
