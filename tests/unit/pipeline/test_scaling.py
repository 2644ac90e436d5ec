"""Which paths are which runs, and what happens to runs that cannot be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import longpole
from longpole.errors import InputError, UsageError
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.scaling import find_runs, scaling
from tests.scaling_runs import write_run

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.scaling import Scaling

OPTIONS = ReportOptions(use_cache=False, processes=1)


def compare(*runs: Path, **chosen: Any) -> Scaling:
    return scaling([str(run) for run in runs], options=OPTIONS, **chosen)


def test_runs_are_compared_with_the_smallest(tmp_path: Path) -> None:
    result = compare(write_run(tmp_path / "n4", 4, idle_us=110), write_run(tmp_path / "n1", 1))

    assert [(run.label, run.ranks) for run in result.runs] == [("n1", 1), ("n4", 4)]
    assert result.runs[1].efficiency == pytest.approx(110 / 200)
    assert result.runs[1].by_object_ns["host"] == 90_000
    assert result.runs[1].sources == [str(tmp_path / "n4" / f"rank{rank}.json") for rank in range(4)]


def test_the_sub_folders_of_one_folder_are_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "n1", 1)
    write_run(tmp_path / "runs" / "n2", 2)
    (tmp_path / "runs" / ".cache").mkdir()

    result = compare(tmp_path / "runs")

    assert [run.label for run in result.runs] == ["n1", "n2"]


def test_a_run_that_cannot_be_read_is_left_out_and_said(tmp_path: Path) -> None:
    empty = tmp_path / "n2"
    empty.mkdir()

    result = compare(write_run(tmp_path / "n1", 1), empty, write_run(tmp_path / "n4", 4))

    assert [run.label for run in result.runs] == ["n1", "n4"]
    (difference,) = result.differences
    assert (difference.what, difference.runs) == ("refused", ["n2"])
    assert "no trace in this folder" in difference.says


def test_one_readable_run_is_too_few(tmp_path: Path) -> None:
    (tmp_path / "n2").mkdir()

    with pytest.raises(InputError, match="at least two runs that can be read; found 1") as caught:
        compare(write_run(tmp_path / "n1", 1), tmp_path / "n2")

    assert "no trace in this folder" in str(caught.value)


def test_labels_are_as_long_as_they_must_be(tmp_path: Path) -> None:
    result = compare(write_run(tmp_path / "a" / "traces", 1), write_run(tmp_path / "b" / "traces", 2))

    assert [run.label for run in result.runs] == ["a/traces", "b/traces"]


def test_patterns_are_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "n1", 1)
    write_run(tmp_path / "n2", 2)

    result = compare(tmp_path / "n1" / "rank*.json", tmp_path / "n2" / "rank*.json")

    assert [run.ranks for run in result.runs] == [1, 2]


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        ([], "at least two runs of a job"),
        (["n1"], "a sub-folder for each of at least two runs; found 0"),
        (["n1/rank0.json"], "found one file"),
        (["nothing"], "there is no such file or folder"),
        (["n1/rank*.json"], "found one run"),
        (["n1", "n1/"], "named twice"),
    ],
)
def test_fewer_than_two_runs_are_refused(tmp_path: Path, paths: list[str], says: str) -> None:
    write_run(tmp_path / "n1", 1)

    with pytest.raises(UsageError) as caught:
        find_runs([str(tmp_path / path) for path in paths])

    assert says in str(caught.value)


def test_a_path_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"n2: .*there is no such file or folder"):
        compare(write_run(tmp_path / "n1", 1), tmp_path / "n2")


def test_several_jobs_in_one_run_say_how_to_name_one(tmp_path: Path) -> None:
    write_run(tmp_path / "n2" / "first", 2)
    write_run(tmp_path / "n2" / "second", 2)

    with pytest.raises(UsageError) as caught:
        compare(write_run(tmp_path / "n1", 1), tmp_path / "n2")

    assert str(caught.value).startswith("n2: 2 distinct runs here")
    assert "name its files with a pattern" in str(caught.value)


def test_items_of_runs_are_found_by_label_or_path(tmp_path: Path) -> None:
    runs = write_run(tmp_path / "n1", 1), write_run(tmp_path / "n2", 2, busy_us=40)

    result = compare(*runs, items_of={"n1": 64, f"{runs[1]}/": 32})

    assert [run.items_per_rank for run in result.runs] == [64, 32]
    assert result.items.basis == "declared"


def test_items_of_one_run_fill_up_with_those_of_all(tmp_path: Path) -> None:
    result = compare(write_run(tmp_path / "n1", 1), write_run(tmp_path / "n2", 2), items=64, items_of={"n2": 32})

    assert [run.items_per_rank for run in result.runs] == [64, 32]


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"items_of": {"n1": 64}}, "lacking n2"),
        ({"items_of": {"n1": 64, "n9": 1}}, "no run is called 'n9'; there are n1, n2"),
        ({"items": 1, "mode": "strong"}, "--strong is an assumption"),
        ({"mode": "sideways"}, "expected weak or strong"),
    ],
)
def test_items_that_make_no_sense_are_refused(tmp_path: Path, chosen: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        compare(write_run(tmp_path / "n1", 1), write_run(tmp_path / "n2", 2), **chosen)

    assert says in str(caught.value)


def test_the_library_has_the_function(tmp_path: Path) -> None:
    write_run(tmp_path / "n1", 1)
    write_run(tmp_path / "n2", 2)

    assert longpole.scaling(tmp_path, options=OPTIONS).base == "n1"


def test_a_trace_of_no_events_sinks_no_other(tmp_path: Path) -> None:
    damaged = tmp_path / "n2"
    damaged.mkdir()
    (damaged / "rank0.json").write_text(json.dumps({"traceEvents": []}), encoding="utf-8")

    result = compare(write_run(tmp_path / "n1", 1), damaged, write_run(tmp_path / "n4", 4))

    assert [run.label for run in result.runs] == ["n1", "n4"]


def test_the_example_loses_its_time_to_the_rank_with_the_long_documents(root: Path) -> None:
    """Rank 2 of four spends 43 ms more in its loader (`examples/check.py`): a quarter in the mean, and waiting.

    The others' all-reduce takes 50 to 55 ms, its own 4.8 ms.
    """
    names = ("ddp-gloo-1rank", "ddp-gloo-2ranks", "ddp-gloo-4ranks")

    result = compare(*(root / "examples" / name for name in names))

    assert result.comparable
    assert result.differences == []
    four = result.runs[2]
    losses_ms = {part.part: part.loss_ns / 1e6 for part in four.parts if isinstance(part.loss_ns, int)}
    assert losses_ms["input"] == pytest.approx(43 / 4, abs=1)
    assert losses_ms["skew"] == pytest.approx(0.75 * 48, abs=2)
    assert losses_ms["transfer"] == pytest.approx(4, abs=1)
    assert sum(losses_ms.values()) == pytest.approx(96.3 - 39.1, abs=0.5)
    assert "waiting for the last rank" in four.says
