"""Bad tables cost what is bad: counted, named, and nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from longpole.errors import InputError, UsageError
from longpole.pipeline.operation_tables import find_operation_tables
from longpole.pipeline.operations import build_operations_report
from longpole.readers.operations.check import read_operations
from longpole.readers.operations.sniff import table_format
from longpole.records.operations import OperationKind, operation_type
from longpole.settings import Settings
from tests.operation_tables import Job, frame, write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from longpole.readers.operations.check import OperationRecords
    from tests.operation_tables import Row

    Read = Callable[[Iterable[Row]], OperationRecords]

STEPS = (1, 2, 3)


def codes(records: OperationRecords) -> dict[str, int]:
    return {finding.code: finding.count for finding in records.findings}


def spoil(column: str, value: object) -> list[Row]:
    """Return three steps, of which the second has one bad operation: the first pass of rank 0."""
    rows = Job(steps=STEPS).rows()
    place = next(at for at, row in enumerate(rows) if row["step"] == 2)
    rows[place] = rows[place] | {column: value}
    return rows


def test_a_good_table_has_no_finding(read: Read) -> None:
    records = read(Job(steps=STEPS).rows())

    assert records.findings == []
    assert len(records.table) == records.rows[0] == records.used[0] == 3 * 56
    assert records.left_out == []


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("duration", math.nan, "operation.time_unusable"),
        ("duration", math.inf, "operation.time_unusable"),
        ("start_ts", None, "operation.time_unusable"),
        ("start_ts", math.nan, "operation.time_unusable"),
        ("start_ts", 1e15, "operation.time_stray"),
        ("start_ts", -1e300, "operation.time_stray"),
        ("duration", -0.001, "operation.negative_duration"),
        ("duration", 1e12, "operation.duration_impossible"),
        ("optype", None, "operation.incomplete"),
        ("rank", None, "operation.incomplete"),
        ("stage", -1, "operation.incomplete"),
        ("dp_rank", 1 << 40, "operation.incomplete"),
        ("stage", 5, "operation.place_conflict"),
    ],
)
def test_one_bad_operation_costs_its_step(read: Read, column: str, value: object, code: str) -> None:
    records = read(spoil(column, value))

    assert codes(records) == {code: 1, "operation.step_incomplete": 1}
    assert [step.step for step in records.left_out] == [2]
    assert set(records.table.step.tolist()) == {1, 3}


def test_a_bad_operation_is_named_by_file_and_row(read: Read) -> None:
    finding = next(f for f in read(spoil("duration", -1.0)).findings if f.code == "operation.negative_duration")

    assert (finding.example.file, finding.example.event) == ("job.parquet", 56)
    assert finding.message == "1 × timed operations that end before they start"


def test_an_operation_without_a_step_is_left_out_and_its_step_too(read: Read) -> None:
    records = read(spoil("step", None))

    assert codes(records)["operation.incomplete"] == 1
    assert [(step.step, step.why) for step in records.left_out] == [
        (2, "1 type of operation not there as often as usual")
    ]


def test_a_step_without_a_rank_is_left_out(read: Read) -> None:
    records = read(row for row in Job(steps=STEPS).rows() if (row["step"], row["rank"]) != (3, 2))

    assert [(step.step, step.why) for step in records.left_out] == [(3, "1 rank not in it")]


def test_what_a_worker_does_now_and_then_makes_no_step_incomplete(read: Read) -> None:
    rows = Job(steps=STEPS).rows()
    save = rows[-1] | {"optype": "save-checkpoint", "start_ts": 1.0, "duration": 0.5}

    records = read([*rows, save])

    assert records.findings == []
    assert len(records.table) == len(rows) + 1


def test_where_no_step_is_whole_all_are_kept(read: Read) -> None:
    rows = [row for row in Job(steps=(1, 2)).rows() if (row["step"], row["rank"]) not in ((1, 0), (2, 3))]

    records = read(rows)

    assert records.left_out == []
    assert len(records.table) == len(rows)


def test_an_operation_written_twice_counts_once(read: Read) -> None:
    rows = Job(steps=STEPS).rows()

    records = read([*rows, rows[5], rows[9]])

    assert codes(records) == {"operation.duplicate": 2}
    assert len(records.table) == len(rows)
    assert records.findings[0].severity == "note"


def test_two_operations_of_one_name_are_a_contradiction(read: Read) -> None:
    rows = Job(steps=STEPS).rows()

    records = read([*rows, rows[5] | {"duration": 9.0}])

    assert codes(records) == {"operation.duplicate": 1}
    assert records.findings[0].severity == "warn"
    assert records.table.duration_ns.max() < 1e9


def test_ranks_at_one_place_are_taken_for_tensor_parallel_ones(read: Read) -> None:
    rows = Job().rows()
    second = [row | {"rank": row["rank"] + 4} for row in rows]

    records = read([*rows, *second])

    assert codes(records) == {"operation.tensor_rank_assumed": 8}
    assert [(worker.rank, worker.tp_rank) for worker in records.table.workers[:2]] == [(0, 0), (4, 1)]
    assert records.n_missing == 0


def test_a_hole_in_the_layout_is_named(read: Read) -> None:
    records = read(row | {"dp_rank": row["dp_rank"] * 2} for row in Job().rows())

    assert records.missing_workers == ["dp 1, stage 0", "dp 1, stage 1"]
    assert codes(records) == {"operation.rank_missing": 2}


def test_a_layout_of_absurd_size_is_counted_and_not_listed(read: Read) -> None:
    records = read(row | {"dp_rank": row["dp_rank"] * 1_000_000} for row in Job().rows())

    assert records.n_missing == 2 * 1_000_001 - 4
    assert len(records.missing_workers) == 8


def test_times_too_coarse_to_order_operations_are_found(tmp_path: Path) -> None:
    import polars as pl

    table = frame(Job().rows()).with_columns((pl.col("start_ts") + 1.7e9).cast(pl.Float32))
    table.write_parquet(tmp_path / "job.parquet")

    records = read_operations([tmp_path / "job.parquet"], ["job.parquet"], Settings())

    assert codes(records)["operation.resolution"] == 1


@pytest.mark.parametrize("name", ["job.parquet", "job.csv"])
def test_both_formats_hold_the_same(tmp_path: Path, name: str) -> None:
    rows = Job(slow={(1, 0): 2.0}).rows()

    records = read_operations([write_table(tmp_path / name, rows)], [name], Settings())

    assert len(records.table) == 56
    assert records.findings == []


def test_a_cell_that_is_no_number_costs_its_operation(tmp_path: Path) -> None:
    path = write_table(tmp_path / "job.csv", Job(steps=STEPS).rows())
    lines = path.read_text(encoding="utf-8").splitlines()
    cells = lines[60].split(",")
    cells[6] = "n/a"
    path.write_text("\n".join([*lines[:60], ",".join(cells), *lines[61:]]), encoding="utf-8")

    records = read_operations([path], ["job.csv"], Settings())

    assert codes(records) == {"operation.time_unusable": 1, "operation.step_incomplete": 1}


def test_whole_numbers_written_with_a_point_are_whole_numbers(tmp_path: Path) -> None:
    rows = [row | {"rank": f"{row['rank']}.0", "step": f"{row['step']}.0"} for row in Job().rows()]

    records = read_operations([write_table(tmp_path / "job.csv", rows)], ["job.csv"], Settings())

    assert len(records.table) == 56


def test_missing_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "job.parquet"
    frame(Job().rows()).drop("stage", "duration").write_parquet(path)

    with pytest.raises(InputError, match="without the columns stage, duration"):
        read_operations([path], ["job.parquet"], Settings())


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.parquet"
    frame(Job().rows()).clear().write_parquet(path)

    with pytest.raises(InputError, match="no usable operation in 0 rows"):
        read_operations([path], ["job.parquet"], Settings())


@pytest.mark.parametrize("keep", [4, 100, 2_000, -9])
def test_a_damaged_parquet_file_is_refused_in_a_sentence(tmp_path: Path, keep: int) -> None:
    path = write_table(tmp_path / "job.parquet", Job().rows())
    path.write_bytes(path.read_bytes()[:keep])

    with pytest.raises(InputError, match="cannot be read as a parquet table"):
        read_operations([path], ["job.parquet"], Settings())


def test_columns_of_another_type_cost_their_rows_only(tmp_path: Path) -> None:
    import polars as pl

    table = frame(Job().rows()).with_columns(pl.lit([1, 2]).alias("mb_id"), pl.lit("x").alias("gmc"))
    table.write_parquet(tmp_path / "job.parquet")

    records = read_operations([tmp_path / "job.parquet"], ["job.parquet"], Settings())

    assert len(records.table) == 56


def test_files_of_one_job_are_read_together(tmp_path: Path) -> None:
    rows = Job().rows()
    paths = [write_table(tmp_path / f"rank{n}.parquet", (r for r in rows if r["rank"] == n)) for n in range(4)]

    document = build_operations_report(find_operation_tables([str(tmp_path)]))

    assert [source.events for source in document.sources] == [14] * 4
    assert document.layout.ranks == [0, 1, 2, 3]
    assert len(paths) == 4


def test_two_jobs_are_told_from_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_table(tmp_path / f"{name}.parquet", Job().rows())

    with pytest.raises(InputError, match="expected the tables of one job, found several"):
        build_operations_report(find_operation_tables([str(tmp_path)]))


def test_tables_are_told_by_content(tmp_path: Path) -> None:
    rows = Job().rows()
    write_table(tmp_path / "a.parquet", rows).rename(tmp_path / "a.bin")
    write_table(tmp_path / "b.csv", rows).rename(tmp_path / "b.txt")
    (tmp_path / "c.csv").write_text("time,loss\n1,2\n", encoding="utf-8")
    (tmp_path / "d").write_bytes(b"")

    formats = {name: table_format(tmp_path / name) for name in ("a.bin", "b.txt", "c.csv", "d", "missing")}

    assert formats == {"a.bin": "parquet", "b.txt": "csv", "c.csv": None, "d": None, "missing": None}


def test_a_folder_counts_if_it_holds_nothing_that_may_be_a_trace(tmp_path: Path) -> None:
    write_table(tmp_path / "inner.parquet", Job().rows())
    assert find_operation_tables([str(tmp_path)]) == [tmp_path / "inner.parquet"]

    (tmp_path / ".hidden").write_text("not looked at", encoding="utf-8")
    assert find_operation_tables([str(tmp_path)]) == [tmp_path / "inner.parquet"]

    (tmp_path / "README.md").write_text("how it was recorded", encoding="utf-8")
    assert find_operation_tables([str(tmp_path)]) == [tmp_path / "inner.parquet"]

    (tmp_path / "trace.json").write_text("{}", encoding="utf-8")
    assert find_operation_tables([str(tmp_path)]) == []


def test_tables_and_traces_are_not_one_run(tmp_path: Path) -> None:
    table = write_table(tmp_path / "job.parquet", Job().rows())
    trace = tmp_path / "trace.json"
    trace.write_text("{}", encoding="utf-8")

    with pytest.raises(UsageError, match="expected one kind of record"):
        find_operation_tables([str(table), str(trace)])


@pytest.mark.parametrize(
    ("name", "kind", "direction", "known"),
    [
        ("forward-compute", OperationKind.COMPUTE, 1, True),
        ("Backward", OperationKind.COMPUTE, -1, True),
        ("backward_recv", OperationKind.RECV, -1, True),
        ("grads-reduce-scatter", OperationKind.COLLECTIVE, 0, True),
        ("params_allgather", OperationKind.COLLECTIVE, 0, True),
        ("moe-all-to-all", OperationKind.COLLECTIVE, 0, False),
        ("data loading", OperationKind.COMPUTE, 0, True),
    ],
)
def test_a_name_says_how_an_operation_depends_on_others(
    name: str, kind: OperationKind, direction: int, known: bool
) -> None:
    found = operation_type(name)

    assert (found.kind, found.direction, found.known) == (kind, direction, known)


def test_a_written_kind_goes_before_the_name() -> None:
    assert operation_type("forward-send", "compute").kind is OperationKind.COMPUTE
    assert operation_type("exchange", "Collective").kind is OperationKind.COLLECTIVE
    assert operation_type("forward-send", "nonsense").kind is OperationKind.SEND
